//! `perflab compare`: its arguments and the style that they choose.

use clap::{Args, ValueEnum};
use perflab_analyze::{
    AnalysisOptions, Comparison, ComparisonSide, Gate, SampleStatistic, benchstat, compare_levels,
    compare_sides, estimate_interactions, lkp, mmtests, recap_comparison,
};
use perflab_present::comparison::{self, OutputFormat};

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::selection;
use crate::verb::Verb;

/// Compares runs, or the levels of a factor within one.
pub fn compare_runs(context: &App, args: &CompareArgs) -> Result<Exit, Failure> {
    refuse_ineffective_options(args)?;
    let gate = args.fail_if.as_deref().map(str::parse::<Gate>).transpose()?;
    let statistics = chosen_statistics(args)?;
    if let [first, second] = &args.by[..] {
        return compare_two_factors(context, args, [first, second]);
    }
    let (mut comparison, sides) = build_comparison(context, args)?;
    comparison.notes.extend(
        args.monitor.as_deref().and_then(|name| crate::selection::missing_averages_note(name, &comparison)),
    );
    context.print_text(&comparison_text(context, args, &comparison, &statistics)?)?;
    if args.style == ComparisonStyle::Perflab && args.monitor.is_none() {
        side_fairness_lines(&sides).iter().for_each(|line| context.note(line));
    }
    let found = gate.as_ref().map(|gate| comparison.violations(gate).len()).unwrap_or_default();
    if found > 0 {
        stderr_line!("perflab: --fail-if {}: {found} found", args.fail_if.as_deref().unwrap_or_default());
    }
    let unjudged = comparison.rows.iter().filter(|row| row.withheld.is_some()).count();
    Ok(match found {
        0 if gate.is_some() && unjudged > 0 => {
            stderr_line!(
                "perflab: --fail-if: {unjudged} without a verdict: the sides did different things under one name (--across judges them)"
            );
            Exit::NothingJudged
        }
        0 => Exit::Fine,
        _ => Exit::Regression,
    })
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
    let has_margin = args.margin != MARGIN && args.fail_if.is_none();
    let is_benchstat = args.style == ComparisonStyle::Benchstat;
    let all = [
        (
            args.significance && (!is_mmtests || args.ratio || args.monitor.is_some()),
            "--significance adds rows to MMTests' table of metrics",
            "add --style mmtests, and leave --ratio and --monitor out",
        ),
        (
            is_tool && (args.ratio || has_stat),
            "the tables of lkp and benchstat have figures of their own",
            "leave --style out, or --ratio and --stat",
        ),
        (
            args.ratio && has_stat,
            "--ratio shows gains, and --stat statistics in their place",
            "name one of the two",
        ),
        (
            args.monitor.as_deref() == Some("duration") && !is_mmtests,
            "--monitor duration is a table of MMTests",
            "add --style mmtests",
        ),
        (
            is_two_factors && args.fail_if.is_some(),
            "two factors have effects and an interaction, and no verdict that --fail-if could look for",
            "name one factor",
        ),
        (
            is_two_factors && (args.ratio || has_stat || args.style != ComparisonStyle::Perflab),
            "two factors have a table of their own",
            "leave --style, --ratio and --stat out, or name one factor",
        ),
        (
            is_two_factors && args.baseline.is_some(),
            "two factors are not compared with one level",
            "leave --baseline out, or name one factor",
        ),
        (
            has_margin && (args.ratio || args.style != ComparisonStyle::Perflab),
            "a margin decides verdicts, and this table has none",
            "leave --margin out, or add --fail-if",
        ),
        (
            is_benchstat && args.confidence != CONFIDENCE,
            "benchstat's intervals are of 95 %",
            "leave --confidence out",
        ),
    ];
    match all.into_iter().find(|(is_ineffective, ..)| *is_ineffective) {
        Some((_, what, hint)) => Err(UsageError::new(what, hint)),
        None => Ok(()),
    }
}

fn comparison_text(
    context: &App,
    args: &CompareArgs,
    comparison: &Comparison,
    statistics: &[SampleStatistic],
) -> Result<String, Failure> {
    let (format, width, colour) = (context.format, context.width, context.colour);
    Ok(match args.style {
        ComparisonStyle::Mmtests => mmtests_text(args, comparison, statistics, format)?,
        ComparisonStyle::Lkp => comparison::render_lkp(&lkp::lkp_tables(comparison), format)?,
        ComparisonStyle::Benchstat => {
            comparison::render_benchstat(&benchstat::benchstat_tables(comparison), format)?
        }
        ComparisonStyle::Perflab if args.ratio => {
            comparison::render_gains(&recap_comparison(comparison), format, width)?
        }
        ComparisonStyle::Perflab if !statistics.is_empty() => {
            comparison::render_statistics(comparison, statistics, format, width, colour)?
        }
        ComparisonStyle::Perflab => comparison::render_comparison(comparison, format, width, colour)?,
    })
}

fn mmtests_text(
    args: &CompareArgs,
    comparison: &Comparison,
    statistics: &[SampleStatistic],
    format: OutputFormat,
) -> Result<String, Failure> {
    use comparison::mmtests::{render_mmtests, render_mmtests_monitor, render_mmtests_ratios};
    let text = match args.monitor.as_deref() {
        Some("duration") => render_mmtests_monitor(&mmtests::mmtests_duration_tables(comparison), format)?,
        Some(monitor) => {
            render_mmtests_monitor(&mmtests::mmtests_monitor_tables(comparison, monitor), format)?
        }
        None if args.ratio => render_mmtests_ratios(&mmtests::mmtests_ratio_tables(comparison), format)?,
        None => render_mmtests(&mmtests::mmtests_tables(comparison, statistics), args.significance, format)?,
    };
    Ok(text)
}

fn chosen_statistics(args: &CompareArgs) -> Result<Vec<SampleStatistic>, UsageError> {
    let read = |text: &String| {
        text.parse::<SampleStatistic>().map_err(|error| UsageError::new(error.to_string(), "see --help"))
    };
    args.stat.iter().map(read).collect()
}

/// Effects and interaction of two factors within runs that are repetitions of one another.
fn compare_two_factors(context: &App, args: &CompareArgs, factors: [&String; 2]) -> Result<Exit, Failure> {
    let side = join_named_runs(context, args)?;
    let found = estimate_interactions(&side, factors.map(String::as_str), &comparison_options(args)?)?;
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
    let mut side = ComparisonSide { name: args.runs.join(", "), runs: Vec::new() };
    for name in &args.runs {
        let found = read_compared_side(&archive, name, args)?;
        if args.runs.len() == 1 {
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
        ..comparison_options(args)?
    };
    match &args.by[..] {
        [factor] => {
            let side = join_named_runs(context, args)?;
            Ok((compare_levels(&side, factor, &options)?, vec![side]))
        }
        [] => {
            let archive = context.archive()?;
            let names = selectors_baseline_first(args);
            let sides = selection::select_sides(&names, |run| read_compared_side(&archive, run, args))?;
            match sides.split_first() {
                Some((baseline, candidates)) if !candidates.is_empty() => {
                    let found = compare_sides(baseline, candidates, &options)?;
                    Ok((found, sides))
                }
                _ => Err(UsageError::new(
                    "there is nothing to compare one run with",
                    "name a second run, or a factor with --by",
                )
                .into()),
            }
        }
        _ => Err(UsageError::new(
            "--by takes one factor or two",
            "name two, and filter the others with --set when running",
        )
        .into()),
    }
}

/// The runs with the requested baseline in front.
fn selectors_baseline_first(args: &CompareArgs) -> Vec<String> {
    let mut runs = args.runs.clone();
    let Some(baseline) = &args.baseline else { return runs };
    match runs.iter().position(|run| run == baseline) {
        Some(at) => runs.get_mut(..=at).unwrap_or_default().rotate_right(1),
        None => runs.insert(0, baseline.clone()),
    }
    runs
}

fn comparison_options(args: &CompareArgs) -> Result<AnalysisOptions, UsageError> {
    Ok(AnalysisOptions {
        confidence: parse_confidence(&args.confidence)?,
        across: args.across,
        boots_differ: args.boots_differ,
        // Other tools' tables have a line for each column.
        merge_twins: args.monitor.is_some() && args.style == ComparisonStyle::Perflab,
        default_margin: parse_percent_option("--margin", &args.margin)?,
        metrics: args.metric.clone(),
        workloads: args.workload.clone(),
        baseline: args.baseline.clone().filter(|_| !args.by.is_empty()),
        ..AnalysisOptions::default()
    })
}

/// `95%` or `0.95`: a level has no other reading.
fn parse_confidence(text: &str) -> Result<f64, UsageError> {
    let (number, scale) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |rest| (rest, 100.0));
    let level = number.trim().parse::<f64>().ok().map(|level| level / scale);
    level.filter(|level| *level > 0.5 && *level < 1.0).ok_or_else(|| {
        UsageError::new(format!("--confidence {text} is not between 50% and 100%"), "95% (or 0.95) is usual")
    })
}

/// `3%` as 0.03. A number without its sign is refused: 0.03 may mean 3 % or 0.03 %.
pub fn parse_percent_option(option: &str, text: &str) -> Result<f64, UsageError> {
    let text = text.trim();
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let number = number.filter(|number| (0.0..100.0).contains(number)).map(|number| number / 100.0);
    number.ok_or_else(|| match text.parse::<f64>().ok().filter(|bare| (0.0..100.0).contains(bare)) {
        Some(bare) => {
            // A fraction was meant, or so small a share.
            let hundredfold = (bare * 1e8).round() / 1e6;
            let or = if bare > 0.0 && bare < 1.0 { format!(" or {hundredfold}%") } else { String::new() };
            UsageError::new(format!("{option} {text} has no unit"), format!("write {bare}%{or}"))
        }
        None => UsageError::new(format!("{option} {text} is not a per cent value below 100"), "write 3%"),
    })
}

/// Compare runs, or the levels of a factor within a run
#[derive(Debug, Args)]
#[command(after_long_help = COMPARE)]
pub struct CompareArgs {
    /// The baseline, then one or more candidates; with --by, the one run (or its repetitions)
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare the levels of this factor within the run, the first level being the baseline; with two factors
    /// (`host,guest`) their effects and how they interact
    #[arg(long, value_name = "FACTOR[,FACTOR]", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Compare what this monitor recorded instead of the metrics: means of gauges, rates of counters, by iteration
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ratio", "stat"])]
    pub monitor: Option<String>,
    /// What to compare with: one of the runs, or a level of the factor (default: the first)
    #[arg(long, value_name = "RUN|LEVEL")]
    pub baseline: Option<String>,
    /// How the table looks, and which figures it shows
    #[arg(long, value_enum, default_value_t = ComparisonStyle::Perflab)]
    pub style: ComparisonStyle,
    /// All rows together: gains and their geometric mean, with its members
    #[arg(long)]
    pub ratio: bool,
    /// Statistics to show: n, min, max, mean, hmean, gmean, median, trimmed, sd, cv, mad, iqr, p99, best95, tail95
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub stat: Vec<String>,
    /// With --style mmtests: rows that say which means are marked and how far apart their bands are
    #[arg(long)]
    pub significance: bool,
    /// Exit with 5 where this is found: `worse`, `worse:2%` (worse by more than 2 %), `unclear`
    #[arg(long, value_name = "VERDICT[:CHANGE]")]
    pub fail_if: Option<String>,
    /// Only this metric (may be repeated), or those that decide or explain: all rows of them
    #[arg(long, value_name = "NAME|primary|explanatory")]
    pub metric: Vec<String>,
    /// Only this workload (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Judge cases of one name although their command, parameters or definition differ: that difference is what is meant
    #[arg(long)]
    pub across: bool,
    /// Count each imported run whose file does not say so as of a boot of its own
    #[arg(long)]
    pub boots_differ: bool,
    /// Confidence of the intervals: 95% or 0.95
    #[arg(long, default_value = CONFIDENCE, value_name = "PERCENT")]
    pub confidence: String,
    /// The relative change that matters, where a study gives none for the metric
    #[arg(long, default_value = MARGIN, value_name = "PERCENT")]
    pub margin: String,
}

impl Verb for CompareArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        compare_runs(app, self)
    }
}

/// What `compare` takes where nothing else is requested.
pub const CONFIDENCE: &str = "95%";

/// The same of the change that matters.
pub const MARGIN: &str = "3%";

const COMPARE: &str = "\
Examples:
  perflab compare before after                      verdicts, with intervals
  perflab compare v1 v2 v3 --baseline v2            more than two, against any of them
  perflab compare @latest --by pages                the levels of a factor within one run
  perflab compare before after --ratio              gains and their geometric mean
  perflab compare before after --stat mean,p99,max  other statistics beside the verdict
  perflab compare @latest --by host,guest           two factors: effects and their interaction
  perflab compare before after --monitor vmstat     what the kernel did meanwhile
  perflab compare before after --metric explanatory every metric that explains, none folded away
  perflab compare before after --style mmtests      the table that compare-mmtests.pl prints";

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
