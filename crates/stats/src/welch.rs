//! Owns means compared by Student's t: Welch's test of two independent samples, and the interval of one mean. It
//! refuses to pool the variances. Use it on boot means when boots are few; `hodges_lehmann` minds outliers less.

use crate::StatsError;
use crate::centre::mean;
use crate::interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate, tail_probability};
use crate::sample::{check_at_least, finite_or_overflow, logarithms};
use crate::spread::sd;
use crate::student::{t_quantile_above, t_two_sided};

/// Result of Welch's test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WelchTest {
    /// Mean of the candidate minus mean of the baseline, in the unit of the values.
    pub difference: f64,
    /// Standard error of the difference, √(s_x²/m + s_y²/n), in the unit of the values.
    pub standard_error: f64,
    /// The difference in standard errors.
    pub t: f64,
    /// Degrees of freedom after Welch and Satterthwaite; no integer.
    pub freedom: f64,
    /// Two-sided p-value.
    pub p: f64,
}

impl WelchTest {
    /// Interval of the difference at a confidence such as 0.95, in the unit of the values.
    ///
    /// # Errors
    /// A confidence outside (0, 1), limits that overflow.
    pub fn interval(&self, confidence: f64) -> Result<ConfidenceInterval, StatsError> {
        t_interval(self.difference, self.standard_error, self.freedom, confidence)
    }
}

/// Welch's t-test of equal means. Source: Welch, "The generalization of Student's problem when several different
/// population variances are involved", Biometrika 34 (1947); Satterthwaite, Biometrics Bulletin 2 (1946).
///
/// # Errors
/// Fewer than two values on a side, a value that is not finite, no spread on either side, an overflow.
pub fn welch(baseline: &[f64], candidate: &[f64]) -> Result<WelchTest, StatsError> {
    welch_of_moments(SampleMoments::from_values(baseline)?, SampleMoments::from_values(candidate)?)
}

/// What Welch's test needs of a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleMoments {
    /// Number of values, at least 2.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their variance, in the unit squared: that of the values, or a larger one that the caller can defend.
    pub variance: f64,
}

impl SampleMoments {
    /// Those of values.
    ///
    /// # Errors
    /// Fewer than two values, a value that is not finite.
    pub fn from_values(values: &[f64]) -> Result<Self, StatsError> {
        let values = check_at_least(values, 2)?;
        Ok(SampleMoments { n: values.len(), mean: mean(values)?, variance: sd(values)?.powi(2) })
    }
}

/// [`welch`] of sides that are known by their moments.
///
/// # Errors
/// Fewer than two values on a side, a moment that is not finite, no variance on either side, an overflow.
pub fn welch_of_moments(baseline: SampleMoments, candidate: SampleMoments) -> Result<WelchTest, StatsError> {
    let few = baseline.n.min(candidate.n);
    if few < 2 {
        return Err(StatsError::TooFew { needed: 2, got: few });
    }
    let (m, n) = (baseline.n as f64, candidate.n as f64);
    let (v, w) = (finite_or_overflow(baseline.variance)? / m, finite_or_overflow(candidate.variance)? / n);
    let difference = finite_or_overflow(candidate.mean - baseline.mean)?;
    if v + w == 0.0 {
        return Err(StatsError::NoSpread);
    }
    // Shares of the variance, so that the squares neither overflow nor vanish.
    let (a, b) = (v / (v + w), w / (v + w));
    let freedom = finite_or_overflow((a * a / (m - 1.0) + b * b / (n - 1.0)).recip())?;
    let standard_error = finite_or_overflow((v + w).sqrt())?;
    let t = difference / standard_error;
    Ok(WelchTest { difference, standard_error, t, freedom, p: t_two_sided(t, freedom) })
}

/// Difference of means candidate - baseline with [`WelchTest`]'s interval, in the unit of the values.
///
/// # Errors
/// As [`welch`]; also a confidence outside (0, 1).
pub fn welch_shift(
    baseline: &[f64],
    candidate: &[f64],
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    tail_probability(confidence)?;
    let found = welch(baseline, candidate)?;
    let interval = Some(found.interval(confidence)?);
    Ok(IntervalEstimate { value: found.difference, interval, method: InferenceMethod::StudentT })
}

/// Ratio of geometric means candidate / baseline, with [`WelchTest`]'s interval of the difference of mean logarithms. For
/// arithmetic means see [`crate::fieller`].
///
/// # Errors
/// As [`welch_shift`]; also a value that is not above zero.
pub fn welch_ratio(
    baseline: &[f64],
    candidate: &[f64],
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    welch_shift(&logarithms(baseline)?, &logarithms(candidate)?, confidence)?.exp()
}

/// Mean with its interval x̄ ± t s/√n, in the unit of the values. Over boot means this is the interval of Kalibera and
/// Jones (ISMM 2013, section 7); over differences or log ratios of pairs it is the paired t-test.
///
/// # Errors
/// Fewer than two values, one that is not finite, a confidence outside (0, 1), an overflow.
pub fn mean_with_interval(values: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    let n = check_at_least(values, 2)?.len() as f64;
    let value = mean(values)?;
    let interval = Some(t_interval(value, sd(values)? / n.sqrt(), n - 1.0, confidence)?);
    Ok(IntervalEstimate { value, interval, method: InferenceMethod::StudentT })
}

/// value ± t · error.
pub(crate) fn t_interval(
    value: f64,
    error: f64,
    freedom: f64,
    confidence: f64,
) -> Result<ConfidenceInterval, StatsError> {
    let reach = t_quantile_above(tail_probability(confidence)?, freedom) * error;
    Ok(ConfidenceInterval {
        low: finite_or_overflow(value - reach)?,
        high: finite_or_overflow(value + reach)?,
        level: confidence,
    })
}
