//! Owns what a sample can say about a quantile of its population: an interval that holds for every distribution, and
//! the smoother estimate of Harrell and Davis. It refuses tails with too few values behind them: no interval there.

use crate::StatsError;
use crate::centre::quantile_of_sorted;
use crate::interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate, tail_probability};
use crate::sample::{check_open_fraction, finite_or_overflow, sorted_sample};
use statrs::distribution::{Binomial, DiscreteCDF};
use statrs::function::beta::beta_reg;

/// Type 7 quantile at `fraction` in (0, 1) with its distribution-free interval [x₍l₎, x₍u₎]: l is the largest rank with
/// P(Bin(n, fraction) ≤ l - 1) ≤ α/2, u the smallest with P(Bin(n, fraction) ≥ u) ≤ α/2. Source: David and Nagaraja,
/// Order Statistics, 3rd edition, section 7.1. Without an interval where either rank lies outside the sample: p99 at
/// 0.95 needs 368 values.
///
/// # Errors
/// An empty sample, a value that is not finite, a fraction or a confidence outside (0, 1).
pub fn quantile_with_interval(
    values: &[f64],
    fraction: f64,
    confidence: f64,
) -> Result<IntervalEstimate, StatsError> {
    let sorted = sorted_sample(values)?;
    check_open_fraction("quantile", fraction)?;
    let value = finite_or_overflow(quantile_of_sorted(&sorted, fraction))?;
    let interval =
        limit_ranks(sorted.len(), fraction, tail_probability(confidence)?).and_then(|(low, high, level)| {
            Some(ConfidenceInterval {
                low: *sorted.get(low.checked_sub(1)?)?,
                high: *sorted.get(high - 1)?,
                level,
            })
        });
    Ok(IntervalEstimate { value, interval, method: InferenceMethod::Exact })
}

/// Values expected beyond a quantile, n (1 - fraction): with fewer than about ten, a tail quantile is the story of a few
/// values.
///
/// # Errors
/// A fraction outside (0, 1).
pub fn expected_exceedances(n: usize, fraction: f64) -> Result<f64, StatsError> {
    check_open_fraction("quantile", fraction).map(|fraction| n as f64 * (1.0 - fraction))
}

/// Harrell and Davis's quantile at `fraction` in (0, 1), in the unit of the values: a mean of all order statistics, with
/// weights from the Beta((n+1)q, (n+1)(1-q)) distribution. Less noisy than one or two order statistics, above all in
/// the middle. Source: Harrell and Davis, "A new distribution-free quantile estimator", Biometrika 69 (1982).
///
/// # Errors
/// An empty sample, a value that is not finite, a fraction outside (0, 1), a sum that overflows.
pub fn harrell_davis(values: &[f64], fraction: f64) -> Result<f64, StatsError> {
    let sorted = sorted_sample(values)?;
    let weights = harrell_davis_weights(sorted.len(), check_open_fraction("quantile", fraction)?);
    finite_or_overflow(weighted_sum(&weights, &sorted))
}

/// The weight of each order statistic, I(i/n) - I((i-1)/n) of the Beta distribution.
pub(crate) fn harrell_davis_weights(n: usize, fraction: f64) -> Vec<f64> {
    let above = (n + 1) as f64;
    let (a, b) = (above * fraction, above * (1.0 - fraction));
    let cumulative = |i: usize| beta_reg(a, b, i as f64 / n as f64);
    let mut before = 0.0;
    let next = |i| {
        let here = if i == n { 1.0 } else { cumulative(i) };
        here - std::mem::replace(&mut before, here)
    };
    (1..=n).map(next).collect()
}

pub(crate) fn weighted_sum(weights: &[f64], sorted: &[f64]) -> f64 {
    weights.iter().zip(sorted).map(|(weight, value)| weight * value).sum()
}

/// Ranks of the limits from 1, and the level they have.
fn limit_ranks(n: usize, fraction: f64, tail: f64) -> Option<(usize, usize, f64)> {
    let count = Binomial::new(fraction, n as u64).ok()?;
    // Levels such as 1 - 0.9 are not exact in binary; a tail this close to the limit counts as on it.
    let tail = tail * (1.0 + 1e-9);
    let low = first_rank(n, |rank| count.cdf(rank as u64) > tail);
    let high = first_rank(n, |rank| count.sf(rank as u64) <= tail) + 1;
    let level = |low: usize| count.cdf(high as u64 - 1) - count.cdf(low as u64 - 1);
    (low >= 1 && high <= n).then(|| (low, high, level(low)))
}

/// The first rank in 0..=n with a property that, once there, stays.
fn first_rank(n: usize, has: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, n);
    while from < to {
        let middle = from.midpoint(to);
        if has(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}
