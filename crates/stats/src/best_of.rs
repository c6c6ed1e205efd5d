//! Owns statistics of the best part of a sample, as the reports of MMTests print them (BAmean, BHmean, Pctile). It
//! refuses to recommend them: the best 95 % hide the very outliers that a kernel change may cause.

use crate::StatsError;
use crate::centre::mean;
use crate::means::harmonic_mean;
use crate::sample::{finite_or_overflow, sorted_sample};

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
///
/// # Errors
/// An empty sample, a value that is not finite, a percentage outside (0, 100].
pub fn best_values(values: &[f64], better: BetterDirection, percent: f64) -> Result<Vec<f64>, StatsError> {
    let mut ranked = sorted_sample(values)?;
    if better == BetterDirection::Higher {
        ranked.reverse();
    }
    ranked.truncate(best_count(ranked.len(), percent)?);
    Ok(ranked)
}

/// Mean of [`best_values`], in the unit of the values: arithmetic where less is better (`BAmean`), harmonic where more is
/// (`BHmean`).
///
/// # Errors
/// As [`best_values`]; also, where more is better, a value among the best that is not above zero. Its index then counts
/// from the best value.
pub fn best_of_mean(values: &[f64], better: BetterDirection, percent: f64) -> Result<f64, StatsError> {
    let best = best_values(values, better, percent)?;
    match better {
        BetterDirection::Lower => mean(&best),
        BetterDirection::Higher => harmonic_mean(&best),
    }
}

/// The worst value of [`best_values`], in the unit of the values: the `Pctile` of MMTests, which for a metric where more is
/// better is a *low* value.
///
/// # Errors
/// As [`best_values`].
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
