//! Middle, spread and quantiles of one sample, other means, and the best-of statistics of MMTests.
//!
//! A quantile is interpolated between observed values, never beyond them. A share to trim is set before looking at the
//! values. Relative measures refuse values whose middle is not above zero: they need a zero that means something. The
//! best-of statistics (BAmean, BHmean, Pctile) are there to print MMTests' reports; the best 95 % hide the very
//! outliers that a kernel change may cause.

use crate::error::{
    StatsError, check_above_zero, check_at_least, check_open_fraction, check_positive, check_sample,
    finite_or_overflow, logarithms, sorted_sample,
};

/// Arithmetic mean, in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite, a sum that overflows.
pub fn mean(values: &[f64]) -> Result<f64, StatsError> {
    let values = check_sample(values)?;
    finite_or_overflow(values.iter().sum::<f64>() / values.len() as f64)
}

/// Middle value, or the midpoint of the two middle ones, in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite.
pub fn median(values: &[f64]) -> Result<f64, StatsError> {
    let mut values = check_sample(values)?.to_vec();
    let (middle, even) = (values.len() / 2, values.len() % 2 == 0);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| even);
    Ok(lower.map_or(*upper, |lower| lower.midpoint(*upper)))
}

/// Quantile at `fraction` in [0, 1], in the unit of the values: type 7 of Hyndman and Fan, "Sample Quantiles
/// in Statistical Packages", The American Statistician 50 (1996), linear between the order statistics around
/// (n - 1) * fraction; the default of R and `NumPy`.
///
/// # Errors
/// An empty sample, a value that is not finite, a fraction outside [0, 1].
pub fn quantile(values: &[f64], fraction: f64) -> Result<f64, StatsError> {
    if fraction != 0.0 && fraction != 1.0 {
        check_open_fraction("quantile", fraction)?;
    }
    finite_or_overflow(quantile_of_sorted(&sorted_sample(values)?, fraction))
}

/// Geometric mean, exp of the mean logarithm: the mean for ratios, in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite or not above zero.
pub fn geometric_mean(values: &[f64]) -> Result<f64, StatsError> {
    mean(&logarithms(values)?).map(f64::exp)
}

/// Median of values in ascending order; the caller has made sure that there is one.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { sorted[middle - 1].midpoint(sorted[middle]) }
}

/// Type 7 quantile of values in ascending order; the caller has made sure that there is one.
pub(crate) fn quantile_of_sorted(sorted: &[f64], fraction: f64) -> f64 {
    let position = (sorted.len() - 1) as f64 * fraction;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + position.fract() * (sorted[above] - sorted[below])
}

/// Harmonic mean n / Σ 1/x, in the unit of the values: the mean for rates over equal amounts of work (Jain, The Art of
/// Computer Systems Performance Analysis, 1991, section 12.5).
///
/// # Errors
/// An empty sample, a value that is not finite or not above zero, reciprocals that overflow.
pub fn harmonic_mean(values: &[f64]) -> Result<f64, StatsError> {
    let values = check_positive(values)?;
    let reciprocals = finite_or_overflow(values.iter().map(|value| value.recip()).sum())?;
    finite_or_overflow(values.len() as f64 / reciprocals)
}

/// Mean of what is left when the lowest and the highest ⌊share · n⌋ values are cut off, in the unit of the values.
/// `share` is a fraction in [0, 0.5), for each end. Source: Wilcox, Introduction to Robust Estimation and Hypothesis
/// Testing, section 3.3; the same as `mean(trim = share)` of R.
///
/// # Errors
/// An empty sample, a value that is not finite, a share outside [0, 0.5), a sum that overflows.
pub fn trimmed_mean(values: &[f64], share: f64) -> Result<f64, StatsError> {
    let sorted = sorted_sample(values)?;
    let cut = trimmed_count(sorted.len(), share)?;
    mean(sorted.get(cut..sorted.len() - cut).unwrap_or_default())
}

/// Standard deviation that belongs to a harmonic mean H, in the unit of the values: √(H⁴ Σ (1/x - 1/H)² / n), the delta
/// method on the mean of the reciprocals. MMTests prints it for metrics where more is better (`Stat.pm`, stddev of
/// Hmean); it divides by n where the usual one divides by n - 1.
///
/// # Errors
/// As [`harmonic_mean`]; also fewer than two values.
pub fn harmonic_sd(values: &[f64]) -> Result<f64, StatsError> {
    let got = check_sample(values)?.len();
    if got < 2 {
        return Err(StatsError::TooFew { needed: 2, got });
    }
    let centre = harmonic_mean(values)?;
    let squares: f64 = values.iter().map(|value| (value.recip() - centre.recip()).powi(2)).sum();
    finite_or_overflow(centre * centre * (squares / got as f64).sqrt())
}

/// Values cut at each end; always fewer than half of them.
fn trimmed_count(n: usize, share: f64) -> Result<usize, StatsError> {
    if !(0.0..0.5).contains(&share) {
        return Err(StatsError::OutOfRange { name: "share", value: share, range: "[0, 0.5)" });
    }
    Ok(((n as f64 * share) as usize).min((n - 1) / 2))
}

/// 1 / Φ⁻¹(3/4): makes the MAD of normal values estimate their standard deviation.
pub(crate) const MAD_TO_SD: f64 = 1.482_602_218_505_602;

/// Standard deviation with n - 1 in the denominator, in the unit of the values.
///
/// # Errors
/// Fewer than two values, a value that is not finite, a sum of squares that overflows.
pub fn sd(values: &[f64]) -> Result<f64, StatsError> {
    let values = check_at_least(values, 2)?;
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    finite_or_overflow((squares / (values.len() - 1) as f64).sqrt())
}

/// Median absolute deviation from the median, unscaled, in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite, a difference that overflows.
pub fn mad(values: &[f64]) -> Result<f64, StatsError> {
    median(&distances_from_median(values)?)
}

/// 1.4826 times the MAD: the standard deviation, were the values normal but for the outliers.
///
/// # Errors
/// As [`mad`].
pub fn robust_sd(values: &[f64]) -> Result<f64, StatsError> {
    finite_or_overflow(mad(values)? * MAD_TO_SD)
}

/// Third minus first quartile (type 7), in the unit of the values.
///
/// # Errors
/// An empty sample, a value that is not finite, a difference that overflows.
pub fn inter_quartile_range(values: &[f64]) -> Result<f64, StatsError> {
    let sorted = sorted_sample(values)?;
    finite_or_overflow(quantile_of_sorted(&sorted, 0.75) - quantile_of_sorted(&sorted, 0.25))
}

/// Distance of each value from the median.
pub(crate) fn distances_from_median(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let centre = median(values)?;
    values.iter().map(|value| finite_or_overflow((value - centre).abs())).collect()
}

/// Coefficient of variation, standard deviation over mean, a fraction without unit. One outlier moves it as it likes.
///
/// # Errors
/// Fewer than two values, one that is not finite, a mean that is not above zero, an overflow.
pub fn coefficient_of_variation(values: &[f64]) -> Result<f64, StatsError> {
    let sd = sd(values)?;
    finite_or_overflow(sd / check_above_zero("mean", mean(values)?)?)
}

/// Which end of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BetterDirection {
    /// Less is better: times, latencies.
    Lower,
    /// More is better: rates, throughput.
    Higher,
}

/// The best ⌊n · percent / 100⌋ values, best first, but never fewer than one: of 5 values the best 95 % are 4. For
/// `percent` in (0, 100]. Source: MMTests, `bin/lib/MMTests/Stat.pm`.
fn best_values(values: &[f64], better: BetterDirection, percent: f64) -> Result<Vec<f64>, StatsError> {
    let mut ranked = sorted_sample(values)?;
    if better == BetterDirection::Higher {
        ranked.reverse();
    }
    ranked.truncate(best_count(ranked.len(), percent)?);
    Ok(ranked)
}

/// Mean of the best ⌊n · percent / 100⌋ values, in the unit of the values: arithmetic where less is better (`BAmean`),
/// harmonic where more is (`BHmean`).
///
/// # Errors
/// An empty sample, a value that is not finite, a percentage outside (0, 100]; also, where more is better, a value among the
/// best that is not above zero. Its index then counts from the best value.
pub fn best_of_mean(values: &[f64], better: BetterDirection, percent: f64) -> Result<f64, StatsError> {
    let best = best_values(values, better, percent)?;
    match better {
        BetterDirection::Lower => mean(&best),
        BetterDirection::Higher => harmonic_mean(&best),
    }
}

/// The worst of the best ⌊n · percent / 100⌋ values, in the unit of the values: the `Pctile` of MMTests, which for a metric
/// where more is better is a *low* value.
///
/// # Errors
/// An empty sample, a value that is not finite, a percentage outside (0, 100].
pub fn best_of_percentile(values: &[f64], better: BetterDirection, percent: f64) -> Result<f64, StatsError> {
    best_values(values, better, percent)?
        .last()
        .copied()
        .ok_or(StatsError::Empty)
        .and_then(finite_or_overflow)
}

fn best_count(n: usize, percent: f64) -> Result<usize, StatsError> {
    if !(percent > 0.0 && percent <= 100.0) {
        return Err(StatsError::OutOfRange { name: "percent", value: percent, range: "(0, 100]" });
    }
    Ok(((n as f64 * percent / 100.0) as usize).clamp(1, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of ten squares two are cut at each end: (4 + 9 + 16 + 25 + 36 + 49) / 6.
    #[test]
    fn a_trimmed_mean_cuts_its_share_at_each_end() {
        let squares: Vec<f64> = (0..10).map(|n| f64::from(n * n)).collect();
        assert!((trimmed_mean(&squares, 0.2).unwrap() - 139.0 / 6.0).abs() < 1e-12);
    }
}
