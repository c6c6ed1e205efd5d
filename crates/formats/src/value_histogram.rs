//! How often values occurred, and the percentiles that follow from it: by nearest rank, of whole numbers, so that nothing is
//! interpolated or rounded.

use std::collections::BTreeMap;
use std::fmt;

use perflab_model::error_class::{Classify, ErrorClass};

/// Distinct values of a histogram, at most: an HdrHistogram of five digits over all that it can hold has six million, of which few
/// are ever used; more is a program that prints single values.
pub const MOST_BUCKETS: usize = 1 << 20;

/// Why something is no part of a histogram.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HistogramError {
    /// What is measured is never below nothing.
    #[error("the value {value} is below 0")]
    NegativeValue {
        /// the value
        value: f64,
    },
    /// There are more buckets than a histogram has.
    #[error("it has more than {MOST_BUCKETS} buckets: a histogram counts values, it does not list them")]
    TooManyBuckets,
    /// The counts are more than a number can hold.
    #[error("its counts add up to more than {}", u64::MAX)]
    CountOverflow,
}

impl Classify for HistogramError {
    fn class(&self) -> ErrorClass {
        match self {
            HistogramError::NegativeValue { .. }
            | HistogramError::TooManyBuckets
            | HistogramError::CountOverflow => ErrorClass::WorkloadFailed,
        }
    }
}

/// A percentage of values, as it was written: 99.9 is exactly 999 of 1,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentile {
    numerator: u64,
    denominator: u64,
    decimals: usize,
}

/// Digits behind the point, at most: one of 100 billion values.
const MOST_DECIMALS: usize = 9;

impl Percentile {
    /// Above 0 and below 100 per cent, with at most nine digits behind the point.
    pub fn new(percent: f64) -> Option<Self> {
        if !(percent > 0.0 && percent < 100.0) {
            return None;
        }
        // The shortest text that is read back as this number is the one that was written.
        let text = percent.to_string();
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let numerator = format!("{whole}{decimals}").parse().ok()?;
        let places = u32::try_from(decimals.len()).ok().filter(|_| decimals.len() <= MOST_DECIMALS)?;
        Some(Percentile { numerator, denominator: 100 * 10_u64.pow(places), decimals: decimals.len() })
    }

    /// The rank, from 1, of the value that it is of `count` values: the least that at least so many per cent do not exceed.
    pub fn nearest_rank(self, count: u64) -> u64 {
        let rank = (u128::from(self.numerator) * u128::from(count)).div_ceil(u128::from(self.denominator));
        // Never above `count`, as it is below 100 per cent.
        u64::try_from(rank).unwrap_or(count).max(1)
    }

    /// Whether so many values have it: at least one lies beyond, or it would only be another name for the largest.
    pub fn is_carried_by(self, count: u64) -> bool {
        self.nearest_rank(count) < count
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.denominator / 100;
        write!(f, "p{}", self.numerator / unit)?;
        match self.decimals {
            0 => Ok(()),
            decimals => write!(f, ".{:0decimals$}", self.numerator % unit),
        }
    }
}

/// Values by how often they occurred, in any unit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ValueHistogram {
    buckets: BTreeMap<BucketValue, BucketContent>,
    count: u64,
    /// values beyond the largest bucket, of which nothing else is known
    beyond: u64,
}

/// Finite and not negative, in the order of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BucketValue(f64);

impl Eq for BucketValue {}

impl PartialOrd for BucketValue {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BucketValue {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct BucketContent {
    count: u64,
    /// of its values, as far as they are known
    sum: f64,
}

impl ValueHistogram {
    /// Adds that `value` occurred `count` times.
    ///
    /// # Errors
    /// The value is negative, or there would be too many of them.
    pub fn add(&mut self, value: f64, count: u64) -> Result<(), HistogramError> {
        self.add_bucket(value, value, count)
    }

    /// Adds a bucket that is known by its largest value, and whose values are `middle` in the mean.
    ///
    /// # Errors
    /// The value is negative, or there would be too many of them.
    pub fn add_bucket(&mut self, largest: f64, middle: f64, count: u64) -> Result<(), HistogramError> {
        if count == 0 {
            return Ok(());
        }
        if largest < 0.0 {
            return Err(HistogramError::NegativeValue { value: largest });
        }
        self.count = self.count.checked_add(count).ok_or(HistogramError::CountOverflow)?;
        // 0 and -0 are one value.
        let bucket = self.buckets.entry(BucketValue(largest + 0.0)).or_default();
        bucket.count += count;
        bucket.sum += middle * count as f64;
        if self.buckets.len() > MOST_BUCKETS { Err(HistogramError::TooManyBuckets) } else { Ok(()) }
    }

    /// Adds values that are larger than all buckets.
    ///
    /// # Errors
    /// There would be too many of them.
    pub fn add_beyond(&mut self, count: u64) -> Result<(), HistogramError> {
        self.count = self.count.checked_add(count).ok_or(HistogramError::CountOverflow)?;
        self.beyond += count;
        Ok(())
    }

    /// Adds all that another holds.
    ///
    /// # Errors
    /// There would be too many of them.
    pub fn merge(&mut self, other: &ValueHistogram) -> Result<(), HistogramError> {
        self.merge_scaled(other, 1.0)
    }

    /// The same in another unit: its values times `scale`, which is above 0.
    ///
    /// # Errors
    /// There would be too many of them.
    pub fn merge_scaled(&mut self, other: &ValueHistogram, scale: f64) -> Result<(), HistogramError> {
        for (value, bucket) in &other.buckets {
            self.add_bucket(value.0 * scale, bucket.sum / bucket.count as f64 * scale, bucket.count)?;
        }
        self.add_beyond(other.beyond)
    }

    /// How many values it holds, with those beyond its buckets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many of them lie beyond its buckets.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The value of that rank, from 1; none where it lies beyond the buckets, or there are not so many values.
    pub fn value_at_rank(&self, rank: u64) -> Option<f64> {
        let mut seen = 0;
        for (value, bucket) in &self.buckets {
            seen += bucket.count;
            if seen >= rank {
                return Some(value.0);
            }
        }
        None
    }

    /// The largest value; none where that lies beyond the buckets.
    pub fn largest(&self) -> Option<f64> {
        let largest = self.buckets.last_key_value().map(|(value, _)| value.0);
        largest.filter(|_| self.beyond == 0)
    }

    /// The mean; none where some lie beyond the buckets.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.buckets.values().map(|bucket| bucket.sum).sum();
        (self.count > 0 && self.beyond == 0).then(|| sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram_of(rows: &[(f64, u64)]) -> ValueHistogram {
        let mut histogram = ValueHistogram::default();
        rows.iter().for_each(|(value, count)| histogram.add(*value, *count).unwrap());
        histogram
    }

    fn percentile(percent: f64) -> Percentile {
        Percentile::new(percent).unwrap()
    }

    /// The example of <https://en.wikipedia.org/wiki/Percentile#The_nearest-rank_method>: 15, 20, 35, 40, 50.
    #[test]
    fn percentiles_are_those_of_the_published_example() {
        let histogram = histogram_of(&[(50.0, 1), (15.0, 1), (40.0, 1), (20.0, 1), (35.0, 1)]);
        for (percent, expected) in [(5.0, 15.0), (30.0, 20.0), (40.0, 20.0), (50.0, 35.0)] {
            let rank = percentile(percent).nearest_rank(histogram.count());
            assert_eq!(histogram.value_at_rank(rank), Some(expected), "{percent}");
        }
        assert_eq!((histogram.largest(), histogram.mean()), (Some(50.0), Some(32.0)));
    }

    #[test]
    fn ranks_are_exact_where_floats_are_not() {
        // 0.999 * 1000 is 999.0000000000001 in floats of 64 bits for some orders of operations.
        for (percent, count, rank) in [
            (99.9, 1000, 999),
            (99.9, 1001, 1000),
            (99.99, 10_000, 9999),
            (28.0, 100, 28),
            (7.0, 100, 7),
            (99.999_999_999, u64::MAX, 18_446_744_073_525_084_175),
            (1e-9, 5, 1),
        ] {
            assert_eq!(percentile(percent).nearest_rank(count), rank, "{percent} of {count}");
        }
    }

    /// All counts of small histograms against sorting the values one by one.
    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let rows = [(3.0, 4), (0.5, 1), (7.25, 2), (1e9, 1), (0.0, 3)];
        let mut values: Vec<f64> =
            rows.iter().flat_map(|(value, count)| std::iter::repeat_n(*value, *count as usize)).collect();
        values.sort_by(f64::total_cmp);
        let histogram = histogram_of(&rows);
        for tenth in 1..1000_u32 {
            let rank = percentile(f64::from(tenth) / 10.0).nearest_rank(histogram.count());
            let expected = values[(u64::from(tenth) * values.len() as u64).div_ceil(1000) as usize - 1];
            assert_eq!(histogram.value_at_rank(rank), Some(expected), "{tenth}");
        }
    }

    #[test]
    fn a_percentile_needs_a_value_beyond_it() {
        for (percent, least) in [(50.0, 2), (99.0, 100), (99.9, 1000), (99.99, 10_000), (75.0, 4)] {
            let of = percentile(percent);
            assert!(of.is_carried_by(least) && !of.is_carried_by(least - 1), "{percent}");
        }
        assert!(!percentile(50.0).is_carried_by(0));
    }

    #[test]
    fn percentiles_have_the_name_that_was_written() {
        for (percent, name) in [(50.0, "p50"), (99.9, "p99.9"), (99.99, "p99.99"), (0.05, "p0.05")] {
            assert_eq!(percentile(percent).to_string(), name);
        }
        for wrong in [0.0, 100.0, -1.0, f64::NAN, f64::INFINITY, 1e-12, 101.0] {
            assert_eq!(Percentile::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn merged_histograms_are_the_histogram_of_all() {
        let (mut one, other) = (histogram_of(&[(1.0, 2), (5.0, 1)]), histogram_of(&[(5.0, 3), (2.0, 1)]));
        one.merge(&other).unwrap();
        assert_eq!(one, histogram_of(&[(1.0, 2), (2.0, 1), (5.0, 4)]));
    }

    #[test]
    fn what_lies_beyond_is_known_to_be_large_and_nothing_else() {
        let mut histogram = histogram_of(&[(1.0, 98)]);
        histogram.add_beyond(2).unwrap();
        assert_eq!((histogram.count(), histogram.beyond()), (100, 2));
        assert_eq!((histogram.value_at_rank(98), histogram.value_at_rank(99)), (Some(1.0), None));
        assert_eq!((histogram.largest(), histogram.mean()), (None, None));
    }

    #[test]
    fn impossible_values_and_counts_are_refused() {
        let mut histogram = ValueHistogram::default();
        assert_eq!(histogram.add(-1.0, 1), Err(HistogramError::NegativeValue { value: -1.0 }));
        histogram.add(-0.0, 1).unwrap();
        histogram.add(0.0, u64::MAX - 1).unwrap();
        assert_eq!(histogram.value_at_rank(u64::MAX), Some(0.0));
        assert_eq!(histogram.add(1.0, 1), Err(HistogramError::CountOverflow));
        let mut many = ValueHistogram::default();
        let refused = (0..10_000_000_u32).find_map(|value| many.add(f64::from(value), 1).err());
        assert_eq!(refused, Some(HistogramError::TooManyBuckets));
        assert_eq!(many.count() as usize, MOST_BUCKETS + 1);
    }
}
