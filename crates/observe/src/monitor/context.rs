//! What a monitor is opened with, and what it gives: its schema, and readings as whole rows or as changes.

use perflab_formats::kernel::KernelFile;
use perflab_model::column::stored_columns;
use perflab_model::{CellRow, ColumnSpec, IterationEdge, Nanos, SeriesSchema};

use crate::error::ObserveError;
use crate::events::run_events::RunTracepoints;
use crate::root::Root;
use crate::run_counters::RunCounters;

/// A monitor that was opened.
pub trait Monitor: Send {
    /// Its columns; the same for as long as it is open.
    fn schema(&self) -> &SeriesSchema;

    /// Reads its file now and appends all rows of this tick.
    ///
    /// # Errors
    /// When the file cannot be read any more or is not understood; `rows` may then hold some of them.
    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError>;

    /// Reads its file at an edge of an iteration, for who tells of iterations.
    ///
    /// # Errors
    /// As [`Monitor::read_rows`].
    fn read_edge(&mut self, _edge: IterationEdge, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.read_rows(rows)
    }

    /// Reads its file now, and returns what differs from its last reading, where it knows; else everything.
    ///
    /// # Errors
    /// As [`Monitor::read_rows`].
    fn read_changes(&mut self) -> Result<MonitorReading, ObserveError> {
        let mut rows = Vec::new();
        self.read_rows(&mut rows)?;
        Ok(MonitorReading::Whole(rows))
    }
}

/// What a monitor says at a tick.
#[derive(Debug, Clone, PartialEq)]
pub enum MonitorReading {
    /// All rows.
    Whole(Vec<CellRow>),
    /// Those that differ from the last tick's, each with its index: the others are as they were.
    Changed(Vec<(u32, CellRow)>),
}

/// The machine whose monitors are read, and what of it is counted.
#[derive(Debug, Clone)]
pub struct MonitoredMachine {
    /// Where /proc and /sys are.
    pub root: Root,
    /// The counters of the run; those of nothing where there is none.
    pub counters: RunCounters,
    /// Its tracepoints that are counted; none where there is none.
    pub events: RunTracepoints,
}

impl From<&Root> for MonitoredMachine {
    fn from(root: &Root) -> Self {
        MonitoredMachine {
            root: root.clone(),
            counters: RunCounters::default(),
            events: RunTracepoints::default(),
        }
    }
}

/// What a monitor is opened with.
#[derive(Debug)]
pub struct MonitorContext<'a> {
    pub(crate) file: &'static KernelFile,
    pub(crate) root: &'a Root,
    pub(crate) interval: Nanos,
    pub(crate) counters: &'a RunCounters,
    pub(crate) events: &'a RunTracepoints,
}

impl MonitorContext<'_> {
    /// The schema of a monitor with these columns.
    pub(crate) fn schema_with_columns(&self, columns: Vec<ColumnSpec>) -> SeriesSchema {
        SeriesSchema {
            stored: perflab_model::series::StoredRows::Every,
            monitor: self.file.name.into(),
            source: self.file.source.into(),
            interval: self.interval,
            columns,
        }
    }

    /// The schema of a monitor that has the columns it declares.
    pub(crate) fn declared_schema(&self) -> SeriesSchema {
        self.schema_with_columns(stored_columns(self.file.columns))
    }
}
