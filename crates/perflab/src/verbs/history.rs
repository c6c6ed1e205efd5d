//! `perflab history`

use perflab_analyze::{History, Options, history};
use perflab_archive::RunDir;
use perflab_model::{Manifest, RunRecord, Status};
use perflab_present::history::{figure, runs_grid, steps_grid};
use perflab_present::report::{ReportInput, render_history};
use perflab_present::table::Format;

use crate::arguments::history as arguments;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::{report, slab};

/// Metrics over runs.
pub fn run(context: &Context, wanted: &arguments::History) -> anyhow::Result<Exit> {
    let runs = runs(context, &wanted.of, false)?;
    let found = history(&records(&runs), &options(&wanted.of)?)?;
    print(context, &found)?;
    if let Some(series) = found.series.first() {
        slab::output::plot(context, wanted.plot.as_ref(), || figure(&found, series))?;
    }
    write_report(context, &wanted.of, &runs, &found)?;
    Ok(Exit::Fine)
}

/// One run of the archive, read.
pub struct Read {
    pub directory: RunDir,
    pub record: RunRecord,
}

/// The runs that the arguments choose, the oldest first; what cannot be read is said, not passed over. With `needs_newest`, the
/// newest must be readable: what is judged is not silently another one.
pub fn runs(context: &Context, of: &arguments::Of, needs_newest: bool) -> anyhow::Result<Vec<Read>> {
    let archive = context.archive()?;
    let mut found = Vec::new();
    for entry in archive.list()? {
        match entry.summary {
            Err(reason) => context.say(format!("left out: run {}: {reason}", entry.short)),
            Ok(summary) if summary.status == Status::Running => {}
            Ok(summary) if of.label.is_some() && summary.label != of.label => {}
            Ok(_) => found.push(entry.id),
        }
    }
    let mut directories: Vec<RunDir> = Vec::new();
    for id in &found {
        directories.extend(archive.find(id)?);
    }
    if let Some(study) = &of.study {
        // Damaged ones of other studies are nobody's concern here.
        directories.retain(|run| run.manifest().map_or(true, |manifest| is_of_study(&manifest, study)));
    }
    let newest = directories.last().map(|run| run.id().to_owned());
    let mut runs: Vec<Read> = Vec::new();
    for directory in directories {
        match directory.record() {
            Ok(record) => runs.push(Read { record, directory }),
            Err(error) if needs_newest && newest.as_deref() == Some(directory.id()) => {
                return Err(error.into());
            }
            Err(error) => stderr_line!("warning: left out: {error:#}"),
        }
    }
    let skipped = of.last.map_or(0, |last| runs.len().saturating_sub(last));
    runs.drain(..skipped);
    if runs.is_empty() {
        let hint = of
            .label
            .as_ref()
            .map_or("see `perflab list`".into(), |label| format!("no run has the label `{label}`"));
        return Err(Usage::new("the archive has no run for a history", hint).into());
    }
    Ok(runs)
}

/// Whether a run is of a study, by title, file or file name without its folder and ending.
fn is_of_study(manifest: &Manifest, wanted: &str) -> bool {
    let file = manifest.study_file.as_str();
    let base = file.rsplit('/').next().unwrap_or(file);
    [manifest.study.title.as_str(), file, base, base.trim_end_matches(".toml")].contains(&wanted)
}

/// Their records alone.
pub fn records(runs: &[Read]) -> Vec<RunRecord> {
    runs.iter().map(|run| run.record.clone()).collect()
}

/// What to look at.
pub fn options(of: &arguments::Of) -> Result<Options, Usage> {
    Ok(Options {
        default_margin: super::compare::percent("--margin", &of.margin)?,
        metrics: of.metric.clone(),
        workloads: of.workload.clone(),
        ..Options::default()
    })
}

/// A single series run by run, several by their steps.
fn print(context: &Context, found: &History) -> anyhow::Result<()> {
    if context.format == Format::Json {
        return context.document(found);
    }
    match &found.series[..] {
        [one] => context.print(&runs_grid(found, one))?,
        _ => {
            let steps = steps_grid(found);
            let count: usize = found.series.iter().map(|series| series.steps.len()).sum();
            context.say(format!(
                "{} series over {} runs: {count} steps",
                found.series.len(),
                found.runs.len()
            ));
            context.print(&steps)?;
        }
    }
    found.notes.iter().for_each(|note| context.say(format!("note: {note}")));
    Ok(())
}

/// The page with the newest run, where one is wanted.
pub fn write_report(
    context: &Context,
    of: &arguments::Of,
    runs: &[Read],
    found: &History,
) -> anyhow::Result<()> {
    let (Some(path), Some(newest)) = (&of.report, runs.last()) else { return Ok(()) };
    let input = ReportInput {
        title: "History".into(),
        runs: vec![report::input(&newest.directory)?],
        ..ReportInput::default()
    };
    let page = render_history(&input, found)?;
    path.write(page.as_bytes())?;
    context.say(format!("report: {path}"));
    Ok(())
}
