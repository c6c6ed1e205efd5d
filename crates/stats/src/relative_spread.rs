//! Owns spread as a fraction of the middle. It refuses values whose middle is not above zero: a relative measure needs
//! a zero that means something.

use crate::StatsError;
use crate::centre::{mean, quantile_of_sorted};
use crate::sample::{check_above_zero, finite_or_overflow, sorted_sample};
use crate::spread::sd;

/// Coefficient of variation, standard deviation over mean, a fraction without unit. A secondary number: one outlier
/// moves it as it likes; [`quartile_coefficient`] does not mind.
///
/// # Errors
/// Fewer than two values, one that is not finite, a mean that is not above zero, an overflow.
pub fn coefficient_of_variation(values: &[f64]) -> Result<f64, StatsError> {
    let sd = sd(values)?;
    finite_or_overflow(sd / check_above_zero("mean", mean(values)?)?)
}

/// Quartile coefficient of dispersion (Q3 - Q1) / (Q3 + Q1), a fraction without unit, with type 7 quartiles. Source:
/// Bonett, "Confidence interval for a coefficient of quartile variation", Computational Statistics & Data Analysis 50
/// (2006).
///
/// # Errors
/// An empty sample, a value that is not finite, quartiles whose sum is not above zero, an overflow.
pub fn quartile_coefficient(values: &[f64]) -> Result<f64, StatsError> {
    let sorted = sorted_sample(values)?;
    let [low, high] = [0.25, 0.75].map(|fraction| quantile_of_sorted(&sorted, fraction));
    finite_or_overflow((high - low) / check_above_zero("sum of the quartiles", high + low)?)
}
