//! Owns the estimate of a change between two independent samples: the Hodges-Lehmann shift, or ratio, and the
//! interval that inverts the Mann-Whitney test. It refuses paired data, where `pseudo_median` is sharper.

use crate::StatsError;
use crate::differences::PairwiseDifferences;
use crate::interval::{InferenceMethod, IntervalEstimate, RankCut, tail_probability};
use crate::null::{EXACT_PAIRS, rank_sum_distribution};
use crate::sample::{check_sample, logarithms};

/// Most differences that are held in memory at once (32 MiB).
pub(crate) const MOST_DIFFERENCES: usize = 4_194_304;

/// All differences candidate - baseline, looked at once and good for any number of confidence levels.
///
/// The estimate is their median (Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963). Limits at
/// the C-th difference from either end, where C is the largest with P(U ≤ C - 1) ≤ α/2, invert the
/// Mann-Whitney test (Lehmann, Nonparametrics, 1975, section 2.6). They come from the exact distribution
/// while mn ≤ 2,500 and from the normal approximation with continuity correction above.
///
/// Ties do not change the cut. Breaking them by vanishing noise would give untied values whose limits are as
/// good as the same, so the closed interval keeps at least its level; a tie correction of the variance would
/// not be safe here, since it is right only for the ties at the true shift, not for those at zero.
#[derive(Debug, Clone)]
pub struct PairwiseShifts {
    differences: PairwiseDifferences,
    median: f64,
    baseline: usize,
    candidate: usize,
    are_logarithms: bool,
}

impl PairwiseShifts {
    /// For a shift in the unit of the values.
    ///
    /// # Errors
    /// An empty sample, a value that is not finite, a difference that overflows, more than 4,194,304 pairs.
    pub fn absolute(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        Self::from_samples(check_sample(baseline)?, check_sample(candidate)?, false)
    }

    /// For a ratio candidate / baseline, by differences of logarithms.
    ///
    /// # Errors
    /// As [`absolute`](Self::absolute); also a value that is not above zero.
    pub fn relative(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        Self::from_samples(&logarithms(baseline)?, &logarithms(candidate)?, true)
    }

    fn from_samples(baseline: &[f64], candidate: &[f64], are_logarithms: bool) -> Result<Self, StatsError> {
        let (m, n) = (baseline.len(), candidate.len());
        check_memory(m.saturating_mul(n))?;
        let differences = PairwiseDifferences::from_samples(baseline, candidate)?;
        Ok(Self { median: differences.median(), differences, baseline: m, candidate: n, are_logarithms })
    }

    /// The shift or ratio with its interval at a confidence, such as 0.95. Without an interval when the
    /// samples are too small for it: at 0.95 both need 4 values, at 0.9 both need 3.
    ///
    /// # Errors
    /// A confidence outside (0, 1), a ratio that overflows.
    pub fn estimate(&self, confidence: f64) -> Result<IntervalEstimate, StatsError> {
        let (cut, method) = self.rank_cut(tail_probability(confidence)?);
        let interval =
            cut.and_then(|cut| cut.limits_among(self.differences.len(), |place| self.differences.nth(place)));
        let estimate = IntervalEstimate { value: self.median, interval, method };
        if self.are_logarithms { estimate.exp() } else { Ok(estimate) }
    }

    fn rank_cut(&self, tail: f64) -> (Option<RankCut>, InferenceMethod) {
        let (m, n) = (self.baseline, self.candidate);
        if m * n <= EXACT_PAIRS {
            return (rank_sum_distribution(m, n).rank_cut(tail), InferenceMethod::Exact);
        }
        let pairs = (m * n) as f64;
        let sd = (pairs * (m + n + 1) as f64 / 12.0).sqrt();
        (RankCut::from_normal(pairs / 2.0, sd, tail), InferenceMethod::Normal)
    }
}

/// Passes a number of differences that may be held at once.
pub(crate) fn check_memory(got: usize) -> Result<(), StatsError> {
    let limit = MOST_DIFFERENCES;
    if got > limit { Err(StatsError::TooMany { limit, got }) } else { Ok(()) }
}

/// Hodges-Lehmann estimate of candidate - baseline, in the unit of the values. For several confidence levels
/// of the same samples use [`PairwiseShifts`], which sorts once.
///
/// # Errors
/// As [`PairwiseShifts::absolute`] and [`PairwiseShifts::estimate`].
pub fn hodges_lehmann_shift(
    baseline: &[f64],
    candidate: &[f64],
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    PairwiseShifts::absolute(baseline, candidate)?.estimate(confidence)
}

/// Hodges-Lehmann estimate of candidate / baseline, where 1 is no change.
///
/// # Errors
/// As [`PairwiseShifts::relative`] and [`PairwiseShifts::estimate`].
pub fn hodges_lehmann_ratio(
    baseline: &[f64],
    candidate: &[f64],
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    PairwiseShifts::relative(baseline, candidate)?.estimate(confidence)
}
