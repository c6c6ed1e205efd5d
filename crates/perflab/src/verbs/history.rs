//! `perflab history`

use perflab_analyze::{AnalysisOptions, MetricHistories, metric_histories};
use perflab_archive::RunDir;
use perflab_model::{Manifest, RunRecord, RunStatus};
use perflab_present::ReportData;
use perflab_present::comparison::OutputFormat;
use perflab_present::history::{history_chart, history_runs_grid, steps_grid};
use perflab_present::report::render_report_with_history;

use crate::arguments::history as arguments;
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::verbs::{report, slab};

/// Metrics over runs.
pub fn show_history(context: &App, wanted: &arguments::HistoryArgs) -> anyhow::Result<Exit> {
    let runs = read_history_runs(context, &wanted.of, false)?;
    let found = metric_histories(&history_records(&runs), &history_options(&wanted.of)?)?;
    print_history(context, &found)?;
    if let Some(series) = found.series.first() {
        slab::output::write_scene(context, wanted.plot.as_ref(), || history_chart(&found, series))?;
    }
    write_history_report(context, &wanted.of, &runs, &found)?;
    Ok(Exit::Fine)
}

/// One run of the archive, read.
pub struct HistoryRun {
    pub directory: RunDir,
    pub record: RunRecord,
}

/// The runs that the arguments choose, the oldest first; what cannot be read is said, not passed over. With `needs_newest`, the
/// newest must be readable: what is judged is not silently another one.
pub fn read_history_runs(
    context: &App,
    of: &arguments::HistorySelection,
    needs_newest: bool,
) -> anyhow::Result<Vec<HistoryRun>> {
    let archive = context.archive()?;
    let mut found = Vec::new();
    for entry in archive.list_runs()? {
        match entry.summary {
            Err(reason) => context.note(format!("left out: run {}: {reason}", entry.short)),
            Ok(summary) if summary.status == RunStatus::Running => {}
            Ok(summary) if of.label.is_some() && summary.label != of.label => {}
            Ok(_) => found.push(entry.id),
        }
    }
    let mut directories: Vec<RunDir> = Vec::new();
    for id in &found {
        directories.extend(archive.find_runs(id)?);
    }
    if let Some(study) = &of.study {
        // Damaged ones of other studies are nobody's concern here.
        directories.retain(|run| run.manifest().map_or(true, |manifest| is_of_study(&manifest, study)));
    }
    let newest = directories.last().map(|run| run.id().to_owned());
    let mut runs: Vec<HistoryRun> = Vec::new();
    for directory in directories {
        match directory.read_record() {
            Ok(record) => runs.push(HistoryRun { record, directory }),
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
        return Err(UsageError::new("the archive has no run for a history", hint).into());
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
pub fn history_records(runs: &[HistoryRun]) -> Vec<RunRecord> {
    runs.iter().map(|run| run.record.clone()).collect()
}

/// What to look at.
pub fn history_options(of: &arguments::HistorySelection) -> Result<AnalysisOptions, UsageError> {
    Ok(AnalysisOptions {
        default_margin: super::compare::parse_percent_option("--margin", &of.margin)?,
        metrics: of.metric.clone(),
        workloads: of.workload.clone(),
        ..AnalysisOptions::default()
    })
}

/// A single series run by run, several by their steps.
fn print_history(context: &App, found: &MetricHistories) -> anyhow::Result<()> {
    if context.format == OutputFormat::Json {
        return context.print_json(found);
    }
    match &found.series[..] {
        [one] => context.print_grid(&history_runs_grid(found, one))?,
        _ => {
            let steps = steps_grid(found);
            let count: usize = found.series.iter().map(|series| series.steps.len()).sum();
            context.note(format!(
                "{} series over {} runs: {count} steps",
                found.series.len(),
                found.runs.len()
            ));
            context.print_grid(&steps)?;
        }
    }
    found.notes.iter().for_each(|note| context.note(format!("note: {note}")));
    Ok(())
}

/// The page with the newest run, where one is wanted.
pub fn write_history_report(
    context: &App,
    of: &arguments::HistorySelection,
    runs: &[HistoryRun],
    found: &MetricHistories,
) -> anyhow::Result<()> {
    let (Some(path), Some(newest)) = (&of.report, runs.last()) else { return Ok(()) };
    let input = ReportData {
        title: "History".into(),
        runs: vec![report::read_report_run(&newest.directory)?],
        ..ReportData::default()
    };
    let page = render_report_with_history(&input, found)?;
    path.write(page.as_bytes())?;
    context.note(format!("report: {path}"));
    Ok(())
}
