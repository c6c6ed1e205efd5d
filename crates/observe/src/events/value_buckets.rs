//! Buckets of values whose widths grow with them, as events.bpf.c fills them: 16 cover a power of two.
//!
//! Values below 32 have a bucket each. Of larger ones a bucket is at most a sixteenth of its least value wide, so that its middle
//! is at most a thirty-second off: 3.2 %. HdrHistogram has the same layout.

/// Buckets of a power of two are 2 to this.
const SUB_BITS: u32 = 4;

/// What has this bit, and none above it, has the last buckets; so has all that is larger.
const TOP_BIT: u32 = 47;

/// All of them.
pub(crate) const BUCKETS: usize = ((TOP_BIT - SUB_BITS + 2) << SUB_BITS) as usize;

/// How far the middle of a bucket may be off its values, of itself.
#[cfg(test)]
const RELATIVE_ERROR: f64 = 1.0 / 32.0;

/// How many values fell into each bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueBuckets(Vec<u64>);

impl Default for ValueBuckets {
    fn default() -> Self {
        ValueBuckets(vec![0; BUCKETS])
    }
}

impl ValueBuckets {
    /// Adds what one CPU counted.
    pub(crate) fn add(&mut self, counts: &[u64]) {
        for (sum, count) in self.0.iter_mut().zip(counts) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// Adds those of another.
    pub(crate) fn merge(&mut self, other: &ValueBuckets) {
        self.add(&other.0);
    }

    /// What came since `earlier`.
    pub(crate) fn since(&self, earlier: &ValueBuckets) -> ValueBuckets {
        let grown = self.0.iter().zip(&earlier.0).map(|(now, before)| now.saturating_sub(*before));
        ValueBuckets(grown.collect())
    }

    /// The value that this part of them does not exceed, by nearest rank: the middle of its bucket.
    pub(crate) fn quantile(&self, part: f64) -> Option<u64> {
        let count: u64 = self.0.iter().sum();
        let rank = ((count as f64 * part).ceil() as u64).clamp(1, count.max(1));
        let mut below = 0_u64;
        for (bucket, number) in self.0.iter().enumerate() {
            below = below.saturating_add(*number);
            if below >= rank && count > 0 {
                return Some(middle_of_bucket(bucket));
            }
        }
        None
    }
}

/// The middle of a bucket's values; of one value itself.
fn middle_of_bucket(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 1 << SUB_BITS {
        return bucket;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let least = ((1 << SUB_BITS) + (bucket & ((1 << SUB_BITS) - 1))) << shift;
    least + ((1_u64 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As events.bpf.c does it.
    fn find_bucket(value: u64) -> usize {
        if value < 1 << SUB_BITS {
            return value as usize;
        }
        if value >> (TOP_BIT + 1) != 0 {
            return BUCKETS - 1;
        }
        let bit = value.ilog2();
        let sub = (value >> (bit - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
        (((bit - SUB_BITS + 1) << SUB_BITS) as usize) + sub
    }

    #[test]
    fn the_middle_of_a_bucket_is_a_thirty_second_off_at_most() {
        assert_eq!(find_bucket((1 << 48) - 1), BUCKETS - 1);
        let mut value = 1_u64;
        while value < 1 << 48 {
            for value in [value, value + value / 3, value + value / 2, value * 2 - 1] {
                let middle = middle_of_bucket(find_bucket(value)) as f64;
                let error = (middle - value as f64).abs() / value as f64;
                assert!(error <= RELATIVE_ERROR, "{value}: {middle}");
                assert!(value >= 32 || error == 0.0, "{value}: {middle}");
            }
            value *= 2;
        }
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let mut buckets = ValueBuckets::default();
        assert_eq!(buckets.quantile(0.5), None);
        let mut counts = vec![0; BUCKETS];
        for value in 1..=20_u64 {
            counts[find_bucket(value)] += 1;
        }
        buckets.add(&counts);
        assert_eq!((buckets.quantile(0.5), buckets.quantile(0.99)), (Some(10), Some(20)));
        let before = buckets.clone();
        counts.iter_mut().for_each(|count| *count = 0);
        counts[find_bucket(7)] = 3;
        buckets.add(&counts);
        assert_eq!(buckets.since(&before).quantile(0.01), Some(7));
    }
}
