//! Owns the gathering of a comparison's rows into MMTests' operations: one label a benchmark, with the values of every
//! side. It refuses statistics.

use indexmap::IndexMap;
use perflab_model::Direction;
use perflab_stats::Better;

use super::duration;
use super::report::Report;
use crate::comparison::{Comparison, Row, Summary};

/// One metric at one point of a benchmark, on every side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operation {
    /// `time-4`: the metric, then the matrix parameters.
    pub(super) label: String,
    /// The metric's own direction; MMTests' where the metric has none.
    pub(super) better: Better,
    pub(super) has_direction: bool,
    /// Values of the baseline, then of each candidate; empty where a side has none.
    pub(super) sides: Vec<Vec<f64>>,
    /// The q of each side's change from the baseline (the first has none).
    pub(super) q: Vec<Option<f64>>,
    /// Failed iterations of each side.
    pub(super) failed: Vec<usize>,
}

/// A benchmark's operations in the order of the rows.
#[derive(Debug)]
pub(super) struct Benchmark {
    pub(super) name: String,
    pub(super) report: Report,
    pub(super) operations: Vec<Operation>,
}

/// All benchmarks of a comparison.
pub(super) fn benchmarks(comparison: &Comparison) -> Vec<Benchmark> {
    let mut found: IndexMap<&str, IndexMap<String, Operation>> = IndexMap::new();
    for row in comparison.rows.iter().filter(|row| row.workload != duration::WORKLOAD) {
        let report = Report::of(&row.workload);
        let operations = found.entry(row.workload.as_str()).or_default();
        let label = label(row);
        let operation =
            operations.entry(label.clone()).or_insert_with(|| empty(label, row, report, comparison));
        operation.add(row, comparison);
    }
    let benchmark = |(name, operations): (&str, IndexMap<String, Operation>)| Benchmark {
        name: name.into(),
        report: Report::of(name),
        operations: operations.into_values().collect(),
    };
    found.into_iter().map(benchmark).collect()
}

fn label(row: &Row) -> String {
    row.point.values().fold(row.metric.clone(), |label, value| format!("{label}-{value}"))
}

fn empty(label: String, row: &Row, report: Report, comparison: &Comparison) -> Operation {
    let sides = comparison.candidates.len() + 1;
    let (better, has_direction) = match row.direction {
        Direction::Higher => (Better::Higher, true),
        Direction::Lower => (Better::Lower, true),
        Direction::Neither => (report.direction.unwrap_or(Better::Lower), false),
    };
    let (values, q, failed) = (vec![Vec::new(); sides], vec![None; sides], vec![0; sides]);
    Operation { label, better, has_direction, sides: values, q, failed }
}

impl Operation {
    fn add(&mut self, row: &Row, comparison: &Comparison) {
        let at =
            comparison.candidates.iter().position(|name| *name == row.candidate_name).map_or(0, |i| i + 1);
        self.fill(0, row.baseline.as_ref());
        self.fill(at, row.candidate.as_ref());
        if let Some(q) = self.q.get_mut(at) {
            *q = row.q;
        }
    }

    fn fill(&mut self, side: usize, summary: Option<&Summary>) {
        let Some(summary) = summary else { return };
        if let (Some(values), Some(failed)) = (self.sides.get_mut(side), self.failed.get_mut(side)) {
            *values = summary.values.iter().map(|point| point.value).collect();
            *failed = summary.failed;
        }
    }
}
