//! Owns the estimate of a change between paired samples: the pseudo-median of the differences and the interval
//! that inverts the signed-rank test. It refuses to pair: the i-th values must come from the same block.

use crate::StatsError;
use crate::hodges_lehmann::check_memory;
use crate::interval::{InferenceMethod, IntervalEstimate, RankCut, tail_probability};
use crate::null::{EXACT_SIGNS, signed_rank_distribution};
use crate::sample::{check_paired, finite_or_overflow, logarithms};

/// The means of all pairs of differences, each with itself too, sorted once for any confidence level.
///
/// The estimate is their median (Hodges and Lehmann 1963); the limits are the C-th Walsh averages from either
/// end, C the largest with P(V ≤ C - 1) ≤ α/2 (Lehmann, Nonparametrics, 1975, section 4.4). Exact up to 50
/// pairs, normal with continuity correction above. Differences of zero and ties stay in, and
/// the closed interval keeps its level with them, as in [`PairwiseShifts`](crate::PairwiseShifts).
#[derive(Debug, Clone)]
pub struct WalshAverages {
    sorted: Vec<f64>,
    pairs: usize,
    are_logarithms: bool,
}

impl WalshAverages {
    /// For a shift candidate - baseline in the unit of the values.
    ///
    /// # Errors
    /// Samples of different length, an empty one, a value that is not finite, a difference that overflows, more
    /// than 2,895 pairs.
    pub fn absolute(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        let (baseline, candidate) = check_paired(baseline, candidate)?;
        Self::from_pairs(baseline, candidate, false)
    }

    /// For a ratio candidate / baseline, by differences of logarithms.
    ///
    /// # Errors
    /// As [`absolute`](Self::absolute); also a value that is not above zero.
    pub fn relative(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        let (baseline, candidate) = check_paired(baseline, candidate)?;
        Self::from_pairs(&logarithms(baseline)?, &logarithms(candidate)?, true)
    }

    fn from_pairs(baseline: &[f64], candidate: &[f64], are_logarithms: bool) -> Result<Self, StatsError> {
        let pairs = baseline.len();
        check_memory(pairs.saturating_mul(pairs + 1) / 2)?;
        let differences = candidate.iter().zip(baseline).map(|(y, x)| finite_or_overflow(y - x));
        let differences = differences.collect::<Result<Vec<_>, _>>()?;
        let rows = differences.iter().enumerate();
        let averages = rows.flat_map(|(i, a)| differences.iter().skip(i).map(|b| a.midpoint(*b)));
        let mut sorted: Vec<f64> = averages.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self { sorted, pairs, are_logarithms })
    }

    /// The shift or ratio with its interval at a confidence, such as 0.95. Without an interval when there are
    /// too few pairs for it: 0.95 needs 6 of them, 0.9 needs 5.
    ///
    /// # Errors
    /// A confidence outside (0, 1), a ratio that overflows.
    pub fn estimate(&self, confidence: f64) -> Result<IntervalEstimate, StatsError> {
        let (cut, method) = self.rank_cut(tail_probability(confidence)?);
        let estimate = IntervalEstimate::from_sorted(&self.sorted, cut, method);
        if self.are_logarithms { estimate.exp() } else { Ok(estimate) }
    }

    fn rank_cut(&self, tail: f64) -> (Option<RankCut>, InferenceMethod) {
        if self.pairs <= EXACT_SIGNS {
            return (signed_rank_distribution(self.pairs).rank_cut(tail), InferenceMethod::Exact);
        }
        let n = self.pairs as f64;
        let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
        (RankCut::from_normal(n * (n + 1.0) / 4.0, variance.sqrt(), tail), InferenceMethod::Normal)
    }
}

/// Pseudo-median of candidate - baseline over pairs, in the unit of the values.
///
/// # Errors
/// As [`WalshAverages::absolute`] and [`WalshAverages::estimate`].
pub fn pseudo_median_shift(
    baseline: &[f64],
    candidate: &[f64],
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    WalshAverages::absolute(baseline, candidate)?.estimate(confidence)
}

/// Pseudo-median of candidate / baseline over pairs, where 1 is no change.
///
/// # Errors
/// As [`WalshAverages::relative`] and [`WalshAverages::estimate`].
pub fn pseudo_median_ratio(
    baseline: &[f64],
    candidate: &[f64],
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    WalshAverages::relative(baseline, candidate)?.estimate(confidence)
}
