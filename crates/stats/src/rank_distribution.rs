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

/// How likely a rank sum of `sample` doubled midranks is at most and at least what it is, when every choice of as many of
/// `all` is equally likely. Exact but for rounding, 1e-12 of the tail or less; at most [`EXACT_PAIRS`] pairs.
///
/// The choices are counted group by group of equal values: of t values that share a midrank r, k are taken in C(t, k) ways
/// and add k r. Counts are kept as floating-point numbers: they are sums of positive ones, which lose nothing to cancellation,
/// and eight are added at a time. Only sums up to the one that was found are counted, from the end that is nearer.
pub(crate) fn tied_rank_sum_tails(all: &[usize], sample: &[usize]) -> TailProbabilities {
    let (size, total, sum) = (sample.len(), all.len(), sample.iter().sum::<usize>());
    let mean = size * (total + 1);
    // Mirrored ranks mirror the tails, and put the sum below its mean.
    let is_mirrored = sum > mean;
    let turn = |rank: usize| if is_mirrored { 2 * (total + 1) - rank } else { rank };
    let mut ranks: Vec<usize> = all.iter().map(|rank| turn(*rank)).collect();
    ranks.sort_unstable();
    let lowest = ranks.first().copied().unwrap_or(0);
    // All sums are multiples of this.
    let step = ranks.iter().fold(0, |step, rank| greatest_common_divisor(step, rank - lowest)).max(1);
    ranks.iter_mut().for_each(|rank| *rank = (*rank - lowest) / step);
    let found = (sample.iter().map(|rank| turn(*rank)).sum::<usize>() - size * lowest) / step;
    // The sum of the smallest so many.
    let sums: Vec<usize> = std::iter::once(0)
        .chain(ranks.iter().scan(0, |sum, rank| {
            *sum += rank;
            Some(*sum)
        }))
        .collect();
    let mut ways = vec![vec![0.0; found + 1]; size + 1];
    ways[0][0] = 1.0;
    let mut before = 0;
    for group in ranks.chunk_by(|a, b| a == b) {
        let (rank, tied) = (group[0], group.len());
        before += tied;
        // Those still to be taken come from the groups behind, and add the smallest of these at least.
        for taken in (1.max((size + before).saturating_sub(total))..=size.min(before)).rev() {
            let least_added = sums[before + size - taken] - sums[before];
            let most = (sums[before] - sums[before - taken]).min(found.saturating_sub(least_added));
            let (fewer, more) = ways.split_at_mut(taken);
            let mut choices = 1.0;
            for chosen in 1..=taken.min(tied) {
                choices *= (tied + 1 - chosen) as f64 / chosen as f64;
                let begin = sums[taken].max(chosen * rank);
                let Some(wider) = more[0].get_mut(begin..=most) else { continue };
                let narrower = &fewer[taken - chosen][begin - chosen * rank..];
                wider.iter_mut().zip(narrower).for_each(|(wider, narrower)| *wider += choices * narrower);
            }
        }
    }
    let counted: f64 = ways[size].iter().sum();
    let exactly = ways[size].last().copied().unwrap_or(0.0);
    let all_ways = (1..=size).fold(1.0, |ways, i| ways * (total - size + i) as f64 / i as f64);
    let tails = TailProbabilities { lower: counted / all_ways, upper: 1.0 - (counted - exactly) / all_ways };
    if is_mirrored { tails.mirrored() } else { tails }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
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
    use super::*;

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

    /// Against every choice, one and all.
    #[test]
    fn tied_rank_sums_are_those_of_every_choice() {
        let texts = [
            (&[1.0, 2.0, 2.0][..], &[2.0, 3.0][..]),
            (&[5.0, 5.0, 5.0], &[5.0]),
            (&[1.0, 1.0, 4.0, 4.0, 9.0], &[4.0, 9.0, 9.0, 2.0]),
            (&[0.0, 0.0, 1.0], &[1.0, 1.0, 1.0, 0.0, 1.0]),
            (&[3.0, 1.0, 2.0], &[6.0, 5.0, 4.0]),
        ];
        for (sample, rest) in texts {
            let ranks = MidRanks::from_values(&[sample, rest].concat()).doubled;
            let own: usize = ranks.iter().take(sample.len()).sum();
            let (mut all, mut low, mut high) = (0, 0, 0);
            for choice in 0..1_u32 << ranks.len() {
                let chosen = ranks.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1);
                let sum: usize = chosen.map(|(_, rank)| rank).sum();
                if choice.count_ones() as usize == sample.len() {
                    all += 1;
                    low += i32::from(sum <= own);
                    high += i32::from(sum >= own);
                }
            }
            let tails = tied_rank_sum_tails(&ranks, &ranks[..sample.len()]);
            let close = |probability: f64, count: i32| {
                (probability - f64::from(count) / f64::from(all)).abs() < 1e-14
            };
            assert!(close(tails.lower, low) && close(tails.upper, high), "{sample:?} {rest:?} {tails:?}");
        }
    }

    /// Without ties, at the largest size, both ways of counting agree.
    #[test]
    fn tied_rank_sums_without_ties_are_rank_sums() {
        let ranks: Vec<usize> = (1..=100).map(|rank| 2 * rank).collect();
        let sample: Vec<usize> = ranks.iter().copied().step_by(2).collect();
        let u = (sample.iter().sum::<usize>() - 50 * 51) / 2;
        let (tied, counted) = (tied_rank_sum_tails(&ranks, &sample), rank_sum_distribution(50, 50).tails(u));
        assert!((tied.lower / counted.lower - 1.0).abs() < 1e-12);
        assert!((tied.upper / counted.upper - 1.0).abs() < 1e-12);
    }

    /// Of the six orders of three, Σd² is 0 once, 2 twice, 6 twice and 8 once.
    #[test]
    fn rank_distances_count_every_order() {
        assert_eq!(squared_rank_distance_counts(3), [1, 0, 2, 0, 0, 0, 2, 0, 1]);
        assert_eq!(squared_rank_distance_counts(10).iter().sum::<i128>(), 3_628_800);
    }
}
