//! Owns the limits inside which one new value of a history should fall. It refuses to judge a trend or a step: a new
//! value outside is a reason to measure again, and `hunter` looks at the series.

use crate::StatsError;
use crate::centre::mean;
use crate::interval::{InferenceMethod, IntervalEstimate};
use crate::sample::{check_at_least, check_sample, logarithms};
use crate::spread::sd;
use crate::student::t_two_sided;
use crate::welch::t_interval;

/// Mean of a history and the interval x̄ ± t s √(1 + 1/n) that holds one more value with the confidence given, were
/// the values independent and normal, in the unit of the values. Source: Hahn and Meeker, Statistical Intervals, 2nd
/// edition, section 4.7.
///
/// # Errors
/// Fewer than two values, one that is not finite, a confidence outside (0, 1), an overflow.
pub fn prediction_interval(history: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    let n = check_at_least(history, 2)?.len() as f64;
    let value = mean(history)?;
    let interval = t_interval(value, sd(history)? * (1.0 + n.recip()).sqrt(), n - 1.0, confidence)?;
    Ok(IntervalEstimate { value, interval: Some(interval), method: InferenceMethod::StudentT })
}

/// The same on logarithms: the geometric mean of a history, and limits that are never negative. For times and rates,
/// whose noise is a percentage.
///
/// # Errors
/// As [`prediction_interval`]; also a value that is not above zero.
pub fn prediction_interval_log(history: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    prediction_interval(&logarithms(history)?, confidence)?.exp()
}

/// Two-sided p-value of one more value, were it from the same normal distribution as the history: that of
/// t = (x - x̄) / (s √(1 + 1/n)) with n - 1 degrees of freedom; at or below α exactly where the value lies outside
/// [`prediction_interval`] at 1 - α. A history without spread gives 1 or 0. Source: as there.
///
/// # Errors
/// As [`prediction_interval`]; also a value that is not finite.
pub fn prediction_p(history: &[f64], value: f64) -> Result<f64, StatsError> {
    let n = check_at_least(history, 2)?.len() as f64;
    check_sample(&[value])?;
    let (distance, spread) = (value - mean(history)?, sd(history)?);
    if spread == 0.0 {
        return Ok(if distance == 0.0 { 1.0 } else { 0.0 });
    }
    Ok(t_two_sided(distance / (spread * (1.0 + n.recip()).sqrt()), n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_one_minus_the_confidence_at_the_limits_of_the_interval() {
        let history = [10.1, 9.9, 10.3, 10.0, 9.8, 10.2];
        for confidence in [0.5, 0.9, 0.95, 0.999] {
            let interval = prediction_interval(&history, confidence).unwrap().interval.unwrap();
            for limit in [interval.low, interval.high] {
                let p = prediction_p(&history, limit).unwrap();
                assert!((p - (1.0 - confidence)).abs() < 1e-9, "{p} {confidence}");
            }
        }
        assert_eq!(prediction_p(&[2.0; 4], 2.0), Ok(1.0));
        assert_eq!(prediction_p(&[2.0; 4], 2.1), Ok(0.0));
        assert!(prediction_p(&history, f64::NAN).is_err());
    }
}
