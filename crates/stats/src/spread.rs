//! Owns how far the values of one sample lie apart. It refuses relative measures (such as the coefficient of
//! variation): they need a zero that means something, which the caller knows.

use crate::StatsError;
use crate::centre::{mean, median, quantile_of_sorted};
use crate::sample::{check_at_least, finite_or_overflow, sorted_sample};

/// 1 / Φ⁻¹(3/4): makes the MAD of normal values estimate their standard deviation.
const MAD_TO_SD: f64 = 1.482_602_218_505_602;

/// Standard deviation with n - 1 in the denominator, in the unit of the values.
///
/// # Errors
/// Fewer than two values, a value that is not finite, a sum of squares that overflows.
pub fn sd(values: &[f64]) -> Result<f64, StatsError> {
    let values = check_at_least(values, 2)?;
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    finite_or_overflow((squares / (values.len() - 1) as f64).sqrt())
}

/// Median absolute deviation from the median, unscaled, in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite, a difference that overflows.
pub fn mad(values: &[f64]) -> Result<f64, StatsError> {
    median(&distances_from_median(values)?)
}

/// 1.4826 times the MAD: the standard deviation, were the values normal but for the outliers.
///
/// # Errors
/// As [`mad`].
pub fn robust_sd(values: &[f64]) -> Result<f64, StatsError> {
    finite_or_overflow(mad(values)? * MAD_TO_SD)
}

/// Third minus first quartile (type 7), in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite, a difference that overflows.
pub fn inter_quartile_range(values: &[f64]) -> Result<f64, StatsError> {
    let sorted = sorted_sample(values)?;
    finite_or_overflow(quantile_of_sorted(&sorted, 0.75) - quantile_of_sorted(&sorted, 0.25))
}

/// Distance of each value from the median.
pub(crate) fn distances_from_median(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let centre = median(values)?;
    values.iter().map(|value| finite_or_overflow((value - centre).abs())).collect()
}
