//! Values that depend on those before them: how much, what that does to an interval, and the noise between successive values.
//!
//! Intervals and tests of independent values are too narrow where neighbours resemble one another, as iterations that follow
//! one another in one run do.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::descriptive::{mad, median, sd};
use crate::error::{StatsError, check_at_least, check_open_fraction, finite_or_overflow};
use crate::interval::{ConfidenceInterval, tail_probability};
use crate::student_t::{t_interval, t_quantile_above, t_tail_above};

/// Deviations count up to so many robust standard deviations: one outlier must not hide that its neighbours resemble
/// one another.
const FARTHEST: f64 = 3.0;

/// 1.4826 times the median absolute deviation is the standard deviation of a normal sample.
const NORMAL_MAD: f64 = 1.482_602_218_505_602;

/// No estimate is higher: beyond it a series has no variance to speak of.
const HIGHEST: f64 = 0.95;

/// How much values resemble those before them, as a process of first order (AR(1)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SerialDependence {
    /// Lag-one autocorrelation, without the bias that few values bring: E r = ρ - (1 + 3ρ) / n. Source: Kendall, "Note on bias
    /// in the estimation of autocorrelation", Biometrika 41 (1954).
    pub autocorrelation: f64,
    /// One standard error higher, at least 0: what an interval should allow for. Source of the error, √((1 - ρ²) / n): Bartlett,
    /// "On the theoretical specification and sampling properties of autocorrelated time-series", JRSS Supplement 8 (1946).
    pub upper: f64,
}

impl SerialDependence {
    /// That of runs, each in time order around a middle of its own; 0 where no run has three values that vary.
    ///
    /// # Errors
    /// A value that is not finite.
    pub fn from_runs(runs: &[&[f64]]) -> Result<Self, StatsError> {
        let (mut products, mut squares, mut values, mut used) = (0.0, 0.0, 0_usize, 0_usize);
        for run in runs.iter().filter(|run| run.len() >= 3) {
            let deviations = bounded_deviations(check_at_least(run, 3)?)?;
            let energy: f64 = deviations.iter().map(|deviation| deviation * deviation).sum();
            if energy == 0.0 {
                continue;
            }
            squares += energy;
            products += deviations.windows(2).map(|pair| pair.iter().product::<f64>()).sum::<f64>();
            (values, used) = (values + run.len(), used + 1);
        }
        if squares == 0.0 {
            return Ok(SerialDependence { autocorrelation: 0.0, upper: 0.0 });
        }
        let (n, a_run) = (values as f64, values as f64 / used as f64);
        let found = products / squares;
        // Of three values or fewer the bias says nothing.
        let unbiased = if a_run > 3.0 { (found + a_run.recip()) / (1.0 - 3.0 / a_run) } else { found };
        let autocorrelation = unbiased.clamp(-1.0, HIGHEST);
        let error = ((1.0 - autocorrelation * autocorrelation).max(0.1) / n).sqrt();
        Ok(SerialDependence { autocorrelation, upper: (autocorrelation + error).clamp(0.0, HIGHEST) })
    }

    /// By how much the interval of a mean of `n` such values is wider than what their own spread says of independent ones, at
    /// least 1: √(v / (1 - (v - 1) / (n - 1))), v being the factor of the mean's variance, 1 + 2 Σ (1 - k/n) ρᵏ for k from 1 to
    /// n - 1, and the denominator what the sample's variance lacks. ρ is [`upper`](SerialDependence::upper). Source: Box, Jenkins
    /// and Reinsel, Time Series Analysis, section 2.1; Anderson, The Statistical Analysis of Time Series (1971), section 8.2.
    #[must_use]
    pub fn widening(&self, n: usize) -> f64 {
        if n < 2 {
            return 1.0;
        }
        let (rho, values) = (self.upper, n as f64);
        let variance = (1.0 + rho) / (1.0 - rho)
            - 2.0 * rho * (1.0 - rho.powi(i32::try_from(n).unwrap_or(i32::MAX)))
                / (values * (1.0 - rho).powi(2));
        let left = (1.0 - (variance - 1.0) / (values - 1.0)).max(SMALLEST_LEFT);
        (variance / left).sqrt().max(1.0)
    }
}

/// Degrees of freedom that so many dependent values of both sides are worth, two means being estimated; 1 at least.
#[must_use]
pub fn dependent_freedom(values: usize, widening: f64) -> f64 {
    (values as f64 / (widening * widening) - 2.0).max(1.0)
}

/// The estimate of a shift whose interval is that of independent values, and what it says of dependent ones: the standard error is
/// read from the distance to an exact limit, each limit lies further off by [`factor`](Self::factor), and [`p`](Self::p) is the
/// test that such a limit inverts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DependentShift {
    /// The estimate.
    pub shift: f64,
    /// Standard errors of dependent values are so many times those of independent ones; see [`SerialDependence::widening`].
    pub widening: f64,
    /// What the values are worth; see [`dependent_freedom`].
    pub freedom: f64,
}

impl DependentShift {
    /// How many times as far off a limit lies at a confidence as that of independent values, which few values allow at a higher
    /// level only: the widening, and Student's quantile over the normal one, since the error is known from few values. At least 1.
    ///
    /// # Errors
    /// A level or a confidence outside (0, 1).
    pub fn factor(self, level: f64, confidence: f64) -> Result<f64, StatsError> {
        let (exact, tail) = (tail_probability(level.min(HIGHEST_LEVEL))?, tail_probability(confidence)?);
        let factor =
            self.widening * t_quantile_above(tail, self.freedom) / -Normal::standard().inverse_cdf(exact);
        Ok(factor.max(1.0))
    }

    /// Two-sided p-value of "no shift": Student's t of the estimate in standard errors, each read from the distance to the limit
    /// on the side of zero. At or below 1 - confidence wherever the widened interval excludes zero.
    ///
    /// # Errors
    /// A level outside (0, 1).
    pub fn p(self, independent: ConfidenceInterval) -> Result<f64, StatsError> {
        if self.shift == 0.0 {
            return Ok(1.0);
        }
        let towards =
            if self.shift > 0.0 { self.shift - independent.low } else { independent.high - self.shift };
        let reach = -Normal::standard().inverse_cdf(tail_probability(independent.level.min(HIGHEST_LEVEL))?);
        let error = towards.max(0.0) / reach * self.widening;
        Ok((2.0 * t_tail_above(self.shift.abs() / error, self.freedom)).min(1.0))
    }
}

/// An exact interval of few values may have a level of 1 in floating point.
const HIGHEST_LEVEL: f64 = 0.999_999;

/// The least of its variance that a short sample is believed to show.
const SMALLEST_LEFT: f64 = 0.2;

/// Deviations from the median in robust standard deviations, bounded, around 0.
fn bounded_deviations(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let (centre, robust) = (median(values)?, mad(values)? * NORMAL_MAD);
    let scale = if robust > 0.0 { robust } else { sd(values)? };
    if scale == 0.0 {
        return Ok(vec![0.0; values.len()]);
    }
    let bounded: Vec<f64> =
        values.iter().map(|value| ((value - centre) / scale).clamp(-FARTHEST, FARTHEST)).collect();
    let middle = bounded.iter().sum::<f64>() / bounded.len() as f64;
    Ok(bounded.into_iter().map(|deviation| deviation - middle).collect())
}

/// Noise from one value to the next, which slow changes of the level hardly raise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuccessiveDifferences {
    /// Mean square of the differences, in the unit squared: the variance of a difference of two values.
    pub mean_square: f64,
    /// Degrees of freedom of it, 2m² / (3m - 1) for m differences of independent values. Source: von Neumann, Kent, Bellinson
    /// and Hart, "The mean square successive difference", Annals of Mathematical Statistics 12 (1941).
    pub freedom: f64,
}

impl SuccessiveDifferences {
    /// Of differences of neighbours.
    ///
    /// # Errors
    /// No difference, one that is not finite, an overflow.
    pub fn from_differences(differences: &[f64]) -> Result<Self, StatsError> {
        let m = check_at_least(differences, 1)?.len() as f64;
        let squares: f64 = differences.iter().map(|difference| difference * difference).sum();
        let mean_square = finite_or_overflow(squares / m)?;
        Ok(SuccessiveDifferences { mean_square, freedom: 2.0 * m * m / (3.0 * m - 1.0) })
    }

    /// The interval of the change behind a difference between two more values: difference ± t √(mean square).
    ///
    /// # Errors
    /// A confidence outside (0, 1), an overflow.
    pub fn interval(&self, difference: f64, confidence: f64) -> Result<ConfidenceInterval, StatsError> {
        tail_probability(confidence)?;
        t_interval(difference, self.mean_square.sqrt(), self.freedom, confidence)
    }

    /// The smallest change between two more values that is found with this power: (t₁₋α/₂ + t_power) √(mean square).
    ///
    /// # Errors
    /// A confidence or a power outside (0, 1), an overflow.
    pub fn detectable(&self, confidence: f64, power: f64) -> Result<f64, StatsError> {
        let (tail, missed) = (tail_probability(confidence)?, check_open_fraction("power", 1.0 - power)?);
        let quantiles = t_quantile_above(tail, self.freedom) + t_quantile_above(missed, self.freedom);
        finite_or_overflow(quantiles * self.mean_square.sqrt())
    }

    /// Two-sided p-value of "no change" behind such a difference; 0 without any noise, and 1 without a difference.
    #[must_use]
    pub fn p(&self, difference: f64) -> f64 {
        if difference == 0.0 {
            return 1.0;
        }
        2.0 * t_tail_above(difference.abs() / self.mean_square.sqrt(), self.freedom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_dependent_values_has_the_variance_that_textbooks_give() {
        // ρ = 1/2, n = 10: 1 + 2 Σ (1 - k/10) / 2ᵏ = 2.600390625 by summing it.
        let dependence = SerialDependence { autocorrelation: 0.5, upper: 0.5 };
        let sum = 1.0 + 2.0 * (1..10).map(|k| (1.0 - f64::from(k) / 10.0) * 0.5_f64.powi(k)).sum::<f64>();
        assert!((sum - 2.600_390_625).abs() < 1e-12);
        let expected = (sum / (1.0 - (sum - 1.0) / 9.0)).sqrt();
        assert!((dependence.widening(10) - expected).abs() < 1e-12);
        // Long series: (1 + ρ) / (1 - ρ), which is 3.
        assert!((dependence.widening(1_000_000) - 3.0_f64.sqrt()).abs() < 1e-5);
        let none = SerialDependence { autocorrelation: -0.4, upper: 0.0 };
        assert_eq!(none.widening(30), 1.0);
    }

    #[test]
    fn values_that_rise_resemble_their_neighbours_and_constant_ones_do_not() {
        let rising: Vec<f64> = (0..30).map(f64::from).collect();
        assert!(SerialDependence::from_runs(&[&rising]).unwrap().autocorrelation > 0.9);
        let still = SerialDependence::from_runs(&[&[3.0; 20], &[4.0; 20]]).unwrap();
        assert_eq!((still.autocorrelation, still.upper), (0.0, 0.0));
        let turns: Vec<f64> = (0..30).map(|i| f64::from(i % 2)).collect();
        assert!(SerialDependence::from_runs(&[&turns]).unwrap().autocorrelation < -0.9);
    }

    #[test]
    fn the_mean_square_of_differences_is_that_of_the_source() {
        // Of 1, 3, 2, 6, 4: differences 2, -1, 4, -2; squares 4 + 1 + 16 + 4 over 4.
        let found = SuccessiveDifferences::from_differences(&[2.0, -1.0, 4.0, -2.0]).unwrap();
        assert_eq!(found.mean_square, 6.25);
        assert!((found.freedom - 32.0 / 11.0).abs() < 1e-12);
        let interval = found.interval(1.0, 0.95).unwrap();
        assert!(interval.low < -6.0 && interval.high > 8.0 && found.p(1.0) > 0.5);
        // Student's t with 10 degrees of freedom, of its table: 2.228139 and 0.879058.
        let known = SuccessiveDifferences { freedom: 10.0, ..found };
        assert!((known.detectable(0.95, 0.8).unwrap() - 3.107_197 * 2.5).abs() < 1e-4);
        assert!(found.detectable(0.95, 0.8).unwrap() > 9.0 && found.detectable(0.95, 1.0).is_err());
    }

    #[test]
    fn dependent_values_are_worth_fewer() {
        // Student's t with 20 / 4 - 2 = 3 degrees of freedom at 2.5: P = 0.0877 two-sided (its table: 2.353 at 0.10, 3.182 at 0.05).
        let interval =
            ConfidenceInterval { low: 4.0 - 1.959_963_985, high: 4.0 + 1.959_963_985, level: 0.95 };
        let at = |shift: f64, widening: f64| {
            let moved = ConfidenceInterval {
                low: interval.low - 4.0 + shift,
                high: interval.high - 4.0 + shift,
                level: interval.level,
            };
            let freedom = dependent_freedom(20, widening);
            DependentShift { shift, widening, freedom }.p(moved).unwrap()
        };
        assert!((at(2.0 * 2.353_363, 2.0) - 0.10).abs() < 1e-5);
        assert!((at(2.0 * 3.182_446, 2.0) - 0.05).abs() < 1e-5);
        // Independent ones: 18 degrees of freedom, 2.100922 at 0.05.
        assert!((at(2.100_922, 1.0) - 0.05).abs() < 1e-5);
        assert_eq!(at(0.0, 2.0), 1.0);
        // The limit is where p is one minus the level.
        let freedom = dependent_freedom(20, 1.5);
        let shift = DependentShift { shift: 2.0, widening: 1.5, freedom };
        let reach = 1.959_963_985 * shift.factor(0.95, 0.95).unwrap();
        assert!((at(reach, 1.5) - 0.05).abs() < 1e-9);
        // An exact interval at a higher level is that much wider by itself, and no limit comes nearer than it.
        assert!(shift.factor(0.99, 0.95).unwrap() < shift.factor(0.95, 0.95).unwrap());
        assert_eq!(DependentShift { widening: 1.0, ..shift }.factor(0.999, 0.95), Ok(1.0));
    }
}
