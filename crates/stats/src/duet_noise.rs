//! Whether two levels should run at once, each on half of a machine's CPUs: is the noise of the halves shared, and are they equal?
//!
//! What hits both at one moment cancels in their difference. Source: Bulej, Horký, Tůma, Farquet and Prokopec, "Duet
//! benchmarking: improving measurement accuracy in the cloud", ICPE 2020 (arXiv 2001.05811): intervals 2.3 to 12.5 times
//! narrower in clouds. On other machines the two disturb each other, or the halves are no equals; then iterations one after
//! the other are better. Which it is, is measured by running one level against itself.

use crate::error::{StatsError, check_at_least};
use crate::interval::IntervalEstimate;
use crate::student_t::mean_with_interval;

/// One level against itself: a value of each half at once, and two of one half, one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DuetRound {
    /// On both halves at once; positive.
    pub together: [f64; 2],
    /// On the first half, one after the other, the second half idle; positive.
    pub alone: [f64; 2],
}

/// How two executions at once compare with two in turn. Spreads and differences are of logarithms, so that 0.01 is 1 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DuetNoise {
    /// Pearson's correlation of the two halves over the rounds; 0 where a half does not vary.
    pub correlation: f64,
    /// How much larger values of the first half are, with its 95 % interval (Student's t).
    pub half_difference: IntervalEstimate,
    /// Root mean square of the differences of two at once: levels swap halves at random, so that unequal halves are noise, too.
    pub together_spread: f64,
    /// Root mean square of the differences of two in turn.
    pub alone_spread: f64,
}

impl DuetNoise {
    /// Of at least three rounds.
    ///
    /// # Errors
    /// Fewer; a value that is not positive and finite.
    pub fn from_rounds(rounds: &[DuetRound]) -> Result<Self, StatsError> {
        let logarithms = |pick: fn(&DuetRound) -> f64| -> Result<Vec<f64>, StatsError> {
            let values: Vec<f64> = rounds.iter().map(|round| pick(round).ln()).collect();
            check_at_least(&values, 3)?;
            Ok(values)
        };
        let (first, second) =
            (logarithms(|round| round.together[0])?, logarithms(|round| round.together[1])?);
        let (before, after) = (logarithms(|round| round.alone[0])?, logarithms(|round| round.alone[1])?);
        let differences =
            |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let together = differences(&first, &second);
        Ok(DuetNoise {
            correlation: pearson_correlation(&first, &second),
            half_difference: mean_with_interval(&together, 0.95)?,
            together_spread: root_mean_square(&together),
            alone_spread: root_mean_square(&differences(&before, &after)),
        })
    }

    /// Whether an interval of the same time is at least as narrow with both at once. These give twice as many pairs, and so may
    /// vary by √2 as much.
    #[must_use]
    pub fn favours_duet(&self) -> bool {
        self.together_spread <= std::f64::consts::SQRT_2 * self.alone_spread
    }

    /// How many times wider the interval of two at once is after the same time; below 1 it is narrower. Infinite where two in
    /// turn never differ, 1 where nothing does.
    #[must_use]
    pub fn width_ratio(&self) -> f64 {
        match (self.together_spread, self.alone_spread) {
            (0.0, 0.0) => 1.0,
            (together, alone) => together / (std::f64::consts::SQRT_2 * alone),
        }
    }
}

fn root_mean_square(values: &[f64]) -> f64 {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares / values.len() as f64).sqrt()
}

/// Pearson's product-moment correlation; 0 where one side does not vary.
fn pearson_correlation(xs: &[f64], ys: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (x_mean, y_mean) = (mean(xs), mean(ys));
    let pairs = || xs.iter().zip(ys).map(|(x, y)| (x - x_mean, y - y_mean));
    let products: f64 = pairs().map(|(x, y)| x * y).sum();
    let energy = |pick: fn((f64, f64)) -> f64| pairs().map(pick).map(|part| part * part).sum::<f64>();
    let scale = (energy(|(x, _)| x) * energy(|(_, y)| y)).sqrt();
    if scale > 0.0 { products / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn correlation_is_that_of_anscombe() {
        // Anscombe, "Graphs in statistical analysis", The American Statistician 27 (1973): r = 0.816 of the first set.
        let xs = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let ys = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        assert!((pearson_correlation(&xs, &ys) - 0.816).abs() < 0.0005);
        assert_eq!(pearson_correlation(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), 0.0);
    }

    /// Rounds on a machine whose halves share noise of one size, have own noise of another, and differ by a factor.
    fn simulate_rounds(shared: f64, own: f64, factor: f64) -> Vec<DuetRound> {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let mut noise = move |size: f64| (random.random::<f64>() - 0.5) * 12_f64.sqrt() * size;
        let mut round = |_| {
            let moments = [noise(shared), noise(shared), noise(shared)];
            let mut value = |moment: f64| (moment + noise(own)).exp();
            DuetRound {
                together: [value(moments[0]) * factor, value(moments[0])],
                alone: [value(moments[1]), value(moments[2])],
            }
        };
        (0..400).map(&mut round).collect()
    }

    #[test]
    fn shared_noise_favours_duets_and_unequal_halves_do_not() {
        let shared = DuetNoise::from_rounds(&simulate_rounds(0.05, 0.01, 1.0)).unwrap();
        // Two moments of 5 % and 1 % against one: √(0.01²·2) beside √(0.05²·2 + 0.01²·2).
        assert!((shared.together_spread - 0.0141).abs() < 0.001, "{shared:?}");
        assert!((shared.alone_spread - 0.0721).abs() < 0.004, "{shared:?}");
        assert!((shared.correlation - 25.0 / 26.0).abs() < 0.02, "{shared:?}");
        assert!(shared.favours_duet() && (shared.width_ratio() - 0.139).abs() < 0.02, "{shared:?}");
        let uneven = DuetNoise::from_rounds(&simulate_rounds(0.05, 0.01, 1.2)).unwrap();
        assert!((uneven.half_difference.value - 1.2_f64.ln()).abs() < 0.003, "{uneven:?}");
        assert!(!uneven.favours_duet(), "{uneven:?}");
        let disturbed = DuetNoise::from_rounds(&simulate_rounds(0.0, 0.01, 1.0)).unwrap();
        assert!(disturbed.favours_duet(), "as many per pair, and twice the pairs: {disturbed:?}");
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        let round = DuetRound { together: [1.0, 1.0], alone: [1.0, 1.0] };
        assert!(DuetNoise::from_rounds(&[round; 2]).is_err());
        assert!(DuetNoise::from_rounds(&[DuetRound { together: [0.0, 1.0], ..round }; 3]).is_err());
        let still = DuetNoise::from_rounds(&[round; 3]).unwrap();
        assert!(still.favours_duet() && still.width_ratio() == 1.0);
    }
}
