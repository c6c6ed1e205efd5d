//! Owns the Wilcoxon signed-rank test of paired samples. It refuses to pair: the i-th values of both samples
//! must come from the same block.

use crate::interval::{InferenceMethod, normal_p};
use crate::null::{EXACT_SIGNS, RankDistribution, subset_sum_counts};
use crate::ranks::MidRanks;
use crate::sample::{check_paired, finite_or_overflow};
use crate::{StatsError, null};

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
    (null::signed_rank_distribution(n).two_sided(doubled_sum / 2), InferenceMethod::Exact)
}

fn normal_signed_rank_p(ranking: &MidRanks, n: f64, sum: f64) -> f64 {
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ranking.tie_term / 48.0;
    normal_p(sum, n * (n + 1.0) / 4.0, variance)
}
