//! Cliff's delta: how far two samples are apart whatever their unit, with its interval.
//!
//! It comes without the words "small" and "large": what matters is for the user to say.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::StatsError;
use crate::error::{check_at_least, sorted_sample};
use crate::interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate, tail_probability};

/// Cliff's δ = P(candidate > baseline) - P(candidate < baseline) in [-1, 1], with the asymmetric interval of Feng and
/// Cliff: (δ - δ³ ± z s √((1 - δ²)² + z² s²)) / (1 - δ² + z² s²), s² the unbiased variance, at least
/// (1 - δ²) / (mn - 1). Samples that do not overlap have the limit (k - z²) / (k + z²) on the inner side, k the
/// smaller size. Sources: Cliff, "Dominance statistics", Psychological Bulletin 114 (1993); Feng and Cliff, "Monte Carlo
/// evaluation of ordinal d with improved confidence interval", Journal of Modern Applied Statistical Methods 3 (2004).
/// The interval does not invert the Mann-Whitney test: near the border they may differ.
///
/// # Errors
/// Fewer than two values on a side, a value that is not finite, a confidence outside (0, 1).
pub fn cliffs_delta(
    baseline: &[f64],
    candidate: &[f64],
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    let (x, y) =
        (sorted_sample(check_at_least(baseline, 2)?)?, sorted_sample(check_at_least(candidate, 2)?)?);
    let z = -Normal::standard().inverse_cdf(tail_probability(confidence)?);
    let by_candidate: Vec<i64> = y.iter().map(|value| dominance_of(&x, *value)).collect();
    let by_baseline: Vec<i64> = x.iter().map(|value| -dominance_of(&y, *value)).collect();
    let (m, n) = (x.len() as f64, y.len() as f64);
    let delta = by_candidate.iter().sum::<i64>() as f64 / (m * n);
    let (low, high) = if delta.abs() >= 1.0 {
        separate_sample_limits(delta, m.min(n), z)
    } else {
        delta_limits(delta, delta_variance(&x, &y, delta, &by_baseline, &by_candidate), z)
    };
    let interval = Some(ConfidenceInterval { low, high, level: confidence });
    Ok(IntervalEstimate { value: delta, interval, method: InferenceMethod::Normal })
}

/// Number of values below minus number above.
fn dominance_of(sorted: &[f64], value: f64) -> i64 {
    let below = sorted.partition_point(|other| *other < value);
    let above = sorted.len() - sorted.partition_point(|other| *other <= value);
    below as i64 - above as i64
}

/// Σ over all pairs of (d - δ)², from the number of pairs that differ: d is -1, 0 or 1.
fn pair_squares(x: &[f64], y: &[f64], delta: f64) -> f64 {
    let ties =
        |value: &f64| x.partition_point(|other| other <= value) - x.partition_point(|other| other < value);
    let pairs = x.len() as f64 * y.len() as f64;
    let tied = y.iter().map(ties).sum::<usize>() as f64;
    pairs - tied - pairs * delta * delta
}

fn delta_variance(x: &[f64], y: &[f64], delta: f64, by_baseline: &[i64], by_candidate: &[i64]) -> f64 {
    let (m, n) = (x.len() as f64, y.len() as f64);
    // Squared distances of row sums from what δ would make them.
    let squares =
        |sums: &[i64], size: f64| sums.iter().map(|sum| (*sum as f64 - size * delta).powi(2)).sum::<f64>();
    let rows = squares(by_candidate, m) + squares(by_baseline, n);
    let unbiased = (rows - pair_squares(x, y, delta)) / (m * n * (m - 1.0) * (n - 1.0));
    unbiased.max((1.0 - delta * delta) / (m * n - 1.0))
}

fn delta_limits(delta: f64, variance: f64, z: f64) -> (f64, f64) {
    let (rest, noise) = (1.0 - delta * delta, z * z * variance);
    let reach = noise.sqrt() * (rest * rest + noise).sqrt();
    let limit = |reach: f64| ((delta * rest + reach) / (rest + noise)).clamp(-1.0, 1.0);
    (limit(-reach), limit(reach))
}

fn separate_sample_limits(delta: f64, fewer: f64, z: f64) -> (f64, f64) {
    let inner = (fewer - z * z) / (fewer + z * z);
    if delta > 0.0 { (inner, 1.0) } else { (-1.0, -inner) }
}
