//! Neighbours in a series that share their luck, as the runs of one day may.

use crate::descriptive::{mean, median};
use crate::error::{StatsError, check_sample};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// Below this p-value groups count as different: a preliminary test that is to protect another is held at a quarter, since what it
/// overlooks is paid for there (Bancroft, "On biases in estimation due to the use of preliminary tests of significance", Annals of
/// Mathematical Statistics 15, 1944; Bozivich, Bancroft and Hartley, the same 27, 1956).
const PRELIMINARY_LEVEL: f64 = 0.25;

/// A series in time order, cut into groups of neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesGroups {
    /// First value of each group.
    starts: Vec<usize>,
    length: usize,
}

impl SeriesGroups {
    /// Neighbours with equal keys are one group: the days of runs.
    #[must_use]
    pub fn from_keys<K: PartialEq>(keys: &[K]) -> Self {
        let changes = keys.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
        let starts = (0..usize::from(!keys.is_empty())).chain(changes.map(|(at, _)| at + 1)).collect();
        SeriesGroups { starts, length: keys.len() }
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// First value of each.
    #[must_use]
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The groups of the values from `start` on.
    #[must_use]
    pub fn after(&self, start: usize) -> Self {
        self.part(start..self.length)
    }

    /// The groups of a part of the values.
    #[must_use]
    pub fn part(&self, range: std::ops::Range<usize>) -> Self {
        let length = range.end.min(self.length).saturating_sub(range.start);
        let inside = self.starts.iter().filter(|at| **at > range.start && **at < range.end);
        let starts = (0..usize::from(length > 0)).chain(inside.map(|at| at - range.start)).collect();
        SeriesGroups { starts, length }
    }

    /// The same, with further cuts.
    #[must_use]
    pub fn cut_at(&self, cuts: &[usize]) -> Self {
        let inside = cuts.iter().copied().filter(|cut| *cut > 0 && *cut < self.length);
        let mut starts: Vec<usize> = self.starts.iter().copied().chain(inside).collect();
        starts.sort_unstable();
        starts.dedup();
        SeriesGroups { starts, length: self.length }
    }

    /// The range of each.
    pub fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let ends = self.starts.iter().skip(1).copied().chain([self.length]);
        self.starts.iter().copied().zip(ends).map(|(start, end)| start..end)
    }

    /// The median of each group of as many values.
    ///
    /// # Errors
    /// A value that is not finite.
    pub fn medians(&self, values: &[f64]) -> Result<Vec<f64>, StatsError> {
        self.ranges().map(|range| median(values.get(range).unwrap_or_default())).collect()
    }

    /// Whether a group differs from the next by more than the scatter within groups explains, or may: p below a quarter. The mean
    /// square of successive differences of means, each by what it is expected to be, over that within groups, by F; degrees of
    /// freedom of the first as in [`SuccessiveDifferences`](crate::SuccessiveDifferences). A step or two hardly raise it. Never where
    /// there is one group, or one value in each.
    ///
    /// # Errors
    /// Other than as many values, one that is not finite.
    pub fn share_luck(&self, values: &[f64]) -> Result<bool, StatsError> {
        if values.len() != self.length {
            return Err(StatsError::Unpaired { left: values.len(), right: self.length });
        }
        let left = self.length - self.count();
        if self.count() < 2 || left == 0 {
            return Ok(false);
        }
        check_sample(values)?;
        let mut means = Vec::with_capacity(self.count());
        let mut squares = 0.0;
        for range in self.ranges() {
            let group = values.get(range).unwrap_or_default();
            let centre = mean(group)?;
            squares += group.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
            means.push((centre, group.len() as f64));
        }
        let within = squares / left as f64;
        let standardised = |pair: &[(f64, f64)]| {
            let [(one, n), (next, m)] = pair else { return 0.0 };
            (next - one).powi(2) / (n.recip() + m.recip())
        };
        let m = (means.len() - 1) as f64;
        let between = means.windows(2).map(standardised).sum::<f64>() / m;
        if within == 0.0 || !(between / within).is_finite() {
            return Ok(between > 0.0);
        }
        let freedom = 2.0 * m * m / (3.0 * m - 1.0);
        let p = FisherSnedecor::new(freedom, left as f64).map_or(1.0, |law| law.sf(between / within));
        Ok(p < PRELIMINARY_LEVEL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_with_one_key_are_a_group() {
        let groups = SeriesGroups::from_keys(&[1, 1, 2, 3, 3, 3, 1]);
        assert_eq!(groups.ranges().collect::<Vec<_>>(), [0..2, 2..3, 3..6, 6..7]);
        assert_eq!(groups.part(1..5).ranges().collect::<Vec<_>>(), [0..1, 1..2, 2..4]);
        assert_eq!(groups.cut_at(&[4, 2, 0, 7]).starts(), [0, 2, 3, 4, 6]);
        assert_eq!(groups.medians(&[1.0, 3.0, 5.0, 1.0, 2.0, 9.0, 4.0]).unwrap(), [2.0, 5.0, 2.0, 4.0]);
        assert_eq!(SeriesGroups::from_keys::<u8>(&[]).count(), 0);
    }

    /// Two groups of two: means 1 and 5, differences (5 - 1)² / (1/2 + 1/2) = 16 with one degree of freedom; within, 2 over two
    /// groups, so 1 with 2. F = 16 of (1, 2): t = 4 of 2, p = 0.057. A difference of 1: t = 1, p = 0.42.
    #[test]
    fn groups_differ_by_f() {
        let groups = SeriesGroups::from_keys(&[1, 1, 2, 2]);
        let half = 0.5_f64.sqrt();
        let values = |apart: f64| [-half, half, apart - half, apart + half];
        assert!(groups.share_luck(&values(4.0)).unwrap());
        assert!(!groups.share_luck(&values(1.0)).unwrap());
        // t = 1.604 of 2 has p = 0.25.
        assert!(groups.share_luck(&values(1.61)).unwrap() && !groups.share_luck(&values(1.60)).unwrap());
    }

    #[test]
    fn one_value_a_group_one_group_and_constants() {
        assert_eq!(SeriesGroups::from_keys(&[1, 2, 3]).share_luck(&[1.0, 5.0, 9.0]), Ok(false));
        assert_eq!(SeriesGroups::from_keys(&[1, 1, 1]).share_luck(&[1.0, 5.0, 9.0]), Ok(false));
        let pairs = SeriesGroups::from_keys(&[1, 1, 2, 2]);
        assert_eq!(pairs.share_luck(&[3.0; 4]), Ok(false));
        assert_eq!(pairs.share_luck(&[3.0, 3.0, 4.0, 4.0]), Ok(true));
        assert!(pairs.share_luck(&[3.0]).is_err() && pairs.share_luck(&[3.0, 1.0, f64::NAN, 2.0]).is_err());
    }
}
