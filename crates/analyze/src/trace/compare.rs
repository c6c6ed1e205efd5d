//! Two traces of the same work: what changed, at which quantile, how sure that is, and in which cause.

use serde::Serialize;

use super::quantiles::{BlockBootstrap, SHARES, quantile_ratio_intervals};
use super::report::OperationReport;

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
        let both = |figure: fn(&super::tally::OperationCauseRow) -> i64| {
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
