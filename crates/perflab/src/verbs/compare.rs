//! `perflab compare`

mod monitor;

use perflab_analyze::{
    Comparison, Gate, Options, Side, Statistic, benchstat, compare, compare_by_factor, interactions, lkp,
    mmtests, recap,
};
use perflab_present::table::{self, Format};

use crate::arguments::{self, StyleName};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::sides;

/// Compares runs, or the levels of a factor within one.
pub fn run(context: &Context, wanted: &arguments::Compare) -> anyhow::Result<Exit> {
    refuse_ineffective(wanted)?;
    let gate = wanted.fail_if.as_deref().map(str::parse::<Gate>).transpose()?;
    let statistics = statistics(wanted)?;
    if let [first, second] = &wanted.by[..] {
        return two_factors(context, wanted, [first, second]);
    }
    let (mut comparison, sides) = comparison(context, wanted)?;
    comparison.notes.extend(wanted.monitor.as_deref().and_then(|name| monitor::left_out(name, &comparison)));
    context.write(&text(context, wanted, &comparison, &statistics)?)?;
    if wanted.style == StyleName::Perflab && wanted.monitor.is_none() {
        evenness(&sides).iter().for_each(|line| context.say(line));
    }
    let found = gate.as_ref().map(|gate| comparison.violations(gate).len()).unwrap_or_default();
    if found > 0 {
        stderr_line!("perflab: --fail-if {}: {found} found", wanted.fail_if.as_deref().unwrap_or_default());
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

/// Lines about how evenly targets were served that are said of a comparison.
const EVENNESS: usize = 12;

/// How evenly the targets of each side were served.
fn evenness(sides: &[Side]) -> Vec<String> {
    let of = |side: &Side| {
        let lines = side.runs.iter().flat_map(table::targets::evenness);
        lines.map(|line| format!("{}: {line}", side.name)).collect::<Vec<_>>()
    };
    let mut lines: Vec<String> = sides.iter().flat_map(of).collect();
    let more = lines.len().saturating_sub(EVENNESS);
    lines.truncate(EVENNESS);
    if more > 0 {
        lines.push(format!("{more} further: `perflab show RUN --targets`"));
    }
    lines
}

/// Refuses options that would change nothing of what is printed.
fn refuse_ineffective(wanted: &arguments::Compare) -> Result<(), Usage> {
    let is_two_factors = wanted.by.len() == 2;
    let is_tool = matches!(wanted.style, StyleName::Lkp | StyleName::Benchstat);
    let (is_mmtests, has_stat) = (wanted.style == StyleName::Mmtests, !wanted.stat.is_empty());
    let has_margin = wanted.margin != arguments::MARGIN && wanted.fail_if.is_none();
    let is_benchstat = wanted.style == StyleName::Benchstat;
    let all = [
        (
            wanted.significance && (!is_mmtests || wanted.ratio || wanted.monitor.is_some()),
            "--significance adds rows to MMTests' table of metrics",
            "add --style mmtests, and leave --ratio and --monitor out",
        ),
        (
            is_tool && (wanted.ratio || has_stat),
            "the tables of lkp and benchstat have figures of their own",
            "leave --style out, or --ratio and --stat",
        ),
        (
            wanted.ratio && has_stat,
            "--ratio shows gains, and --stat statistics in their place",
            "name one of the two",
        ),
        (
            wanted.monitor.as_deref() == Some("duration") && !is_mmtests,
            "--monitor duration is a table of MMTests",
            "add --style mmtests",
        ),
        (
            is_two_factors && wanted.fail_if.is_some(),
            "two factors have effects and an interaction, and no verdict that --fail-if could look for",
            "name one factor",
        ),
        (
            is_two_factors && (wanted.ratio || has_stat || wanted.style != StyleName::Perflab),
            "two factors have a table of their own",
            "leave --style, --ratio and --stat out, or name one factor",
        ),
        (
            is_two_factors && wanted.baseline.is_some(),
            "two factors are not compared with one level",
            "leave --baseline out, or name one factor",
        ),
        (
            has_margin && (wanted.ratio || wanted.style != StyleName::Perflab),
            "a margin decides verdicts, and this table has none",
            "leave --margin out, or add --fail-if",
        ),
        (
            is_benchstat && wanted.confidence != arguments::CONFIDENCE,
            "benchstat's intervals are of 95 %",
            "leave --confidence out",
        ),
    ];
    match all.into_iter().find(|(is_ineffective, ..)| *is_ineffective) {
        Some((_, what, hint)) => Err(Usage::new(what, hint)),
        None => Ok(()),
    }
}

fn text(
    context: &Context,
    wanted: &arguments::Compare,
    comparison: &Comparison,
    statistics: &[Statistic],
) -> anyhow::Result<String> {
    let (format, width, colour) = (context.format, context.width, context.colour);
    Ok(match wanted.style {
        StyleName::Mmtests => as_mmtests(wanted, comparison, statistics, format)?,
        StyleName::Lkp => table::render_lkp(&lkp::tables(comparison), format)?,
        StyleName::Benchstat => table::render_benchstat(&benchstat::tables(comparison), format)?,
        StyleName::Perflab if wanted.ratio => table::render_recap(&recap(comparison), format, width)?,
        StyleName::Perflab if !statistics.is_empty() => {
            table::render_statistics(comparison, statistics, format, width, colour)?
        }
        StyleName::Perflab => table::render(comparison, format, width, colour)?,
    })
}

fn as_mmtests(
    wanted: &arguments::Compare,
    comparison: &Comparison,
    statistics: &[Statistic],
    format: Format,
) -> anyhow::Result<String> {
    use table::mmtests::{render_plain, render_ratios, render_stats};
    let text = match wanted.monitor.as_deref() {
        Some("duration") => render_plain(&mmtests::durations(comparison), format)?,
        Some(monitor) => render_plain(&mmtests::monitors(comparison, monitor), format)?,
        None if wanted.ratio => render_ratios(&mmtests::ratios(comparison), format)?,
        None => render_stats(&mmtests::tables(comparison, statistics), wanted.significance, format)?,
    };
    Ok(text)
}

fn statistics(wanted: &arguments::Compare) -> Result<Vec<Statistic>, Usage> {
    let read = |text: &String| {
        text.parse::<Statistic>().map_err(|error| Usage::new(error.to_string(), "see --help"))
    };
    wanted.stat.iter().map(read).collect()
}

/// Effects and interaction of two factors within runs that are repetitions of one another.
fn two_factors(
    context: &Context,
    wanted: &arguments::Compare,
    factors: [&String; 2],
) -> anyhow::Result<Exit> {
    let side = one_side(context, wanted)?;
    let found = interactions(&side, factors.map(String::as_str), &options(wanted)?)?;
    context.write(&table::render_interactions(&found, context.format, context.width, context.colour)?)?;
    Ok(Exit::Fine)
}

/// All runs that were named, as repetitions of one another.
fn one_side(context: &Context, wanted: &arguments::Compare) -> anyhow::Result<Side> {
    let archive = context.archive()?;
    let mut side = Side { name: wanted.runs.join(", "), runs: Vec::new() };
    for name in &wanted.runs {
        let found = side_of(&archive, name, wanted)?;
        if wanted.runs.len() == 1 {
            side.name = found.name;
        }
        side.runs.extend(found.runs);
    }
    Ok(side)
}

/// One side; with `--monitor`, what the monitor recorded in the place of its metrics.
fn side_of(
    archive: &perflab_archive::Archive,
    name: &str,
    wanted: &arguments::Compare,
) -> anyhow::Result<Side> {
    match wanted.monitor.as_deref().filter(|monitor| *monitor != "duration") {
        Some(monitor) if wanted.style == StyleName::Mmtests => monitor::readings_of(archive, name, monitor),
        Some(monitor) => monitor::side(archive, name, monitor),
        // Iterations that ended well say nothing here.
        None => sides::side_of_failures(archive, name),
    }
}

/// The comparison, and its sides.
fn comparison(context: &Context, wanted: &arguments::Compare) -> anyhow::Result<(Comparison, Vec<Side>)> {
    let options = Options { noise: super::noise::stored(context)?, ..options(wanted)? };
    match &wanted.by[..] {
        [factor] => {
            let side = one_side(context, wanted)?;
            Ok((compare_by_factor(&side, factor, &options)?, vec![side]))
        }
        [] => {
            let archive = context.archive()?;
            let names = baseline_first(wanted);
            let sides = sides::several(&names, |run| side_of(&archive, run, wanted))?;
            match sides.split_first() {
                Some((baseline, candidates)) if !candidates.is_empty() => {
                    let found = compare(baseline, candidates, &options)?;
                    Ok((found, sides))
                }
                _ => Err(Usage::new(
                    "there is nothing to compare one run with",
                    "name a second run, or a factor with --by",
                )
                .into()),
            }
        }
        _ => Err(Usage::new(
            "--by takes one factor or two",
            "name two, and filter the others with --set when running",
        )
        .into()),
    }
}

/// The runs with the wanted baseline in front.
fn baseline_first(wanted: &arguments::Compare) -> Vec<String> {
    let mut runs = wanted.runs.clone();
    let Some(baseline) = &wanted.baseline else { return runs };
    match runs.iter().position(|run| run == baseline) {
        Some(at) => runs.get_mut(..=at).unwrap_or_default().rotate_right(1),
        None => runs.insert(0, baseline.clone()),
    }
    runs
}

fn options(wanted: &arguments::Compare) -> Result<Options, Usage> {
    Ok(Options {
        confidence: confidence(&wanted.confidence)?,
        across: wanted.across,
        boots_differ: wanted.boots_differ,
        // Other tools' tables have a line for each column.
        merge_twins: wanted.monitor.is_some() && wanted.style == StyleName::Perflab,
        default_margin: percent("--margin", &wanted.margin)?,
        metrics: wanted.metric.clone(),
        workloads: wanted.workload.clone(),
        baseline: wanted.baseline.clone().filter(|_| !wanted.by.is_empty()),
        ..Options::default()
    })
}

/// `95%` or `0.95`: a level has no other reading.
fn confidence(text: &str) -> Result<f64, Usage> {
    let (number, scale) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |rest| (rest, 100.0));
    let level = number.trim().parse::<f64>().ok().map(|level| level / scale);
    level.filter(|level| *level > 0.5 && *level < 1.0).ok_or_else(|| {
        Usage::new(format!("--confidence {text} is not between 50% and 100%"), "95% (or 0.95) is usual")
    })
}

/// `3%` as 0.03. A number without its sign is refused: 0.03 may mean 3 % or 0.03 %.
pub fn percent(option: &str, text: &str) -> Result<f64, Usage> {
    let text = text.trim();
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let number = number.filter(|number| (0.0..100.0).contains(number)).map(|number| number / 100.0);
    number.ok_or_else(|| match text.parse::<f64>().ok().filter(|bare| (0.0..100.0).contains(bare)) {
        Some(bare) => {
            // A fraction was meant, or so small a share.
            let hundredfold = (bare * 1e8).round() / 1e6;
            let or = if bare > 0.0 && bare < 1.0 { format!(" or {hundredfold}%") } else { String::new() };
            Usage::new(format!("{option} {text} has no unit"), format!("write {bare}%{or}"))
        }
        None => Usage::new(format!("{option} {text} is not a per cent value below 100"), "write 3%"),
    })
}
