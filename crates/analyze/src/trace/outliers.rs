//! Which operations stand out, and what dominates each.

use perflab_model::trace::OperationColumns;
use serde::Serialize;

use super::causes::OperationCause;
use super::probe_cost::OperationProbeCost;
use super::quantiles::time_quantile;
use super::report::OutlierOptions;
use super::times::OperationTimes;

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
    pub(super) at: u32,
}

/// The limit that all outliers pass, and the outliers, in the order of the trace.
pub(super) fn find_outliers(
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

/// Numbers of the state at a row: each as it was last told.
pub(super) fn state_at(operations: &OperationColumns, row: u32) -> Vec<(String, i64)> {
    let known = |number: &perflab_model::trace::NumberColumn| {
        Some((number.name.clone(), number.values.last_at_or_before(row)?))
    };
    operations.numbers.iter().filter_map(known).collect()
}
