//! Bins of equal width for histograms, by rules that follow from the values.
//!
//! Sources: Freedman and Diaconis, "On the histogram as a density estimator: L2 theory", Zeitschrift für
//! Wahrscheinlichkeitstheorie 57 (1981): width 2 IQR n^(-1/3), which a few far values do not move. Scott, "On optimal and
//! data-based histograms", Biometrika 66 (1979): width (24 √π)^(1/3) s n^(-1/3), best for normal values.

use crate::descriptive::{inter_quartile_range, sd};
use crate::error::{StatsError, check_sample, finite_or_overflow};

/// How wide bins are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinRule {
    /// by the range of the middle half
    FreedmanDiaconis,
    /// by the standard deviation
    Scott,
}

impl BinRule {
    /// The width for a sample, in the unit of its values; `None` where the rule sees no spread: by Freedman and Diaconis also where
    /// half of the values are equal.
    ///
    /// # Errors
    /// An empty sample, a value that is not finite, an overflow.
    pub fn width(self, values: &[f64]) -> Result<Option<f64>, StatsError> {
        let count = check_sample(values)?.len();
        if count < 2 {
            return Ok(None);
        }
        let spread = match self {
            BinRule::FreedmanDiaconis => 2.0 * inter_quartile_range(values)?,
            BinRule::Scott => (24.0 * std::f64::consts::PI.sqrt()).cbrt() * sd(values)?,
        };
        Ok(Some(spread / (count as f64).cbrt()).filter(|width| *width > 0.0))
    }
}

/// Most bins of a histogram: more are no picture.
pub const MOST_BINS: usize = 200;

/// Edges of bins of one width that hold all values of several samples: one more than there are bins, ascending, from the least value
/// to the largest. The width is the smallest of those that the rule gives for each sample (by Scott's where it gives none), so that
/// none is smoothed away because another is wider or far from it; never so small that there are more than [`MOST_BINS`]. Values
/// that are all equal get one bin around them.
///
/// # Errors
/// No sample, an empty one, a value that is not finite, a range that overflows.
pub fn histogram_edges(samples: &[&[f64]], rule: BinRule) -> Result<Vec<f64>, StatsError> {
    let mut width = f64::INFINITY;
    for sample in samples {
        let own = rule.width(sample)?;
        let own = if own.is_none() { BinRule::Scott.width(sample)? } else { own };
        width = own.map_or(width, |own| own.min(width));
    }
    let values = || samples.iter().flat_map(|sample| sample.iter().copied());
    let (low, high) = (values().reduce(f64::min), values().reduce(f64::max));
    let (Some(low), Some(high)) = (low, high) else { return Err(StatsError::Empty) };
    let range = finite_or_overflow(high - low)?;
    if range == 0.0 {
        let room = if low == 0.0 { 0.5 } else { low.abs() * 0.05 };
        return Ok(vec![low - room, high + room]);
    }
    let bins = (range / width).ceil().clamp(1.0, MOST_BINS as f64);
    let edges = (0..=bins as usize).map(|edge| low + range * edge as f64 / bins);
    Ok(edges.collect())
}

/// How many values lie in each bin between ascending edges: the lower edge belongs to a bin, the last bin has both. Values outside
/// are in none.
#[must_use]
pub fn count_in_bins(values: &[f64], edges: &[f64]) -> Vec<usize> {
    let mut counts = vec![0; edges.len().saturating_sub(1)];
    let (Some(first), Some(last)) = (edges.first(), edges.last()) else { return counts };
    for value in values.iter().filter(|value| (*first..=*last).contains(value)) {
        let at = edges.partition_point(|edge| edge <= value).saturating_sub(1);
        let at = at.min(counts.len().saturating_sub(1));
        if let Some(count) = counts.get_mut(at) {
            *count += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<f64> {
        (1..=100).map(|i| f64::from(i * i % 37) + f64::from(i) * 0.5).collect()
    }

    /// `numpy.histogram_bin_edges(v, "fd")` and `"scott"` of NumPy 2: 8 bins of 10.125, 6 of 13.5.
    #[test]
    fn bins_are_those_of_numpy() {
        for (rule, bins, width) in [(BinRule::FreedmanDiaconis, 8, 10.125), (BinRule::Scott, 6, 13.5)] {
            let edges = histogram_edges(&[&sample()], rule).unwrap();
            assert_eq!(edges.len(), bins + 1);
            assert!((edges[1] - edges[0] - width).abs() < 1e-9, "{edges:?}");
        }
    }

    #[test]
    fn every_value_is_in_one_bin() {
        let values = sample();
        let edges = histogram_edges(&[&values], BinRule::FreedmanDiaconis).unwrap();
        assert_eq!(count_in_bins(&values, &edges).iter().sum::<usize>(), 100);
        assert_eq!(count_in_bins(&[0.0, 1.0, 2.0, 3.0], &[0.0, 1.0, 2.0]), [1, 2]);
        assert!(count_in_bins(&[1.0], &[]).is_empty());
    }

    #[test]
    fn the_narrowest_sample_has_its_bins_and_no_picture_has_thousands() {
        let narrow: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.01).collect();
        let shifted: Vec<f64> = narrow.iter().map(|value| value + 10.0).collect();
        let edges = histogram_edges(&[&narrow, &shifted], BinRule::FreedmanDiaconis).unwrap();
        assert!(edges[1] - edges[0] < 0.25, "{edges:?}");
        let far: Vec<f64> = narrow.iter().map(|value| value + 1e9).collect();
        let edges = histogram_edges(&[&narrow, &far], BinRule::FreedmanDiaconis).unwrap();
        assert_eq!(edges.len(), MOST_BINS + 1);
    }

    #[test]
    fn values_without_spread_have_one_bin() {
        assert_eq!(histogram_edges(&[&[0.0, 0.0]], BinRule::Scott).unwrap(), [-0.5, 0.5]);
        assert_eq!(histogram_edges(&[&[2.0]], BinRule::FreedmanDiaconis).unwrap(), [1.9, 2.1]);
        // Half of the values are equal: Scott's width in the place of none.
        let edges = histogram_edges(&[&[1.0, 1.0, 1.0, 1.0, 1.0, 9.0]], BinRule::FreedmanDiaconis).unwrap();
        assert!(edges.len() > 1 && edges[0] == 1.0);
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(histogram_edges(&[], BinRule::Scott).is_err());
        assert!(histogram_edges(&[&[]], BinRule::Scott).is_err());
        assert!(histogram_edges(&[&[1.0, f64::INFINITY]], BinRule::Scott).is_err());
        assert!(histogram_edges(&[&[f64::MIN, f64::MAX]], BinRule::FreedmanDiaconis).is_err());
    }
}
