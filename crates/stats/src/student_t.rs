//! Means by Student's t: one mean, Welch's test, a variance that earlier values help to know, contrasts, the next value.
//!
//! Variances are pooled by [`pooled_t`] only, for whoever has a side of one value. Use it on boot means when boots are few; the Hodges-Lehmann change of `mann_whitney`
//! minds outliers less.
//!
//! - A contrast is a weighted sum of the means of several samples, such as an effect or an interaction of factors.
//! - A ratio of means refuses a baseline that could be zero: its interval would have no ends.
//! - The prediction interval holds one new value of a history. A value outside is a reason to measure again, not yet
//!   a trend or a step.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

use crate::descriptive::{mean, sd};
use crate::error::{StatsError, check_above_zero, check_at_least, check_sample, finite_or_overflow};
use crate::interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate, tail_probability};

/// Result of Welch's test, or of another t-test of two means.
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

/// Student's t-test of equal means, which takes the variance of both sides to be one and the same: a side may then have a
/// single value. The standard error is s √(1/m + 1/n), s² being pooled over m + n - 2 degrees of freedom. Source: Student,
/// "The probable error of a mean", Biometrika 6 (1908); Fisher, Metron 5 (1925).
///
/// # Errors
/// A side without a value, fewer than three values together, one that is not finite, no spread within the sides, an overflow.
pub fn pooled_t(baseline: &[f64], candidate: &[f64]) -> Result<WelchTest, StatsError> {
    let (x, y) = (check_sample(baseline)?, check_sample(candidate)?);
    let (m, n) = (x.len() as f64, y.len() as f64);
    if x.len() + y.len() < 3 {
        return Err(StatsError::TooFew { needed: 3, got: x.len() + y.len() });
    }
    let variance = |values: &[f64]| if values.len() < 2 { Ok(0.0) } else { Ok(sd(values)?.powi(2)) };
    let freedom = m + n - 2.0;
    let shares = ((m - 1.0) / freedom, (n - 1.0) / freedom);
    let pooled = finite_or_overflow(shares.0 * variance(x)? + shares.1 * variance(y)?)?;
    let difference = finite_or_overflow(mean(y)? - mean(x)?)?;
    if pooled == 0.0 {
        return Err(StatsError::NoSpread);
    }
    let standard_error = finite_or_overflow((pooled * (m.recip() + n.recip())).sqrt())?;
    let t = difference / standard_error;
    Ok(WelchTest { difference, standard_error, t, freedom, p: t_two_sided(t, freedom) })
}

/// A variance that is known from other values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownVariance {
    /// In the unit squared.
    pub variance: f64,
    /// Degrees of freedom of it.
    pub freedom: f64,
}

/// Below this p-value both sides scatter more than the known variance explains. A preliminary test at a quarter (Bancroft, Annals of
/// Mathematical Statistics 15, 1944) leaves a coverage of 91 % where the true standard deviation is twice the known one, at a half 95 %:
/// two or three values a side can hardly refuse anything.
const PRELIMINARY_LEVEL: f64 = 0.5;

/// [`pooled_t`] with a variance that pools that of both sides with a known one, each by its degrees of freedom; nothing where both
/// sides scatter more than half of samples would under the known variance (F), which may then be another one. So coverage holds
/// whatever the true variance is, and a side of two values has more than one degree of freedom where it resembles what is known.
///
/// # Errors
/// As [`pooled_t`]; a known variance or degrees of freedom that are not above zero.
pub fn pooled_t_with_variance(
    baseline: &[f64],
    candidate: &[f64],
    known: KnownVariance,
) -> Result<Option<WelchTest>, StatsError> {
    let variance = check_above_zero("known variance", known.variance)?;
    let known_freedom = check_above_zero("degrees of freedom", known.freedom)?;
    let (m, n) = (check_at_least(baseline, 2)?.len() as f64, check_at_least(candidate, 2)?.len() as f64);
    let own_freedom = m + n - 2.0;
    let squares = (m - 1.0) * sd(baseline)?.powi(2) + (n - 1.0) * sd(candidate)?.powi(2);
    let ratio = finite_or_overflow(squares / own_freedom / variance)?;
    let p = FisherSnedecor::new(own_freedom, known_freedom).map_or(0.0, |law| law.sf(ratio));
    if p < PRELIMINARY_LEVEL {
        return Ok(None);
    }
    let freedom = own_freedom + known_freedom;
    let pooled = finite_or_overflow(squares / freedom + variance * (known_freedom / freedom))?;
    let difference = finite_or_overflow(mean(candidate)? - mean(baseline)?)?;
    let standard_error = finite_or_overflow((pooled * (m.recip() + n.recip())).sqrt())?;
    let t = difference / standard_error;
    Ok(Some(WelchTest { difference, standard_error, t, freedom, p: t_two_sided(t, freedom) }))
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

/// With more degrees of freedom t is the normal distribution to five digits, and the search for a quantile of t takes minutes.
const NORMAL_FREEDOM: f64 = 1e6;

/// The t that leaves `tail` above it, for a tail in (0, 1); infinite where the freedom is no number above zero.
pub(crate) fn t_quantile_above(tail: f64, freedom: f64) -> f64 {
    if freedom > NORMAL_FREEDOM {
        return -Normal::standard().inverse_cdf(tail);
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| -student.inverse_cdf(tail))
}

/// P(T > t); 1/2 where t is no number, or the freedom none above zero.
pub(crate) fn t_tail_above(t: f64, freedom: f64) -> f64 {
    // Beyond this the square of t is no number, and that of a t which is none says nothing.
    const FARTHEST: f64 = 1e150;
    if t.is_nan() || freedom.is_nan() {
        return 0.5;
    }
    if t.abs() > FARTHEST {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    if freedom.is_infinite() {
        return Normal::standard().sf(t);
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(0.5, |student| student.sf(t))
}

/// Both tails beyond ± t, at most 1.
pub(crate) fn t_two_sided(t: f64, freedom: f64) -> f64 {
    (2.0 * t_tail_above(t.abs(), freedom)).min(1.0)
}

/// Σ wᵢ x̄ᵢ with its standard error √(Σ wᵢ² sᵢ²/nᵢ) and the degrees of freedom of Satterthwaite, (Σ vᵢ)² / Σ vᵢ²/(nᵢ - 1) with
/// vᵢ = wᵢ² sᵢ²/nᵢ; two samples with the weights -1 and 1 are Welch's test. Source: Satterthwaite, Biometrics Bulletin 2
/// (1946); Brown and Forsythe, "The ANOVA and multiple comparisons for data with heterogeneous variances", Biometrics 30
/// (1974). In the unit of the values.
///
/// # Errors
/// No sample, one with fewer than two values, a value or a weight that is not finite, no spread in any, an overflow.
pub fn mean_contrast(weighted: &[(f64, &[f64])]) -> Result<WelchTest, StatsError> {
    let (mut difference, mut variance, mut squares) = (0.0, 0.0, 0.0);
    for (weight, values) in weighted {
        let n = check_at_least(values, 2)?.len() as f64;
        let part = finite_or_overflow(weight * weight * sd(values)?.powi(2) / n)?;
        difference += finite_or_overflow(*weight)? * mean(values)?;
        variance += part;
        squares += part * part / (n - 1.0);
    }
    if weighted.is_empty() {
        return Err(StatsError::Empty);
    }
    if variance <= 0.0 {
        return Err(StatsError::NoSpread);
    }
    let (standard_error, freedom) = (variance.sqrt(), finite_or_overflow(variance * variance / squares)?);
    let t = difference / standard_error;
    Ok(WelchTest {
        difference: finite_or_overflow(difference)?,
        standard_error,
        t,
        freedom,
        p: t_two_sided(t, freedom),
    })
}

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

    const A: [f64; 5] = [10.0, 11.0, 9.5, 10.5, 10.2];

    const B: [f64; 4] = [12.0, 12.5, 11.0, 12.2];

    const C: [f64; 5] = [20.0, 21.5, 19.0, 20.5, 20.1];

    /// R 4.3: qt(0.975, 1e5), and qnorm(0.975).
    #[test]
    fn quantiles_of_much_freedom_are_found() {
        assert!((t_quantile_above(0.025, 1e5) - 1.959_988).abs() < 1e-5);
        assert!((t_quantile_above(0.025, 1e9) - 1.959_964).abs() < 1e-6);
    }

    #[test]
    fn a_statistic_that_is_no_number_is_no_evidence() {
        for (t, freedom) in [(f64::NAN, 3.0), (1.0, f64::NAN), (f64::NAN, f64::INFINITY)] {
            assert_eq!(t_two_sided(t, freedom), 1.0);
        }
        for freedom in [1.0, 3.0, 1e9, f64::INFINITY] {
            assert_eq!((t_tail_above(1e200, freedom), t_tail_above(-1e200, freedom)), (0.0, 1.0));
        }
        assert!((t_two_sided(1.959_964, f64::INFINITY) - 0.05).abs() < 1e-7);
    }

    #[test]
    fn two_samples_are_welchs_test() {
        let (ours, theirs) = (mean_contrast(&[(-1.0, &A), (1.0, &B)]).unwrap(), welch(&A, &B).unwrap());
        for (ours, theirs) in [(ours.t, theirs.t), (ours.freedom, theirs.freedom), (ours.p, theirs.p)] {
            assert!((ours - theirs).abs() < 1e-12 * theirs.abs().max(1.0), "{ours} {theirs}");
        }
    }

    #[test]
    fn an_interaction_of_additive_effects_is_zero() {
        let shifted: Vec<f64> = B.iter().map(|value| value + 5.0).collect();
        let base: Vec<f64> = A.iter().map(|value| value + 5.0).collect();
        let found = mean_contrast(&[(1.0, &shifted), (-1.0, &base), (-1.0, &B), (1.0, &A)]).unwrap();
        assert!(found.difference.abs() < 1e-12 && found.p > 0.99);
        assert!(found.interval(0.95).unwrap().low < 0.0);
    }

    #[test]
    fn the_weights_scale_the_result() {
        let (one, three) = (mean_contrast(&[(1.0, &C)]).unwrap(), mean_contrast(&[(3.0, &C)]).unwrap());
        assert!((three.difference - 3.0 * one.difference).abs() < 1e-12);
        assert!((three.t - one.t).abs() < 1e-12);
    }

    #[test]
    fn bad_input_is_told() {
        assert_eq!(mean_contrast(&[]), Err(StatsError::Empty));
        assert!(matches!(mean_contrast(&[(1.0, &[1.0])]), Err(StatsError::TooFew { .. })));
        assert_eq!(mean_contrast(&[(1.0, &[1.0, 1.0])]), Err(StatsError::NoSpread));
        assert!(mean_contrast(&[(f64::NAN, &A)]).is_err());
    }

    /// 1, 3 against 6, 8: variances of 2, with 2 degrees of freedom. With a known one of 5 on 8: (2 · 2 + 8 · 5) / 10 = 4.4, error
    /// √4.4, t = 5 / √4.4 = 2.3837 with 10 degrees of freedom, between the table's 2.228 at 0.05 and 2.764 at 0.02.
    #[test]
    fn a_known_variance_is_pooled_where_the_sides_scatter_no_more() {
        let known = |variance: f64| KnownVariance { variance, freedom: 8.0 };
        let found = pooled_t_with_variance(&[1.0, 3.0], &[6.0, 8.0], known(5.0)).unwrap().unwrap();
        assert_eq!((found.difference, found.freedom), (5.0, 10.0));
        assert!((found.t - 5.0 / 4.4_f64.sqrt()).abs() < 1e-12 && found.p < 0.05 && found.p > 0.02);
        // F of (2, 8) has its median at (2^(1/4) - 1) · 4 = 0.7568: 2 over 2.6 is more than that, over 2.7 less.
        assert_eq!(pooled_t_with_variance(&[1.0, 3.0], &[6.0, 8.0], known(2.6)), Ok(None));
        assert!(pooled_t_with_variance(&[1.0, 3.0], &[6.0, 8.0], known(2.7)).unwrap().is_some());
        assert!(pooled_t_with_variance(&[1.0], &[6.0, 8.0], known(5.0)).is_err());
        assert!(pooled_t_with_variance(&[1.0, 3.0], &[6.0, 8.0], known(0.0)).is_err());
    }

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
