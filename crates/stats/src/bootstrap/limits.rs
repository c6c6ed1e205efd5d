//! Owns the way from replicates to limits. It refuses replicates that are all the same.

use super::jackknife::Jackknife;
use crate::StatsError;
use crate::centre::quantile_of_sorted;
use crate::sample::{finite_or_overflow, sorted_sample};
use statrs::distribution::{ContinuousCDF, Normal};

/// Efron's BCa limits: quantiles of the replicates at Φ(z₀ + (z₀ + z) / (1 - a (z₀ + z))), where z₀ is the normal quantile
/// of the share of replicates below the statistic (those equal count one half).
pub(super) fn bca_limits(
    value: f64,
    replicates: Vec<f64>,
    jackknife: &Jackknife,
    tail: f64,
) -> Result<(f64, f64), StatsError> {
    let sorted = sort_replicates(&replicates)?;
    let below = sorted.partition_point(|replicate| *replicate < value);
    let not_above = sorted.partition_point(|replicate| *replicate <= value);
    let share = (below + not_above) as f64 / (2 * sorted.len()) as f64;
    let normal = Normal::standard();
    // All on one side: the largest bias that so many replicates can speak for.
    let edge = 0.5 / sorted.len() as f64;
    let bias = normal.inverse_cdf(share.clamp(edge, 1.0 - edge));
    let acceleration = jackknife.acceleration();
    let limit = |z: f64| {
        let shifted = bias + z;
        let at = normal.cdf(bias + shifted / (1.0 - acceleration * shifted));
        finite_or_overflow(quantile_of_sorted(&sorted, at.clamp(0.0, 1.0)))
    };
    let z = normal.inverse_cdf(tail);
    Ok((limit(z)?, limit(-z)?))
}

/// Statistic minus the upper and the lower quantile of the distances, in standard errors of the statistic.
pub(super) fn studentized_limits(
    value: f64,
    error: f64,
    distances: Vec<f64>,
    tail: f64,
) -> Result<(f64, f64), StatsError> {
    let sorted = sort_replicates(&distances)?;
    let limit = |at| finite_or_overflow(value - error * quantile_of_sorted(&sorted, at));
    Ok((limit(1.0 - tail)?, limit(tail)?))
}

fn sort_replicates(replicates: &[f64]) -> Result<Vec<f64>, StatsError> {
    if replicates.is_empty() {
        return Err(StatsError::NoSpread);
    }
    let sorted = sorted_sample(replicates)?;
    if sorted.first() == sorted.last() { Err(StatsError::NoSpread) } else { Ok(sorted) }
}
