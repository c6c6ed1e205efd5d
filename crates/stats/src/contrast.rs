//! Owns a weighted sum of the means of several samples, such as an effect or an interaction of factors. It refuses to choose
//! the weights and to pool the variances.

use crate::StatsError;
use crate::centre::mean;
use crate::sample::{check_at_least, finite_or_overflow};
use crate::spread::sd;
use crate::student::t_two_sided;
use crate::welch::WelchTest;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::welch::welch;

    const A: [f64; 5] = [10.0, 11.0, 9.5, 10.5, 10.2];
    const B: [f64; 4] = [12.0, 12.5, 11.0, 12.2];
    const C: [f64; 5] = [20.0, 21.5, 19.0, 20.5, 20.1];

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
}
