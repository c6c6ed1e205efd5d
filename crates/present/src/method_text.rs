//! How numbers came about, in words, and results as JSON with what is to be known of them.

use perflab_analyze::{MethodDescription, ShiftEstimator, UnreadableRun};
use serde::Serialize;

/// What is to be known of how a result came about, in one line.
#[must_use]
pub fn describe_method(method: &MethodDescription) -> String {
    match method {
        MethodDescription::AlwaysValid => {
            "the run was looked at after every block, to end once its rows were decided: interval, p and q hold at every look (a \
             confidence sequence from the signs that drawn orders give to the differences of a block), also those of tails, means and failures"
                .into()
        }
        MethodDescription::ChangeBy { estimator, all, of_pairs } => {
            change_by_text(*estimator, *all, *of_pairs)
        }
        MethodDescription::MediansApart { rows } => medians_apart_text(*rows),
        MethodDescription::MachinePairMeans => MACHINE_PAIR_MEANS.into(),
        MethodDescription::BootMeans => {
            "change of rows with few boots or runs: Welch's t on their medians (Student's where a side has one, whose spread is taken \
             to be the other side's): two or three a side are too few for ranks"
                .into()
        }
        MethodDescription::PooledNoise { pairs, from_card } => pooled_noise_text(*pairs, *from_card),
        MethodDescription::RandomEffects => {
            "change of rows whose boots or runs hold unequally many values: each side's mean by a model of random effects (REML, Kenward \
             and Roger's error), so that each counts by what it knows; Welch's t holds the two against each other"
                .into()
        }
        MethodDescription::WarmUpLeftOut { values: 0 } => "warm-up: none was found, so that nothing is left out".into(),
        MethodDescription::WarmUpLeftOut { values } => {
            format!("warm-up: {values} values at the beginning of runs are left out (--warmup auto)")
        }
        MethodDescription::ExactValues => {
            "metrics that are assumed exact: any difference is a change, without statistics and whatever the margin".into()
        }
        MethodDescription::OneRunASide { widened, in_turn: true, .. } => levels_in_turn_text(*widened),
        MethodDescription::OneRunASide { widened, earlier_pairs, from_card, imported, .. } => {
            one_run_a_side_text(*widened, *earlier_pairs, *from_card, *imported)
        }
        MethodDescription::VerdictRule { narrow_confidence, confidence } => {
            verdict_rule_text(*narrow_confidence, *confidence)
        }
        MethodDescription::UnseenTail { share, values } => format!(
            "same covers the mean and the bad tail, too: bad iterations rarer than 1 in {:.0} would not show among {values} values",
            share.recip()
        ),
        MethodDescription::FalseDiscoveryRate { primary, explanatory } => format!(
            "q: Benjamini and Hochberg over {primary} primary and {explanatory} explanatory rows, each family by itself"
        ),
        MethodDescription::ComparedFactor { factor, levels } => {
            let level = |(side, level): &(String, Option<String>)| {
                format!("{} on {side}", level.as_deref().unwrap_or("not varied"))
            };
            let levels: Vec<String> = levels.iter().map(level).collect();
            format!("compared across {factor}: {}", levels.join(", "))
        }
        MethodDescription::KernelAverages { columns } => format!(
            "without {}: the kernel averages them over longer than an iteration lasts, so that iterations share their values",
            columns.join(", ")
        ),
        MethodDescription::SlabNoiseFloor => {
            "noise floor of a cache: the larger of one slab and twice the noise in bytes, which is the pooled standard deviation of \
             the repetitions, or with one of them on a side, the robust standard deviation of the steps from tick to tick"
                .into()
        }
        MethodDescription::HistorySteps => {
            "one value a run: the median of its boots' medians; steps: E-divisive, 199 permutations of AR(1) innovations, so that \
             values may depend on the ones before; q: Benjamini and Hochberg's over all series here, steps at 0.05; the \
             change and its interval: Hodges and Lehmann's, from the runs between the steps on either side"
                .into()
        }
        MethodDescription::EditedCase { subject, run, differences } => format!(
            "{subject} differs from run {run} on and is a series of its own since: {}",
            differences.join("; ")
        ),
        MethodDescription::ShortSeries { series, fewest_runs } => {
            format!("{series} series have fewer than {fewest_runs} runs: too few to look for steps")
        }
        MethodDescription::UnreadableRuns { runs } => unreadable_runs_text(runs),
        MethodDescription::DaysAsLevel { series } => format!(
            "in {series} series the runs of a day resemble one another more than those of other days: a day is a level, whose runs are \
             permuted as a block and count as one value; with fewer than six days, steps are looked for within days only"
        ),
        MethodDescription::GuardRule { confidence, recent_runs } => guard_rule_text(*confidence, *recent_runs),
        MethodDescription::EffectContrasts => {
            "effect: averaged over the levels of the other factor; interaction: by how much (as a ratio of ratios) the effect of one \
             factor differs under the other; q: Benjamini and Hochberg's over primary and over explanatory rows"
                .into()
        }
        MethodDescription::EffectsWithinBlocks => {
            "compared within complete blocks, boots or machines: pseudo-median and signed ranks".into()
        }
        MethodDescription::EffectsWithinMachines => {
            "compared within machines, of which fewer than six are too few for ranks: Student's t on their medians".into()
        }
        MethodDescription::EffectsByMeans => {
            "compared by means, where fewer than six blocks or boots, or fewer than two machines, have every cell: t with Satterthwaite's freedom".into()
        }
        MethodDescription::EffectsWithoutBoots => {
            "unclear for want of boots: the cells were measured in different boots, which do not repeat".into()
        }
    }
}

/// As many of the runs that cannot be read are named.
const MOST_NAMED: usize = 10;

fn unreadable_runs_text(runs: &[UnreadableRun]) -> String {
    let named = runs.iter().take(MOST_NAMED).map(|run| format!("{}: {}", run.run, run.reason));
    let more = runs.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    let what = if runs.len() == 1 { "run that cannot be read is" } else { "runs that cannot be read are" };
    format!("{} {what} left out: {}", runs.len(), named.chain(more).collect::<Vec<_>>().join("; "))
}

fn verdict_rule_text(narrow_confidence: f64, confidence: f64) -> String {
    format!(
        "same: the {} % interval lies inside ± the margin (at most: the smallest margin of which that holds); better or worse: the {} % interval excludes no change and q is below {}",
        percent_of_level(narrow_confidence),
        percent_of_level(confidence),
        percent_of_level(1.0 - confidence) / 100.0,
    )
}

fn change_by_text(estimator: ShiftEstimator, all: bool, of_pairs: bool) -> String {
    let rest = if all { "all" } else { "all other" };
    match estimator {
        ShiftEstimator::SignedRanks => {
            "change of paired rows: the pseudo-median over blocks or boots, with the interval that inverts Wilcoxon's signed-rank test"
                .into()
        }
        ShiftEstimator::JointRanks => {
            "change of paired rows whose values tell more among all than within pairs (two modes, long tails): Hodges and Lehmann's, with \
             the interval of Munzel's test, whose error is that of the pairs"
                .into()
        }
        ShiftEstimator::RankSum => format!(
            "change of {rest} rows{}: Hodges and Lehmann's, with the interval that inverts the Mann-Whitney test",
            if of_pairs { ", also of paired ones whose pairs tell nothing" } else { "" }
        ),
        ShiftEstimator::Means => {
            "change of rows most of whose values are equal to another one (a coarse clock, small counts): the difference of the means, \
             with Student's t; ranks would move by whole steps only"
                .into()
        }
    }
}

const MACHINE_PAIR_MEANS: &str = "change of rows with few pairs of machines: Student's t on the differences of their medians; fewer \
    than six pairs are too few for ranks";

/// Why the medians of rows say another change than the rows do.
fn medians_apart_text(rows: usize) -> String {
    let which = match rows {
        1 => "one row's medians say another change".to_owned(),
        _ => format!("the medians of {rows} rows say other changes"),
    };
    format!(
        "{which}: of skewed values, and where partners failed, the typical difference between a value of one side and one of the other is \
         not that of the medians"
    )
}

/// What earlier runs add to two or three boots or runs a side.
fn pooled_noise_text(pairs: usize, from_card: bool) -> String {
    format!(
        "+ earlier: two or three boots or runs a side scatter no more than {pairs} pairs of {} do, whose variance is pooled with \
         theirs (Student's t); where they scatter more, they stand alone",
        if from_card { "runs of this machine's noise card" } else { "earlier runs of the study" }
    )
}

/// When the newest run of a history alarms.
fn guard_rule_text(confidence: f64, recent_runs: usize) -> String {
    format!(
        "alarms: a step for the worse beyond the margin whose evidence reached {limit:.0}, seen with one of the last \
         {recent_runs} runs; the chance that a series without a step ever alarms is at most {error:.0} %, however often one \
         looks, and a step of two standard deviations takes 10 runs in the median after 20 runs (docs/statistics.md); \
         expected: the {percent:.0} % prediction interval for one more run, from the runs since the last step; outside: q \
         (Benjamini and Hochberg's) below {level:.2}, which alone is no alarm",
        limit = 1.0 / (1.0 - confidence),
        error = (1.0 - confidence) * 100.0,
        percent = confidence * 100.0,
        level = 1.0 - confidence
    )
}

/// All of them.
pub(crate) fn describe_methods(methods: &[MethodDescription]) -> Vec<String> {
    methods.iter().map(describe_method).collect()
}

/// A level of confidence in per cent, with as many digits as it was given: 95, 99.9, 99.9999.
pub(crate) fn percent_of_level(level: f64) -> f64 {
    (level * 1e10).round() / 1e8
}

/// A result as JSON, with `notes` in words.
#[derive(Debug, Serialize)]
pub struct ResultWithNotes<'a, T> {
    #[serde(flatten)]
    result: &'a T,
    notes: Vec<String>,
}

impl<'a, T> ResultWithNotes<'a, T> {
    /// A result and how it came about.
    #[must_use]
    pub fn new(result: &'a T, methods: &[MethodDescription]) -> Self {
        ResultWithNotes { result, notes: describe_methods(methods) }
    }
}

/// Why rows say no more than *differs* or *same here*, and what their interval allows for.
fn levels_in_turn_text(widened: f64) -> String {
    format!(
        "differs, same here: one level was measured after the other, so that a change and drift look alike; iterations resemble \
         those before them, which widens intervals up to {widened:.1} times; in round brackets is the range between these two; \
         a random order of the iterations gives a verdict"
    )
}

fn one_run_a_side_text(widened: f64, earlier_pairs: usize, from_card: bool, imported: bool) -> String {
    let why = "differs, same here: one run a side, and not interleaved, so that a change and the luck of a run look alike";
    let dependence =
        format!("iterations resemble those before them, which widens intervals up to {widened:.1} times");
    match earlier_pairs {
        0 if imported => format!(
            "{why}; {dependence}; in round brackets is the range between these two runs: import more runs, two or more a side, \
             measured in turns, for a verdict"
        ),
        0 => format!(
            "{why}; {dependence}; in round brackets is the range between these two runs: four more runs of the study on this \
             machine, or of `perflab noise`, would say how much any two differ"
        ),
        pairs if from_card => format!(
            "{why}; {dependence}, and {pairs} pairs of runs of this machine's noise card say how much any two differ: other runs of \
             the study are too few"
        ),
        pairs => {
            format!("{why}; {dependence}, and {pairs} pairs of earlier runs say how much any two differ")
        }
    }
}
