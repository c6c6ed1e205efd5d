//! `perflab report`, and the conclusions with which a run ends.

use std::collections::BTreeSet;

use clap::Args;
use perflab_analyze::{
    AnalysisOptions, Comparison, ComparisonSide, TARGET_FACTOR, TraceContents, compare_levels, compare_sides,
    has_target_levels,
};
use perflab_archive::{Archive, RunDir, StoredRun};
use perflab_model::{RunData, join_continued_runs};
use perflab_present::ReportData;
use perflab_present::comparison::render_comparisons;
use perflab_present::report::{SECTIONS, VERDICTS, conclude_sections, render_report};
use perflab_present::section::Section;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _};
use crate::file_runs::NamedRuns;
use crate::output_path::OutputPath;
use crate::see::row_suspects::add_row_suspects;
use crate::verb::Verb;

/// Writes one HTML file about runs.
pub fn report_runs(context: &App, args: &ReportArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let named = NamedRuns::resolve(context, &args.runs)?;
    let (runs, data) = report_data_of(&archive, &named.selectors)?;
    let path = match (&args.output, runs.first()) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_page_path(context, run, ".html")?,
        (None, None) => OutputPath::File("perflab-report.html".into()),
    };
    write_report(&path, &data)?;
    note_written_file(context, "report", &path)?;
    Ok(Exit::Fine)
}

/// The runs behind selectors, and what a report of them is made from.
pub fn report_data_of(
    archive: &Archive,
    selectors: &[String],
) -> Result<(Vec<RunDir>, ReportData<'static>), Failure> {
    let sides = selectors
        .iter()
        .map(|name| crate::selection::select_side(archive, name))
        .collect::<Result<Vec<_>, _>>()?;
    let found = selectors.iter().map(|name| archive.find_runs(name)).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<RunDir> = found.into_iter().flatten().collect();
    let mut comparisons = compare_report_sides(archive, &sides)?;
    let parts = crate::selection::find_named_runs(archive, selectors)?;
    let logs = crate::selection::read_kernel_logs(&parts)?;
    for comparison in &mut comparisons {
        crate::selection::add_kernel_log(comparison, &sides, &logs);
        add_row_suspects(comparison, &sides, &parts, &AnalysisOptions::default());
    }
    let data = report_data(&runs, comparisons)?;
    Ok((runs, data))
}

/// After a run: the comparison of each factor on stdout, the report's name on stderr.
pub fn conclude_run(context: &App, run: &RunDir, no_report: bool) -> Result<(), Failure> {
    conclude_runs(context, std::slice::from_ref(run), no_report)
}

/// The same of a run in several parts, after the last of them.
pub fn conclude_runs(context: &App, runs: &[RunDir], no_report: bool) -> Result<(), Failure> {
    let Some(run) = runs.last() else { return Ok(()) };
    let comparisons = compare_levels_of_runs(context, runs)?;
    if comparisons.is_empty() {
        let records = runs.iter().map(RunDir::read_record).collect::<Result<Vec<_>, _>>()?;
        let whole = join_continued_runs(records).pop();
        whole.map_or(Ok(()), |whole| crate::see::show::print_run_overview(context, run, &whole))?;
    } else {
        context.print_text(&render_comparisons(
            &comparisons,
            context.format,
            context.width,
            context.colour,
        )?)?;
    }
    let data = report_data(runs, comparisons)?;
    // The table of verdicts begins with its own.
    let others: Vec<&Section> = SECTIONS.iter().copied().filter(|section| section.id != VERDICTS).collect();
    for line in conclude_sections(&data, &others) {
        context.print_conclusion(&line)?;
    }
    context.note(format!("run: {} in {}", run.short_id(), context.archive_path().display()));
    if no_report { Ok(()) } else { write_page(context, run, &data) }
}

/// A comparison for every factor that the run varied, with what its kernels printed at one level only.
pub fn compare_levels_of_run(context: &App, run: &RunDir) -> Result<Vec<Comparison>, Failure> {
    compare_levels_of_runs(context, std::slice::from_ref(run))
}

/// The same of a run in several parts.
fn compare_levels_of_runs(context: &App, runs: &[RunDir]) -> Result<Vec<Comparison>, Failure> {
    let names: Vec<&str> = runs.iter().map(RunDir::short_id).collect();
    let records = runs.iter().map(RunDir::read_record).collect::<Result<Vec<_>, _>>()?;
    let side = ComparisonSide { name: names.join(", "), runs: join_continued_runs(records) };
    let mut comparisons = compare_by_every_factor(&context.archive()?, &side)?;
    let logs = crate::selection::read_kernel_logs(runs)?;
    for comparison in &mut comparisons {
        crate::selection::add_kernel_log(comparison, std::slice::from_ref(&side), &logs);
        let options = AnalysisOptions::default();
        add_row_suspects(comparison, std::slice::from_ref(&side), runs, &options);
    }
    Ok(comparisons)
}

/// Writes the page of one run, with comparisons of its levels, where pages go, and says where.
pub fn write_run_report(context: &App, run: &RunDir, comparisons: Vec<Comparison>) -> Result<(), Failure> {
    write_page(context, run, &report_data(std::slice::from_ref(run), comparisons)?)
}

fn write_page(context: &App, run: &RunDir, data: &ReportData) -> Result<(), Failure> {
    let path = default_page_path(context, run, ".html")?;
    write_report(&path, data)?;
    context.note(format!("report: {path}"));
    Ok(())
}

/// Where a page about a run goes without `--output`.
pub fn default_page_path(context: &App, run: &RunDir, ending: &str) -> Result<OutputPath, Failure> {
    let directory = context.archive_path().join("reports");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(OutputPath::File(directory.join(format!("{}{ending}", run.id()))))
}

/// Says which file was written: its name is the data, where the file itself is not.
pub fn note_written_file(context: &App, what: &str, path: &OutputPath) -> Result<(), Failure> {
    match path {
        OutputPath::Stdout => Ok(()),
        OutputPath::File(path) => {
            context.note(format!("{what}:"));
            context.print_value("file", &path.display().to_string())
        }
    }
}

/// One run is compared by its factors, several with the first.
fn compare_report_sides(archive: &Archive, sides: &[ComparisonSide]) -> Result<Vec<Comparison>, Failure> {
    match sides.split_first() {
        Some((side, [])) => compare_by_every_factor(archive, side),
        Some((baseline, candidates)) => {
            let earlier = crate::selection::earlier_runs(archive, sides);
            let options = AnalysisOptions { earlier, ..AnalysisOptions::default() };
            let compare = |options: &AnalysisOptions| compare_sides(baseline, candidates, options);
            Ok(vec![crate::selection::compare_with_history(archive, sides, &options, compare)?])
        }
        None => Ok(Vec::new()),
    }
}

/// Targets of a run beyond which they are no levels of a report.
const MOST_TARGET_LEVELS: usize = 8;

/// A comparison for every factor that the run varied, and of its targets where they are not all alike. A run without a sample has none.
pub fn compare_by_every_factor(archive: &Archive, side: &ComparisonSide) -> Result<Vec<Comparison>, Failure> {
    compare_by_factors(archive, side, &AnalysisOptions::default())
}

/// The same of what a monitor recorded.
pub fn compare_monitor_by_every_factor(
    archive: &Archive,
    side: &ComparisonSide,
) -> Result<Vec<Comparison>, Failure> {
    let options =
        AnalysisOptions { merge_twins: true, includes_resources: true, ..AnalysisOptions::default() };
    compare_by_factors(archive, side, &options)
}

fn compare_by_factors(
    archive: &Archive,
    side: &ComparisonSide,
    options: &AnalysisOptions,
) -> Result<Vec<Comparison>, Failure> {
    let Some(record) = side.runs.first().filter(|record| !record.samples.is_empty()) else {
        return Ok(Vec::new());
    };
    let varied = record.manifest.plan.factors.iter().filter(|(_, levels)| levels.len() > 1);
    let count = record.samples.iter().filter_map(|sample| sample.target).collect::<BTreeSet<_>>().len();
    // One that was lost before it had a sample is no side of a comparison.
    let has_unlike = record.manifest.study.target.len() > 1
        && (2..=MOST_TARGET_LEVELS).contains(&count)
        && count == record.manifest.targets.len();
    let targets = (has_unlike && has_target_levels(record)).then_some(TARGET_FACTOR);
    let compared = varied.map(|(factor, _)| factor.as_str()).chain(targets).map(|factor| {
        let compare = |options: &AnalysisOptions| compare_levels(side, factor, options);
        crate::selection::compare_with_history(archive, std::slice::from_ref(side), options, compare)
    });
    compared.collect()
}

fn write_report(path: &OutputPath, data: &ReportData) -> Result<(), Failure> {
    path.write(render_report(data, SECTIONS)?.as_bytes())
}

/// What a report of runs is made from.
pub fn report_data(runs: &[RunDir], comparisons: Vec<Comparison>) -> Result<ReportData<'static>, Failure> {
    let mut read: Vec<Box<dyn RunData>> = Vec::new();
    for run in runs {
        read.push(Box::new(StoredRun::read(run)?));
    }
    Ok(ReportData { comparisons, runs: read, startup_trace: remembered_trace, ..ReportData::default() })
}

/// What the startup trace that is remembered of a program would bring.
fn remembered_trace(program: &str) -> Option<TraceContents> {
    crate::instruments::prefetch_store::read_known_pages(program.as_ref()).ok()
}

/// Write one HTML file that shows runs and their difference, offline
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The runs, the baseline first; also files of other tools
    #[arg(default_value = "@latest", value_name = "RUN")]
    pub runs: Vec<String>,
    /// The file to write (default: reports/ID.html in the archive)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

impl Verb for ReportArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        report_runs(app, self)
    }
}
