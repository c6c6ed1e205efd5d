//! Owns the interval of a ratio of two arithmetic means. It refuses a baseline that could be zero: its interval would
//! have no ends.

use crate::StatsError;
use crate::centre::mean;
use crate::interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate, tail_probability};
use crate::sample::{check_above_zero, check_at_least, finite_or_overflow};
use crate::spread::sd;
use crate::student::t_quantile_above;

/// A mean and what is known of its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UncertainMean {
    /// The mean, in the unit of the values.
    pub mean: f64,
    /// Its standard error, in the same unit: s/√n, over boot means where there are boots.
    pub standard_error: f64,
    /// Degrees of freedom of that error: n - 1.
    pub freedom: f64,
}

impl UncertainMean {
    /// Of independent values, such as the means of boots.
    ///
    /// # Errors
    /// Fewer than two values, one that is not finite, an overflow.
    pub fn from_values(values: &[f64]) -> Result<Self, StatsError> {
        let n = check_at_least(values, 2)?.len() as f64;
        Ok(Self { mean: mean(values)?, standard_error: sd(values)? / n.sqrt(), freedom: n - 1.0 })
    }

    fn check(self) -> Result<Self, StatsError> {
        if !self.mean.is_finite() {
            return Err(StatsError::OutOfRange { name: "mean", value: self.mean, range: "finite numbers" });
        }
        if self.standard_error != 0.0 {
            check_above_zero("standard error", self.standard_error)?;
        }
        check_above_zero("degrees of freedom", self.freedom).map(|_| self)
    }
}

/// Ratio of means candidate / baseline with Fieller's interval
/// (XY ∓ √((XY)² - (X² - h²)(Y² - g²))) / (X² - h²), where h and g are t times the standard errors of the means X and Y,
/// with t at the smaller of both degrees of freedom. Source: Fieller, "Some problems in interval estimation", JRSS B 16
/// (1954); Kalibera and Jones, "Quantifying performance changes with effect size confidence intervals", section 7
/// (arXiv 2007.10899). Without an interval where X² ≤ h²: the baseline cannot be told from zero.
///
/// # Errors
/// A mean or an error that is not a finite number, an error below zero, degrees of freedom or a baseline that are zero,
/// a confidence outside (0, 1), an overflow.
pub fn ratio_of_means(
    baseline: UncertainMean,
    candidate: UncertainMean,
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    let (x, y) = (baseline.check()?, candidate.check()?);
    if x.mean == 0.0 {
        return Err(StatsError::OutOfRange { name: "baseline mean", value: 0.0, range: "numbers but zero" });
    }
    let t = t_quantile_above(tail_probability(confidence)?, x.freedom.min(y.freedom));
    let value = finite_or_overflow(y.mean / x.mean)?;
    // In units of the baseline, so that no square overflows: X = 1.
    let (h, g) = (t * x.standard_error / x.mean, t * y.standard_error / x.mean);
    let (h, g) = (h * h, g * g);
    let interval = if h < 1.0 { Some(fieller_limits(value, h, g, confidence)?) } else { None };
    Ok(IntervalEstimate { value, interval, method: InferenceMethod::StudentT })
}

/// With X = 1, the term below the root is Y²h² + g² - g²h², which cannot be negative while h² < 1.
fn fieller_limits(ratio: f64, h: f64, g: f64, level: f64) -> Result<ConfidenceInterval, StatsError> {
    let reach = (ratio * ratio * h + g * (1.0 - h)).sqrt();
    let [low, high] = [ratio - reach, ratio + reach].map(|limit| limit / (1.0 - h));
    Ok(ConfidenceInterval { low: finite_or_overflow(low)?, high: finite_or_overflow(high)?, level })
}
