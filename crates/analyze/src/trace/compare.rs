//! Two traces of the same work: what changed, at which quantile, how sure that is, and in which cause.

use serde::Serialize;

use super::quantiles::{Blocks, SHARES, ratios};
use super::report::Report;

/// Before and after of one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
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
pub struct Comparison {
    /// what the two are called
    pub names: (String, String),
    /// p50 to p99.99, and the longest
    pub quantiles: Vec<Change>,
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

impl Change {
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
pub fn compare(names: (&str, &str), before: &Report, after: &Report) -> Comparison {
    let intervals = ratios(&Blocks::new(&before.times), &Blocks::new(&after.times));
    let sides = before.quantiles.iter().zip(&after.quantiles);
    let change = |(at, (share, (from, to))): (usize, (f64, (&i64, &i64)))| {
        let judged = before.is_judged(*from) && after.is_judged(*to);
        Change {
            name: format!("p{}", share * 100.0),
            before: *from,
            after: *to,
            interval: intervals.and_then(|all| all.get(at).copied()).filter(|_| judged),
            judged,
        }
    };
    let mut quantiles: Vec<Change> = SHARES.into_iter().zip(sides).enumerate().map(change).collect();
    let longest = Change {
        name: "longest".into(),
        before: before.longest,
        after: after.longest,
        interval: None,
        judged: before.is_judged(before.longest) && after.is_judged(after.longest),
    };
    quantiles.push(longest);
    let above = |report: &Report| report.times.iter().filter(|time| **time > before.limit).count();
    Comparison {
        names: (names.0.into(), names.1.into()),
        quantiles,
        causes: causes(before, after),
        operations: (before.operations, after.operations),
        above: (above(before), above(after)),
        limit: before.limit,
        time: (before.time, after.time),
    }
}

fn causes(before: &Report, after: &Report) -> Vec<CauseChange> {
    let mut names: Vec<&str> =
        before.causes.iter().chain(&after.causes).map(|cause| cause.name.as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let above = |report: &Report, name: &str| {
        report
            .outliers
            .iter()
            .filter(|outlier| outlier.time > before.limit && report.name(outlier) == name)
            .count()
    };
    let of = |name: &str| {
        let (from, to) = (before.cause(name), after.cause(name));
        let both =
            |figure: fn(&super::tally::CauseRow) -> i64| (from.map_or(0, figure), to.map_or(0, figure));
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
