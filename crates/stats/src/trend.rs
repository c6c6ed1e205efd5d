//! Values in time order: drift, autocorrelation, effective size, robust slope.
//!
//! A drifting series is reported, not straightened. The interval of a slope holds for the range that was measured.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::descriptive::{mean, median, median_of_sorted};
use crate::error::{
    StatsError, check_at_least, check_memory, check_paired, finite_or_overflow, sorted_sample,
};
use crate::interval::{InferenceMethod, IntervalEstimate, RankCut, tail_probability};
use crate::rank_distribution::{MidRanks, rank_distance_distribution};

/// Up to so many values without ties, all n! orders are counted.
const EXACT_ORDERS: usize = 10;

/// A rank correlation and how surprising it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankCorrelation {
    /// Spearman's ρ in [-1, 1]; positive when the values rise together.
    pub rho: f64,
    /// Two-sided p-value of "no relation".
    pub p: f64,
    /// How p was worked out.
    pub method: InferenceMethod,
}

/// Spearman's rank correlation of the values with their order in time; p < 0.01 is worth a warning.
///
/// # Errors
/// Fewer than three values, one that is not finite, all equal.
pub fn drift_correlation(in_time_order: &[f64]) -> Result<RankCorrelation, StatsError> {
    let order: Vec<f64> = (0..in_time_order.len()).map(|index| index as f64).collect();
    spearman(&order, in_time_order)
}

/// Spearman's rank correlation of pairs, with midranks for ties.
///
/// p is exact up to 10 pairs without ties; otherwise from Student's t with n - 2 degrees of freedom, though
/// never below 2 / n!, the least that a permutation test could give. Source: Kendall and Gibbons, Rank
/// Correlation Methods, 5th edition, chapter 4.
///
/// # Errors
/// Samples of different length, fewer than three pairs, a value that is not finite, a sample of equal values.
pub fn spearman(left: &[f64], right: &[f64]) -> Result<RankCorrelation, StatsError> {
    let (left, right) = check_paired(left, right)?;
    let n = check_at_least(left, 3)?.len();
    let (left, right) = (MidRanks::from_values(left), MidRanks::from_values(right));
    let rho = pearson(&left.midranks(), &right.midranks())?;
    if n <= EXACT_ORDERS && !left.has_ties() && !right.has_ties() {
        let distance = sum_squared_rank_differences(&left, &right);
        let p = rank_distance_distribution(n).two_sided(distance);
        return Ok(RankCorrelation { rho, p, method: InferenceMethod::Exact });
    }
    Ok(RankCorrelation { rho, p: correlation_p(rho, n), method: InferenceMethod::StudentT })
}

/// Correlation of each value with the one before, ρ₁ = Σ (xₜ - x̄)(xₜ₊₁ - x̄) / Σ (xₜ - x̄)². Source: Box,
/// Jenkins and Reinsel, Time Series Analysis, section 2.1.
///
/// # Errors
/// Fewer than three values, one that is not finite, all equal.
pub fn lag_one_autocorrelation(in_time_order: &[f64]) -> Result<f64, StatsError> {
    let values = check_at_least(in_time_order, 3)?;
    let centre = mean(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| value - centre).collect();
    let squares: f64 = deviations.iter().map(|deviation| deviation * deviation).sum();
    let products: f64 = deviations.windows(2).map(|pair| pair.iter().product::<f64>()).sum();
    if squares == 0.0 || is_constant(values) {
        Err(StatsError::NoSpread)
    } else {
        finite_or_overflow(products / squares)
    }
}

/// Independent values that say as much as n values with lag-one correlation ρ₁: n (1 - ρ₁) / (1 + ρ₁), at
/// least 1 and at most n (values that alternate earn no credit).
///
/// # Errors
/// As [`lag_one_autocorrelation`].
pub fn effective_size(in_time_order: &[f64]) -> Result<f64, StatsError> {
    let rho = lag_one_autocorrelation(in_time_order)?;
    let n = in_time_order.len() as f64;
    Ok((n * (1.0 - rho) / (1.0 + rho)).clamp(1.0, n))
}

fn is_constant(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair.first() == pair.last())
}

fn pearson(left: &[f64], right: &[f64]) -> Result<f64, StatsError> {
    let (left_mean, right_mean) = (mean(left)?, mean(right)?);
    let pairs = || left.iter().zip(right).map(|(x, y)| (x - left_mean, y - right_mean));
    let squares = pairs().map(|(x, _)| x * x).sum::<f64>() * pairs().map(|(_, y)| y * y).sum::<f64>();
    if squares == 0.0 {
        return Err(StatsError::NoSpread);
    }
    Ok((pairs().map(|(x, y)| x * y).sum::<f64>() / squares.sqrt()).clamp(-1.0, 1.0))
}

fn sum_squared_rank_differences(left: &MidRanks, right: &MidRanks) -> usize {
    let pairs = left.doubled.iter().zip(&right.doubled);
    pairs.map(|(x, y)| (x.abs_diff(*y) / 2).pow(2)).sum()
}

fn correlation_p(rho: f64, n: usize) -> f64 {
    let freedom = (n - 2) as f64;
    let least = 2.0 / (1..=n).map(|i| i as f64).product::<f64>();
    let Ok(student) = StudentsT::new(0.0, 1.0, freedom) else { return 1.0 };
    let t = rho.abs() * (freedom / ((1.0 - rho) * (1.0 + rho))).sqrt();
    let p = if t.is_finite() { 2.0 * student.sf(t) } else { 0.0 };
    p.max(least).min(1.0)
}

/// Slope of y over x: the median of the slopes of all pairs of points, in units of y per unit of x.
///
/// The limits are slopes counted in from both ends of the sorted list, after Sen (Journal of the American Statistical
/// Association 63, 1968, section 5): as many as Kendall's statistic may differ from zero, by the normal approximation,
/// with ties in x out of the count. Ties in y are not, which makes the interval no narrower. Points of a series depend
/// on the ones before: the variance is multiplied by n / [`effective_size`] of the residuals in time order, as for the
/// trend test of Hamed and Rao (Journal of Hydrology 204, 1998), with the first lag alone.
///
/// Without an interval where there are too few points for it.
///
/// # Errors
/// Samples of different length, fewer than two points, a value that is not finite, all x equal, a slope that overflows,
/// more pairs than fit into memory, a confidence outside (0, 1).
pub fn theil_sen(x: &[f64], y: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    let (x, y) = check_paired(x, y)?;
    let n = check_at_least(x, 2)?.len();
    check_memory(n.saturating_mul(n - 1) / 2)?;
    let slopes = pairwise_slopes(x, y)?;
    if slopes.is_empty() {
        return Err(StatsError::NoSpread);
    }
    let tail = tail_probability(confidence)?;
    let sd = kendall_variance(x)?.sqrt() * variance_inflation(x, y, median_of_sorted(&slopes))?.sqrt();
    // The number of slopes below the true one is (pairs - K) / 2 for Kendall's K, which has this spread.
    let cut = if n >= 4 { RankCut::from_normal(slopes.len() as f64 / 2.0, sd / 2.0, tail) } else { None };
    Ok(IntervalEstimate::from_sorted(&slopes, cut, InferenceMethod::Normal))
}

/// Of all pairs with different x, ascending.
fn pairwise_slopes(x: &[f64], y: &[f64]) -> Result<Vec<f64>, StatsError> {
    let points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len().saturating_sub(1) / 2);
    for (index, (x1, y1)) in points.iter().enumerate() {
        for (x2, y2) in points.iter().skip(index + 1).filter(|(x2, _)| x2 != x1) {
            slopes.push(finite_or_overflow((y2 - y1) / (x2 - x1))?);
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    Ok(slopes)
}

/// n (n - 1) (2n + 5) / 18 without the ties in x.
fn kendall_variance(x: &[f64]) -> Result<f64, StatsError> {
    let sorted = sorted_sample(x)?;
    let of = |count: usize| (count * (count - 1) * (2 * count + 5)) as f64;
    let tied: f64 = sorted.chunk_by(|a, b| a == b).map(|ties| of(ties.len())).sum();
    Ok((of(sorted.len()) - tied) / 18.0)
}

/// n over the number of independent residuals; 1 where that is not known.
fn variance_inflation(x: &[f64], y: &[f64], slope: f64) -> Result<f64, StatsError> {
    let residuals: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - slope * x).collect();
    let centre = median(&residuals)?;
    let residuals: Vec<f64> = residuals.iter().map(|residual| residual - centre).collect();
    Ok(effective_size(&residuals).map_or(1.0, |effective| x.len() as f64 / effective))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::ConfidenceInterval;

    const SCIPY: (f64, f64, f64) = (2.1, 1.971_428_571_428_571_3, 2.2);

    #[test]
    fn as_scipy_has_it_where_points_are_independent() -> Result<(), StatsError> {
        // scipy 1.17.1, theilslopes(y, x, 0.95); residuals that alternate earn no inflation.
        let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let y = [1.0, 3.4, 4.9, 7.7, 9.1, 11.8, 13.0, 16.1, 17.2, 20.3];
        let found = theil_sen(&x, &y, 0.95)?;
        assert!((found.value - SCIPY.0).abs() < 1e-12, "{found:?}");
        let Some(ConfidenceInterval { low, high, level }) = found.interval else {
            return Err(StatsError::Empty);
        };
        assert!((low - SCIPY.1).abs() < 1e-12 && (high - SCIPY.2).abs() < 1e-12, "{found:?}");
        assert!(level >= 0.95);
        Ok(())
    }

    #[test]
    fn a_spike_does_not_move_it() -> Result<(), StatsError> {
        let x: Vec<f64> = (0..40).map(f64::from).collect();
        let mut y: Vec<f64> = x.iter().map(|x| 3.0 * x + 7.0).collect();
        y[20] = 1e9;
        let found = theil_sen(&x, &y, 0.95)?;
        assert!((found.value - 3.0).abs() < 1e-9);
        Ok(())
    }

    #[test]
    fn a_walk_gets_a_wider_interval_than_as_many_independent_points() -> Result<(), StatsError> {
        let x: Vec<f64> = (0..60).map(f64::from).collect();
        let noise = |i: usize| ((i * 7919 + 13) % 101) as f64 / 101.0 - 0.5;
        let independent: Vec<f64> = (0..60).map(noise).collect();
        let walk: Vec<f64> = (0..60).map(|i| 0.4 * (i as f64 / 2.0).sin()).collect();
        let width = |y: &[f64]| theil_sen(&x, y, 0.95).map(|found| found.interval.map(|i| i.half_width()));
        let naive = kendall_variance(&x)?;
        assert!(variance_inflation(&x, &walk, 0.0)? > 5.0 && naive > 0.0);
        assert!(variance_inflation(&x, &independent, 0.0)? < 2.0);
        assert!(width(&walk)? > width(&independent)?);
        Ok(())
    }

    #[test]
    fn nothing_grows_and_few_points() -> Result<(), StatsError> {
        let flat = theil_sen(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[5.0; 6], 0.9)?;
        assert_eq!((flat.value, flat.interval.map(|i| (i.low, i.high))), (0.0, Some((0.0, 0.0))));
        assert_eq!(theil_sen(&[1.0, 2.0], &[1.0, 2.0], 0.95)?.interval, None);
        assert_eq!(theil_sen(&[1.0, 1.0], &[1.0, 2.0], 0.95), Err(StatsError::NoSpread));
        assert!(theil_sen(&[1.0], &[1.0], 0.95).is_err());
        assert!(theil_sen(&[0.0, 1e-300], &[0.0, 1e300], 0.95).is_err());
        Ok(())
    }
}
