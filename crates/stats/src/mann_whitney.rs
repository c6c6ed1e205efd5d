//! Two independent samples by ranks: the Mann-Whitney U test (Wilcoxon rank sum), and the Hodges-Lehmann change that
//! inverts it.
//!
//! The test says whether there is a change, the estimate how large it is. Paired data is `signed_rank`'s, which is
//! sharper for it. The order of all differences between two samples is found without making them: of 200 against 200
//! values there are 40,000, of which an estimate with its interval needs six.

use crate::error::{StatsError, check_memory, check_sample, finite_or_overflow, logarithms};
use crate::interval::{
    InferenceMethod, IntervalEstimate, RankCut, TailProbabilities, normal_p, normal_tails, tail_probability,
};
use crate::rank_distribution::{EXACT_PAIRS, MidRanks, rank_sum_distribution, tied_rank_sum_tails};

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
/// Exact while mn ≤ 2,500 (50 against 50), with ties over all permutations of the midranks; otherwise normal with tie
/// and continuity correction. Source: Mann and Whitney, Annals of Mathematical Statistics 18 (1947); Lehmann,
/// Nonparametrics (1975), chapter 1.
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
fn rank_sum_tails(
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
        (rank_sum_distribution(m, n).tails(doubled_u / 2), InferenceMethod::Exact)
    } else if few_pairs {
        (exact_tails_with_ties(&ranking, n), InferenceMethod::ExactWithTies)
    } else {
        (normal_rank_sum_tails(&ranking, m, n, u), InferenceMethod::Normal)
    };
    Ok((u, tails, method))
}

/// The smallest two-sided p-value that samples of these sizes can give, 2 / C(m+n, m): above the significance
/// required, no data can be significant and more repetitions are needed.
#[must_use]
pub fn smallest_p(m: usize, n: usize) -> f64 {
    (2.0 / arrangement_count(m, n)).min(1.0)
}

/// C(m+n, m), the ways to choose which values are the candidate's; exact while it fits 53 bits, because every
/// step is a binomial coefficient.
fn arrangement_count(m: usize, n: usize) -> f64 {
    (1..=m.min(n)).fold(1.0, |ways, i| ways * (m.max(n) + i) as f64 / i as f64)
}

/// Counts the choices of the smaller sample, of which the larger is the complement.
fn exact_tails_with_ties(ranking: &MidRanks, candidate: usize) -> TailProbabilities {
    let (first, second) = ranking.doubled.split_at(candidate);
    if first.len() <= second.len() {
        tied_rank_sum_tails(&ranking.doubled, first)
    } else {
        tied_rank_sum_tails(&ranking.doubled, second).mirrored()
    }
}

fn normal_rank_sum_tails(ranking: &MidRanks, m: usize, n: usize, u: f64) -> TailProbabilities {
    let (m, n) = (m as f64, n as f64);
    let total = m + n;
    let ties = ranking.tie_term / (total * (total - 1.0));
    normal_tails(u, m * n / 2.0, m * n / 12.0 * (total + 1.0 - ties))
}

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
        let estimate = self.estimate_at_cut(cut, method);
        if self.are_logarithms { estimate.exp() } else { Ok(estimate) }
    }

    /// The shift with the limits at a cut from either end, on the scale of the differences.
    pub(crate) fn estimate_at_cut(&self, cut: Option<RankCut>, method: InferenceMethod) -> IntervalEstimate {
        let interval =
            cut.and_then(|cut| cut.limits_among(self.differences.len(), |place| self.differences.nth(place)));
        IntervalEstimate { value: self.median, interval, method }
    }

    /// The shift, on the scale of the differences.
    pub(crate) fn median(&self) -> f64 {
        self.median
    }

    /// Two-sided p-value of no shift. It is at most 1 - confidence exactly where the interval excludes 0, ties counting against a
    /// change; [`mann_whitney`], which counts the arrangements of tied ranks, may differ from it by as much as ties matter.
    #[must_use]
    pub fn p(&self) -> f64 {
        let [not_above, not_below] = self.counts_against_change();
        let (m, n) = (self.baseline, self.candidate);
        if m * n <= EXACT_PAIRS {
            let null = rank_sum_distribution(m, n);
            let tail = |count| null.tails(count).lower;
            return (2.0 * tail(not_above).min(tail(not_below))).min(1.0);
        }
        let pairs = (m * n) as f64;
        normal_p(not_above.min(not_below) as f64, pairs / 2.0, pairs * (m + n + 1) as f64 / 12.0)
    }

    /// How many differences are not above 0, and how many not below.
    fn counts_against_change(&self) -> [usize; 2] {
        let (_, not_above) = self.differences.count_small(|difference| difference <= 0.0);
        let (_, below) = self.differences.count_small(|difference| difference < 0.0);
        [not_above, self.differences.len() - below]
    }

    /// How far U is from its mean if nothing differed, ties counting against a change; below 0 where ties are all there is.
    pub(crate) fn rank_distance_from_none(&self) -> f64 {
        let [not_above, not_below] = self.counts_against_change();
        self.differences.len() as f64 / 2.0 - not_above.min(not_below) as f64
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

/// Hodges-Lehmann estimate of candidate / baseline, where 1 is no change. For several confidence levels of the same samples
/// use [`PairwiseShifts`], which sorts once.
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

/// The differences candidate - baseline: a matrix whose rows and columns ascend.
#[derive(Debug, Clone)]
struct PairwiseDifferences {
    /// Descending: one a row.
    baseline: Vec<f64>,
    /// Ascending: one a column.
    candidate: Vec<f64>,
    /// All of them in ascending order, where they are few; else empty.
    sorted: Vec<f64>,
}

/// Differences that are sorted sooner than a few of them are looked up.
const FEWEST_UNSORTED_DIFFERENCES: usize = 2_500;

impl PairwiseDifferences {
    /// Of finite values; an error where the largest difference overflows.
    fn from_samples(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        let [mut baseline, mut candidate] = [baseline.to_vec(), candidate.to_vec()];
        baseline.sort_unstable_by(|a, b| b.total_cmp(a));
        candidate.sort_unstable_by(f64::total_cmp);
        let mut all = Self { baseline, candidate, sorted: Vec::new() };
        let ends =
            [all.baseline.first().zip(all.candidate.first()), all.baseline.last().zip(all.candidate.last())];
        ends.into_iter().flatten().try_for_each(|(x, y)| finite_or_overflow(y - x).map(drop))?;
        if all.len() <= FEWEST_UNSORTED_DIFFERENCES {
            all.sorted = all.candidate.iter().flat_map(|y| all.baseline.iter().map(move |x| y - x)).collect();
            all.sorted.sort_unstable_by(f64::total_cmp);
        }
        Ok(all)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.baseline.len() * self.candidate.len()
    }

    /// The middle one, or the midpoint of the two middle ones.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.len() / 2;
        if self.len() % 2 == 1 { self.nth(middle) } else { self.nth(middle - 1).midpoint(self.nth(middle)) }
    }

    /// The difference at a place of their ascending order, from 0.
    fn nth(&self, place: usize) -> f64 {
        self.sorted.get(place).copied().unwrap_or_else(|| self.select_nth(place))
    }

    /// The same without all of them: the candidates of each row are narrowed from both ends by a pivot, the middle of the
    /// row that has most of them left, at a cost of a step a row and column each. After Johnson and Mizoguchi, Selecting the
    /// Kth Element in X + Y, SIAM Journal on Computing 7 (1978), with a simpler pivot.
    fn select_nth(&self, place: usize) -> f64 {
        let (rows, columns) = (self.baseline.len(), self.candidate.len());
        let (mut low, mut high) = (vec![0; rows], vec![columns; rows]);
        loop {
            let row = (0..rows).max_by_key(|row| high[*row] - low[*row]).unwrap_or(0);
            let pivot = self.candidate[low[row].midpoint(high[row])] - self.baseline[row];
            let (below, fewer) = self.count_small(|difference| difference < pivot);
            if place < fewer {
                high = below;
                continue;
            }
            let (upto, most) = self.count_small(|difference| difference <= pivot);
            if place < most {
                return pivot;
            }
            low = upto;
        }
    }

    /// How many differences of each row, and in all, are small; every one that is smaller than a small one is small too.
    fn count_small(&self, is_small: impl Fn(f64) -> bool) -> (Vec<usize>, usize) {
        let (mut small, mut sum) = (self.candidate.len(), 0);
        let each = self.baseline.iter().map(|x| {
            while small > 0 && !is_small(self.candidate[small - 1] - x) {
                small -= 1;
            }
            sum += small;
            small
        });
        (each.collect(), sum)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn every_place_holds_what_sorting_puts_there() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut sample = |longest: usize, farthest: i32| -> Vec<f64> {
            let length = rng.random_range(1..=longest);
            (0..length).map(|_| f64::from(rng.random_range(-farthest..=farthest))).collect()
        };
        for round in 0..400 {
            let (longest, farthest) = if round % 40 == 0 { (90, 1_000_000) } else { (14, 1 + round % 9) };
            let (x, y) = (sample(longest, farthest), sample(longest, farthest * 3));
            let mut sorted: Vec<f64> = y.iter().flat_map(|y| x.iter().map(move |x| y - x)).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let all = PairwiseDifferences::from_samples(&x, &y).unwrap();
            assert_eq!((0..all.len()).map(|place| all.select_nth(place)).collect::<Vec<_>>(), sorted);
            assert_eq!((0..all.len()).map(|place| all.nth(place)).collect::<Vec<_>>(), sorted);
        }
    }

    /// R manual, `?wilcox.test`, ozone in May and August 1973: W = 127.5, p-value = 0.0001208.
    #[test]
    fn the_approximation_is_that_of_r() {
        let may = [
            41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115,
            37,
        ];
        let august = [
            39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118,
            84, 85,
        ];
        let ranking =
            MidRanks::from_values(&[may, august].concat().into_iter().map(f64::from).collect::<Vec<_>>());
        let p = normal_rank_sum_tails(&ranking, 26, 26, 127.5).two_sided();
        assert!((p - 0.000_120_8).abs() < 5e-8, "{p}");
    }

    #[test]
    fn an_overflow_is_an_error() {
        assert!(matches!(
            PairwiseDifferences::from_samples(&[-1e308, 0.0], &[0.0, 1e308]),
            Err(StatsError::Overflow)
        ));
    }
}
