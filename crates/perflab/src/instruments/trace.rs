//! The verbs of `perflab trace`: every operation of a program, and what makes the slow ones slow.
//!
//! `run` is an ordinary run of one command that is told where to write its trace; the other verbs read the operations
//! of stored runs. A report compares the first two levels of each factor, and shows each of them by itself.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::str::FromStr;

use clap::{Args, Subcommand};
use perflab_analyze::operations::{
    OperationClock, OperationComparison, OperationReport, OutlierOptions, analyze_operations, choose_clock,
    compare_operations as compared,
};
use perflab_archive::RunDir;
use perflab_model::operation::{
    OPERATION_TRACER, OperationColumns, OperationTraceSummary, TracedIteration, iterations_with_operations,
};
use perflab_model::{Ratio, RunStatus};
use perflab_present::chart::PALETTE;
use perflab_present::comparison::OutputFormat;
use perflab_present::operations::{
    OperationSceneOptions, ScaleKind, causes_grid, changes_grid, common_time_range, operation_conclusions,
    operation_scene, probe_conclusions, slowest_grid,
};

use crate::app::{self, App};
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::instruments::trace_summary::print_trace_summary;
use crate::instruments::watched_process::AttachArgs;
use crate::measure::command_study::{self, CommandStudy};
use crate::measure::command_words;
use crate::output_path::OutputPath;
use crate::quantities::parse_quantile_share;
use crate::selection::parse_label;
use crate::verb::Verb;

/// Find what makes single operations of a program slow
#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub verb: TraceVerb,
}

impl Verb for TraceArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_trace_verb(app, &self.verb)
    }
}

/// The verbs of the tracing instrument.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Run a program linked with optrace, and keep every operation
    Run(TraceRecordArgs),
    /// Watch any program at its functions or USDT probes, without changing it
    Attach(AttachArgs),
    /// Show the slowest operations, each with what happened in it
    Show(TraceShowArgs),
    /// Explain what makes the slow ones slow: causes, onsets, thresholds, costs
    Causes(CausesArgs),
    /// Draw every operation as a dot, outliers in the colour of their cause
    Plot(OperationPlotArgs),
    /// Compare two traces, or the levels of a factor within a run
    Compare(TraceCompareArgs),
}

/// `perflab trace run`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab trace run -- perflab load drv_rand_ops 1416100 intsrt --reap old
  perflab trace run --label before -- ./my-program

The variable OPTRACE_FILE names the file to write. A program linked with optrace (Rust, or C with
optrace.h) begins its trace with Trace::from_environment or optrace_open(NULL, …).")]
pub struct TraceRecordArgs {
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Which operations of a run.
#[derive(Debug, Args)]
pub struct OperationSelection {
    /// The iteration, by its slot in `perflab show RUN --iterations` (default: the first one traced)
    #[arg(long, value_name = "SLOT")]
    pub slot: Option<u32>,
    /// Of a run on several targets: the name of one (default: the first)
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// The kind of operation (default: the most frequent)
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Which time counts (default: wall if threads waited for longer than they ran, else cpu)
    #[arg(long, value_name = "CLOCK", value_parser = app::named_parser::<OperationClock>())]
    pub clock: Option<OperationClock>,
    /// Operations above this quantile are outliers, if they also exceed ten times the spread around them
    #[arg(long, value_name = "PERCENT", default_value_t = OperationSelection::ABOVE, value_parser = parse_quantile_share)]
    pub above: Ratio,
}

impl OperationSelection {
    /// The quantile above which operations are outliers where none is named.
    pub const ABOVE: Ratio = Ratio(0.999);
}

/// `perflab trace show`
#[derive(Debug, Args)]
pub struct TraceShowArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    #[command(flatten)]
    pub which: OperationSelection,
    /// How many operations
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
}

/// `perflab trace causes`
#[derive(Debug, Args)]
pub struct CausesArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    #[command(flatten)]
    pub which: OperationSelection,
}

/// `perflab trace plot`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples (the four pictures of the slab-list study):
  perflab trace plot old --axis linear -o 1.png
  perflab trace plot old --axis linear --with reap,reap-index -o 2.png
  perflab trace plot old --axis linear --with reap,reap-index --with allocate -o 3.png
  perflab trace plot new --axis linear --with reap,reap-index --with allocate --like old -o 4.png")]
pub struct OperationPlotArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    #[command(flatten)]
    pub which: OperationSelection,
    /// The picture: FILE.png (2160 x 1920), FILE.svg, or SVG on standard output (-)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: OutputPath,
    /// The scale of the time axis
    #[arg(long, value_name = "SCALE", value_parser = app::named_parser::<ScaleKind>(), default_value = "log")]
    pub axis: ScaleKind,
    /// Also draw the times of these spans, in a colour of their own (repeatable); without it, outliers have the colour
    /// of their cause
    #[arg(long, value_name = "SPAN,…")]
    pub with: Vec<String>,
    /// The number on the horizontal axis (default: `elements` if operations have it, else their order)
    #[arg(long, value_name = "NUMBER")]
    pub over: Option<String>,
    /// Use the vertical axis of this run
    #[arg(long, value_name = "RUN")]
    pub like: Option<String>,
}

/// `perflab trace compare`
#[derive(Debug, Args)]
pub struct TraceCompareArgs {
    /// The baseline, then the candidate; with --by, one run (default: @latest)
    #[arg(required_unless_present = "by", num_args = 1..=2, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare the levels of this factor within the run, the first being the baseline
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    #[command(flatten)]
    pub which: OperationSelection,
    /// Exit with code 5 if this quantile clearly rose by more than the change: `p99.9:5%`
    #[arg(long, value_name = "QUANTILE:CHANGE")]
    pub fail_if: Option<QuantileGate>,
}

/// Carries out a verb of the tracing instrument.
pub fn run_trace_verb(context: &App, verb: &TraceVerb) -> Result<Exit, Failure> {
    match verb {
        TraceVerb::Run(args) => record_trace(context, args),
        TraceVerb::Attach(args) => crate::instruments::trace_attach::attach_to_program(context, args),
        TraceVerb::Show(args) => show_slowest_operations(context, args),
        TraceVerb::Causes(args) => show_causes(context, args),
        TraceVerb::Plot(args) => plot_operations(context, args),
        TraceVerb::Compare(args) => compare_traces(context, args),
    }
}

/// Runs the command once, keeps its trace, and says what made its slow operations slow.
pub fn record_trace(context: &App, args: &TraceRecordArgs) -> Result<Exit, Failure> {
    let mut words = command_words::command_words(&args.command)?;
    // Its own loads, whether or not it is on PATH.
    if let Some(first) = words.first_mut().filter(|first| *first == "perflab") {
        *first = std::env::current_exe().context("cannot find perflab's own binary")?.display().to_string();
    }
    command_words::check_command_exists(&words)?;
    let title = command_words::quote_toml(&format!("Operations of `{}`", words.join(" ")));
    let written = CommandStudy {
        verb: "trace run",
        workload: "command",
        definition: command_study::command_definition(&words, "traced = true\n"),
        study: format!(
            "title = {title}\n\n[run]\niterations = 1\nwarmup = 0\norder = \"sequential\"\ntime-limit = \"87600h\"\n\n[workload.command]\n"
        ),
        seed: 0,
        label: args.label.as_deref(),
        as_typed: true,
    };
    let (status, found) = written.execute(context, |_| ())?;
    let traced = !found.list_tracers()?.is_empty();
    if status == RunStatus::Finished && !traced {
        return Err(not_linked_error(&words).into());
    }
    if traced {
        print_trace_summary(context, &found)?;
    }
    Ok(if status == RunStatus::Finished { Exit::Fine } else { Exit::WORKLOAD_FAILED })
}

fn not_linked_error(words: &[String]) -> UsageError {
    let program = words.first().map_or("", String::as_str);
    UsageError::new(
        format!("`{program}` wrote no trace into the file that {} names", perflab_workload::TRACE_VARIABLE),
        "link it with optrace and begin its trace with Trace::from_environment (C: optrace_open(NULL, …))",
    )
}

/// One side: what it is called, and its answer.
pub struct TracedSide {
    /// the run's label or the level's name
    pub name: String,
    /// all its iterations, one behind the other
    pub report: OperationReport,
}

/// What changed between two traces, in quantiles and in causes.
pub fn compare_traces(context: &App, args: &TraceCompareArgs) -> Result<Exit, Failure> {
    let [(before_name, before), (after_name, after)] = read_traced_sides(context, args)?;
    let [before, after] = analyze_both([&before, &after], &outlier_options(&args.which))?;
    let (before, after) =
        (TracedSide { name: before_name, report: before }, TracedSide { name: after_name, report: after });
    let found = compared((&before.name, &after.name), &before.report, &after.report);
    app::print_result(context, &found, || changes_grid(&found))?;
    if context.format == OutputFormat::Table {
        let mut lines = perflab_present::operations::comparison_conclusions(&found);
        for side in [&before, &after] {
            lines.push(format!("\n{}:", side.name));
            lines.extend(operation_conclusions(&side.report));
        }
        context.print_text(&(String::from("\n") + &lines.join("\n")))?;
    }
    exit_for_regression(&found, args.fail_if.as_ref())
}

fn read_traced_sides(
    context: &App,
    args: &TraceCompareArgs,
) -> Result<[(String, OperationColumns); 2], Failure> {
    let archive = context.archive()?;
    let of = |selector: &String| crate::selection::select_run(&archive, selector);
    match (crate::selection::named_runs_or_latest(&args.runs).as_slice(), &args.by) {
        ([run], Some(factor)) => {
            let run = of(run)?;
            let [before, after] = first_two_levels(&run, factor)?;
            Ok([read_level(&run, factor, before)?, read_level(&run, factor, after)?])
        }
        ([before, after], None) => {
            Ok([read_whole_run(&of(before)?, before, args)?, read_whole_run(&of(after)?, after, args)?])
        }
        _ => Err(UsageError::new(
            "either two runs, or one run and --by FACTOR",
            "see `perflab trace compare --help`",
        )
        .into()),
    }
}

/// The first two levels of a factor.
fn first_two_levels(run: &RunDir, factor: &str) -> Result<[String; 2], Failure> {
    let plan = run.manifest()?.plan;
    let known = plan.factors.keys().map(String::as_str);
    let levels = plan.factors.get(factor).ok_or_else(|| {
        let hint = perflab_model::problem::suggest_name(factor, known);
        UsageError::new(format!("the run has no factor `{factor}`"), hint)
    })?;
    match levels.as_slice() {
        [before, after, ..] => Ok([before.clone(), after.clone()]),
        _ => {
            Err(UsageError::new(format!("factor `{factor}` has one level"), "there is nothing to compare")
                .into())
        }
    }
}

fn read_level(run: &RunDir, factor: &str, level: String) -> Result<(String, OperationColumns), Failure> {
    let slots = iterations_of_level(run, factor, &level)?;
    Ok((level, concatenate_operations(run, &slots)?))
}

/// The traced iterations of one level of a factor.
pub fn iterations_of_level(run: &RunDir, factor: &str, level: &str) -> Result<Vec<TracedIteration>, Failure> {
    let plan = run.manifest()?.plan;
    let of_level = |iteration: &TracedIteration| plan.slot_level(iteration.slot, factor) == Some(level);
    Ok(iterations_with_operations(&run.read_trace_summaries(OPERATION_TRACER)?)
        .into_iter()
        .filter(of_level)
        .collect())
}

fn read_whole_run(
    run: &RunDir,
    selector: &str,
    args: &TraceCompareArgs,
) -> Result<(String, OperationColumns), Failure> {
    let slots = match args.which.slot {
        None => iterations_with_operations(&run.read_trace_summaries(OPERATION_TRACER)?),
        Some(_) => vec![choose_iteration(run, &args.which)?.0],
    };
    Ok((run.manifest()?.label.unwrap_or_else(|| selector.to_owned()), concatenate_operations(run, &slots)?))
}

/// Whether a quantile rose by more than the limit, and clearly.
fn exit_for_regression(found: &OperationComparison, gate: Option<&QuantileGate>) -> Result<Exit, Failure> {
    let Some(gate) = gate else { return Ok(Exit::Fine) };
    let quantile =
        found.quantiles.iter().find(|quantile| quantile.name == gate.quantile).ok_or_else(|| {
            let names = found.quantiles.iter().map(|quantile| quantile.name.as_str());
            let hint = perflab_model::problem::suggest_name(&gate.quantile, names);
            UsageError::new(format!("--fail-if: there is no quantile `{}`", gate.quantile), hint)
        })?;
    let low = quantile.interval.map_or(0.0, |(low, _)| low);
    Ok(if low > 1.0 + gate.change.0 { Exit::Regression } else { Exit::Fine })
}

/// What `trace compare --fail-if` looks for: a quantile that rose by more than a change, `p99.9:5%`.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileGate {
    quantile: String,
    change: Ratio,
}

impl FromStr for QuantileGate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (quantile, change) =
            text.split_once(':').ok_or("it is not QUANTILE:CHANGE: write, for example, `p99.9:5%`")?;
        let change = Ratio::parse(change).map_err(|error| error.to_string())?;
        Ok(QuantileGate { quantile: quantile.trim().into(), change })
    }
}

/// The number over which operations are drawn where none is named.
const ELEMENTS: &str = "elements";

/// Draws every operation of an iteration.
pub fn plot_operations(context: &App, args: &OperationPlotArgs) -> Result<Exit, Failure> {
    let (operations, report) = analyze_iteration(context, &args.run, &args.which)?;
    let with: Vec<Vec<String>> =
        args.with.iter().map(|names| names.split(',').map(|name| name.trim().to_owned()).collect()).collect();
    if with.len() > PALETTE.len() {
        let message =
            format!("--with is given {} times, but there are {} colours", with.len(), PALETTE.len());
        return Err(UsageError::new(
            message,
            "name spans that share a colour together: --with reap,reap-index",
        )
        .into());
    }
    for name in with.iter().flatten() {
        if !operations.spans.iter().any(|span| span.name == *name) {
            let names = operations.spans.iter().map(|span| span.name.as_str());
            let hint = perflab_model::problem::suggest_name(name, names);
            return Err(UsageError::new(format!("--with {name}: no such span in the trace"), hint).into());
        }
    }
    let is_of_all =
        |name: &str| operations.number_values(name).is_some_and(|number| number.len() == operations.len());
    if let Some(name) = args.over.as_deref().filter(|name| !is_of_all(name)) {
        let names =
            operations.numbers.iter().map(|number| number.name.as_str()).filter(|name| is_of_all(name));
        let hint = perflab_model::problem::suggest_name(name, names);
        return Err(
            UsageError::new(format!("--over {name}: not every operation has such a number"), hint).into()
        );
    }
    let other = args.like.as_ref().map(|run| analyze_iteration(context, run, &args.which)).transpose()?;
    let wanted_picture = OperationSceneOptions {
        title: format!("Every operation of {}", args.run),
        scale_kind: args.axis,
        colour_by_cause: with.is_empty(),
        drawn_spans: with,
        x_number: Some(args.over.clone().unwrap_or_else(|| ELEMENTS.into())),
        time_range: other.as_ref().map(|(_, other)| common_time_range(&[other, &report])),
    };
    app::write_scene(context, Some(&args.output), || operation_scene(&operations, &report, &wanted_picture))?;
    Ok(Exit::Fine)
}

/// What makes the slow ones slow: a table of causes, and sentences below it.
pub fn show_causes(context: &App, args: &CausesArgs) -> Result<Exit, Failure> {
    let (_, report) = analyze_iteration(context, &args.run, &args.which)?;
    print_causes_report(context, &report)?;
    Ok(Exit::Fine)
}

/// Prints the answer about one trace.
pub fn print_causes_report(context: &App, report: &OperationReport) -> Result<(), Failure> {
    app::print_result(context, report, || causes_grid(report))?;
    if context.format == OutputFormat::Table {
        context.print_text(&(String::from("\n") + &operation_conclusions(report).join("\n")))?;
    }
    Ok(())
}

/// The slowest operations, each with what happened in it.
pub fn show_slowest_operations(context: &App, args: &TraceShowArgs) -> Result<Exit, Failure> {
    if args.which.above != OperationSelection::ABOVE {
        let what =
            "--above says which operations are outliers, and `trace show` lists the slowest, outliers or not";
        return Err(UsageError::new(
            what,
            "`perflab trace causes --above` counts outliers; --top lists more here",
        )
        .into());
    }
    let (operations, report) = analyze_iteration(context, &args.run, &args.which)?;
    probe_conclusions(&report).into_iter().for_each(|sentence| context.note(sentence));
    context.print_grid(&slowest_grid(&operations, &report, args.top))?;
    Ok(Exit::Fine)
}

/// How outliers are to be found.
pub fn outlier_options(which: &OperationSelection) -> OutlierOptions {
    OutlierOptions {
        clock: which.clock,
        operation: which.operation.clone(),
        quantile: which.above.0,
        ..OutlierOptions::default()
    }
}

/// One iteration of the run that a selector names.
pub fn read_iteration(
    context: &App,
    run: &str,
    which: &OperationSelection,
) -> Result<OperationColumns, Failure> {
    let run = crate::selection::select_run(&context.archive()?, run)?;
    let (iteration, all) = choose_iteration(&run, which)?;
    if which.slot.is_none() && all.len() > 1 {
        let slots: BTreeSet<u32> = all.iter().map(|iteration| iteration.slot).collect();
        let slots: Vec<String> = slots.iter().map(u32::to_string).collect();
        context.note(format!(
            "iteration {} of {} traced ones; others: --slot {}",
            iteration.slot,
            all.len(),
            slots.join(", ")
        ));
    }
    Ok(run.read_operations(OPERATION_TRACER, iteration)?)
}

/// The traced iteration that the options name, the first where they name none; and all there are.
fn choose_iteration(
    run: &RunDir,
    which: &OperationSelection,
) -> Result<(TracedIteration, Vec<TracedIteration>), Failure> {
    let all: Vec<TracedIteration> =
        run.read_trace_summaries(OPERATION_TRACER)?.iter().map(OperationTraceSummary::iteration).collect();
    let target = which.target.as_deref().map(|name| crate::selection::target_index(run, name)).transpose()?;
    let is_wanted = |iteration: &&TracedIteration| {
        which.slot.is_none_or(|slot| slot == iteration.slot)
            && (target.is_none() || iteration.target == target)
    };
    let named = TracedIteration { slot: which.slot.unwrap_or(0), target };
    Ok((all.iter().find(is_wanted).copied().unwrap_or(named), all))
}

/// The answers about both sides of a comparison, by one clock: the wall's where it explains either.
pub fn analyze_both(
    sides: [&OperationColumns; 2],
    options: &OutlierOptions,
) -> Result<[OperationReport; 2], Failure> {
    let [before, after] = sides.map(|side| choose_clock(side, options));
    let wall = before? == OperationClock::Wall || after? == OperationClock::Wall;
    let options =
        OutlierOptions { clock: options.clock.or(wall.then_some(OperationClock::Wall)), ..options.clone() };
    let [before, after] = sides.map(|side| analyze_operations(side, &options));
    Ok([before?, after?])
}

/// All of these iterations, one behind the other.
pub fn concatenate_operations(
    run: &RunDir,
    iterations: &[TracedIteration],
) -> Result<OperationColumns, Failure> {
    let mut all = OperationColumns::default();
    for iteration in iterations {
        let next = run.read_operations(OPERATION_TRACER, *iteration)?;
        if all.is_empty() { all = next } else { all.append(&next) }
    }
    Ok(all)
}

/// The answer about one iteration of a run, with its operations.
pub fn analyze_iteration(
    context: &App,
    run: &str,
    which: &OperationSelection,
) -> Result<(OperationColumns, OperationReport), Failure> {
    let operations = read_iteration(context, run, which)?;
    let report = analyze_operations(&operations, &outlier_options(which))?;
    Ok((operations, report))
}
