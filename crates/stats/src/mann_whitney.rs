//! Owns the Mann-Whitney U test (Wilcoxon rank sum) of two independent samples. It refuses to call a change
//! big or small: that is what `hodges_lehmann` estimates.

use crate::StatsError;
use crate::interval::{InferenceMethod, normal_tails};
use crate::null::{
    EXACT_PAIRS, RankDistribution, TailProbabilities, rank_sum_distribution as rank_sum_null,
    sized_subset_sum_counts,
};
use crate::ranks::MidRanks;
use crate::sample::check_sample;

/// Up to so many arrangements of tied values are counted one and all.
const EXACT_ARRANGEMENTS: f64 = 200_000.0;

/// Result of the U test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the candidate is above the baseline, ties counting one half.
    pub u: f64,
    /// U / mn: the chance that a random candidate value is above a random baseline value, ties counting one
    /// half. 0.5 means neither tends to be above; 2 * superiority - 1 is Cliff's delta.
    pub superiority: f64,
    /// Two-sided p-value: twice the smaller tail, at most 1.
    pub p: f64,
    /// How p was worked out.
    pub method: InferenceMethod,
}

/// Two-sided Mann-Whitney U test of whether one sample tends to be above the other.
///
/// Exact without ties while mn ≤ 2,500; exact with ties while C(m+n, m) ≤ 200,000 (10 against 10), counted
/// over all permutations of the midranks; otherwise normal with tie and continuity correction. Source: Mann
/// and Whitney, Annals of Mathematical Statistics 18 (1947); Lehmann, Nonparametrics (1975), chapter 1.
/// All values equal gives p = 1.
///
/// # Errors
/// An empty sample, a value that is not finite.
pub fn mann_whitney(baseline: &[f64], candidate: &[f64]) -> Result<MannWhitney, StatsError> {
    let (u, tails, method) = rank_sum_tails(baseline, candidate)?;
    let superiority = u / (baseline.len() as f64 * candidate.len() as f64);
    Ok(MannWhitney { u, superiority, p: tails.two_sided(), method })
}

/// U, how likely it is at most and at least that when nothing differs, and how that was worked out.
pub(crate) fn rank_sum_tails(
    baseline: &[f64],
    candidate: &[f64],
) -> Result<(f64, TailProbabilities, InferenceMethod), StatsError> {
    let (baseline, candidate) = (check_sample(baseline)?, check_sample(candidate)?);
    let ranking = MidRanks::from_values(&[candidate, baseline].concat());
    let (m, n) = (baseline.len(), candidate.len());
    let rank_sum: usize = ranking.doubled.iter().take(n).sum();
    let doubled_u = rank_sum - n * (n + 1);
    let u = doubled_u as f64 / 2.0;
    let few_pairs = m.saturating_mul(n) <= EXACT_PAIRS;
    let (tails, method) = if few_pairs && !ranking.has_ties() {
        (rank_sum_null(m, n).tails(doubled_u / 2), InferenceMethod::Exact)
    } else if few_pairs && arrangement_count(m, n) <= EXACT_ARRANGEMENTS {
        (exact_tails_with_ties(&ranking, n), InferenceMethod::ExactWithTies)
    } else {
        (normal_rank_sum_tails(&ranking, m, n, u), InferenceMethod::Normal)
    };
    Ok((u, tails, method))
}

/// The smallest two-sided p-value that samples of these sizes can give, 2 / C(m+n, m): above the significance
/// wanted, no data can be significant and more repetitions are needed.
#[must_use]
pub fn smallest_p(m: usize, n: usize) -> f64 {
    (2.0 / arrangement_count(m, n)).min(1.0)
}

/// C(m+n, m), the ways to choose which values are the candidate's; exact while it fits 53 bits, because every
/// step is a binomial coefficient.
fn arrangement_count(m: usize, n: usize) -> f64 {
    (1..=m.min(n)).fold(1.0, |ways, i| ways * (m.max(n) + i) as f64 / i as f64)
}

/// Counts every choice of the smaller sample, of which the larger is the complement.
fn exact_tails_with_ties(ranking: &MidRanks, candidate: usize) -> TailProbabilities {
    let (first, second) = ranking.doubled.split_at(candidate);
    let is_candidate = first.len() <= second.len();
    let smaller = if is_candidate { first } else { second };
    let counts = sized_subset_sum_counts(&ranking.doubled, smaller.len());
    let tails = RankDistribution::from_counts(&counts).tails(smaller.iter().sum());
    if is_candidate { tails } else { tails.mirrored() }
}

fn normal_rank_sum_tails(ranking: &MidRanks, m: usize, n: usize, u: f64) -> TailProbabilities {
    let (m, n) = (m as f64, n as f64);
    let total = m + n;
    let ties = ranking.tie_term / (total * (total - 1.0));
    normal_tails(u, m * n / 2.0, m * n / 12.0 * (total + 1.0 - ties))
}
