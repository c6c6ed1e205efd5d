//! `perflab report`, and what `perflab run` shows at its end.

use anyhow::Context as _;
use perflab_analyze::{Comparison, Options, Side, compare, compare_by_factor};
use perflab_archive::RunDir;
use perflab_model::Outcome;
use perflab_present::report::{ReportInput, RunInput, render};
use perflab_present::table::render_all;

use crate::arguments;
use crate::context::Context;
use crate::exit::Exit;
use crate::output_path::OutputPath;

/// Writes one HTML file about runs.
pub fn run(context: &Context, wanted: &arguments::Report) -> anyhow::Result<Exit> {
    let archive = context.archive()?;
    let sides =
        wanted.runs.iter().map(|name| crate::sides::side(&archive, name)).collect::<Result<Vec<_>, _>>()?;
    let found = wanted.runs.iter().map(|name| archive.find(name)).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<RunDir> = found.into_iter().flatten().collect();
    let path = match (&wanted.output, runs.first()) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_path(context, run, ".html")?,
        (None, None) => OutputPath::File("perflab-report.html".into()),
    };
    write(&path, &runs, comparisons(&sides)?)?;
    say_written(context, "report", &path)?;
    Ok(Exit::Fine)
}

/// After a run: the comparison of each factor on stdout, the report's name on stderr.
pub fn after_run(context: &Context, run: &RunDir, no_report: bool) -> anyhow::Result<()> {
    let side = Side { name: run.short().to_owned(), runs: vec![run.record()?] };
    let comparisons = by_factors(&side)?;
    if comparisons.is_empty() {
        super::show::print(context, run)?;
    } else {
        context.write(&render_all(&comparisons, context.format, context.width, context.colour)?)?;
    }
    let starts = side.runs.first().map(super::startup::conclusions).unwrap_or_default();
    for line in super::trace::conclusions(context, run)?.into_iter().chain(starts) {
        context.conclude(&line)?;
    }
    context.say(format!("run: {} in {}", run.short(), context.archive_path().display()));
    if !no_report {
        let path = default_path(context, run, ".html")?;
        write(&path, std::slice::from_ref(run), comparisons)?;
        context.say(format!("report: {path}"));
    }
    Ok(())
}

/// Where a page about a run goes that nobody said a place for.
pub fn default_path(context: &Context, run: &RunDir, ending: &str) -> anyhow::Result<OutputPath> {
    let directory = context.archive_path().join("reports");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(OutputPath::File(directory.join(format!("{}{ending}", run.id()))))
}

/// Says which file was written: its name is the data, where the file itself is not.
pub fn say_written(context: &Context, what: &str, path: &OutputPath) -> anyhow::Result<()> {
    match path {
        OutputPath::Stdout => Ok(()),
        OutputPath::File(path) => {
            context.say(format!("{what}:"));
            context.answer("file", &path.display().to_string())
        }
    }
}

/// One run is compared by its factors, several with the first.
fn comparisons(sides: &[Side]) -> anyhow::Result<Vec<Comparison>> {
    match sides.split_first() {
        Some((side, [])) => by_factors(side),
        Some((baseline, candidates)) => Ok(vec![compare(baseline, candidates, &Options::default())?]),
        None => Ok(Vec::new()),
    }
}

/// A comparison for every factor that the run varied. A run without a sample has none.
pub fn by_factors(side: &Side) -> anyhow::Result<Vec<Comparison>> {
    let Some(record) = side.runs.first().filter(|record| !record.samples.is_empty()) else {
        return Ok(Vec::new());
    };
    let varied = record.manifest.plan.factors.iter().filter(|(_, levels)| levels.len() > 1);
    let compared = varied.map(|(factor, _)| compare_by_factor(side, factor, &Options::default()));
    Ok(compared.collect::<Result<Vec<_>, _>>()?)
}

fn write(path: &OutputPath, runs: &[RunDir], comparisons: Vec<Comparison>) -> anyhow::Result<()> {
    let inputs = runs.iter().map(input).collect::<anyhow::Result<Vec<_>>>()?;
    let title = inputs.first().map_or(String::new(), |input| input.record.manifest.study.title.clone());
    let flames = super::flame::pictures::of_runs(runs)?;
    let operations = runs.iter().map(super::trace::sections);
    let traces = operations.chain(runs.iter().map(super::io::sections));
    let traces = traces.collect::<anyhow::Result<Vec<_>>>()?.concat();
    let html = render(&ReportInput { title, comparisons, runs: inputs, flames, traces })?;
    path.write(html.as_bytes())
}

/// A run with its series, as reports take it.
pub fn input(run: &RunDir) -> anyhow::Result<RunInput> {
    let series = run.monitors()?.iter().map(|monitor| run.spans(monitor)).collect::<Result<Vec<_>, _>>()?;
    let record = run.record()?;
    let has_failed = record.iterations.iter().any(|one| one.outcome != Outcome::Ok);
    let consoles = if has_failed { run.output(None, "agent")? } else { None };
    Ok(RunInput { record, series, consoles })
}
