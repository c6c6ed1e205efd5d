//! How far a quantile moved, of values in clusters that share their luck: boots, runs, batches of neighbours.
//!
//! Each side's limits are Woodruff's: the quantiles at the share ± t times its error, the share's error being that of the
//! clusters' own shares ("Confidence intervals for medians and other position measures", JASA 47, 1952; Francisco and Fuller,
//! Annals of Statistics 19, 1991). Limits of the difference recover both sides' errors from them, √(Σ distance²) to either side
//! (MOVER; Zou and Donner, Statistics in Medicine 27, 2008).

use crate::descriptive::quantile_of_sorted;
use crate::error::{StatsError, check_open_fraction, check_sample, finite_or_overflow, sorted_sample};
use crate::interval::{ConfidenceInterval, tail_probability};
use crate::student_t::{t_quantile_above, t_two_sided};

/// Values beyond a quantile on each side, below which it is the story of a few of them.
const FEWEST_BEYOND: f64 = 10.0;

/// Steps by which the t of a p-value is found, a half each.
const STEPS: usize = 40;

/// Beyond this t nothing is looked for.
const FARTHEST_T: f64 = 40.0;

/// One side of a comparison of quantiles.
#[derive(Debug, Clone)]
struct QuantileSide {
    sorted: Vec<f64>,
    fraction: f64,
    value: f64,
    share_error: f64,
}

impl QuantileSide {
    fn from_clusters(clusters: &[Vec<f64>], fraction: f64) -> Result<Option<Self>, StatsError> {
        let sorted = sorted_sample(check_sample(&clusters.concat())?)?;
        let (n, k) = (sorted.len() as f64, clusters.len() as f64);
        if n * fraction.min(1.0 - fraction) < FEWEST_BEYOND || clusters.len() < 2 {
            return Ok(None);
        }
        let value = finite_or_overflow(quantile_of_sorted(&sorted, fraction))?;
        let share = sorted.iter().filter(|one| **one > value).count() as f64 / n;
        let deviation = |cluster: &Vec<f64>| {
            let beyond = cluster.iter().filter(|one| **one > value).count() as f64;
            (beyond - share * cluster.len() as f64).powi(2)
        };
        let of_clusters = clusters.iter().map(deviation).sum::<f64>() * k / (k - 1.0) / (n * n);
        // Few clusters may agree by luck: no less than independent values have.
        let share_error = of_clusters.max(fraction * (1.0 - fraction) / n).sqrt();
        Ok(Some(QuantileSide { sorted, fraction, value, share_error }))
    }

    /// The distances from the quantile down and up to its limits; none where a limit lies outside of the sample.
    fn distances(&self, t: f64) -> Option<(f64, f64)> {
        let reach = t * self.share_error;
        let least = 0.5 / self.sorted.len() as f64;
        let (low, high) = (self.fraction - reach, self.fraction + reach);
        let is_inside = low >= least && high <= 1.0 - least;
        let at = |fraction| quantile_of_sorted(&self.sorted, fraction);
        is_inside.then(|| (self.value - at(low), at(high) - self.value))
    }
}

/// A quantile on both sides, and the difference.
#[derive(Debug, Clone)]
pub struct QuantileShift {
    baseline: QuantileSide,
    candidate: QuantileSide,
    freedom: f64,
}

impl QuantileShift {
    /// The quantile at `fraction` of clusters of values; pass logarithms for a ratio. `None` where fewer than ten values of a
    /// side lie beyond it, or a side has one cluster.
    ///
    /// # Errors
    /// A side without values, a value that is not finite, a fraction outside (0, 1), an overflow.
    pub fn from_clusters(
        baseline: &[Vec<f64>],
        candidate: &[Vec<f64>],
        fraction: f64,
    ) -> Result<Option<Self>, StatsError> {
        check_open_fraction("quantile", fraction)?;
        let freedom = baseline.len().min(candidate.len()).saturating_sub(1) as f64;
        let sides = (
            QuantileSide::from_clusters(baseline, fraction)?,
            QuantileSide::from_clusters(candidate, fraction)?,
        );
        Ok(match sides {
            (Some(baseline), Some(candidate)) => Some(QuantileShift { baseline, candidate, freedom }),
            _ => None,
        })
    }

    /// The quantile of the baseline and of the candidate.
    #[must_use]
    pub fn values(&self) -> (f64, f64) {
        (self.baseline.value, self.candidate.value)
    }

    /// Candidate minus baseline.
    #[must_use]
    pub fn shift(&self) -> f64 {
        self.candidate.value - self.baseline.value
    }

    /// Its interval; `None` where the samples do not reach that far.
    ///
    /// # Errors
    /// A confidence outside (0, 1).
    pub fn interval(&self, confidence: f64) -> Result<Option<ConfidenceInterval>, StatsError> {
        let t = t_quantile_above(tail_probability(confidence)?, self.freedom);
        Ok(self.limits(t).map(|(low, high)| ConfidenceInterval { low, high, level: confidence }))
    }

    fn limits(&self, t: f64) -> Option<(f64, f64)> {
        let ((down, up), (other_down, other_up)) =
            (self.candidate.distances(t)?, self.baseline.distances(t)?);
        Some((self.shift() - down.hypot(other_up), self.shift() + up.hypot(other_down)))
    }

    /// Two-sided p-value of "no shift": that at which an interval would end at zero, or where the samples do not reach so far,
    /// the smallest that they show.
    #[must_use]
    pub fn p(&self) -> f64 {
        let excludes = |t: f64| self.limits(t).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        let (mut excluded, mut held) = (0.0, FARTHEST_T);
        for _ in 0..STEPS {
            let middle = f64::midpoint(excluded, held);
            if excludes(middle) { excluded = middle } else { held = middle }
        }
        t_two_sided(excluded, self.freedom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Clusters that share their luck, of values with an exponential tail.
    fn draw(random: &mut ChaCha8Rng, clusters: usize, size: usize, luck: f64, scale: f64) -> Vec<Vec<f64>> {
        let one = |random: &mut ChaCha8Rng| -(1.0 - random.random::<f64>()).ln();
        (0..clusters)
            .map(|_| {
                let own = 1.0 + luck * (random.random::<f64>() - 0.5);
                (0..size).map(|_| (scale * own * (1.0 + 0.2 * one(random))).ln()).collect()
            })
            .collect()
    }

    #[test]
    fn intervals_cover_and_invert_the_test() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for (clusters, size, luck, fraction) in
            [(20, 15, 0.0, 0.95), (8, 40, 0.1, 0.95), (20, 60, 0.05, 0.99)]
        {
            let (mut covered, mut alarms) = (0, 0);
            for _ in 0..400 {
                let x = draw(&mut random, clusters, size, luck, 1.0);
                let y = draw(&mut random, clusters, size, luck, 1.0);
                let found = QuantileShift::from_clusters(&x, &y, fraction).unwrap().unwrap();
                let p = found.p();
                alarms += usize::from(p <= 0.05);
                match found.interval(0.95).unwrap() {
                    None => covered += 1,
                    Some(interval) => {
                        covered += usize::from(!interval.excludes(0.0));
                        assert_eq!(interval.excludes(0.0), p <= 0.05, "{p} {interval:?}");
                    }
                }
            }
            eprintln!("{clusters} x {size}, p{fraction}: {covered} of 400, {alarms} alarms");
            assert!(covered >= 368 && alarms <= 32, "{clusters} {size}: {covered} {alarms}");
        }
    }

    #[test]
    fn few_values_beyond_carry_no_quantile() {
        let clusters = vec![vec![1.0; 10]; 10];
        assert!(QuantileShift::from_clusters(&clusters, &clusters, 0.95).unwrap().is_none());
        let clusters = vec![vec![1.0; 10]; 20];
        let found = QuantileShift::from_clusters(&clusters, &clusters, 0.95).unwrap().unwrap();
        assert_eq!((found.shift(), found.p()), (0.0, 1.0));
        assert!(QuantileShift::from_clusters(&[], &clusters, 0.95).is_err());
    }
}
