//! `perflab compare`: its arguments and the style that they choose.

use clap::{Args, ValueEnum};
use perflab_analyze::{
    AnalysisOptions, CaseCondition, Comparison, ComparisonSide, Gate, RowOrder, SampleStatistic, benchstat,
    compare_levels, compare_sides, estimate_interactions, lkp, mmtests, recap_comparison,
};
use perflab_archive::RunDir;
use perflab_present::ci_tests::CiTests;
use perflab_present::comparison::{self, OutputFormat};

use crate::app::{self, App};
use crate::failure::{Exit, Failure, UsageError};
use crate::file_runs::NamedRuns;
use crate::gate_args::GateArgs;
use crate::quantities::{parse_confidence, parse_margin};
use crate::see::ci_job::print_ci_tests;
use crate::see::compared_studies::{compare_shared_studies, print_studies};
use crate::see::row_suspects::add_row_suspects;
use crate::selection;
use crate::verb::Verb;
use perflab_model::Ratio;

/// Compares runs, or the levels of a factor within one.
pub fn compare_runs(context: &App, args: &CompareArgs) -> Result<Exit, Failure> {
    if args.schema {
        context.print_text(&serde_json::to_string_pretty(&comparison::comparison_schema())?)?;
        return Ok(Exit::Fine);
    }
    refuse_ineffective_options(args, context.format)?;
    let named = NamedRuns::resolve(context, &args.runs)?;
    let args = &with_named_runs(args, &named);
    if args.monitor.is_some() {
        args.gate.refuse_kernel_log("--monitor")?;
    }
    let args = &with_versus_as_factor(context, args)?;
    let gate = args.gate.gate();
    let gate = gate.as_ref();
    if args.all_studies {
        args.gate.refuse_kernel_log("--all-studies")?;
        return compare_all_studies(context, args);
    }
    if let [first, second] = &args.by[..] {
        return compare_two_factors(context, args, [first, second]);
    }
    let (mut comparison, sides) = build_explained_comparison(context, args)?;
    let reads_log = gate.is_some_and(Gate::reads_kernel_log);
    args.sort.into_iter().for_each(|order| comparison.sort_rows(order));
    comparison.notes.extend(
        args.monitor.as_deref().and_then(|name| crate::selection::missing_averages_note(name, &comparison)),
    );
    let is_printed = print_ci_tests(
        context,
        || CiTests::of_comparison(&comparison, gate),
        || Ok(comparison::render_comparison(&comparison, OutputFormat::Markdown, None, false)?),
    )?;
    if !is_printed {
        context.print_text(&comparison_text(context, args, &comparison)?)?;
    }
    if args.style == ComparisonStyle::Perflab && args.monitor.is_none() {
        side_fairness_lines(&sides).iter().for_each(|line| context.note(line));
    }
    let found =
        gate.map(|gate| comparison.violations(gate).len() + comparison.kernel_log_violations(gate).len());
    let found = found.unwrap_or_default();
    if let Some(gate) = gate.filter(|_| found > 0) {
        stderr_line!("perflab: --fail-if {gate}: {found} found");
    }
    args.gate.note_uncounted(context, &comparison);
    let unjudged = comparison.rows.iter().filter(|row| row.verdict_word() == "withheld").count();
    Ok(match found {
        0 if reads_log && comparison.kernel_log.as_ref().is_none_or(|log| !log.unread.is_empty()) => {
            stderr_line!("perflab: --fail-if: the kernel's log of a side was not kept, or could not be read");
            Exit::NothingJudged
        }
        0 if gate.is_some_and(Gate::judges_rows) && unjudged > 0 => {
            stderr_line!(
                "perflab: --fail-if: {unjudged} rows have no verdict: the sides did different things under one name (--across judges them)"
            );
            Exit::NothingJudged
        }
        0 => Exit::Fine,
        _ => Exit::Regression,
    })
}

/// The comparison with what stands beside its rows: what kernels printed, and the suspects of each change.
pub(super) fn build_explained_comparison(
    context: &App,
    args: &CompareArgs,
) -> Result<(Comparison, Vec<ComparisonSide>), Failure> {
    let (mut comparison, sides) = build_comparison(context, args)?;
    let has_own_table = args.style == ComparisonStyle::Perflab && !args.ratio && args.stat.is_empty();
    let reads_log = args.gate.gate().as_ref().is_some_and(Gate::reads_kernel_log);
    if args.monitor.is_none() && (has_own_table || reads_log) {
        let runs = find_compared_runs(context, args)?;
        selection::add_kernel_log(&mut comparison, &sides, &selection::read_kernel_logs(&runs)?);
        if has_own_table && matches!(context.format, OutputFormat::Table | OutputFormat::Json) {
            add_row_suspects(&mut comparison, &sides, &runs, &comparison_options(args));
        }
    }
    Ok((comparison, sides))
}

/// All runs that are named.
fn find_compared_runs(context: &App, args: &CompareArgs) -> Result<Vec<RunDir>, Failure> {
    let named = if args.by.is_empty() { selectors_baseline_first(args) } else { args.runs.clone() };
    Ok(selection::find_named_runs(&context.archive()?, &selection::named_runs_or_latest(&named))?)
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

/// The arguments where `--versus KEY=VALUE` names a level of a factor: that factor compares, and what --where says of it is the baseline.
fn with_versus_as_factor(context: &App, args: &CompareArgs) -> Result<CompareArgs, Failure> {
    let mut args = args.clone();
    let Some(first) = args.versus.first().filter(|text| text.contains('=')) else { return Ok(args) };
    let first: CaseCondition =
        first.parse().map_err(|error| UsageError::new(format!("--versus: {error}"), VERSUS))?;
    let mut sides = vec![join_named_runs(context, &CompareArgs { conditions: Vec::new(), ..args.clone() })?];
    let cases = sides.iter().flat_map(|side| &side.runs).flat_map(|run| &run.manifest.plan.cases);
    let mut values = Vec::new();
    for text in &args.versus {
        let one = text.parse::<CaseCondition>().ok().filter(|one| one.key == first.key);
        let one = one
            .ok_or_else(|| UsageError::new(format!("--versus {text} is not about {}", first.key), VERSUS))?;
        values.extend(one.values);
    }
    let is_factor = cases.into_iter().any(|case| case.levels.contains_key(&first.key));
    if !is_factor {
        let known = selection::keep_runs_with_facts(&mut sides, std::slice::from_ref(&first))?;
        if !known.is_empty() {
            let hint = format!("name two runs, or a factor of the study; {VERSUS}");
            return Err(UsageError::new(
                format!("`{}` is neither a factor nor a fact here", first.key),
                hint,
            )
            .into());
        }
        args.fact = Some(first.key.clone());
    }
    let at = args.conditions.iter().position(|one| one.key == first.key);
    let baseline = at.map(|at| args.conditions.remove(at).values);
    match baseline.as_deref() {
        Some([baseline]) => args.baseline = Some(baseline.clone()),
        Some(_) => {
            return Err(
                UsageError::new(format!("--where {} names several baselines", first.key), VERSUS).into()
            );
        }
        None if is_factor => {}
        None => return Err(UsageError::new(format!("--versus {} has no baseline", first.key), VERSUS).into()),
    }
    if is_factor {
        args.by = vec![first.key];
    }
    args.versus = values;
    Ok(args)
}

const VERSUS: &str = "write --where KEY=BASELINE --versus KEY=CANDIDATE";

/// The joined runs as a side for each value of a fact: the baseline, then the candidates.
fn split_by_fact(
    joined: &ComparisonSide,
    key: &str,
    args: &CompareArgs,
) -> Result<Vec<ComparisonSide>, UsageError> {
    let values = args.baseline.iter().chain(&args.versus);
    let side = |value: &String| {
        let condition = CaseCondition { key: key.to_owned(), values: vec![value.clone()] };
        let mut side = [ComparisonSide { name: joined.name.clone(), runs: joined.runs.clone() }];
        selection::keep_runs_with_facts(&mut side, &[condition])?;
        let [side] = side;
        Ok(ComparisonSide { name: value.clone(), ..side })
    };
    values.map(side).collect()
}

/// A section for each study that two labels share.
fn compare_all_studies(context: &App, args: &CompareArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let names = selectors_baseline_first(args);
    let mut sides = selection::select_sides(&names, |run| read_compared_side(&archive, run, args))?;
    let options = AnalysisOptions {
        noise: crate::laboratory::noise::read_noise_card(context)?,
        conditions: selection::keep_runs_with_facts(&mut sides, &args.conditions)?,
        ..comparison_options(args)
    };
    let mut found = compare_shared_studies(&sides, &options)?;
    if let Some(order) = args.sort {
        let outcomes = found.studies.iter_mut().filter_map(|study| study.outcome.as_mut().ok());
        outcomes.for_each(|comparison| comparison.sort_rows(order));
    }
    let gate = args.gate.gate();
    let is_printed = print_ci_tests(
        context,
        || CiTests::of_studies(&found, gate.as_ref()),
        || Ok(comparison::studies_markdown(&found)?),
    )?;
    if !is_printed {
        print_studies(context, &found)?;
    }
    let Some(gate) = gate else { return Ok(Exit::Fine) };
    let failing = found.comparisons().map(|comparison| comparison.violations(&gate).len()).sum::<usize>();
    if failing > 0 {
        stderr_line!("perflab: --fail-if {gate}: {failing} found");
        return Ok(Exit::Regression);
    }
    let is_judged = found.comparisons().count() == found.studies.len();
    let mut rows = found.comparisons().flat_map(|comparison| &comparison.rows);
    let is_withheld = rows.any(|row| row.verdict_word() == "withheld");
    if !is_judged || is_withheld {
        stderr_line!("perflab: --fail-if {gate}: there are studies, or rows, without a verdict");
        return Ok(Exit::NothingJudged);
    }
    Ok(Exit::Fine)
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
fn refuse_ineffective_options(args: &CompareArgs, format: OutputFormat) -> Result<(), UsageError> {
    let is_short = matches!(format, OutputFormat::Short | OutputFormat::Mail) || format.is_for_ci();
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
            args.sort.is_some() && (is_two_factors || is_mmtests || is_tool),
            "these tables have an order of their own",
            "omit --sort, or --style and the second factor",
        ),
        (
            args.all_studies && args.style != ComparisonStyle::Perflab,
            "--all-studies has sections of perflab's own",
            "omit --style",
        ),
        (
            is_two_factors && !args.versus.is_empty(),
            "two factors are not compared with one level",
            "omit --versus, or name one factor",
        ),
        (
            is_short && (is_two_factors || args.ratio || has_stat || args.style != ComparisonStyle::Perflab),
            "this --format is of verdicts",
            "omit it, or --style, --ratio, --stat and the second factor",
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
    let mut side = [join_named_runs(context, args)?];
    let conditions = selection::keep_runs_with_facts(&mut side, &args.conditions)?;
    let options = AnalysisOptions { conditions, ..comparison_options(args) };
    let [side] = &side;
    let found = estimate_interactions(side, factors.map(String::as_str), &options)?;
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
pub(super) fn build_comparison(
    context: &App,
    args: &CompareArgs,
) -> Result<(Comparison, Vec<ComparisonSide>), Failure> {
    let options = AnalysisOptions {
        noise: crate::laboratory::noise::read_noise_card(context)?,
        ..comparison_options(args)
    };
    match &args.by[..] {
        [factor] => {
            let mut sides = vec![join_named_runs(context, args)?];
            let conditions = selection::keep_runs_with_facts(&mut sides, &args.conditions)?;
            let options = AnalysisOptions { conditions, ..options };
            Ok((compare_side_levels(&context.archive()?, &sides, factor, (args, &options))?, sides))
        }
        [] => {
            let archive = context.archive()?;
            let names = selectors_baseline_first(args);
            let mut sides = match &args.fact {
                Some(key) => split_by_fact(&join_named_runs(context, args)?, key, args)?,
                None => selection::select_sides(&names, |run| read_compared_side(&archive, run, args))?,
            };
            keep_candidates(&mut sides, args)?;
            let conditions = selection::keep_runs_with_facts(&mut sides, &args.conditions)?;
            let options = AnalysisOptions { conditions, ..options };
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
                    let factor = selection::only_varied_factor(alone)?;
                    context.note_line(&format!(
                        "one run is named: the levels of its factor `{factor}` are compared (--by {factor})"
                    ));
                    Ok((compare_side_levels(&archive, &sides, &factor, (args, &options))?, sides))
                }
                None => Err(selection::alone_error("name two runs").into()),
            }
        }
        _ => Err(UsageError::new(
            "--by takes one factor or two",
            "name two, and keep one level of the others with `perflab run --set`",
        )
        .into()),
    }
}

/// Leaves the baseline and the candidates that `--versus` names.
fn keep_candidates(sides: &mut Vec<ComparisonSide>, args: &CompareArgs) -> Result<(), UsageError> {
    let Some((baseline, candidates)) = sides.split_first().filter(|_| !args.versus.is_empty()) else {
        return Ok(());
    };
    if candidates.is_empty() {
        // Levels of the only run: they are chosen once its factor is known.
        return Ok(());
    }
    let is_named = |side: &&ComparisonSide| args.versus.contains(&side.name);
    if let Some(unknown) = args.versus.iter().find(|name| candidates.iter().all(|side| side.name != **name)) {
        let hint =
            perflab_model::problem::suggest_name(unknown, candidates.iter().map(|side| side.name.as_str()));
        return Err(UsageError::new(format!("no candidate is called `{unknown}`"), hint));
    }
    let kept = std::iter::once(baseline).chain(candidates.iter().filter(is_named)).cloned().collect();
    *sides = kept;
    Ok(())
}

/// The levels of a factor of the only side.
fn compare_side_levels(
    archive: &perflab_archive::Archive,
    sides: &[ComparisonSide],
    factor: &str,
    (args, options): (&CompareArgs, &AnalysisOptions),
) -> Result<Comparison, Failure> {
    let Some(side) = sides.first() else { return Err(selection::alone_error("name a run").into()) };
    if args.monitor.is_some() {
        return Ok(compare_levels(side, factor, options)?);
    }
    selection::compare_with_history(archive, sides, options, |options| compare_levels(side, factor, options))
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

pub(super) fn comparison_options(args: &CompareArgs) -> AnalysisOptions {
    AnalysisOptions {
        confidence: args.confidence.0,
        across: args.across,
        boots_differ: args.boots_differ,
        leave_out_warm_up: args.warmup == WarmupChoice::Auto,
        // Other tools' tables have a line for each column.
        merge_twins: args.monitor.is_some() && args.style == ComparisonStyle::Perflab,
        includes_resources: args.monitor.is_some(),
        default_margin: args.margin.0,
        metrics: args.metric.clone(),
        workloads: args.workload.clone(),
        baseline: args.baseline.clone().filter(|_| !args.by.is_empty()),
        // Of runs, candidates are chosen as sides.
        versus: if args.runs.len() > 1 && args.by.is_empty() { Vec::new() } else { args.versus.clone() },
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
    /// Only this metric, in which * stands for any text; or all that decide or explain (repeatable)
    #[arg(long, value_name = "NAME|primary|explanatory")]
    pub metric: Vec<String>,
    /// Only this workload, in which * stands for any text (repeatable)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Only cases with this level of a factor or value of a parameter, or runs with this fact (repeatable)
    #[arg(long = "where", value_name = "KEY=VALUE")]
    pub conditions: Vec<CaseCondition>,
    /// Compare only this run or level with the baseline (repeatable); KEY=VALUE with what --where says of KEY, a factor
    /// or a fact
    #[arg(long, value_name = "NAME|KEY=VALUE")]
    pub versus: Vec<String>,
    /// Compare every study that two labels share, one section a study: the mail of a bot
    #[arg(long, conflicts_with_all = ["by", "monitor", "ratio", "stat", "significance", "versus"])]
    pub all_studies: bool,
    /// Which rows come first; those of one case stay together
    #[arg(long, value_name = "ORDER", value_parser = app::named_parser::<RowOrder>())]
    pub sort: Option<RowOrder>,
    /// Print the JSON Schema of `--format json`
    #[arg(long, conflicts_with = "runs")]
    pub schema: bool,
    /// The fact whose values are the sides
    #[arg(skip)]
    pub fact: Option<String>,
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
  perflab compare @latest --where pages=ordinary --versus pages=huge
  perflab compare v6.18 v6.19 --all-studies         every study of both labels, as a mail
  perflab compare before after --sort change --format short
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
