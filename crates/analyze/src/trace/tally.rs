//! Per cause: how many outliers it dominates, what it costs, how well it predicts, and what would be without it.
//! Formulas: precision P(outlier | cause), recall P(cause | outlier), lift P(outlier | cause) / P(outlier).

use perflab_stats::spearman;
use serde::Serialize;

use super::causes::OperationCause;
use super::outliers::{OutlierExplanation, OutlierOperation};
use super::quantiles::time_quantiles;
use super::times::OperationTimes;

/// Most pairs that a rank correlation is computed of: every so-manieth is taken beyond.
const PAIRS: usize = 20_000;

/// How many outliers, and how much of their excess.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct OutlierShare {
    /// outliers
    pub outliers: usize,
    /// as a fraction of all outliers
    pub coverage: f64,
    /// fraction of all outliers' excess time
    pub excess: f64,
}

/// One cause, weighed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationCauseRow {
    /// the span's name, or the kernel's cause
    pub name: String,
    /// whether the kernel told it and not the program
    pub kernel: bool,
    /// operations in which it occurred
    pub operations: usize,
    /// nanoseconds in all of them
    pub time: i64,
    /// the longest one
    pub longest: i64,
    /// outliers that it dominates, and its share of all outliers' excess, dominated by it or not
    pub share: OutlierShare,
    /// P(outlier | it occurred)
    pub precision: f64,
    /// P(it occurred | outlier)
    pub recall: f64,
    /// precision over the share of outliers among all operations
    pub lift: f64,
    /// Spearman's rank correlation of its time with the operation's, where it occurred; none for few operations
    pub rank_correlation: Option<f64>,
    /// p50, p99, p99.9 and p99.99 of the operation's time without it, in nanoseconds
    pub without: [i64; 4],
}

/// Weighs every cause.
pub(super) fn tally_causes(
    times: &OperationTimes,
    causes: &[OperationCause],
    outliers: &[OutlierOperation],
) -> Vec<OperationCauseRow> {
    causes.iter().enumerate().map(|(index, cause)| cause_row(times, index, cause, outliers)).collect()
}

fn cause_row(
    times: &OperationTimes,
    index: usize,
    cause: &OperationCause,
    outliers: &[OutlierOperation],
) -> OperationCauseRow {
    let with: Vec<(&OutlierOperation, i64)> =
        outliers.iter().filter_map(|outlier| Some((outlier, cause.time_at(outlier.at as usize)?))).collect();
    let total: i64 = outliers.iter().map(|outlier| outlier.excess).sum();
    let part: i64 = with.iter().map(|(outlier, time)| (*time).min(outlier.excess)).sum();
    let dominated =
        outliers.iter().filter(|outlier| outlier.verdict == OutlierExplanation::Cause(index)).count();
    let ratio = |part: usize, all: usize| if all == 0 { 0.0 } else { part as f64 / all as f64 };
    let precision = ratio(with.len(), cause.found.len());
    let base = ratio(outliers.len(), times.len());
    OperationCauseRow {
        name: cause.name.clone(),
        kernel: cause.kernel,
        operations: cause.found.len(),
        time: cause.found.iter().map(|(_, time)| time).sum(),
        longest: cause.found.iter().map(|(_, time)| *time).max().unwrap_or(0),
        share: OutlierShare {
            outliers: dominated,
            coverage: ratio(dominated, outliers.len()),
            excess: if total == 0 { 0.0 } else { part as f64 / total as f64 },
        },
        precision,
        recall: ratio(with.len(), outliers.len()),
        lift: if base == 0.0 { 0.0 } else { precision / base },
        rank_correlation: cause_rank_correlation(times, cause),
        without: quantiles_without(times, cause),
    }
}

fn cause_rank_correlation(times: &OperationTimes, cause: &OperationCause) -> Option<f64> {
    let step = cause.found.len().div_ceil(PAIRS).max(1);
    let pairs = cause.found.iter().step_by(step);
    let (of_cause, of_operation): (Vec<f64>, Vec<f64>) =
        pairs.filter_map(|(at, time)| Some((*time as f64, *times.time.get(*at as usize)? as f64))).unzip();
    spearman(&of_cause, &of_operation).ok().map(|found| found.rho)
}

/// Quantiles of the time that is left when the cause is taken out.
fn quantiles_without(times: &OperationTimes, cause: &OperationCause) -> [i64; 4] {
    let mut left = times.time.clone();
    for (at, time) in &cause.found {
        if let Some(left) = left.get_mut(*at as usize) {
            *left = (*left - time).max(0);
        }
    }
    time_quantiles(&mut left)
}

/// The share of outliers with a verdict that names no cause.
pub(super) fn outlier_share(outliers: &[OutlierOperation], verdict: OutlierExplanation) -> OutlierShare {
    let of = outliers.iter().filter(|outlier| outlier.verdict == verdict);
    let (count, excess) = of.fold((0, 0), |(count, sum), outlier| (count + 1, sum + outlier.excess));
    let total: i64 = outliers.iter().map(|outlier| outlier.excess).sum();
    OutlierShare {
        outliers: count,
        coverage: if outliers.is_empty() { 0.0 } else { count as f64 / outliers.len() as f64 },
        excess: if total == 0 { 0.0 } else { excess as f64 / total as f64 },
    }
}
