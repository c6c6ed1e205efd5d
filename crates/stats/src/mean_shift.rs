//! How the mean of a candidate relates to that of a baseline: their difference, or the logarithm of their ratio.
//!
//! The ratio is of the means as they are, not of logarithms: what a total costs. Its error is the first-order one (delta
//! method; Kendall and Stuart, The Advanced Theory of Statistics, volume 1, section 10.5), with values taken in units of their
//! mean. The interval is symmetric on the scale of logarithms, so that it inverts the test.

use crate::descriptive::{mean, sd};
use crate::error::{StatsError, check_above_zero, check_paired, check_sample, finite_or_overflow};
use crate::student_t::{SampleMoments, WelchTest, pooled_t, t_two_sided, welch_of_moments};

/// What is taken of both means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeanScale {
    /// candidate - baseline
    Difference,
    /// ln(candidate / baseline), of means above zero
    LogRatio,
}

impl MeanScale {
    /// A sample in the unit of its errors, and its mean on the scale.
    fn units_of(self, values: &[f64]) -> Result<(Vec<f64>, f64), StatsError> {
        let centre = mean(check_sample(values)?)?;
        match self {
            MeanScale::Difference => Ok((values.to_vec(), centre)),
            MeanScale::LogRatio => {
                let centre = check_above_zero("mean", centre)?;
                Ok((values.iter().map(|value| value / centre).collect(), centre.ln()))
            }
        }
    }
}

/// Welch's t-test of two means on a scale.
///
/// # Errors
/// Fewer than two values on a side, a value that is not finite, no spread on either side, on [`MeanScale::LogRatio`] a mean that
/// is not above zero, an overflow.
pub fn mean_shift(baseline: &[f64], candidate: &[f64], scale: MeanScale) -> Result<WelchTest, StatsError> {
    let ((x, from), (y, to)) = (scale.units_of(baseline)?, scale.units_of(candidate)?);
    let found = welch_of_moments(SampleMoments::from_values(&x)?, SampleMoments::from_values(&y)?)?;
    found.at(to - from)
}

/// The same by Student's test with one variance of both sides, one of which may have a single value.
///
/// # Errors
/// As [`mean_shift`], with three values together.
pub fn pooled_mean_shift(
    baseline: &[f64],
    candidate: &[f64],
    scale: MeanScale,
) -> Result<WelchTest, StatsError> {
    let ((x, from), (y, to)) = (scale.units_of(baseline)?, scale.units_of(candidate)?);
    pooled_t(&x, &y)?.at(to - from)
}

/// The same of pairs: the error is that of their differences, with n - 1 degrees of freedom.
///
/// # Errors
/// As [`mean_shift`]; samples of different length.
pub fn paired_mean_shift(
    baseline: &[f64],
    candidate: &[f64],
    scale: MeanScale,
) -> Result<WelchTest, StatsError> {
    check_paired(baseline, candidate)?;
    let ((x, from), (y, to)) = (scale.units_of(baseline)?, scale.units_of(candidate)?);
    let differences: Vec<f64> = y.iter().zip(&x).map(|(y, x)| y - x).collect();
    let n = differences.len() as f64;
    let standard_error = finite_or_overflow(sd(&differences)? / n.sqrt())?;
    if standard_error == 0.0 {
        return Err(StatsError::NoSpread);
    }
    WelchTest { difference: 0.0, standard_error, t: 0.0, freedom: n - 1.0, p: 1.0 }.at(to - from)
}

impl WelchTest {
    /// The same error around another difference.
    fn at(self, difference: f64) -> Result<Self, StatsError> {
        let t = finite_or_overflow(difference)? / self.standard_error;
        Ok(WelchTest { difference, t, p: t_two_sided(t, self.freedom), ..self })
    }

    /// The test with an error so many times as large, known from so few degrees of freedom at most.
    #[must_use]
    pub fn widened(self, widening: f64, freedom: f64) -> Self {
        let (standard_error, freedom) = (self.standard_error * widening, self.freedom.min(freedom));
        let t = self.difference / standard_error;
        WelchTest { standard_error, t, freedom, p: t_two_sided(t, freedom), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student_t::welch;

    const A: [f64; 5] = [10.0, 11.0, 9.5, 10.5, 10.2];
    const B: [f64; 5] = [12.0, 12.5, 11.0, 12.2, 12.9];

    #[test]
    fn differences_are_welchs_and_ratios_those_of_the_means() {
        let (plain, ours) = (welch(&A, &B).unwrap(), mean_shift(&A, &B, MeanScale::Difference).unwrap());
        assert!((plain.difference - ours.difference).abs() < 1e-12 && (plain.p - ours.p).abs() < 1e-12);
        let ratio = mean_shift(&A, &B, MeanScale::LogRatio).unwrap();
        assert!((ratio.difference.exp() - mean(&B).unwrap() / mean(&A).unwrap()).abs() < 1e-12);
        // Delta method by hand: (s/mean)² / n of both sides.
        let share = |values: &[f64]| (sd(values).unwrap() / mean(values).unwrap()).powi(2) / 5.0;
        assert!((ratio.standard_error - (share(&A) + share(&B)).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn the_interval_inverts_the_test() {
        for found in [
            mean_shift(&A, &B, MeanScale::LogRatio).unwrap(),
            paired_mean_shift(&A, &B, MeanScale::LogRatio).unwrap(),
            pooled_mean_shift(&A[..1], &B, MeanScale::LogRatio).unwrap().widened(1.7, 3.0),
        ] {
            let interval = found.interval(1.0 - found.p).unwrap();
            assert!(interval.low.abs() < 1e-6 || interval.high.abs() < 1e-6, "{found:?} {interval:?}");
        }
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(mean_shift(&[-1.0, 0.5], &B, MeanScale::LogRatio).is_err());
        assert_eq!(paired_mean_shift(&A, &A, MeanScale::Difference), Err(StatsError::NoSpread));
        assert!(paired_mean_shift(&A, &B[..4], MeanScale::Difference).is_err());
        assert!(mean_shift(&[], &B, MeanScale::Difference).is_err());
    }
}
