//! What an estimate looks like, and how ranks become an interval. A sample too small for the level has no interval.

use std::fmt;

use statrs::distribution::{ContinuousCDF, Normal};

use crate::descriptive::median_of_sorted;
use crate::error::{StatsError, check_open_fraction, finite_or_overflow};

/// How a p-value or a level was worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InferenceMethod {
    /// From the exact distribution of the ranks.
    Exact,
    /// From the exact distribution given which values are tied: every permutation counted.
    ExactWithTies,
    /// From the normal approximation, with continuity correction and, for p-values, tie correction.
    Normal,
    /// From the approximation by Student's t.
    StudentT,
    /// From resamples with a seed.
    Bootstrap,
    /// From evidence that holds at every look.
    AlwaysValid,
}

impl fmt::Display for InferenceMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::ExactWithTies => "exact with ties",
            Self::Normal => "normal approximation",
            Self::StudentT => "Student's t approximation",
            Self::Bootstrap => "bootstrap",
            Self::AlwaysValid => "always valid",
        })
    }
}

/// A confidence interval, in the unit of the estimate; both limits belong to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// The level that was reached: at least what was asked for, as a fraction.
    pub level: f64,
}

impl ConfidenceInterval {
    /// Whether `value` lies outside.
    #[must_use]
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }

    /// Whether the whole interval lies strictly between two limits.
    #[must_use]
    pub fn is_inside(&self, low: f64, high: f64) -> bool {
        low < self.low && self.high < high
    }

    /// Half of the distance between the limits.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// A point estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalEstimate {
    /// The estimate: a shift in the unit of the values, or a ratio (1 = no change).
    pub value: f64,
    /// `None` when no interval that the sample could give reaches the confidence asked for.
    pub interval: Option<ConfidenceInterval>,
    /// Where the level comes from.
    pub method: InferenceMethod,
}

impl IntervalEstimate {
    /// Median of sorted candidates for the estimate, with the limits at a cut from either end.
    pub(crate) fn from_sorted(sorted: &[f64], cut: Option<RankCut>, method: InferenceMethod) -> Self {
        let interval = cut.and_then(|cut| cut.limits_among(sorted.len(), |place| sorted[place]));
        Self { value: median_of_sorted(sorted), interval, method }
    }

    /// The same on the scale of ratios, for an estimate made of logarithms.
    pub(crate) fn exp(self) -> Result<Self, StatsError> {
        let limits = |i: ConfidenceInterval| {
            let (low, high) = (finite_or_overflow(i.low.exp())?, finite_or_overflow(i.high.exp())?);
            Ok(ConfidenceInterval { low, high, ..i })
        };
        let interval = self.interval.map(limits).transpose()?;
        Ok(Self { value: finite_or_overflow(self.value.exp())?, interval, ..self })
    }
}

/// How far to count in from both ends of a sorted list to find the limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankCut {
    /// Rank of the lower limit, from 1.
    pub(crate) rank: usize,
    /// Level that the limits have.
    pub(crate) level: f64,
}

impl RankCut {
    /// The cut whose tail is largest without exceeding `tail`, where the rank statistic is close to normal.
    /// The half added is the continuity correction.
    pub(crate) fn from_normal(mean: f64, sd: f64, tail: f64) -> Option<Self> {
        let normal = Normal::standard();
        let rank = (mean + normal.inverse_cdf(tail) * sd + 0.5).floor();
        let reached = normal.cdf((rank - 0.5 - mean) / sd);
        (rank >= 1.0).then_some(Self { rank: rank as usize, level: 1.0 - 2.0 * reached })
    }

    /// The limits among so many candidates in ascending order.
    pub(crate) fn limits_among(
        self,
        candidates: usize,
        at: impl Fn(usize) -> f64,
    ) -> Option<ConfidenceInterval> {
        let low = self.rank.checked_sub(1)?;
        let high = candidates.checked_sub(self.rank)?;
        (low <= high).then(|| ConfidenceInterval { low: at(low), high: at(high), level: self.level })
    }
}

/// How likely a statistic is at most, and at least, what it is, when nothing differs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailProbabilities {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl TailProbabilities {
    /// Twice the smaller tail, at most 1.
    pub(crate) fn two_sided(self) -> f64 {
        (2.0 * self.lower.min(self.upper)).min(1.0)
    }

    /// The tails of the mirrored statistic.
    pub(crate) fn mirrored(self) -> Self {
        Self { lower: self.upper, upper: self.lower }
    }
}

/// What a two-sided interval leaves out on each side.
pub(crate) fn tail_probability(confidence: f64) -> Result<f64, StatsError> {
    check_open_fraction("confidence", confidence).map(|confidence| (1.0 - confidence) / 2.0)
}

/// Two-sided p-value of a rank statistic from the normal approximation with continuity correction; 1 when
/// nothing varies.
pub(crate) fn normal_p(statistic: f64, mean: f64, variance: f64) -> f64 {
    normal_tails(statistic, mean, variance).two_sided()
}

/// Both tails of it.
pub(crate) fn normal_tails(statistic: f64, mean: f64, variance: f64) -> TailProbabilities {
    if variance <= 0.0 {
        return TailProbabilities { lower: 1.0, upper: 1.0 };
    }
    let beyond = |distance: f64| Normal::standard().sf((distance - 0.5) / variance.sqrt());
    TailProbabilities { lower: beyond(mean - statistic), upper: beyond(statistic - mean) }
}
