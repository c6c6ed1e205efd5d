//! Which operations stand out, what dominates each, and the tally per cause.
//!
//! Per cause: how many outliers it dominates, what it costs, how well it predicts, and what would be without it.
//! Formulas: precision P(outlier | cause), recall P(cause | outlier), lift P(outlier | cause) / P(outlier).

use perflab_model::operation::OperationColumns;
use perflab_stats::spearman;
use serde::Serialize;

use crate::operations::causes::OperationCause;
use crate::operations::operation_times::{OperationClock, OperationTimes, time_quantile, time_quantiles};
use crate::operations::probe_cost::OperationProbeCost;

/// How outliers are found.
#[derive(Debug, Clone, PartialEq)]
pub struct OutlierOptions {
    /// Which time counts; the one that explains where left out ([`choose_clock`](crate::operations::report::choose_clock)).
    pub clock: Option<OperationClock>,
    /// The kind of operation; the most frequent one where left out.
    pub operation: Option<String>,
    /// An outlier is above this quantile of all operations …
    pub quantile: f64,
    /// … and so many median absolute deviations above the median around it.
    pub spreads: f64,
    /// The longest so many are outliers in any case.
    pub top: usize,
}

impl Default for OutlierOptions {
    fn default() -> Self {
        OutlierOptions { clock: None, operation: None, quantile: 0.999, spreads: 10.0, top: 20 }
    }
}

/// What made an operation slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutlierExplanation {
    /// this cause (an index into the causes) took at least half of the excess
    Cause(usize),
    /// all causes together did, none alone
    Mixed,
    /// they did not: it happened outside of what was traced
    Unexplained,
}

/// One operation that stands out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutlierOperation {
    /// row in the trace: the number of the operation
    pub row: u32,
    /// nanoseconds
    pub time: i64,
    /// nanoseconds above what is usual around it
    pub excess: i64,
    /// what made it slow
    pub verdict: OutlierExplanation,
    #[serde(skip)]
    pub(crate) at: u32,
}

/// The limit that all outliers pass, and the outliers, in the order of the trace.
pub(crate) fn find_outliers(
    times: &OperationTimes,
    causes: &[OperationCause],
    cost: Option<&OperationProbeCost>,
    options: &OutlierOptions,
) -> (i64, Vec<OutlierOperation>) {
    let limit = time_quantile(&mut times.time.clone(), options.quantile);
    let limit = limit.max(cost.map_or(0, |cost| cost.judged_above));
    let least_of_top = {
        let mut sorted = times.time.clone();
        let at = sorted.len().saturating_sub(options.top);
        if sorted.is_empty() || options.top == 0 { i64::MAX } else { *sorted.select_nth_unstable(at).1 }
    };
    let stands_out = |at: &usize| {
        let (usual, spread) = times.usual_time(*at);
        let time = times.time.get(*at).copied().unwrap_or(0);
        let local = usual + (options.spreads * spread as f64) as i64;
        let judged = cost.is_none_or(|cost| cost.is_beyond_probe_cost(*at, time));
        judged && (time > limit.max(local) || (time >= least_of_top && time > local))
    };
    let found = (0..times.len()).filter(stands_out).map(|at| OutlierOperation {
        row: times.rows.get(at).copied().unwrap_or(0),
        time: times.time.get(at).copied().unwrap_or(0),
        excess: times.excess_time(at),
        verdict: explain_outlier(times, causes, at),
        at: at as u32,
    });
    (limit, found.collect())
}

fn explain_outlier(times: &OperationTimes, causes: &[OperationCause], at: usize) -> OutlierExplanation {
    let excess = times.excess_time(at);
    let shares = causes.iter().enumerate().filter_map(|(index, cause)| Some((cause.time_at(at)?, index)));
    let (mut sum, mut most) = (0, (0, None));
    for (time, index) in shares {
        sum += time;
        if time > most.0 {
            most = (time, Some(index));
        }
    }
    match most {
        (time, Some(index)) if time * 2 >= excess => OutlierExplanation::Cause(index),
        _ if sum * 2 >= excess => OutlierExplanation::Mixed,
        _ => OutlierExplanation::Unexplained,
    }
}

/// Numbers of the state at a row: each as it was last reported.
pub(crate) fn state_at(operations: &OperationColumns, row: u32) -> Vec<(String, i64)> {
    let known = |number: &perflab_model::operation::NumberColumn| {
        Some((number.name.clone(), number.values.last_at_or_before(row)?))
    };
    operations.numbers.iter().filter_map(known).collect()
}

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
    /// whether the kernel reported it and not the program
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
    pub quantiles_without: [i64; 4],
}

/// Weighs every cause.
pub(crate) fn tally_causes(
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
        quantiles_without: quantiles_without(times, cause),
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
pub(crate) fn outlier_share(outliers: &[OutlierOperation], verdict: OutlierExplanation) -> OutlierShare {
    let of = outliers.iter().filter(|outlier| outlier.verdict == verdict);
    let (count, excess) = of.fold((0, 0), |(count, sum), outlier| (count + 1, sum + outlier.excess));
    let total: i64 = outliers.iter().map(|outlier| outlier.excess).sum();
    OutlierShare {
        outliers: count,
        coverage: if outliers.is_empty() { 0.0 } else { count as f64 / outliers.len() as f64 },
        excess: if total == 0 { 0.0 } else { excess as f64 / total as f64 },
    }
}
