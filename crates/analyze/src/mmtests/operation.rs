//! Owns the gathering of a comparison's rows into MMTests' operations: one label a benchmark, with the values of every
//! side. It refuses statistics.

use indexmap::IndexMap;
use perflab_model::Direction;
use perflab_stats::BetterDirection;

use super::plain;
use super::report::{MmtestsReport, is_unread_metric};
use crate::comparison::{Comparison, SideSummary, VerdictRow};

/// One metric at one point of a benchmark, on every side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MmtestsOperation {
    /// `time-4`: the metric, then the matrix parameters.
    pub(super) label: String,
    pub(super) metric: String,
    unit: String,
    /// The metric's own direction; MMTests' where the metric has none.
    pub(super) better: BetterDirection,
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
pub(super) struct MmtestsBenchmark {
    pub(super) name: String,
    pub(super) report: MmtestsReport,
    pub(super) operations: Vec<MmtestsOperation>,
    /// Labels of what perflab read and MMTests does not read.
    pub(super) unknown: Vec<String>,
}

/// All benchmarks of a comparison.
pub(super) fn mmtests_benchmarks(comparison: &Comparison) -> Vec<MmtestsBenchmark> {
    // Values of different units are never of one operation.
    let mut found: IndexMap<&str, IndexMap<(String, &str), MmtestsOperation>> = IndexMap::new();
    for row in comparison.rows.iter().filter(|row| row.workload != plain::DURATION_WORKLOAD) {
        let report = MmtestsReport::for_benchmark(&row.workload);
        let operations = found.entry(row.workload.as_str()).or_default();
        let label = operation_label(row);
        let operation = operations
            .entry((label.clone(), row.unit.0.as_ref()))
            .or_insert_with(|| empty_operation(label, row, report, comparison));
        operation.add_row(row, comparison);
    }
    found.into_iter().map(|(name, operations)| mmtests_benchmark(name, operations.into_values())).collect()
}

/// The rows that MMTests has, in its order; what it does not read stays only where there is nothing else.
fn mmtests_benchmark(name: &str, operations: impl Iterator<Item = MmtestsOperation>) -> MmtestsBenchmark {
    let report = MmtestsReport::for_benchmark(name);
    let (unknown, mut known): (Vec<_>, Vec<_>) =
        operations.partition(|operation| is_unread_metric(name, &operation.metric));
    if known.is_empty() {
        return MmtestsBenchmark { name: name.into(), report, operations: unknown, unknown: Vec::new() };
    }
    if report.is_sorted_by_metric(name) {
        known.sort_by(|a, b| a.metric.cmp(&b.metric));
    }
    append_units(&mut known);
    let unknown = unknown.into_iter().map(|operation| operation.label).collect();
    MmtestsBenchmark { name: name.into(), report, operations: known, unknown }
}

/// Operations of one label that differ in their units say them.
fn append_units(operations: &mut [MmtestsOperation]) {
    let mut labels: IndexMap<String, usize> = IndexMap::new();
    operations.iter().for_each(|operation| *labels.entry(operation.label.clone()).or_default() += 1);
    for operation in operations.iter_mut().filter(|operation| labels.get(&operation.label) > Some(&1)) {
        operation.label = format!("{} [{}]", operation.label, operation.unit);
    }
}

fn operation_label(row: &VerdictRow) -> String {
    row.point.values().fold(row.metric.clone(), |label, value| format!("{label}-{value}"))
}

fn empty_operation(
    label: String,
    row: &VerdictRow,
    report: MmtestsReport,
    comparison: &Comparison,
) -> MmtestsOperation {
    let sides = comparison.candidates.len() + 1;
    let (better, has_direction) = match row.direction {
        Direction::Higher => (BetterDirection::Higher, true),
        Direction::Lower => (BetterDirection::Lower, true),
        Direction::Neither => (report.direction.unwrap_or(BetterDirection::Lower), false),
    };
    let (values, q, failed) = (vec![Vec::new(); sides], vec![None; sides], vec![0; sides]);
    let (metric, unit) = (row.metric.clone(), row.unit.to_string());
    MmtestsOperation { label, metric, unit, better, has_direction, sides: values, q, failed }
}

impl MmtestsOperation {
    fn add_row(&mut self, row: &VerdictRow, comparison: &Comparison) {
        let at =
            comparison.candidates.iter().position(|name| *name == row.candidate_name).map_or(0, |i| i + 1);
        self.fill_side(0, row.baseline.as_ref());
        self.fill_side(at, row.candidate.as_ref());
        if let Some(q) = self.q.get_mut(at) {
            *q = row.q;
        }
    }

    fn fill_side(&mut self, side: usize, summary: Option<&SideSummary>) {
        let Some(summary) = summary else { return };
        if let (Some(values), Some(failed)) = (self.sides.get_mut(side), self.failed.get_mut(side)) {
            *values = summary.values.iter().map(|point| point.value).collect();
            *failed = summary.failed;
        }
    }
}
