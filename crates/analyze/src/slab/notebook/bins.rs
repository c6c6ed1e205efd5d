//! Owns a histogram as numpy makes it: equal bins from the least to the greatest value, the last closed. It refuses
//! values that are not finite.

use serde::Serialize;

/// Values counted in equal bins; each is given with how often it is there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NumpyHistogram {
    /// One more than counts: the limits of the bins.
    pub edges: Vec<f64>,
    /// Values in [edge, next edge), in the last bin up to its upper edge.
    pub counts: Vec<usize>,
    /// Values below the first edge, in no bin.
    pub below: usize,
    /// Values above the last edge, in no bin.
    pub above: usize,
}

impl NumpyHistogram {
    /// From the least to the greatest of the values; around a single value, half a unit on either side; of no value,
    /// from 0 to 1 (numpy.histogram, numpy.histogram_bin_edges).
    #[must_use]
    pub fn from_values(values: &[(f64, usize)], bins: usize) -> Self {
        let count = bins.max(1);
        let least = values.iter().map(|(value, _)| *value).fold(f64::INFINITY, f64::min);
        let greatest = values.iter().map(|(value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match (values.is_empty(), least == greatest) {
            (true, _) => (0.0, 1.0),
            (_, true) => (least - 0.5, greatest + 0.5),
            _ => (least, greatest),
        };
        let edge = |number: usize| match number == count {
            true => high,
            false => number as f64 * ((high - low) / count as f64) + low,
        };
        NumpyHistogram::count_values((0..=count).map(edge).collect(), values)
    }

    /// Other values in the same bins; those outside are counted apart.
    #[must_use]
    pub fn with_same_bins(&self, values: &[(f64, usize)]) -> Self {
        NumpyHistogram::count_values(self.edges.clone(), values)
    }

    fn count_values(edges: Vec<f64>, values: &[(f64, usize)]) -> Self {
        let counts = vec![0; edges.len().saturating_sub(1)];
        let mut found = NumpyHistogram { edges, counts, below: 0, above: 0 };
        let last = found.counts.len().saturating_sub(1);
        for (value, times) in values {
            let after = found.edges.partition_point(|edge| edge <= value);
            let is_top = found.edges.last() == Some(value);
            let number = if is_top { Some(last) } else { after.checked_sub(1) };
            match number.map(|number| found.counts.get_mut(number)) {
                Some(Some(count)) => *count += times,
                Some(None) => found.above += times,
                None => found.below += times,
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bin_is_closed_and_a_single_value_gets_room() {
        let found = NumpyHistogram::from_values(&[0.0, 1.0, 2.0, 3.0, 4.0].map(|value| (value, 1)), 4);
        assert_eq!((found.edges.len(), found.counts), (5, vec![1, 1, 1, 2]));
        let found = NumpyHistogram::from_values(&[(7.0, 2)], 2);
        assert_eq!((found.edges, found.counts), (vec![6.5, 7.0, 7.5], vec![0, 2]));
        assert_eq!(NumpyHistogram::from_values(&[], 2).counts, [0, 0]);
    }

    #[test]
    fn what_is_outside_is_counted_apart() {
        let found = NumpyHistogram::from_values(&[(0.0, 1), (10.0, 1)], 5)
            .with_same_bins(&[-1.0, 0.0, 2.0, 10.0, 11.0].map(|value| (value, 1)));
        assert_eq!((found.counts, found.below, found.above), (vec![1, 1, 0, 0, 1], 1, 1));
    }
}
