//! Owns the shift function: how far each decile moved, for changes that are no plain shift (a second mode, a longer
//! tail). It refuses clustered data: pass one value a boot, or read its intervals as too narrow.

use crate::StatsError;
use crate::bootstrap::ClusterBootstrap;
use crate::centre::quantile_of_sorted;
use crate::interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate, tail_probability};
use crate::quantile_interval::{harrell_davis_weights, weighted_sum};
use crate::sample::{check_at_least, finite_or_overflow, sorted_sample};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Fewest values a side: a decile of fewer is the smallest value.
const FEWEST: usize = 10;

/// One decile of both samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecileShift {
    /// Which: 0.1 to 0.9.
    pub fraction: f64,
    /// Harrell-Davis decile of the baseline, in the unit of the values.
    pub baseline: f64,
    /// Harrell-Davis decile of the candidate, in the unit of the values.
    pub candidate: f64,
    /// Candidate minus baseline, with its own percentile bootstrap interval (not widened for there being nine).
    pub shift: IntervalEstimate,
}

/// The nine deciles of both samples and their differences, with intervals from single values drawn anew. Source: Doksum,
/// Annals of Statistics 2 (1974); Wilcox, "Comparing two independent groups via multiple quantiles", The Statistician 44
/// (1995); Rousselet, Pernet and Wilcox, European Journal of Neuroscience 46 (2017).
///
/// # Errors
/// Fewer than ten values on a side, a value that is not finite, no resamples, a confidence outside (0, 1), an overflow.
pub fn shift_function(
    baseline: &[f64],
    candidate: &[f64],
    how: &ClusterBootstrap,
) -> Result<Vec<DecileShift>, StatsError> {
    let (x, y) = (
        sorted_sample(check_at_least(baseline, FEWEST)?)?,
        sorted_sample(check_at_least(candidate, FEWEST)?)?,
    );
    let tail = tail_probability(how.confidence)?;
    if how.resamples == 0 {
        return Err(StatsError::TooFew { needed: 1, got: 0 });
    }
    let (of_x, of_y) = (DecileWeights::for_size(x.len()), DecileWeights::for_size(y.len()));
    let mut random = ChaCha8Rng::seed_from_u64(how.seed);
    let mut shifts: [Vec<f64>; 9] = Default::default();
    for _ in 0..how.resamples {
        let (x, y) =
            (of_x.deciles_of(&draw_sorted(&x, &mut random)), of_y.deciles_of(&draw_sorted(&y, &mut random)));
        shifts.iter_mut().zip(x.iter().zip(y)).for_each(|(shifts, (x, y))| shifts.push(y - x));
    }
    let values = of_x.deciles_of(&x).into_iter().zip(of_y.deciles_of(&y));
    let row = |(tenth, ((baseline, candidate), shifts)): (usize, ((f64, f64), Vec<f64>))| {
        let sorted = sorted_sample(&shifts).map_err(|_| StatsError::Overflow)?;
        let [low, high] = [tail, 1.0 - tail].map(|at| quantile_of_sorted(&sorted, at));
        let interval = Some(ConfidenceInterval { low, high, level: how.confidence });
        let shift = IntervalEstimate {
            value: finite_or_overflow(candidate - baseline)?,
            interval,
            method: InferenceMethod::Bootstrap,
        };
        Ok(DecileShift { fraction: (tenth + 1) as f64 / 10.0, baseline, candidate, shift })
    };
    values.zip(shifts).enumerate().map(row).collect()
}

/// The weights of all nine, made once for a size.
struct DecileWeights([Vec<f64>; 9]);

impl DecileWeights {
    fn for_size(n: usize) -> Self {
        Self(std::array::from_fn(|tenth| harrell_davis_weights(n, (tenth + 1) as f64 / 10.0)))
    }

    fn deciles_of(&self, sorted: &[f64]) -> Vec<f64> {
        self.0.iter().map(|weights| weighted_sum(weights, sorted)).collect()
    }
}

/// As many values with replacement, ascending.
fn draw_sorted(sorted: &[f64], random: &mut ChaCha8Rng) -> Vec<f64> {
    let mut indexes: Vec<usize> = sorted.iter().map(|_| random.random_range(0..sorted.len())).collect();
    indexes.sort_unstable();
    indexes.iter().map(|index| sorted[*index]).collect()
}
