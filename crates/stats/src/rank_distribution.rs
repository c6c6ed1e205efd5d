//! Ranks with ties, and the exact distributions of rank statistics when nothing differs.
//!
//! Distributions are counted in integers, and those already counted are remembered. Sizes whose counts could leave 127
//! bits are refused; callers approximate there. Equal values share the mean of their ranks (midranks).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::interval::{RankCut, TailProbabilities};

/// Most pairs m * n for which the rank sum is counted: 50 against 50, with C(100, 50) ≈ 1e29 arrangements.
pub(crate) const EXACT_PAIRS: usize = 2_500;

/// Most differences for which signed ranks are counted: 2^50 signs.
pub(crate) const EXACT_SIGNS: usize = 50;

/// Levels such as 1 - 0.9 are not exact in binary; a tail this close to the limit counts as on it.
const ROUNDING: f64 = 1e-9;

/// Distribution of a statistic that takes the values 0, 1, …
#[derive(Debug)]
pub(crate) struct RankDistribution {
    /// P(S ≤ k).
    lower: Vec<f64>,
    /// P(S ≥ k).
    upper: Vec<f64>,
}

impl RankDistribution {
    /// From the number of equally likely arrangements that give each value.
    pub(crate) fn from_counts(counts: &[i128]) -> Self {
        let total = counts.iter().sum::<i128>() as f64;
        let lower = cumulative_shares(counts.iter(), total);
        let mut upper = cumulative_shares(counts.iter().rev(), total);
        upper.reverse();
        Self { lower, upper }
    }

    /// P(S ≤ value) and P(S ≥ value).
    pub(crate) fn tails(&self, value: usize) -> TailProbabilities {
        let lower = self.lower.get(value).copied().unwrap_or(1.0);
        let upper = self.upper.get(value).copied().unwrap_or(0.0);
        TailProbabilities { lower, upper }
    }

    /// Twice the smaller tail, at most 1.
    pub(crate) fn two_sided(&self, value: usize) -> f64 {
        self.tails(value).two_sided()
    }

    /// The largest cut whose tail P(S ≤ rank - 1) does not exceed `tail`; `None` when even the outermost does.
    pub(crate) fn rank_cut(&self, tail: f64) -> Option<RankCut> {
        let rank = self.lower.partition_point(|lower| *lower <= tail * (1.0 + ROUNDING));
        let reached = self.lower.get(rank.checked_sub(1)?)?;
        Some(RankCut { rank, level: 1.0 - 2.0 * reached })
    }
}

fn cumulative_shares<'a>(counts: impl Iterator<Item = &'a i128>, total: f64) -> Vec<f64> {
    counts
        .scan(0_i128, |sum, count| {
            *sum += count;
            Some(*sum as f64 / total)
        })
        .collect()
}

/// Mann and Whitney's U for samples of sizes m and n without ties, m * n ≤ [`EXACT_PAIRS`].
pub(crate) fn rank_sum_distribution(m: usize, n: usize) -> Arc<RankDistribution> {
    static COUNTED: DistributionCache<(usize, usize)> = DistributionCache::new();
    let (few, many) = (m.min(n), m.max(n));
    COUNTED.get_or_count((few, many), || rank_sum_counts(few, many))
}

/// Wilcoxon's signed rank sum for n differences without ties, n ≤ [`EXACT_SIGNS`].
pub(crate) fn signed_rank_distribution(n: usize) -> Arc<RankDistribution> {
    static COUNTED: DistributionCache<usize> = DistributionCache::new();
    COUNTED.get_or_count(n, || subset_sum_counts(&(1..=n).collect::<Vec<_>>()))
}

/// Spearman's Σd² for n values without ties.
pub(crate) fn rank_distance_distribution(n: usize) -> Arc<RankDistribution> {
    static COUNTED: DistributionCache<usize> = DistributionCache::new();
    COUNTED.get_or_count(n, || squared_rank_distance_counts(n))
}

/// Distributions already counted, by the sizes of the samples. A run has few different sizes.
struct DistributionCache<K>(Mutex<BTreeMap<K, Arc<RankDistribution>>>);

impl<K: Ord> DistributionCache<K> {
    const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    fn get_or_count(&self, key: K, count: impl FnOnce() -> Vec<i128>) -> Arc<RankDistribution> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(key).or_insert_with(|| Arc::new(RankDistribution::from_counts(&count()))))
    }
}

/// Arrangements with U = 0, 1, … mn: the coefficients of the Gaussian binomial
/// ∏ᵢ (1 - q^(n+i)) / (1 - qⁱ), i = 1..m (Mann and Whitney 1947; Andrews, The Theory of Partitions, ch. 3).
/// Every partial product is a Gaussian binomial too, so the integers stay below C(m + n, m).
fn rank_sum_counts(m: usize, n: usize) -> Vec<i128> {
    let mut counts = vec![0; m * n + 1];
    counts[0] = 1;
    for i in 1..=m {
        for k in (n + i..counts.len()).rev() {
            counts[k] -= counts[k - n - i];
        }
        for k in i..counts.len() {
            counts[k] += counts[k - i];
        }
    }
    counts
}

/// Number of subsets of `items` with each sum: the coefficients of ∏ (1 + q^item).
pub(crate) fn subset_sum_counts(items: &[usize]) -> Vec<i128> {
    let mut counts = vec![0; items.iter().sum::<usize>() + 1];
    counts[0] = 1;
    for item in items {
        for k in (*item..counts.len()).rev() {
            counts[k] += counts[k - item];
        }
    }
    counts
}

/// Number of subsets of exactly `size` items with each sum, up to the sum of the largest. Small numbers, so that eight are
/// added at a time: every count is at most the number of subsets, which must be below 2³².
pub(crate) fn sized_subset_sum_counts(items: &[usize], size: usize) -> Vec<i128> {
    let sums = items.iter().max().map_or(0, |most| most * size) + 1;
    let mut by_size = vec![vec![0_u32; sums]; size + 1];
    by_size[0][0] = 1;
    for (before, item) in items.iter().enumerate() {
        for taken in (1..=size.min(before + 1)).rev() {
            let (fewer, more) = by_size.split_at_mut(taken);
            let more = more[0].iter_mut().skip(*item);
            more.zip(&fewer[taken - 1]).for_each(|(more, fewer)| *more += fewer);
        }
    }
    by_size.swap_remove(size).into_iter().map(i128::from).collect()
}

/// Number of permutations with each Σ (i - π(i))², by placing one position after the other: the state is the
/// set of ranks already used, whose size tells the position.
fn squared_rank_distance_counts(n: usize) -> Vec<i128> {
    let sums = n * (n * n - 1) / 3 + 1;
    let mut by_used = vec![Vec::new(); 1 << n];
    by_used[0] = vec![0; sums];
    by_used[0][0] = 1;
    for used in 0..by_used.len() - 1 {
        let counts = std::mem::take(&mut by_used[used]);
        let position = used.count_ones() as usize;
        for rank in (0..n).filter(|rank| used & (1 << rank) == 0) {
            let next = &mut by_used[used | (1 << rank)];
            next.resize(sums, 0);
            add_shifted_counts(next, &counts, position.abs_diff(rank).pow(2));
        }
    }
    by_used.pop().unwrap_or_default()
}

/// Adds `counts`, moved up by `shift`, to `sums`; what would fall off the end is always zero.
fn add_shifted_counts(sums: &mut [i128], counts: &[i128], shift: usize) {
    for (sum, count) in sums.iter_mut().skip(shift).zip(counts) {
        *sum += count;
    }
}

/// The ranks of some values, and which of them are tied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MidRanks {
    /// Twice the midrank of each value, in the order of the values: an integer even where ranks are shared,
    /// so that sums of ranks stay exact. The smallest value has rank 1.
    pub(crate) doubled: Vec<usize>,
    /// Σ (t³ - t) over the groups of t equal values; 0 when there are no ties.
    pub(crate) tie_term: f64,
}

impl MidRanks {
    /// Ranks finite values.
    pub(crate) fn from_values(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranking = Self { doubled: vec![0; values.len()], tie_term: 0.0 };
        let mut before = 0;
        for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
            ranking.share_ranks(group, before);
            before += group.len();
        }
        ranking
    }

    /// Gives each member of a group of equal values the mean of the ranks before+1 ..= before+len, doubled.
    fn share_ranks(&mut self, group: &[usize], before: usize) {
        for index in group {
            self.doubled[*index] = 2 * before + group.len() + 1;
        }
        let size = group.len() as f64;
        self.tie_term += size.powi(3) - size;
    }

    /// Whether any two values are equal.
    pub(crate) fn has_ties(&self) -> bool {
        self.tie_term > 0.0
    }

    /// The midranks themselves.
    pub(crate) fn midranks(&self) -> Vec<f64> {
        self.doubled.iter().map(|doubled| *doubled as f64 / 2.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{rank_sum_counts, sized_subset_sum_counts, squared_rank_distance_counts, subset_sum_counts};

    fn binomial_coefficient(n: i128, k: i128) -> i128 {
        (1..=k).fold(1, |ways, i| ways * (n - k + i) / i)
    }

    /// Mann and Whitney (1947), their example for two against two: U = 0, 1, 2, 3, 4 in 1, 1, 2, 1, 1 ways.
    #[test]
    fn rank_sums_of_small_samples() {
        assert_eq!(rank_sum_counts(2, 2), [1, 1, 2, 1, 1]);
        assert_eq!(rank_sum_counts(1, 3), [1, 1, 1, 1]);
    }

    /// The largest sizes at the limit of 2,500 pairs: no overflow (debug builds would panic), nothing lost.
    #[test]
    fn rank_sums_count_every_arrangement() {
        for (m, n) in [(1, 2_500), (2, 1_250), (10, 250), (25, 100), (40, 62), (49, 51), (50, 50)] {
            let counts = rank_sum_counts(m, n);
            assert_eq!(
                counts.iter().sum::<i128>(),
                binomial_coefficient((m + n) as i128, m as i128),
                "{m} {n}"
            );
            assert!(counts.iter().eq(counts.iter().rev()) && counts.iter().all(|count| *count >= 0));
        }
    }

    #[test]
    fn signed_ranks_count_every_sign() {
        assert_eq!(subset_sum_counts(&[1, 2, 3]), [1, 1, 1, 2, 1, 1, 1]);
        let fifty: Vec<usize> = (1..=50).collect();
        assert_eq!(subset_sum_counts(&fifty).iter().sum::<i128>(), 1 << 50);
    }

    #[test]
    fn subsets_of_one_size_have_their_sums() {
        assert_eq!(sized_subset_sum_counts(&[1, 2, 2, 3], 2), [0, 0, 0, 2, 2, 2, 0]);
        let ranks: Vec<usize> = (1..=20).collect();
        assert_eq!(sized_subset_sum_counts(&ranks, 10).iter().sum::<i128>(), 184_756);
    }

    /// Of the six orders of three, Σd² is 0 once, 2 twice, 6 twice and 8 once.
    #[test]
    fn rank_distances_count_every_order() {
        assert_eq!(squared_rank_distance_counts(3), [1, 0, 2, 0, 0, 0, 2, 0, 1]);
        assert_eq!(squared_rank_distance_counts(10).iter().sum::<i128>(), 3_628_800);
    }
}
