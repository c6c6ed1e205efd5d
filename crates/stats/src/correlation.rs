//! Owns what order does to values: rank correlation with time (drift) and with the value before (lag one). It
//! refuses to correct for either: a drifting series is reported, not straightened.

use crate::StatsError;
use crate::centre::mean;
use crate::interval::InferenceMethod;
use crate::null::rank_distance_distribution;
use crate::ranks::MidRanks;
use crate::sample::{check_at_least, check_paired, finite_or_overflow};
use statrs::distribution::{ContinuousCDF, StudentsT};

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
