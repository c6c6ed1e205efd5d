//! Silverman's test of one mode, by the width that a smooth density needs to have one peak: the second opinion on the
//! number of modes.
//!
//! It cannot tell a far outlier from a second mode: see `sample_shape` for outliers first, and for where modes are.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::StatsError;
use crate::descriptive::sd;
use crate::error::{check_at_least, sorted_sample};

/// Fewest values of which modes can be detected.
const FEWEST: usize = 8;

/// Most values: each resample takes time with their number times the places looked at.
const MOST: usize = 10_000;

/// Places between the ends at which the density is looked at, and halvings of the width.
const PLACES: usize = 400;

const HALVINGS: usize = 40;

/// Result of Silverman's test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SilvermanTest {
    /// The smallest standard deviation of a Gaussian kernel whose density of the sample has a single peak, in the unit of
    /// the values, to about a four hundredth of the range.
    pub width: f64,
    /// How likely one mode would ask for such a width; a small one speaks against one mode. Like all p-values of this test
    /// it is too large, for some shapes by far.
    pub p: f64,
}

/// Silverman's test of whether one mode can explain a sample, by `resamples` (such as 200) smoothed and rescaled
/// resamples: p = (b + 1) / (m + 1), where b of m still have several peaks at the width at which the sample has one.
/// Source: Silverman, "Using kernel density estimates to investigate multimodality", JRSS B 43 (1981). Record the seed.
///
/// # Errors
/// Fewer than eight values or more than 10,000, one that is not finite, all equal, no resamples, values whose squares
/// overflow.
pub fn silverman_test(values: &[f64], resamples: usize, seed: u64) -> Result<SilvermanTest, StatsError> {
    let sorted = sorted_sample(check_at_least(values, FEWEST)?)?;
    if sorted.len() > MOST {
        return Err(StatsError::TooMany { limit: MOST * PLACES, got: sorted.len() * PLACES });
    }
    if resamples == 0 {
        return Err(StatsError::TooFew { needed: 1, got: 0 });
    }
    let spread = sd(&sorted)?;
    if sorted.first() == sorted.last() || spread == 0.0 {
        return Err(StatsError::NoSpread);
    }
    let width = critical_width(&sorted);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // Smoothing widens the resample; this takes it back to the spread of the sample.
    let shrink = (1.0 + (width / spread).powi(2)).sqrt().recip();
    let several = |random: &mut ChaCha8Rng| {
        let mut draw =
            || (sorted[random.random_range(0..sorted.len())] + width * random_normal(random)) * shrink;
        let drawn: Vec<f64> = (0..sorted.len()).map(|_| draw()).collect();
        count_peaks(&drawn, width) > 1
    };
    let found = (0..resamples).filter(|_| several(&mut random)).count();
    Ok(SilvermanTest { width, p: (found + 1) as f64 / (resamples + 1) as f64 })
}

/// By halving: a wider Gaussian kernel never has more peaks (Silverman 1981, theorem 1).
fn critical_width(sorted: &[f64]) -> f64 {
    let range = sorted.last().copied().unwrap_or_default() - sorted.first().copied().unwrap_or_default();
    let (mut several, mut one) = (range / 1e3, range);
    for _ in 0..HALVINGS {
        let middle = several.midpoint(one);
        if count_peaks(sorted, middle) > 1 { several = middle } else { one = middle }
    }
    one
}

/// Peaks of the density: places where its slope turns from up to down. All lie between the smallest and the largest value.
fn count_peaks(values: &[f64], width: f64) -> usize {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let rises = |place: usize| {
        let at = low + (high - low) * place as f64 / PLACES as f64;
        let pull = |value: &f64| {
            let distance = (value - at) / width;
            distance * (-distance * distance / 2.0).exp()
        };
        values.iter().map(pull).sum::<f64>() > 0.0
    };
    let rising: Vec<bool> = (0..=PLACES).map(rises).collect();
    rising.windows(2).filter(|pair| pair[0] && !pair[1]).count()
}

/// Standard normal by Box and Muller.
fn random_normal(random: &mut ChaCha8Rng) -> f64 {
    let (first, second) = (1.0 - random.random::<f64>(), random.random::<f64>());
    (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
}
