//! The whole answer about one trace.

use perflab_model::trace::{Operations, Traced};
use serde::Serialize;

use super::causes::{Cause, causes};
use super::onset::{Onset, onsets};
use super::outliers::{Outlier, Verdict, outliers};
use super::pattern::{Efficiency, Mode, Period, efficiencies, modes, periods};
use super::probe_cost::OperationCost;
use super::quantiles::quantiles;
use super::tally::{CauseRow, Share, share, tally};
use super::times::{Clock, Times};

/// How outliers are found.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Which time counts; the one that explains where left out ([`choose_clock`]).
    pub clock: Option<Clock>,
    /// The kind of operation; the most frequent one where left out.
    pub operation: Option<String>,
    /// An outlier is above this quantile of all operations …
    pub quantile: f64,
    /// … and so many median absolute deviations above the median around it.
    pub spreads: f64,
    /// The longest so many are outliers in any case.
    pub top: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { clock: None, operation: None, quantile: 0.999, spreads: 10.0, top: 20 }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Nothing to analyse.
    #[error("the trace holds no sound operation{reason}")]
    Empty {
        /// what the tracer said
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

/// What one trace says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// the kind of operation
    pub operation: String,
    /// which time counts
    pub clock: Clock,
    /// whether that was not asked for, but is the one that explains
    pub clock_chosen: bool,
    /// what probes cost, which is taken off; none where the program itself told
    pub probe_cost: Option<OperationCost>,
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
    pub outliers: Vec<Outlier>,
    /// how many
    pub outlier_count: usize,
    /// fraction of all time that outliers took
    pub outlier_time: f64,
    /// each cause, the greatest share of outliers first
    pub causes: Vec<CauseRow>,
    /// outliers that several causes made together
    pub mixed: Share,
    /// outliers that no cause explains
    pub unexplained: Share,
    /// where causes set in
    pub onsets: Vec<Onset>,
    /// modes of the causes that have several
    pub modes: Vec<Mode>,
    /// causes that come at regular intervals
    pub periods: Vec<Period>,
    /// what maintenance cost for what it saved
    pub efficiencies: Vec<Efficiency>,
    /// what is left out of times: preempted and waiting, in nanoseconds, and in how many operations
    pub off_cpu: (i64, usize),
    /// what the tracer said
    pub told: Traced,
    /// times of all operations that were looked at, for comparisons
    #[serde(skip)]
    pub(super) times: Vec<i64>,
    /// their rows in the trace
    #[serde(skip)]
    pub(super) rows: Vec<u32>,
}

/// The clock that explains: the wall's where threads waited for longer than they ran, in all operations or in those that
/// stand out by it; else the CPU's, as what other programs took is in no operation.
///
/// # Errors
/// No operation of the wanted name.
pub fn choose_clock(operations: &Operations, options: &Options) -> Result<Clock, TraceError> {
    if let Some(clock) = options.clock {
        return Ok(clock);
    }
    if operations.waited.is_empty() {
        return Ok(Clock::OnCpu);
    }
    let kind = kind(operations, options.operation.as_deref())?;
    let times = Times::new(operations, kind, Clock::Wall);
    let (_, found) = outliers(&times, &[], None, options);
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
    Ok(if all || slow { Clock::Wall } else { Clock::OnCpu })
}

/// Analyses the operations of one kind.
///
/// # Errors
/// No operation with sound times, or none of the wanted name.
pub fn analyze(operations: &Operations, options: &Options) -> Result<Report, TraceError> {
    let kind = kind(operations, options.operation.as_deref())?;
    let clock = choose_clock(operations, options)?;
    let times = Times::new(operations, kind, clock);
    if times.len() == 0 {
        let reason = operations.told.cut.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        return Err(TraceError::Empty { reason });
    }
    let mut causes = causes(operations, &times, clock);
    let probe_cost = OperationCost::new(operations, &times, kind);
    if let Some(cost) = &probe_cost {
        cost.leave_out(operations, &times, &mut causes);
    }
    let (limit, outliers) = outliers(&times, &causes, probe_cost.as_ref(), options);
    let mut rows = tally(&times, &causes, &outliers);
    rows.sort_by(|a, b| {
        b.share.outliers.cmp(&a.share.outliers).then(b.share.excess.total_cmp(&a.share.excess))
    });
    let modes = modes(&causes);
    let total: i64 = times.time.iter().sum();
    let in_outliers: i64 = outliers.iter().map(|outlier| outlier.time).sum();
    let away = operations.preempted.iter().chain(operations.waited.iter());
    Ok(Report {
        operation: operations.kinds.get(usize::from(kind)).cloned().unwrap_or_default(),
        clock,
        clock_chosen: options.clock.is_none(),
        probe_cost,
        operations: times.len(),
        time: total,
        quantiles: quantiles(&mut times.time.clone()),
        longest: times.time.iter().copied().max().unwrap_or(0),
        shortest: times.time.iter().copied().min().unwrap_or(0),
        limit,
        outlier_count: outliers.len(),
        outlier_time: in_outliers as f64 / total.max(1) as f64,
        mixed: share(&outliers, Verdict::Mixed),
        unexplained: share(&outliers, Verdict::Unexplained),
        onsets: onsets(operations, &times, &causes),
        periods: periods(&times, &causes, &modes),
        efficiencies: efficiencies(operations, &times, &causes),
        off_cpu: away.fold((0, 0), |(time, count), (_, away)| (time + away, count + 1)),
        told: operations.told.clone(),
        outliers: pointed(outliers, &causes, &rows),
        causes: rows,
        modes,
        times: times.time,
        rows: times.rows,
    })
}

/// The kind that is wanted: by name, or the most frequent.
fn kind(operations: &Operations, name: Option<&str>) -> Result<u8, TraceError> {
    if let Some(name) = name {
        let found = operations.kinds.iter().position(|kind| kind == name);
        let hint = || perflab_model::nearest::hint(name, operations.kinds.iter().map(String::as_str));
        return found
            .map(|kind| kind as u8)
            .ok_or_else(|| TraceError::UnknownOperation { name: name.into(), hint: hint() });
    }
    let mut counts = [0_usize; 256];
    operations.kind.iter().for_each(|kind| counts[usize::from(*kind)] += 1);
    let most = counts.iter().enumerate().max_by_key(|(at, count)| (**count, std::cmp::Reverse(*at)));
    Ok(most.map_or(0, |(kind, _)| kind as u8))
}

/// Points the verdicts to the causes as they are sorted in the answer.
fn pointed(outliers: Vec<Outlier>, causes: &[Cause], rows: &[CauseRow]) -> Vec<Outlier> {
    let place = |index: usize| {
        let name = causes.get(index).map(|cause| cause.name.as_str());
        rows.iter().position(|row| Some(row.name.as_str()) == name).unwrap_or(0)
    };
    let verdict = |verdict| match verdict {
        Verdict::Cause(index) => Verdict::Cause(place(index)),
        other => other,
    };
    outliers.into_iter().map(|outlier| Outlier { verdict: verdict(outlier.verdict), ..outlier }).collect()
}

impl Report {
    /// What made an outlier slow, in a word.
    pub fn name(&self, outlier: &Outlier) -> &str {
        match outlier.verdict {
            Verdict::Cause(index) => self.causes.get(index).map_or("unexplained", |cause| &cause.name),
            Verdict::Mixed => "mixed",
            Verdict::Unexplained => "unexplained",
        }
    }

    /// Whether a time is the operations' own and not their probes'.
    pub fn is_judged(&self, time: i64) -> bool {
        self.probe_cost.as_ref().is_none_or(|cost| cost.judged_above == 0 || time > cost.judged_above)
    }

    /// Whether the time of a cause is its own and not its probes'.
    pub fn is_cause_judged(&self, name: &str) -> bool {
        let spans = self.probe_cost.iter().flat_map(|cost| &cost.spans);
        !spans.into_iter().any(|span| span.name == name && !span.judged)
    }

    /// Row in the trace and nanoseconds of every operation that was looked at.
    pub fn dots(&self) -> impl ExactSizeIterator<Item = (u32, i64)> + '_ {
        self.rows.iter().copied().zip(self.times.iter().copied())
    }

    /// A cause by its name.
    pub fn cause(&self, name: &str) -> Option<&CauseRow> {
        self.causes.iter().find(|cause| cause.name == name)
    }
}
