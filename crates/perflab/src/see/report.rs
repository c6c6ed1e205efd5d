//! `perflab report`, and the conclusions with which a run ends.

use anyhow::Context as _;
use clap::Args;
use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, compare_levels, compare_sides};
use perflab_archive::RunDir;
use perflab_model::Outcome;
use perflab_present::comparison::render_comparisons;
use perflab_present::report::render_report;
use perflab_present::{ReportData, ReportRun};

use crate::app::App;
use crate::failure::Exit;
use crate::output_path::OutputPath;

/// Writes one HTML file about runs.
pub fn report_runs(context: &App, args: &ReportArgs) -> anyhow::Result<Exit> {
    let archive = context.archive()?;
    let sides = args
        .runs
        .iter()
        .map(|name| crate::selection::select_side(&archive, name))
        .collect::<Result<Vec<_>, _>>()?;
    let found = args.runs.iter().map(|name| archive.find_runs(name)).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<RunDir> = found.into_iter().flatten().collect();
    let path = match (&args.output, runs.first()) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_page_path(context, run, ".html")?,
        (None, None) => OutputPath::File("perflab-report.html".into()),
    };
    write_report(&path, &runs, compare_report_sides(&sides)?)?;
    note_written_file(context, "report", &path)?;
    Ok(Exit::Fine)
}

/// After a run: the comparison of each factor on stdout, the report's name on stderr.
pub fn conclude_run(context: &App, run: &RunDir, no_report: bool) -> anyhow::Result<()> {
    let side = ComparisonSide { name: run.short_id().to_owned(), runs: vec![run.read_record()?] };
    let comparisons = compare_by_every_factor(&side)?;
    if comparisons.is_empty() {
        crate::see::show::print_run_overview(context, run)?;
    } else {
        context.print_text(&render_comparisons(
            &comparisons,
            context.format,
            context.width,
            context.colour,
        )?)?;
    }
    let starts = side.runs.first().map(crate::instruments::startup::startup_conclusions).unwrap_or_default();
    for line in crate::instruments::trace::conclude_operations(context, run)?.into_iter().chain(starts) {
        context.print_conclusion(&line)?;
    }
    context.note(format!("run: {} in {}", run.short_id(), context.archive_path().display()));
    if !no_report {
        let path = default_page_path(context, run, ".html")?;
        write_report(&path, std::slice::from_ref(run), comparisons)?;
        context.note(format!("report: {path}"));
    }
    Ok(())
}

/// Where a page about a run goes without `--output`.
pub fn default_page_path(context: &App, run: &RunDir, ending: &str) -> anyhow::Result<OutputPath> {
    let directory = context.archive_path().join("reports");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(OutputPath::File(directory.join(format!("{}{ending}", run.id()))))
}

/// Says which file was written: its name is the data, where the file itself is not.
pub fn note_written_file(context: &App, what: &str, path: &OutputPath) -> anyhow::Result<()> {
    match path {
        OutputPath::Stdout => Ok(()),
        OutputPath::File(path) => {
            context.note(format!("{what}:"));
            context.print_value("file", &path.display().to_string())
        }
    }
}

/// One run is compared by its factors, several with the first.
fn compare_report_sides(sides: &[ComparisonSide]) -> anyhow::Result<Vec<Comparison>> {
    match sides.split_first() {
        Some((side, [])) => compare_by_every_factor(side),
        Some((baseline, candidates)) => {
            Ok(vec![compare_sides(baseline, candidates, &AnalysisOptions::default())?])
        }
        None => Ok(Vec::new()),
    }
}

/// A comparison for every factor that the run varied. A run without a sample has none.
pub fn compare_by_every_factor(side: &ComparisonSide) -> anyhow::Result<Vec<Comparison>> {
    let Some(record) = side.runs.first().filter(|record| !record.samples.is_empty()) else {
        return Ok(Vec::new());
    };
    let varied = record.manifest.plan.factors.iter().filter(|(_, levels)| levels.len() > 1);
    let compared = varied.map(|(factor, _)| compare_levels(side, factor, &AnalysisOptions::default()));
    Ok(compared.collect::<Result<Vec<_>, _>>()?)
}

fn write_report(path: &OutputPath, runs: &[RunDir], comparisons: Vec<Comparison>) -> anyhow::Result<()> {
    let inputs = runs.iter().map(read_report_run).collect::<anyhow::Result<Vec<_>>>()?;
    let title = inputs.first().map_or(String::new(), |input| input.record.manifest.study.title.clone());
    let flames = crate::instruments::flame::join_run_profiles(runs)?;
    let operations = runs.iter().map(crate::instruments::trace::operation_sections);
    let traces = operations.chain(runs.iter().map(crate::instruments::io::io_sections));
    let traces = traces.collect::<anyhow::Result<Vec<_>>>()?.concat();
    let html = render_report(&ReportData { title, comparisons, runs: inputs, flames, traces })?;
    path.write(html.as_bytes())
}

/// A run with its series, as reports take it.
pub fn read_report_run(run: &RunDir) -> anyhow::Result<ReportRun> {
    let series = run
        .list_monitors()?
        .iter()
        .map(|monitor| run.read_series_spans(monitor))
        .collect::<Result<Vec<_>, _>>()?;
    let record = run.read_record()?;
    let has_failed = record.iterations.iter().any(|one| one.outcome != Outcome::Ok);
    let consoles = if has_failed { run.read_output(None, "agent")? } else { None };
    Ok(ReportRun { record, series, consoles })
}

/// `perflab report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The baseline first
    #[arg(default_value = "@latest", value_name = "RUN")]
    pub runs: Vec<String>,
    /// The file to write (default: reports/ID.html in the archive)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}
