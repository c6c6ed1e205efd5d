//! What a sample says about a quantile of its population, and how far each decile moved.
//!
//! The interval by binomial ranks holds for every distribution; the estimate of Harrell and Davis is smoother. Tails
//! with too few values behind them have no interval. Two intervals of medians that overlap say little about a change:
//! `mann_whitney` compares.
//!
//! The shift function is for changes that are no plain shift (a second mode, a longer tail). Pass one value per boot,
//! or read its intervals as too narrow.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{Binomial, DiscreteCDF};
use statrs::function::beta::beta_reg;

use crate::bootstrap::ClusterBootstrap;
use crate::descriptive::quantile_of_sorted;
use crate::error::{StatsError, check_at_least, check_open_fraction, finite_or_overflow, sorted_sample};
use crate::interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate, RankCut, tail_probability};

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
fn harrell_davis_weights(n: usize, fraction: f64) -> Vec<f64> {
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

fn weighted_sum(weights: &[f64], sorted: &[f64]) -> f64 {
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

/// Median with its distribution-free interval [x₍k₎, x₍n+1-k₎], k the largest with P(Bin(n, ½) ≤ k - 1) ≤ α/2
/// (David and Nagaraja, Order Statistics, 3rd edition, section 7.1). At 0.95 it needs 6 values.
///
/// # Errors
/// An empty sample, a value that is not finite, a confidence outside (0, 1).
pub fn median_with_interval(values: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    let sorted = sorted_sample(values)?;
    let cut = binomial_cut(sorted.len(), tail_probability(confidence)?);
    Ok(IntervalEstimate::from_sorted(&sorted, cut, InferenceMethod::Exact))
}

fn binomial_cut(size: usize, tail: f64) -> Option<RankCut> {
    let below = Binomial::new(0.5, size as u64).ok()?;
    let mut cut = None;
    for rank in 1..=size / 2 {
        let reached = below.cdf(rank as u64 - 1);
        if reached > tail {
            break;
        }
        cut = Some(RankCut { rank, level: 1.0 - 2.0 * reached });
    }
    cut
}

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
