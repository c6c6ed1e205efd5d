//! The whole answer about one trace, and two traces of the same work compared: what changed, at which quantile, how
//! sure that is, and in which cause.

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::operation::{OperationColumns, OperationTraceSummary};
use serde::Serialize;

use crate::operations::cause_patterns::{
    CauseMode, CauseOnset, CausePeriod, MaintenanceCost, find_modes, find_onsets, find_periods,
    maintenance_costs,
};
use crate::operations::causes::{OperationCause, find_causes};
use crate::operations::operation_times::{
    BlockBootstrap, OperationClock, OperationTimes, SHARES, quantile_ratio_intervals, time_quantiles,
};
use crate::operations::outliers::{
    OperationCauseRow, OutlierExplanation, OutlierOperation, OutlierOptions, OutlierShare, find_outliers,
    outlier_share, tally_causes,
};
use crate::operations::probe_cost::OperationProbeCost;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// Nothing to analyse.
    #[error("the trace holds no sound operation{reason}")]
    Empty {
        /// what the tracer reported
        reason: String,
    },
    /// No operation of that name.
    #[error("no operation `{name}` in the trace: {hint}")]
    UnknownOperation {
        /// what was asked for
        name: String,
        /// the nearest, or all
        hint: String,
    },
}

impl Classify for OperationError {
    fn class(&self) -> ErrorClass {
        match self {
            OperationError::Empty { .. } | OperationError::UnknownOperation { .. } => ErrorClass::Usage,
        }
    }
}

/// What one trace says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationReport {
    /// the kind of operation
    pub operation: String,
    /// which time counts
    pub clock: OperationClock,
    /// whether that was not asked for, but is the one that explains
    pub clock_chosen: bool,
    /// what probes cost, which is taken off; none where the program itself recorded
    pub probe_cost: Option<OperationProbeCost>,
    /// how many
    pub operations: usize,
    /// nanoseconds in all of them
    pub time: i64,
    /// p50, p99, p99.9 and p99.99, in nanoseconds
    pub quantiles: [i64; 4],
    /// the longest, in nanoseconds
    pub longest: i64,
    /// the shortest, in nanoseconds
    pub shortest: i64,
    /// the limit that outliers are above, in nanoseconds
    pub limit: i64,
    /// every outlier, in the order of the trace
    #[serde(skip)]
    pub outliers: Vec<OutlierOperation>,
    /// how many
    pub outlier_count: usize,
    /// fraction of all time that outliers took
    pub outlier_time: f64,
    /// each cause, the greatest share of outliers first
    pub causes: Vec<OperationCauseRow>,
    /// outliers that several causes made together
    pub mixed: OutlierShare,
    /// outliers that no cause explains
    pub unexplained: OutlierShare,
    /// where causes set in
    pub onsets: Vec<CauseOnset>,
    /// modes of the causes that have several
    pub modes: Vec<CauseMode>,
    /// causes that come at regular intervals
    pub periods: Vec<CausePeriod>,
    /// what maintenance cost for what it saved
    pub efficiencies: Vec<MaintenanceCost>,
    /// what is left out of times: preempted and waiting, in nanoseconds, and in how many operations
    pub off_cpu: (i64, usize),
    /// what the tracer reported
    pub summary: OperationTraceSummary,
    /// times of all operations that were looked at, for comparisons
    #[serde(skip)]
    pub(crate) times: Vec<i64>,
    /// their rows in the trace
    #[serde(skip)]
    pub(crate) rows: Vec<u32>,
}

/// The clock that explains: the wall's where threads waited for longer than they ran, in all operations or in those that
/// stand out by it; else the CPU's, as what other programs took is in no operation.
///
/// # Errors
/// No operation of the requested name.
pub fn choose_clock(
    operations: &OperationColumns,
    options: &OutlierOptions,
) -> Result<OperationClock, OperationError> {
    if let Some(clock) = options.clock {
        return Ok(clock);
    }
    if operations.waited.is_empty() {
        return Ok(OperationClock::OnCpu);
    }
    let kind = operation_kind(operations, options.operation.as_deref())?;
    let times = OperationTimes::new(operations, kind, OperationClock::Wall);
    let (_, found) = find_outliers(&times, &[], None, options);
    let waited = |row: u32| operations.waited.get(row).unwrap_or(0);
    let away = |row: u32| waited(row) + operations.preempted.get(row).unwrap_or(0);
    let longer = |rows: &mut dyn Iterator<Item = (u32, i64)>| {
        let (mut off, mut on) = (0, 0);
        for (row, time) in rows {
            (off, on) = (off + waited(row), on + (time - away(row)).max(0));
        }
        off > on
    };
    let all = longer(&mut times.rows.iter().copied().zip(times.time.iter().copied()));
    let slow = longer(&mut found.iter().map(|outlier| (outlier.row, outlier.time)));
    Ok(if all || slow { OperationClock::Wall } else { OperationClock::OnCpu })
}

/// Analyses the operations of one kind.
///
/// # Errors
/// No operation with sound times, or none of the requested name.
pub fn analyze_operations(
    operations: &OperationColumns,
    options: &OutlierOptions,
) -> Result<OperationReport, OperationError> {
    let kind = operation_kind(operations, options.operation.as_deref())?;
    let clock = choose_clock(operations, options)?;
    let times = OperationTimes::new(operations, kind, clock);
    if times.len() == 0 {
        let reason = operations.summary.cut.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        return Err(OperationError::Empty { reason });
    }
    let mut causes = find_causes(operations, &times, clock);
    let probe_cost = OperationProbeCost::new(operations, &times, kind);
    if let Some(cost) = &probe_cost {
        cost.remove_probe_spans(operations, &times, &mut causes);
    }
    let (limit, outliers) = find_outliers(&times, &causes, probe_cost.as_ref(), options);
    let mut rows = tally_causes(&times, &causes, &outliers);
    rows.sort_by(|a, b| {
        b.share.outliers.cmp(&a.share.outliers).then(b.share.excess.total_cmp(&a.share.excess))
    });
    let modes = find_modes(&causes);
    let total: i64 = times.time.iter().sum();
    let in_outliers: i64 = outliers.iter().map(|outlier| outlier.time).sum();
    let away = operations.preempted.iter().chain(operations.waited.iter());
    Ok(OperationReport {
        operation: operations.kinds.get(usize::from(kind)).cloned().unwrap_or_default(),
        clock,
        clock_chosen: options.clock.is_none(),
        probe_cost,
        operations: times.len(),
        time: total,
        quantiles: time_quantiles(&mut times.time.clone()),
        longest: times.time.iter().copied().max().unwrap_or(0),
        shortest: times.time.iter().copied().min().unwrap_or(0),
        limit,
        outlier_count: outliers.len(),
        outlier_time: in_outliers as f64 / total.max(1) as f64,
        mixed: outlier_share(&outliers, OutlierExplanation::Mixed),
        unexplained: outlier_share(&outliers, OutlierExplanation::Unexplained),
        onsets: find_onsets(operations, &times, &causes),
        periods: find_periods(&times, &causes, &modes),
        efficiencies: maintenance_costs(operations, &times, &causes),
        off_cpu: away.fold((0, 0), |(time, count), (_, away)| (time + away, count + 1)),
        summary: operations.summary.clone(),
        outliers: point_to_sorted_causes(outliers, &causes, &rows),
        causes: rows,
        modes,
        times: times.time,
        rows: times.rows,
    })
}

/// The requested kind: by name, or the most frequent.
fn operation_kind(operations: &OperationColumns, name: Option<&str>) -> Result<u8, OperationError> {
    if let Some(name) = name {
        let found = operations.kinds.iter().position(|kind| kind == name);
        let hint = || perflab_model::problem::suggest_name(name, operations.kinds.iter().map(String::as_str));
        return found
            .map(|kind| kind as u8)
            .ok_or_else(|| OperationError::UnknownOperation { name: name.into(), hint: hint() });
    }
    let mut counts = [0_usize; 256];
    operations.kind.iter().for_each(|kind| counts[usize::from(*kind)] += 1);
    let most = counts.iter().enumerate().max_by_key(|(at, count)| (**count, std::cmp::Reverse(*at)));
    Ok(most.map_or(0, |(kind, _)| kind as u8))
}

/// Points the verdicts to the causes as they are sorted in the answer.
fn point_to_sorted_causes(
    outliers: Vec<OutlierOperation>,
    causes: &[OperationCause],
    rows: &[OperationCauseRow],
) -> Vec<OutlierOperation> {
    let place = |index: usize| {
        let name = causes.get(index).map(|cause| cause.name.as_str());
        rows.iter().position(|row| Some(row.name.as_str()) == name).unwrap_or(0)
    };
    let verdict = |verdict| match verdict {
        OutlierExplanation::Cause(index) => OutlierExplanation::Cause(place(index)),
        other => other,
    };
    outliers
        .into_iter()
        .map(|outlier| OutlierOperation { verdict: verdict(outlier.verdict), ..outlier })
        .collect()
}

impl OperationReport {
    /// What made an outlier slow, in a word.
    pub fn outlier_cause(&self, outlier: &OutlierOperation) -> &str {
        match outlier.verdict {
            OutlierExplanation::Cause(index) => {
                self.causes.get(index).map_or("unexplained", |cause| &cause.name)
            }
            OutlierExplanation::Mixed => "mixed",
            OutlierExplanation::Unexplained => "unexplained",
        }
    }

    /// Whether a time is the operations' own and not their probes'.
    pub fn is_beyond_probe_cost(&self, time: i64) -> bool {
        self.probe_cost.as_ref().is_none_or(|cost| cost.judged_above == 0 || time > cost.judged_above)
    }

    /// Whether the time of a cause is its own and not its probes'.
    pub fn is_cause_beyond_probe_cost(&self, name: &str) -> bool {
        let spans = self.probe_cost.iter().flat_map(|cost| &cost.spans);
        !spans.into_iter().any(|span| span.name == name && !span.judged)
    }

    /// Row in the trace and nanoseconds of every operation that was looked at.
    pub fn operation_times(&self) -> impl ExactSizeIterator<Item = (u32, i64)> + '_ {
        self.rows.iter().copied().zip(self.times.iter().copied())
    }

    /// A cause by its name.
    pub fn find_cause(&self, name: &str) -> Option<&OperationCauseRow> {
        self.causes.iter().find(|cause| cause.name == name)
    }
}

/// Before and after of one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantileChange {
    /// `p99.9`
    pub name: String,
    /// nanoseconds
    pub before: i64,
    /// nanoseconds
    pub after: i64,
    /// 95 % interval of after / before, by drawing blocks of operations; none for traces of few blocks
    pub interval: Option<(f64, f64)>,
    /// Whether both are the operations' own times; if not, probes cost more than what they measured
    pub judged: bool,
}

/// Before and after of one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseChange {
    /// the cause; also `mixed` and `unexplained`
    pub name: String,
    /// outliers it dominates: of the outliers above the limit of `before`, on both sides
    pub outliers: (usize, usize),
    /// operations in which it occurred
    pub operations: (usize, usize),
    /// nanoseconds in all of them
    pub time: (i64, i64),
    /// its longest, nanoseconds
    pub longest: (i64, i64),
}

/// Two traces compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationComparison {
    /// what the two are called
    pub names: (String, String),
    /// p50 to p99.99, and the longest
    pub quantiles: Vec<QuantileChange>,
    /// every cause of either
    pub causes: Vec<CauseChange>,
    /// operations
    pub operations: (usize, usize),
    /// operations above the limit of the first
    pub above: (usize, usize),
    /// that limit, nanoseconds
    pub limit: i64,
    /// all time, nanoseconds
    pub time: (i64, i64),
}

impl QuantileChange {
    /// after / before.
    pub fn ratio(&self) -> f64 {
        self.after as f64 / self.before.max(1) as f64
    }

    /// Whether the interval leaves out "no change".
    pub fn is_clear(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// Compares `after` with `before`.
pub fn compare_operations(
    names: (&str, &str),
    before: &OperationReport,
    after: &OperationReport,
) -> OperationComparison {
    let intervals =
        quantile_ratio_intervals(&BlockBootstrap::new(&before.times), &BlockBootstrap::new(&after.times));
    let sides = before.quantiles.iter().zip(&after.quantiles);
    let change = |(at, (share, (from, to))): (usize, (f64, (&i64, &i64)))| {
        let judged = before.is_beyond_probe_cost(*from) && after.is_beyond_probe_cost(*to);
        QuantileChange {
            name: format!("p{}", share * 100.0),
            before: *from,
            after: *to,
            interval: intervals.and_then(|all| all.get(at).copied()).filter(|_| judged),
            judged,
        }
    };
    let mut quantiles: Vec<QuantileChange> = SHARES.into_iter().zip(sides).enumerate().map(change).collect();
    let longest = QuantileChange {
        name: "longest".into(),
        before: before.longest,
        after: after.longest,
        interval: None,
        judged: before.is_beyond_probe_cost(before.longest) && after.is_beyond_probe_cost(after.longest),
    };
    quantiles.push(longest);
    let above = |report: &OperationReport| report.times.iter().filter(|time| **time > before.limit).count();
    OperationComparison {
        names: (names.0.into(), names.1.into()),
        quantiles,
        causes: cause_changes(before, after),
        operations: (before.operations, after.operations),
        above: (above(before), above(after)),
        limit: before.limit,
        time: (before.time, after.time),
    }
}

fn cause_changes(before: &OperationReport, after: &OperationReport) -> Vec<CauseChange> {
    let mut names: Vec<&str> =
        before.causes.iter().chain(&after.causes).map(|cause| cause.name.as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let above = |report: &OperationReport, name: &str| {
        report
            .outliers
            .iter()
            .filter(|outlier| outlier.time > before.limit && report.outlier_cause(outlier) == name)
            .count()
    };
    let of = |name: &str| {
        let (from, to) = (before.find_cause(name), after.find_cause(name));
        let both = |figure: fn(&crate::operations::outliers::OperationCauseRow) -> i64| {
            (from.map_or(0, figure), to.map_or(0, figure))
        };
        CauseChange {
            name: name.into(),
            outliers: (above(before, name), above(after, name)),
            operations: (from.map_or(0, |cause| cause.operations), to.map_or(0, |cause| cause.operations)),
            time: both(|cause| cause.time),
            longest: both(|cause| cause.longest),
        }
    };
    let mut all: Vec<CauseChange> = names.into_iter().chain(["mixed", "unexplained"]).map(of).collect();
    all.sort_by_key(|cause| std::cmp::Reverse(cause.outliers.0.max(cause.outliers.1)));
    all
}
