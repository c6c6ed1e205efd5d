//! `perflab compare`: its arguments and the style that they choose.

use clap::{Args, ValueEnum};
use perflab_analyze::{
    AnalysisOptions, Comparison, ComparisonSide, SampleStatistic, benchstat, compare_levels, compare_sides,
    estimate_interactions, lkp, mmtests, recap_comparison,
};
use perflab_present::comparison::{self, OutputFormat};

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::file_runs::NamedRuns;
use crate::gate_args::GateArgs;
use crate::quantities::{parse_confidence, parse_margin};
use crate::selection;
use crate::verb::Verb;
use perflab_model::Ratio;

/// Compares runs, or the levels of a factor within one.
pub fn compare_runs(context: &App, args: &CompareArgs) -> Result<Exit, Failure> {
    refuse_ineffective_options(args)?;
    let named = NamedRuns::resolve(context, &args.runs)?;
    let args = &with_named_runs(args, &named);
    let gate = args.gate.gate();
    let gate = gate.as_ref();
    if let [first, second] = &args.by[..] {
        return compare_two_factors(context, args, [first, second]);
    }
    let (mut comparison, sides) = build_comparison(context, args)?;
    comparison.notes.extend(
        args.monitor.as_deref().and_then(|name| crate::selection::missing_averages_note(name, &comparison)),
    );
    context.print_text(&comparison_text(context, args, &comparison)?)?;
    if args.style == ComparisonStyle::Perflab && args.monitor.is_none() {
        side_fairness_lines(&sides).iter().for_each(|line| context.note(line));
    }
    let found = gate.map(|gate| comparison.violations(gate).len()).unwrap_or_default();
    if let Some(gate) = gate.filter(|_| found > 0) {
        stderr_line!("perflab: --fail-if {gate}: {found} found");
    }
    args.gate.note_uncounted(context, &comparison);
    let unjudged = comparison.rows.iter().filter(|row| row.verdict_word() == "withheld").count();
    Ok(match found {
        0 if gate.is_some() && unjudged > 0 => {
            stderr_line!(
                "perflab: --fail-if: {unjudged} rows have no verdict: the sides did different things under one name (--across judges them)"
            );
            Exit::NothingJudged
        }
        0 => Exit::Fine,
        _ => Exit::Regression,
    })
}

/// The arguments with files of other tools replaced by the runs that they became.
fn with_named_runs(args: &CompareArgs, named: &NamedRuns) -> CompareArgs {
    let selector_of = |name: &String| {
        let at = args.runs.iter().position(|run| run == name);
        at.and_then(|at| named.selectors.get(at)).unwrap_or(name).clone()
    };
    let baseline = args.baseline.as_ref().map(selector_of);
    CompareArgs { runs: named.selectors.clone(), baseline, ..args.clone() }
}

/// Lines about how evenly targets were served below a comparison.
const MOST_FAIRNESS_LINES: usize = 12;

/// How evenly the targets of each side were served.
fn side_fairness_lines(sides: &[ComparisonSide]) -> Vec<String> {
    let of = |side: &ComparisonSide| {
        let lines = side.runs.iter().flat_map(perflab_present::fairness::fairness_lines);
        lines.map(|line| format!("{}: {line}", side.name)).collect::<Vec<_>>()
    };
    let mut lines: Vec<String> = sides.iter().flat_map(of).collect();
    let more = lines.len().saturating_sub(MOST_FAIRNESS_LINES);
    lines.truncate(MOST_FAIRNESS_LINES);
    if more > 0 {
        lines.push(format!("{more} further: `perflab show RUN --targets`"));
    }
    lines
}

/// Refuses options that would change nothing of what is printed.
fn refuse_ineffective_options(args: &CompareArgs) -> Result<(), UsageError> {
    let is_two_factors = args.by.len() == 2;
    let is_tool = matches!(args.style, ComparisonStyle::Lkp | ComparisonStyle::Benchstat);
    let (is_mmtests, has_stat) = (args.style == ComparisonStyle::Mmtests, !args.stat.is_empty());
    let has_margin = args.margin != MARGIN && !args.gate.is_given();
    let is_benchstat = args.style == ComparisonStyle::Benchstat;
    let all = [
        (
            args.significance && (!is_mmtests || args.ratio || args.monitor.is_some()),
            "--significance adds rows to MMTests' table of metrics",
            "add --style mmtests, and omit --ratio and --monitor",
        ),
        (
            is_tool && (args.ratio || has_stat),
            "the tables of lkp and benchstat have fixed figures",
            "omit --style, or --ratio and --stat",
        ),
        (
            args.ratio && has_stat,
            "--ratio shows gains, --stat shows statistics instead",
            "name one of the two",
        ),
        (
            args.monitor.as_deref() == Some("duration") && !is_mmtests,
            "--monitor duration is a table of MMTests",
            "add --style mmtests",
        ),
        (
            is_two_factors && args.gate.is_given(),
            "two factors have effects and an interaction, but no verdict for --fail-if",
            "name one factor",
        ),
        (
            is_two_factors && (args.ratio || has_stat || args.style != ComparisonStyle::Perflab),
            "two factors have a table of their own",
            "omit --style, --ratio and --stat, or name one factor",
        ),
        (
            is_two_factors && args.baseline.is_some(),
            "two factors are not compared with one level",
            "omit --baseline, or name one factor",
        ),
        (
            has_margin && (args.ratio || args.style != ComparisonStyle::Perflab),
            "a margin decides verdicts, but this table has none",
            "omit --margin, or add --fail-if",
        ),
        (
            args.warmup == WarmupChoice::Auto && (is_two_factors || args.monitor.is_some()),
            "--warmup is for the metrics of runs or of one factor",
            "omit --warmup, or --monitor and the second factor",
        ),
        (
            is_benchstat && args.confidence != CONFIDENCE,
            "benchstat's intervals have a confidence of 95 %",
            "leave --confidence out",
        ),
    ];
    match all.into_iter().find(|(is_ineffective, ..)| *is_ineffective) {
        Some((_, what, hint)) => Err(UsageError::new(what, hint)),
        None => Ok(()),
    }
}

fn comparison_text(context: &App, args: &CompareArgs, comparison: &Comparison) -> Result<String, Failure> {
    let (format, width, colour) = (context.format, context.width, context.colour);
    Ok(match args.style {
        ComparisonStyle::Mmtests => mmtests_text(args, comparison, format)?,
        ComparisonStyle::Lkp => comparison::render_lkp(&lkp::lkp_tables(comparison), format)?,
        ComparisonStyle::Benchstat => {
            comparison::render_benchstat(&benchstat::benchstat_tables(comparison), format)?
        }
        ComparisonStyle::Perflab if args.ratio => {
            comparison::render_gains(&recap_comparison(comparison), format, width)?
        }
        ComparisonStyle::Perflab if !args.stat.is_empty() => {
            comparison::render_statistics(comparison, &args.stat, format, width, colour)?
        }
        ComparisonStyle::Perflab => comparison::render_comparison(comparison, format, width, colour)?,
    })
}

fn mmtests_text(
    args: &CompareArgs,
    comparison: &Comparison,
    format: OutputFormat,
) -> Result<String, Failure> {
    use comparison::mmtests::{render_mmtests, render_mmtests_monitor, render_mmtests_ratios};
    let text = match args.monitor.as_deref() {
        Some("duration") => render_mmtests_monitor(&mmtests::mmtests_duration_tables(comparison), format)?,
        Some(monitor) => {
            render_mmtests_monitor(&mmtests::mmtests_monitor_tables(comparison, monitor), format)?
        }
        None if args.ratio => render_mmtests_ratios(&mmtests::mmtests_ratio_tables(comparison), format)?,
        None => render_mmtests(&mmtests::mmtests_tables(comparison, &args.stat), args.significance, format)?,
    };
    Ok(text)
}

/// Effects and interaction of two factors within runs that are repetitions of one another.
fn compare_two_factors(context: &App, args: &CompareArgs, factors: [&String; 2]) -> Result<Exit, Failure> {
    let side = join_named_runs(context, args)?;
    let found = estimate_interactions(&side, factors.map(String::as_str), &comparison_options(args))?;
    context.print_text(&comparison::render_interactions(
        &found,
        context.format,
        context.width,
        context.colour,
    )?)?;
    Ok(Exit::Fine)
}

/// All runs that were named, as repetitions of one another.
fn join_named_runs(context: &App, args: &CompareArgs) -> Result<ComparisonSide, Failure> {
    let archive = context.archive()?;
    let named = selection::named_runs_or_latest(&args.runs);
    let mut side = ComparisonSide { name: named.join(", "), runs: Vec::new() };
    for name in &named {
        let found = read_compared_side(&archive, name, args)?;
        if named.len() == 1 {
            side.name = found.name;
        }
        side.runs.extend(found.runs);
    }
    Ok(side)
}

/// One side; with `--monitor`, what the monitor recorded in the place of its metrics.
fn read_compared_side(
    archive: &perflab_archive::Archive,
    name: &str,
    args: &CompareArgs,
) -> Result<ComparisonSide, Failure> {
    match args.monitor.as_deref().filter(|monitor| *monitor != "duration") {
        Some(monitor) if args.style == ComparisonStyle::Mmtests => {
            crate::selection::monitor_readings_side(archive, name, monitor)
        }
        Some(monitor) => crate::selection::monitor_side(archive, name, monitor),
        // Iterations that ended well say nothing here.
        None => selection::select_side_of_failures(archive, name),
    }
}

/// The comparison, and its sides.
fn build_comparison(context: &App, args: &CompareArgs) -> Result<(Comparison, Vec<ComparisonSide>), Failure> {
    let options = AnalysisOptions {
        noise: crate::laboratory::noise::read_noise_card(context)?,
        ..comparison_options(args)
    };
    match &args.by[..] {
        [factor] => {
            let sides = vec![join_named_runs(context, args)?];
            Ok((compare_side_levels(&context.archive()?, &sides, factor, (args, &options))?, sides))
        }
        [] => {
            let archive = context.archive()?;
            let names = selectors_baseline_first(args);
            let sides = selection::select_sides(&names, |run| read_compared_side(&archive, run, args))?;
            match sides.split_first() {
                Some((baseline, candidates)) if !candidates.is_empty() => {
                    let earlier = match args.monitor {
                        Some(_) => Vec::new(),
                        None => selection::earlier_runs(&archive, &sides),
                    };
                    let options = AnalysisOptions { earlier, ..options };
                    let compare = |options: &AnalysisOptions| compare_sides(baseline, candidates, options);
                    let found = match args.monitor {
                        Some(_) => compare(&options)?,
                        None => selection::compare_with_history(&archive, &sides, &options, compare)?,
                    };
                    Ok((found, sides))
                }
                Some((alone, _)) => {
                    let factor = only_varied_factor(alone)?;
                    context.note_line(&format!(
                        "one run is named: the levels of its factor `{factor}` are compared (--by {factor})"
                    ));
                    Ok((compare_side_levels(&archive, &sides, &factor, (args, &options))?, sides))
                }
                None => Err(alone_error("name two runs").into()),
            }
        }
        _ => Err(UsageError::new(
            "--by takes one factor or two",
            "name two, and keep one level of the others with `perflab run --set`",
        )
        .into()),
    }
}

/// The levels of a factor of the only side.
fn compare_side_levels(
    archive: &perflab_archive::Archive,
    sides: &[ComparisonSide],
    factor: &str,
    (args, options): (&CompareArgs, &AnalysisOptions),
) -> Result<Comparison, Failure> {
    let Some(side) = sides.first() else { return Err(alone_error("name a run").into()) };
    if args.monitor.is_some() {
        return Ok(compare_levels(side, factor, options)?);
    }
    selection::compare_with_history(archive, sides, options, |options| compare_levels(side, factor, options))
}

/// The factor of which a side that stands alone has several levels, if it is the only one.
fn only_varied_factor(side: &ComparisonSide) -> Result<String, UsageError> {
    let factors = selection::varied_factors(side);
    match &factors[..] {
        [] => Err(alone_error("name a second run, or a factor with --by")),
        [factor] => Ok(factor.clone()),
        several => Err(alone_error(&format!(
            "name a second run, or one of its factors with --by: {}",
            several.join(", ")
        ))),
    }
}

fn alone_error(hint: &str) -> UsageError {
    UsageError::new("one run alone cannot be compared", hint)
}

/// The runs with the requested baseline in front.
fn selectors_baseline_first(args: &CompareArgs) -> Vec<String> {
    let mut runs = selection::named_runs_or_latest(&args.runs);
    let Some(baseline) = &args.baseline else { return runs };
    match runs.iter().position(|run| run == baseline) {
        Some(at) => runs.get_mut(..=at).unwrap_or_default().rotate_right(1),
        None => runs.insert(0, baseline.clone()),
    }
    runs
}

fn comparison_options(args: &CompareArgs) -> AnalysisOptions {
    AnalysisOptions {
        confidence: args.confidence.0,
        across: args.across,
        boots_differ: args.boots_differ,
        leave_out_warm_up: args.warmup == WarmupChoice::Auto,
        // Other tools' tables have a line for each column.
        merge_twins: args.monitor.is_some() && args.style == ComparisonStyle::Perflab,
        default_margin: args.margin.0,
        metrics: args.metric.clone(),
        workloads: args.workload.clone(),
        baseline: args.baseline.clone().filter(|_| !args.by.is_empty()),
        ..AnalysisOptions::default()
    }
}

/// Compare runs, or the levels of a factor within a run
#[derive(Debug, Clone, Args)]
#[command(after_long_help = COMPARE)]
pub struct CompareArgs {
    /// The baseline, then one or more candidates, also files of other tools; or one run or its repetitions (default:
    /// @latest), whose factor is compared: with several factors, name one by --by
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare the levels of this factor within the run, the first being the baseline; with two factors (`host,guest`),
    /// their effects and their interaction
    #[arg(long, value_name = "FACTOR[,FACTOR]", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Compare what this monitor recorded in place of the metrics: by iteration, means of gauges and rates of counters
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ratio", "stat"])]
    pub monitor: Option<String>,
    /// The baseline: one of the runs, or a level of the factor (default: the first)
    #[arg(long, value_name = "RUN|LEVEL")]
    pub baseline: Option<String>,
    /// Whose table to print
    #[arg(long, value_enum, default_value_t = ComparisonStyle::Perflab)]
    pub style: ComparisonStyle,
    /// Gains of all rows, and their geometric mean with its members
    #[arg(long)]
    pub ratio: bool,
    /// Statistics to show: n, min, max, mean, hmean, gmean, median, trimmed, sd, cv, mad, iqr, p99, best95, tail95
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub stat: Vec<SampleStatistic>,
    /// With --style mmtests: rows that explain which means are marked, and how far apart their bands are
    #[arg(long)]
    pub significance: bool,
    #[command(flatten)]
    pub gate: GateArgs,
    /// Only this metric, or all that decide or explain (repeatable)
    #[arg(long, value_name = "NAME|primary|explanatory")]
    pub metric: Vec<String>,
    /// Only this workload (repeatable)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Judge cases of one name although their command, parameters or definition differ: that difference is what you study
    #[arg(long)]
    pub across: bool,
    /// Count each imported run as a boot of its own if its file does not name the boot
    #[arg(long)]
    pub boots_differ: bool,
    /// What becomes of warm-up that is found at the beginning of runs: `keep` reports it, `auto` leaves it out
    #[arg(long, value_enum, default_value_t = WarmupChoice::Keep, value_name = "keep|auto", hide_possible_values = true)]
    pub warmup: WarmupChoice,
    /// Confidence of the intervals
    #[arg(long, default_value_t = CONFIDENCE, value_name = "PERCENT", value_parser = parse_confidence)]
    pub confidence: Ratio,
    /// The smallest relative change that matters, unless the study gives one for the metric
    #[arg(long, default_value_t = MARGIN, value_name = "PERCENT", value_parser = parse_margin)]
    pub margin: Ratio,
}

impl Verb for CompareArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        compare_runs(app, self)
    }
}

/// What `compare` takes where nothing else is requested.
pub const CONFIDENCE: Ratio = Ratio(0.95);

/// The same of the change that matters.
pub const MARGIN: Ratio = Ratio(0.03);

const COMPARE: &str = "\
Examples:
  perflab compare before after                      verdicts, with intervals
  perflab compare v1 v2 v3 --baseline v2            more than two, against any of them
  perflab compare @latest --by pages                the levels of a factor within one run
  perflab compare old.json new.json                 files of other tools: fio, hyperfine ...
  perflab compare before after --ratio              gains and their geometric mean
  perflab compare before after --stat mean,p99,max  other statistics beside the verdict
  perflab compare @latest --by host,guest           two factors: effects and their interaction
  perflab compare before after --monitor vmstat     what the kernel did
  perflab compare before after --metric explanatory every metric that explains, none folded away
  perflab compare before after --style mmtests      the table that compare-mmtests.pl prints";

/// What becomes of warm-up iterations that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WarmupChoice {
    /// they stay, and are reported
    Keep,
    /// they are left out
    Auto,
}

/// The looks of `--style`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComparisonStyle {
    /// verdicts with intervals
    Perflab,
    /// the rows and figures of MMTests' compare-mmtests.pl
    Mmtests,
    /// those of `lkp compare`
    Lkp,
    /// those of Go's benchstat
    Benchstat,
}
