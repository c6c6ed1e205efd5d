//! A change with its intervals and its p-value, on the scale of ratios or of differences, and the one estimator of it.

use perflab_stats::{
    InferenceMethod as StatsMethod, IntervalEstimate, LocationShift, MeanScale, ShiftSequence, StatsError,
    WelchTest, paired_mean_shift, pooled_t, sd, welch,
};

use schemars::JsonSchema;
use serde::Serialize;

/// A change from baseline to candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct MetricChange {
    /// Whether the numbers are fractions of the baseline or in the row's unit.
    pub scale: ChangeScale,
    /// The estimate: 0.02 is 2 % more, 0 no change.
    pub value: f64,
    /// At the comparison's confidence; absent where the sample is too small for one.
    pub interval: Option<ChangeInterval>,
    /// At the level with twice the error, from which "same" is judged.
    pub narrow: Option<ChangeInterval>,
    /// What the intervals are of.
    #[serde(skip_serializing_if = "IntervalMeaning::is_change")]
    pub covers: IntervalMeaning,
}

/// What an interval is of, those that say less behind those that say more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMeaning {
    /// the change
    #[default]
    Change,
    /// the difference between these two runs: how much any two runs differ is not known
    TheseRuns,
    /// nothing, and there is none: so few values that resemble their neighbours set no bound
    Unbounded,
}

impl IntervalMeaning {
    /// Its name in JSON and CSV.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            IntervalMeaning::Change => "change",
            IntervalMeaning::TheseRuns => "these-runs",
            IntervalMeaning::Unbounded => "unbounded",
        }
    }

    pub(crate) fn is_change(&self) -> bool {
        *self == IntervalMeaning::Change
    }
}

impl MetricChange {
    /// Whether the narrow interval lies inside ± the margin, which is in the unit of the change.
    pub(crate) fn is_within(&self, margin: f64) -> bool {
        self.narrow.is_some_and(|narrow| -margin < narrow.low && narrow.high < margin)
    }

    /// Whether the interval excludes "no change".
    #[must_use]
    pub fn excludes_none(&self) -> bool {
        self.interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0)
    }
}

/// What the interval of a row with one run a side allows for, or with levels that were measured one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct BetweenRuns {
    /// How much an iteration resembles the one before it: lag-one autocorrelation within both runs.
    pub autocorrelation: f64,
    /// The interval is so many times as wide as that of independent iterations.
    pub widened: f64,
    /// Whether the sides are levels of one run that were measured one after the other.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// Pairs of earlier runs that say how much a run differs from the next; 0 where too few are known.
    pub earlier_pairs: usize,
    /// Whether these are runs of the machine's noise card, other runs of the study being too few.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_card: bool,
    /// How much of the change a steady drift within both runs would explain, on the scale of the change; absent where they lie
    /// too far apart to tell.
    pub drift: Option<f64>,
}

/// What earlier runs add to the spread of two or three boots or runs a side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PooledNoise {
    /// Pairs of earlier runs that say how much a boot or a run differs from the next.
    pub pairs: usize,
    /// Whether these are runs of the machine's noise card, other runs of the study being too few.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_card: bool,
    /// Degrees of freedom of the pooled variance.
    pub freedom: f64,
}

/// What layouts do to a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LayoutEffect {
    /// Layouts that both sides were measured under.
    pub layouts: usize,
    /// The change in the layout as built, on the scale of the row's change; absent where one side was not measured in it.
    pub as_built: Option<f64>,
    /// What layout explains of that: how much more it is than the change over all layouts.
    pub explained: Option<f64>,
    /// Standard deviation of the change from one layout to the next, without what iterations add; absent where no layout was
    /// measured twice.
    pub sd: Option<f64>,
    /// The share of the variance of the change, as one iteration a side shows it, that is layout.
    pub share: Option<f64>,
}

/// The unit of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeScale {
    /// candidate / baseline - 1
    Ratio,
    /// candidate - baseline in the metric's unit, where a value is zero or negative
    Absolute,
}

impl ChangeScale {
    /// The scale on which values are compared: ratios where all are above zero, unless `differences` are asked for.
    pub(crate) fn of_values<'a>(mut values: impl Iterator<Item = &'a f64>, differences: bool) -> Self {
        if !differences && values.all(|value| *value > 0.0) {
            ChangeScale::Ratio
        } else {
            ChangeScale::Absolute
        }
    }

    /// A value as changes are estimated from it: its logarithm on the scale of ratios.
    pub(crate) fn on_scale(self, value: f64) -> f64 {
        if self == ChangeScale::Ratio { value.ln() } else { value }
    }

    /// A change as a difference of such values.
    pub(crate) fn shift_of_change(self, change: f64) -> f64 {
        if self == ChangeScale::Ratio { change.ln_1p() } else { change }
    }

    /// A difference of such values as a change.
    pub(crate) fn change_of_shift(self, shift: f64) -> f64 {
        if self == ChangeScale::Ratio { shift.exp_m1() } else { shift }
    }
}

/// A confidence interval of a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ChangeInterval {
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// The level that it really has, at least the comparison's `confidence`, which was asked for.
    #[serde(rename = "coverage")]
    pub level: f64,
}

/// The repetition level that was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepetitionLevel {
    /// medians of machines
    Machine,
    /// medians of boots
    Boot,
    /// medians of runs within one boot, or of runs whose boots nobody knows
    Run,
    /// medians of layouts
    Layout,
    /// iterations
    Iteration,
}

impl RepetitionLevel {
    /// What is counted: `boots`, `runs`, `iterations`.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            RepetitionLevel::Machine => "machines",
            RepetitionLevel::Boot => "boots",
            RepetitionLevel::Run => "runs",
            RepetitionLevel::Layout => "layouts",
            RepetitionLevel::Iteration => "iterations",
        }
    }
}

/// Which estimator a change comes from that is one of iterations, or of enough boots or runs: see [`LocationShift`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShiftEstimator {
    /// of pairs: the pseudo-median of the differences, with Wilcoxon's signed-rank test
    SignedRanks,
    /// of pairs: Hodges and Lehmann's shift, with Munzel's test by the ranks of all values
    JointRanks,
    /// Hodges and Lehmann's shift, with Mann and Whitney's test
    RankSum,
    /// the difference of the means, with Student's t of pairs, or Welch's
    Means,
}

impl ShiftEstimator {
    fn of_shift(shift: &LocationShift) -> Self {
        match shift {
            LocationShift::SignedRanks(..) => ShiftEstimator::SignedRanks,
            LocationShift::JointRanks(_) => ShiftEstimator::JointRanks,
            LocationShift::RankSum(_) => ShiftEstimator::RankSum,
            LocationShift::Means(_) => ShiftEstimator::Means,
        }
    }
}

/// How a change was estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EstimationMethod {
    /// What was compared.
    pub level: RepetitionLevel,
    /// Whether both sides were paired, by block, boot or machine.
    pub paired: bool,
    /// What the change comes from; absent where another line of this says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<ShiftEstimator>,
    /// Whether means were compared by t, two or three boots or runs a side, or up to five pairs of machines, being too few for ranks.
    pub by_means: bool,
    /// Whether a side has a single boot or run, whose spread is taken to be that of the other side: Student's t.
    pub pooled: bool,
    /// Whether interval and p-value hold at every look: the run was looked at after each block, to end once it was decided.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub always_valid: bool,
    /// Whether boots or runs of unequal size count by what each knows: means by a model of random effects (REML), compared by t.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub random_effects: bool,
    /// Baseline values (or pairs) that were compared.
    pub baseline: usize,
    /// Candidate values (or pairs) that were compared.
    pub candidate: usize,
    /// Of pairs, boots, layouts or machines of either side that have no partner on the other, and count for nothing.
    #[serde(skip_serializing_if = "is_none_left_out")]
    pub left_out: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none_left_out(left_out: &usize) -> bool {
    *left_out == 0
}

/// What the data say about one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeEstimate {
    pub(crate) change: MetricChange,
    pub(crate) p: f64,
    /// Standard deviation of one repetition (of one difference, for pairs): of the logarithm on the scale of
    /// ratios, else in the metric's unit. Absent where both sides have a single value.
    pub(crate) sd: Option<f64>,
    /// What a change comes from that is none of few means, of random effects or at every look.
    pub(crate) estimator: Option<ShiftEstimator>,
}

/// Estimates the change on a scale, with an interval at each of two confidences, the comparison's own and the narrower one from
/// which "same" is judged.
pub(crate) fn estimate_change(
    scale: ChangeScale,
    (baseline, candidate): (&[f64], &[f64]),
    rest: [&[f64]; 2],
    method: EstimationMethod,
    confidences: [f64; 2],
) -> Result<ChangeEstimate, StatsError> {
    let on_scale = |values: &[f64]| values.iter().map(|value| scale.on_scale(*value)).collect::<Vec<f64>>();
    let rest = rest.map(on_scale);
    let rest = [&rest[0][..], &rest[1][..]];
    estimate_on_scale(scale, &on_scale(baseline), &on_scale(candidate), rest, method, confidences)
}

fn estimate_on_scale(
    scale: ChangeScale,
    x: &[f64],
    y: &[f64],
    rest: [&[f64]; 2],
    method: EstimationMethod,
    [confidence, narrow_confidence]: [f64; 2],
) -> Result<ChangeEstimate, StatsError> {
    let mut estimator = None;
    let (wide, narrow, p) = if method.by_means {
        let found = match (method.paired, method.pooled) {
            (true, _) => paired_mean_shift(x, y, MeanScale::Difference)?,
            (false, true) => pooled_t(x, y)?,
            (false, false) => welch(x, y)?,
        };
        let at = |confidence| Ok::<_, StatsError>(Some(found.interval(confidence)?));
        let estimate =
            |interval| IntervalEstimate { value: found.difference, interval, method: StatsMethod::StudentT };
        (estimate(at(confidence)?), estimate(at(narrow_confidence)?), found.p)
    } else if method.always_valid {
        let differences: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - x).collect();
        let sequence = ShiftSequence::new(&differences)?;
        (sequence.estimate(confidence)?, sequence.estimate(narrow_confidence)?, sequence.p())
    } else {
        let shift = match method.paired {
            true => LocationShift::of_pairs_and_rest(x, y, rest)?,
            false => LocationShift::of_samples(x, y)?,
        };
        estimator = Some(ShiftEstimator::of_shift(&shift));
        (shift.estimate(confidence)?, shift.estimate(narrow_confidence)?, shift.p())
    };
    let change = MetricChange {
        scale,
        value: scale.change_of_shift(wide.value),
        interval: interval_on_scale(scale, &wide),
        narrow: interval_on_scale(scale, &narrow),
        covers: IntervalMeaning::Change,
    };
    Ok(ChangeEstimate { change, p, sd: repetition_sd(x, y, method.paired), estimator })
}

/// The change that a test by t estimates, of units that were brought on this scale.
pub(crate) fn change_of_test(
    scale: ChangeScale,
    found: &WelchTest,
    (x, y): (&[f64], &[f64]),
    [confidence, narrow]: [f64; 2],
) -> Result<ChangeEstimate, StatsError> {
    let interval = |confidence| {
        let interval = Some(found.interval(confidence)?);
        let estimate = IntervalEstimate { value: found.difference, interval, method: StatsMethod::StudentT };
        Ok::<_, StatsError>(interval_on_scale(scale, &estimate))
    };
    let change = MetricChange {
        scale,
        value: scale.change_of_shift(found.difference),
        interval: interval(confidence)?,
        narrow: interval(narrow)?,
        covers: IntervalMeaning::Change,
    };
    Ok(ChangeEstimate { change, p: found.p, sd: repetition_sd(x, y, false), estimator: None })
}

fn interval_on_scale(scale: ChangeScale, estimate: &IntervalEstimate) -> Option<ChangeInterval> {
    let found = estimate.interval?;
    Some(ChangeInterval {
        low: scale.change_of_shift(found.low),
        high: scale.change_of_shift(found.high),
        level: found.level,
    })
}

/// Standard deviation of the differences, or the pooled one of both sides.
fn repetition_sd(x: &[f64], y: &[f64], paired: bool) -> Option<f64> {
    if paired {
        let differences: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - x).collect();
        return sd(&differences).ok();
    }
    match (sd(x), sd(y)) {
        (Ok(ours), Ok(theirs)) => Some((ours.powi(2).midpoint(theirs.powi(2))).sqrt()),
        (one, other) => one.or(other).ok(),
    }
}
