//! Readings of monitors at the edges of iterations: when a workload begins and when it has ended.
//!
//! Counters of an iteration are the difference between its two edges, exact however short it is, over the time between the two
//! readings themselves. They are no ticks: a clock has nothing to do with when they are taken.

use serde::{Deserialize, Serialize};

use crate::column::CellRow;
use crate::quantity::Nanos;
use crate::series::SeriesSchema;
use crate::table::Table;

/// The edges of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IterationEdge {
    /// its process is about to be started
    Begin,
    /// its processes have ended, and nothing of what they printed was looked at
    End,
}

impl IterationEdge {
    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            IterationEdge::Begin => "begin",
            IterationEdge::End => "end",
        }
    }

    /// The reverse of [`IterationEdge::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [IterationEdge::Begin, IterationEdge::End].into_iter().find(|edge| edge.name() == name)
    }
}

/// One monitor at one edge, read from the event's time on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EdgeReading {
    /// Index into the plan's slots.
    pub slot: u32,
    /// Which edge of its iteration.
    pub edge: IterationEdge,
    /// The monitor.
    pub monitor: String,
    /// How long the reading took.
    pub took: Nanos,
    /// All its rows.
    pub rows: Vec<CellRow>,
}

/// When an edge was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeStamp {
    /// Index into the plan's slots.
    pub slot: u32,
    /// Which edge of its iteration.
    pub edge: IterationEdge,
    /// When the reading began, CLOCK_MONOTONIC of the machine that records.
    pub at: Nanos,
    /// How long it took.
    pub took: Nanos,
}

/// All edge readings of one monitor in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeReadings {
    /// Where the numbers come from, and what the columns are.
    pub schema: SeriesSchema,
    /// Of each row, when it was read.
    pub stamps: Vec<EdgeStamp>,
    /// The monitor's columns, those of the schema, as long as `stamps`.
    pub table: Table,
}

impl EdgeReadings {
    /// Without a row.
    #[must_use]
    pub fn empty(schema: SeriesSchema) -> Self {
        let table = Table::empty(schema.columns.clone().into());
        EdgeReadings { schema, stamps: Vec::new(), table }
    }

    /// From rows of cells, each with when it was read.
    #[must_use]
    pub fn from_rows(schema: SeriesSchema, rows: &[(EdgeStamp, CellRow)]) -> Self {
        let mut builder = crate::table::TableBuilder::new(schema.columns.clone().into());
        rows.iter().for_each(|(_, row)| builder.push_cells(row));
        EdgeReadings {
            schema,
            stamps: rows.iter().map(|(stamp, _)| *stamp).collect(),
            table: builder.finish(),
        }
    }
}
