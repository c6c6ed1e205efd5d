//! Owns the middle and the quantiles of one sample. It refuses tails that the sample cannot know: a quantile
//! is interpolated between values that were seen, never beyond them.

use crate::StatsError;
use crate::sample::{check_open_fraction, check_sample, finite_or_overflow, logarithms, sorted_sample};

/// Arithmetic mean, in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite, a sum that overflows.
pub fn mean(values: &[f64]) -> Result<f64, StatsError> {
    let values = check_sample(values)?;
    finite_or_overflow(values.iter().sum::<f64>() / values.len() as f64)
}

/// Middle value, or the midpoint of the two middle ones, in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite.
pub fn median(values: &[f64]) -> Result<f64, StatsError> {
    let mut values = check_sample(values)?.to_vec();
    let (middle, even) = (values.len() / 2, values.len() % 2 == 0);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| even);
    Ok(lower.map_or(*upper, |lower| lower.midpoint(*upper)))
}

/// Quantile at `fraction` in [0, 1], in the unit of the values: type 7 of Hyndman and Fan, "Sample Quantiles
/// in Statistical Packages", The American Statistician 50 (1996), linear between the order statistics around
/// (n - 1) * fraction; the default of R and `NumPy`.
///
/// # Errors
/// An empty sample, a value that is not finite, a fraction outside [0, 1].
pub fn quantile(values: &[f64], fraction: f64) -> Result<f64, StatsError> {
    if fraction != 0.0 && fraction != 1.0 {
        check_open_fraction("quantile", fraction)?;
    }
    finite_or_overflow(quantile_of_sorted(&sorted_sample(values)?, fraction))
}

/// Geometric mean, exp of the mean logarithm: the mean for ratios, in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite or not above zero.
pub fn geometric_mean(values: &[f64]) -> Result<f64, StatsError> {
    mean(&logarithms(values)?).map(f64::exp)
}

/// Median of values in ascending order; the caller has made sure that there is one.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { sorted[middle - 1].midpoint(sorted[middle]) }
}

/// Type 7 quantile of values in ascending order; the caller has made sure that there is one.
pub(crate) fn quantile_of_sorted(sorted: &[f64], fraction: f64) -> f64 {
    let position = (sorted.len() - 1) as f64 * fraction;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + position.fract() * (sorted[above] - sorted[below])
}
