//! Owns whether a sample is as precise as a study wants it. It refuses to look at differences: stopping at significance makes
//! p-values lie.

use perflab_stats::median_with_interval;

/// Half the width of the median's exact interval, relative to the median; absent where the sample is too small for an
/// interval, or the median is zero.
#[must_use]
pub fn precision(values: &[f64], confidence: f64) -> Option<f64> {
    let found = median_with_interval(values, confidence).ok()?;
    let half = found.interval?.half_width();
    let size = found.value.abs();
    (size > 0.0).then_some(half / size)
}

#[cfg(test)]
mod tests {
    use super::precision;

    #[test]
    fn small_samples_and_zeros_have_no_precision() {
        assert_eq!(precision(&[1.0; 5], 0.95), None);
        assert_eq!(precision(&[0.0; 10], 0.95), None);
        assert_eq!(precision(&[2.0; 10], 0.95), Some(0.0));
        let values: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i)).collect();
        let found = precision(&values, 0.95).unwrap();
        assert!((found - 3.5 / 104.5).abs() < 1e-12, "{found}");
    }
}
