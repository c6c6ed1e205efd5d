//! Owns the limits inside which one new value of a history should fall. It refuses to judge a trend or a step: a new
//! value outside is a reason to measure again, and `hunter` looks at the series.

use crate::StatsError;
use crate::centre::mean;
use crate::interval::{Estimate, Method};
use crate::sample::{at_least, logarithms};
use crate::spread::sd;
use crate::welch::around;

/// Mean of a history and the interval x̄ ± t s √(1 + 1/n) that holds one more value with the confidence given, were
/// the values independent and normal, in the unit of the values. Source: Hahn and Meeker, Statistical Intervals, 2nd
/// edition, section 4.7.
///
/// # Errors
/// Fewer than two values, one that is not finite, a confidence outside (0, 1), an overflow.
pub fn prediction_interval(history: &[f64], confidence: f64) -> Result<Estimate, StatsError> {
    let n = at_least(history, 2)?.len() as f64;
    let value = mean(history)?;
    let interval = around(value, sd(history)? * (1.0 + n.recip()).sqrt(), n - 1.0, confidence)?;
    Ok(Estimate { value, interval: Some(interval), method: Method::StudentT })
}

/// The same on logarithms: the geometric mean of a history, and limits that are never negative. For times and rates,
/// whose noise is a percentage.
///
/// # Errors
/// As [`prediction_interval`]; also a value that is not above zero.
pub fn prediction_interval_log(history: &[f64], confidence: f64) -> Result<Estimate, StatsError> {
    prediction_interval(&logarithms(history)?, confidence)?.exp()
}
