//! Owns the gathering of a comparison's rows into MMTests' operations: one label a benchmark, with the values of every
//! side. It refuses statistics.

use indexmap::IndexMap;
use perflab_model::Direction;
use perflab_stats::Better;

use super::plain;
use super::report::{Report, is_unknown};
use crate::comparison::{Comparison, Row, Summary};

/// One metric at one point of a benchmark, on every side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operation {
    /// `time-4`: the metric, then the matrix parameters.
    pub(super) label: String,
    pub(super) metric: String,
    unit: String,
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
    /// Labels of what perflab read and MMTests does not read.
    pub(super) unknown: Vec<String>,
}

/// All benchmarks of a comparison.
pub(super) fn benchmarks(comparison: &Comparison) -> Vec<Benchmark> {
    // Values of different units are never of one operation.
    let mut found: IndexMap<&str, IndexMap<(String, &str), Operation>> = IndexMap::new();
    for row in comparison.rows.iter().filter(|row| row.workload != plain::WORKLOAD) {
        let report = Report::of(&row.workload);
        let operations = found.entry(row.workload.as_str()).or_default();
        let label = label(row);
        let operation = operations
            .entry((label.clone(), row.unit.0.as_ref()))
            .or_insert_with(|| empty(label, row, report, comparison));
        operation.add(row, comparison);
    }
    found.into_iter().map(|(name, operations)| benchmark(name, operations.into_values())).collect()
}

/// The rows that MMTests has, in its order; what it does not read stays only where there is nothing else.
fn benchmark(name: &str, operations: impl Iterator<Item = Operation>) -> Benchmark {
    let report = Report::of(name);
    let (unknown, mut known): (Vec<_>, Vec<_>) =
        operations.partition(|operation| is_unknown(name, &operation.metric));
    if known.is_empty() {
        return Benchmark { name: name.into(), report, operations: unknown, unknown: Vec::new() };
    }
    if report.is_sorted(name) {
        known.sort_by(|a, b| a.metric.cmp(&b.metric));
    }
    tell_units(&mut known);
    let unknown = unknown.into_iter().map(|operation| operation.label).collect();
    Benchmark { name: name.into(), report, operations: known, unknown }
}

/// Operations of one label that differ in their units say them.
fn tell_units(operations: &mut [Operation]) {
    let mut labels: IndexMap<String, usize> = IndexMap::new();
    operations.iter().for_each(|operation| *labels.entry(operation.label.clone()).or_default() += 1);
    for operation in operations.iter_mut().filter(|operation| labels.get(&operation.label) > Some(&1)) {
        operation.label = format!("{} [{}]", operation.label, operation.unit);
    }
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
    let (metric, unit) = (row.metric.clone(), row.unit.to_string());
    Operation { label, metric, unit, better, has_direction, sides: values, q, failed }
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
