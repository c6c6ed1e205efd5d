//! Whether the samples so far are as precise as the stopping rule asks.
//!
//! Precision only, never differences: stopping at significance makes p-values lie.

use perflab_stats::median_with_interval;

/// Half the width of the median's exact interval, relative to the median; absent where the sample is too small for an
/// interval, or the median is zero.
#[must_use]
pub fn relative_precision(values: &[f64], confidence: f64) -> Option<f64> {
    let found = median_with_interval(values, confidence).ok()?;
    let half = found.interval?.half_width();
    let size = found.value.abs();
    (size > 0.0).then_some(half / size)
}

#[cfg(test)]
mod tests {
    use super::relative_precision;

    #[test]
    fn small_samples_and_zeros_have_no_precision() {
        assert_eq!(relative_precision(&[1.0; 5], 0.95), None);
        assert_eq!(relative_precision(&[0.0; 10], 0.95), None);
        assert_eq!(relative_precision(&[2.0; 10], 0.95), Some(0.0));
        let values: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i)).collect();
        let found = relative_precision(&values, 0.95).unwrap();
        assert!((found - 3.5 / 104.5).abs() < 1e-12, "{found}");
    }
}
