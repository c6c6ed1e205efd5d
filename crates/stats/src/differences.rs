//! Owns the order of all differences between two samples, without making them: of 200 against 200 values there are 40,000,
//! of which an estimate with its interval needs six. It refuses samples that are empty or not finite: its callers have looked.

use crate::StatsError;
use crate::sample::finite_or_overflow;

/// The differences candidate - baseline: a matrix whose rows and columns ascend.
#[derive(Debug, Clone)]
pub(crate) struct PairwiseDifferences {
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
    pub(crate) fn from_samples(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
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
    pub(crate) fn nth(&self, place: usize) -> f64 {
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
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

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

    #[test]
    fn an_overflow_is_an_error() {
        assert!(matches!(
            PairwiseDifferences::from_samples(&[-1e308, 0.0], &[0.0, 1e308]),
            Err(StatsError::Overflow)
        ));
    }
}
