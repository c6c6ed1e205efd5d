//! Every operation of a traced program as columns, with the spans inside it and what the kernel did in it.
//!
//! A tracer declares its vocabulary once; what most operations lack (a span, a page fault) is stored only where it
//! occurs.

use serde::{Deserialize, Serialize};

/// The tracer of operations, and the name of its table: programs linked with optrace, and probes.
pub const OPERATION_TRACER: &str = "optrace";

/// A column with a value in some rows only, in the order of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SparseColumn {
    rows: Vec<u32>,
    values: Vec<i64>,
}

impl SparseColumn {
    /// The value of a row that is behind all rows so far; others are left out.
    pub fn push(&mut self, row: u32, value: i64) {
        if self.rows.last().is_none_or(|last| *last < row) {
            self.rows.push(row);
            self.values.push(value);
        }
    }

    /// Rows that have a value.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row has one.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Row and value, in the order of rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, i64)> + '_ {
        self.rows.iter().copied().zip(self.values.iter().copied())
    }

    /// The value with this index among those that there are. O(1).
    pub fn nth_value(&self, index: usize) -> Option<i64> {
        self.values.get(index).copied()
    }

    /// Row and value with this index among those that there are. O(1).
    pub fn nth(&self, index: usize) -> Option<(u32, i64)> {
        self.rows.get(index).copied().zip(self.nth_value(index))
    }

    /// The value of a row. O(log n).
    pub fn get(&self, row: u32) -> Option<i64> {
        let at = self.rows.binary_search(&row).ok()?;
        self.values.get(at).copied()
    }

    /// The last value at or before a row: the state as it was then. O(log n).
    pub fn last_at_or_before(&self, row: u32) -> Option<i64> {
        let at = self.rows.partition_point(|other| *other <= row).checked_sub(1)?;
        self.values.get(at).copied()
    }
}

impl FromIterator<(u32, i64)> for SparseColumn {
    fn from_iter<I: IntoIterator<Item = (u32, i64)>>(pairs: I) -> Self {
        let mut sparse = SparseColumn::default();
        pairs.into_iter().for_each(|(row, value)| sparse.push(row, value));
        sparse
    }
}

/// The time of one kind of span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpanColumn {
    /// As the program calls it: `reap`.
    pub name: String,
    /// Exclusive nanoseconds, without the spans inside.
    pub time: SparseColumn,
    /// How often it occurred in the operation.
    pub count: SparseColumn,
}

/// A number that operations carry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberColumn {
    /// As the program calls it: `elements`.
    pub name: String,
    /// Its values.
    pub values: SparseColumn,
}

/// The operations of one iteration, column by column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperationColumns {
    /// Names of the kinds of operation.
    pub kinds: Vec<String>,
    /// Which kind: an index into `kinds`.
    pub kind: Vec<u8>,
    /// The thread's id as the kernel counts.
    pub thread: Vec<i32>,
    /// When it began, nanoseconds of the target's CLOCK_MONOTONIC.
    pub start: Vec<i64>,
    /// How long it took, nanoseconds, recording taken off.
    pub wall: Vec<i64>,
    /// Nanoseconds of those that the thread was ready and another ran.
    pub preempted: SparseColumn,
    /// Nanoseconds of those that the thread waited.
    pub waited: SparseColumn,
    /// Pages that were not there when touched.
    pub faults: SparseColumn,
    /// What was wrong with the record: bits of [`OperationColumns::BACKWARDS`], [`OperationColumns::BEYOND`], [`OperationColumns::UNBALANCED`].
    pub flags: SparseColumn,
    /// The spans, in the program's order.
    pub spans: Vec<SpanColumn>,
    /// The numbers, in the program's order.
    pub numbers: Vec<NumberColumn>,
    /// What the tracer reported of its work.
    pub summary: OperationTraceSummary,
}

impl OperationColumns {
    /// A time stamp was below an earlier one.
    pub const BACKWARDS: i64 = 1;
    /// There were more spans or numbers than the tracer's limits.
    pub const BEYOND: i64 = 2;
    /// Ends did not match beginnings.
    pub const UNBALANCED: i64 = 4;

    /// How many.
    pub fn len(&self) -> usize {
        self.wall.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.wall.is_empty()
    }

    /// Adds the operations of another iteration of the same program behind these.
    pub fn append(&mut self, other: &OperationColumns) {
        let first = self.len() as u32;
        let shift = |to: &mut SparseColumn, from: &SparseColumn| {
            from.iter().for_each(|(row, value)| to.push(first + row, value))
        };
        for name in &other.kinds {
            if !self.kinds.contains(name) {
                self.kinds.push(name.clone());
            }
        }
        let place = |kind: &u8| {
            let name = other.kinds.get(usize::from(*kind));
            self.kinds.iter().position(|kind| Some(kind) == name).unwrap_or(0) as u8
        };
        self.kind.extend(other.kind.iter().map(place));
        self.thread.extend(&other.thread);
        self.start.extend(&other.start);
        self.wall.extend(&other.wall);
        shift(&mut self.preempted, &other.preempted);
        shift(&mut self.waited, &other.waited);
        shift(&mut self.faults, &other.faults);
        shift(&mut self.flags, &other.flags);
        for from in &other.spans {
            if let Some(to) = self.spans.iter_mut().find(|to| to.name == from.name) {
                shift(&mut to.time, &from.time);
                shift(&mut to.count, &from.count);
            }
        }
        for from in &other.numbers {
            if let Some(to) = self.numbers.iter_mut().find(|to| to.name == from.name) {
                shift(&mut to.values, &from.values);
            }
        }
    }

    /// A number's column.
    pub fn number_values(&self, name: &str) -> Option<&SparseColumn> {
        self.numbers.iter().find(|number| number.name == name).map(|number| &number.values)
    }
}

/// An iteration as a tracer saw it: of a slot, on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracedIteration {
    /// Index into the plan's slots.
    pub slot: u32,
    /// Index into the run's targets; none on this host.
    pub target: Option<u32>,
}

/// The iterations of which a tracer recorded operations, in the order of `summaries`.
pub fn iterations_with_operations(summaries: &[OperationTraceSummary]) -> Vec<TracedIteration> {
    summaries.iter().filter(|summary| summary.operations > 0).map(OperationTraceSummary::iteration).collect()
}

impl OperationTraceSummary {
    /// Which iteration it is about.
    pub fn iteration(&self) -> TracedIteration {
        TracedIteration { slot: self.slot, target: self.target }
    }
}

/// What a tracer says about one iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationTraceSummary {
    /// Index into the plan's slots.
    pub slot: u32,
    /// Index into the run's targets; none on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// Operations that were read, and rows of the table.
    pub operations: u64,
    /// Operations that the tracer lost.
    pub lost: u64,
    /// Why the trace ends before the program closed it; none where it did.
    pub cut: Option<String>,
    /// Operations with a time stamp below an earlier one.
    pub backwards: u64,
    /// Operations with more spans or numbers than the limits.
    pub beyond: u64,
    /// Operations whose ends did not match their beginnings.
    pub unbalanced: u64,
    /// Operations whose end never came: the program left them by a jump or an error.
    #[serde(default)]
    pub abandoned: u64,
    /// Operations inside one that was open: part of its time.
    #[serde(default)]
    pub nested: u64,
    /// Operations that were open when the program ended.
    #[serde(default)]
    pub open: u64,
    /// Operations that were found in the memory of a program that ended without closing its trace.
    #[serde(default)]
    pub rescued: u64,
    /// How often the program forked: what its children did is not in the trace.
    #[serde(default)]
    pub forks: u64,
    /// How often the program waited for the writer between operations.
    pub waits: u64,
    /// For how long in all, in nanoseconds.
    pub waited_ns: u64,
    /// Threads.
    pub threads: u32,
    /// Events of the kernel that were joined.
    pub events: u64,
    /// Events that the kernel had no room for.
    pub events_lost: u64,
    /// The errno with which the kernel refused its events.
    pub refused: Option<i32>,
    /// What an operation measured of recording itself, in nanoseconds; taken off.
    pub operation_cost_ns: f64,
    /// What a span added, in nanoseconds; taken off for each.
    pub span_cost_ns: f64,
    /// What probes cost where each operation and span begins and ends; empty where the program itself recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probe_costs: Vec<TracedProbeCost>,
}

/// What the probes of one kind of operation, or of span, cost; it was taken off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TracedProbeCost {
    /// The name of the operation or span.
    pub name: String,
    /// Whether it is a span.
    pub span: bool,
    /// Nanoseconds between the times of its begin and its end with nothing between.
    pub own_ns: f64,
    /// Nanoseconds of both in all, by which they lengthen what is around them.
    pub pair_ns: f64,
    /// Nanoseconds that probes of operations inside one of these cost, in the mean; 0 of spans.
    #[serde(default, skip_serializing_if = "is_zero_ns")]
    pub inside_ns: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero_ns(ns: &f64) -> bool {
    *ns == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparse_column_knows_its_rows() {
        let sparse: SparseColumn = [(2, 20), (5, 50), (5, 51), (3, 30)].into_iter().collect();
        assert_eq!(sparse.iter().collect::<Vec<_>>(), [(2, 20), (5, 50)]);
        assert_eq!((sparse.get(2), sparse.get(3), sparse.get(5)), (Some(20), None, Some(50)));
        assert_eq!(
            (sparse.last_at_or_before(1), sparse.last_at_or_before(4), sparse.last_at_or_before(9)),
            (None, Some(20), Some(50))
        );
    }
}
