//! Paired samples by ranks: the Wilcoxon signed-rank test, and the pseudo-median of the differences with the interval
//! that inverts it.
//!
//! The i-th values of both samples must come from the same block.

use crate::descriptive::median_of_sorted;
use crate::error::{StatsError, check_memory, check_paired, finite_or_overflow, logarithms};
use crate::interval::{InferenceMethod, IntervalEstimate, RankCut, normal_p, tail_probability};
use crate::rank_distribution::{
    EXACT_SIGNS, MidRanks, RankDistribution, signed_rank_distribution, subset_sum_counts,
};

/// Result of the signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of the positive differences candidate - baseline.
    pub positive: f64,
    /// Pairs used: those that differ.
    pub pairs: usize,
    /// Two-sided p-value: twice the smaller tail, at most 1.
    pub p: f64,
    /// How p was worked out.
    pub method: InferenceMethod,
}

/// Two-sided Wilcoxon signed-rank test of whether the differences candidate - baseline are centred on zero.
/// For a test of ratios pass logarithms.
///
/// Pairs without a difference are left out, as Wilcoxon did. Exact up to 50 pairs, with ties by counting
/// all signs of the midranks; otherwise normal with tie and continuity correction. Source: Wilcoxon,
/// Biometrics Bulletin 1 (1945); Lehmann, Nonparametrics (1975), chapter 3. No difference at all gives p = 1.
///
/// # Errors
/// Samples of different length, an empty one, a value that is not finite, a difference that overflows.
pub fn signed_rank(baseline: &[f64], candidate: &[f64]) -> Result<SignedRank, StatsError> {
    let (baseline, candidate) = check_paired(baseline, candidate)?;
    let mut differences = Vec::with_capacity(baseline.len());
    for (x, y) in baseline.iter().zip(candidate).filter(|(x, y)| x != y) {
        differences.push(finite_or_overflow(y - x)?);
    }
    let distances: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let ranking = MidRanks::from_values(&distances);
    let positive = ranking.doubled.iter().zip(&differences);
    let positive = positive.filter(|(_, difference)| **difference > 0.0).map(|(doubled, _)| doubled).sum();
    let (p, method) = signed_rank_p(&ranking, positive);
    Ok(SignedRank { positive: positive as f64 / 2.0, pairs: differences.len(), p, method })
}

fn signed_rank_p(ranking: &MidRanks, doubled_sum: usize) -> (f64, InferenceMethod) {
    let n = ranking.doubled.len();
    if n > EXACT_SIGNS {
        return (normal_signed_rank_p(ranking, n as f64, doubled_sum as f64 / 2.0), InferenceMethod::Normal);
    }
    if ranking.has_ties() {
        let null = RankDistribution::from_counts(&subset_sum_counts(&ranking.doubled));
        return (null.two_sided(doubled_sum), InferenceMethod::ExactWithTies);
    }
    (signed_rank_distribution(n).two_sided(doubled_sum / 2), InferenceMethod::Exact)
}

fn normal_signed_rank_p(ranking: &MidRanks, n: f64, sum: f64) -> f64 {
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ranking.tie_term / 48.0;
    normal_p(sum, n * (n + 1.0) / 4.0, variance)
}

/// The means of all pairs of differences, each with itself too, sorted once for any confidence level.
///
/// The estimate is their median (Hodges and Lehmann 1963); the limits are the C-th Walsh averages from either
/// end, C the largest with P(V ≤ C - 1) ≤ α/2 (Lehmann, Nonparametrics, 1975, section 4.4). Exact up to 50
/// pairs, normal with continuity correction above. Differences of zero and ties stay in, and
/// the closed interval keeps its level with them, as in [`PairwiseShifts`](crate::mann_whitney::PairwiseShifts).
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

    /// The estimate alone.
    pub(crate) fn pseudo_median(&self) -> f64 {
        median_of_sorted(&self.sorted)
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
