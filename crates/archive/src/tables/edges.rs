//! `edges/MONITOR.parquet`: what one monitor read when iterations began and ended. They are no ticks, and lie apart from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perflab_model::column::{ColumnKind, ColumnType, stored_columns};
use perflab_model::series::{SeriesGap, SeriesSchema};
use perflab_model::table::StoredValue;
use perflab_model::{
    ColumnRef, ColumnSpec, DeclaredColumn, EdgeReading, EdgeReadings, EdgeStamp, IterationEdge, Nanos,
    RowSchema, RunEventKind, TableBuilder,
};

use crate::error::ArchiveError;
use crate::journal::{JournalReader, kind};
use crate::parquet::{ParquetReader, ParquetWriter};
use crate::run_layout::{EDGES, edges_path};
use crate::tables::samples::{from_stored_nanos, to_index, to_stored_index, to_stored_nanos};
use crate::tables::series::{self, monitor_columns, series_metadata};

/// What every table of edges has: its other columns are the monitor's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeRow;

const fn stamp(
    name: &'static str,
    stored: ColumnType,
    unit: &'static str,
    meaning: &'static str,
) -> DeclaredColumn {
    DeclaredColumn::required(name, stored, unit, ColumnKind::Key, meaning)
}

impl RowSchema for EdgeRow {
    const NAME: &'static str = "edges";
    const COLUMNS: &'static [DeclaredColumn] = &[
        stamp("slot", ColumnType::Int32, "1", "index into plan.slots of run.json"),
        stamp("edge", ColumnType::Text, "1", "begin or end: which edge of the slot's iteration"),
        stamp("time_ns", ColumnType::Int, "ns", "when the reading began"),
        stamp("took_ns", ColumnType::Int, "ns", "how long the reading took"),
    ];
}

impl EdgeRow {
    const SLOT: ColumnRef<Self, i32> = ColumnRef::named("slot");
    const EDGE: ColumnRef<Self, str> = ColumnRef::named("edge");
    const TIME: ColumnRef<Self, i64> = ColumnRef::named("time_ns");
    const TOOK: ColumnRef<Self, i64> = ColumnRef::named("took_ns");

    /// The columns that every table of edges has.
    const READ: &[&str] = &[Self::SLOT.name(), Self::EDGE.name(), Self::TIME.name(), Self::TOOK.name()];
}

/// The columns of a table: those of every edge, and those of the schema.
fn edge_columns(schema: &SeriesSchema) -> Vec<ColumnSpec> {
    stored_columns(EdgeRow::COLUMNS).into_iter().chain(monitor_columns(schema)).collect()
}

/// Where a monitor's readings go, and how many did not fit its schema.
struct EdgeSink {
    table: ParquetWriter<EdgeRow>,
    width: usize,
    misfits: u64,
    since: Nanos,
}

/// All edges of a run being written.
pub(crate) struct EdgeTableWriter {
    directory: PathBuf,
    /// Of monitors that were opened; the first schema stands.
    schemas: BTreeMap<String, SeriesSchema>,
    sinks: BTreeMap<String, EdgeSink>,
}

impl EdgeTableWriter {
    /// `directory` is the run's; the tables go to `edges/` in it.
    pub(crate) fn new(directory: &Path) -> Self {
        EdgeTableWriter { directory: directory.into(), schemas: BTreeMap::new(), sinks: BTreeMap::new() }
    }

    /// Notes the columns of a monitor.
    pub(crate) fn note_schema(&mut self, schema: &SeriesSchema) {
        self.schemas.entry(schema.monitor.clone()).or_insert_with(|| schema.clone());
    }

    /// Takes a reading that began then. One of a monitor that was never opened has no columns to go to.
    pub(crate) fn push(&mut self, at: Nanos, reading: &EdgeReading) -> Result<(), ArchiveError> {
        if !self.sinks.contains_key(&reading.monitor) {
            let Some(schema) = self.schemas.get(&reading.monitor) else { return Ok(()) };
            let folder = self.directory.join(EDGES);
            fs::create_dir_all(&folder).map_err(ArchiveError::io("create", &folder))?;
            let path = self.directory.join(edges_path(&schema.monitor));
            let table = ParquetWriter::create(&path, edge_columns(schema), &series_metadata(schema))?;
            let sink = EdgeSink { table, width: schema.columns.len(), misfits: 0, since: at };
            self.sinks.insert(reading.monitor.clone(), sink);
        }
        self.sinks.get_mut(&reading.monitor).map_or(Ok(()), |sink| sink.push(at, reading))
    }

    /// Closes all tables; gives a gap for each monitor with rows that did not fit.
    pub(crate) fn close(self) -> Result<Vec<SeriesGap>, ArchiveError> {
        let mut gaps = Vec::new();
        for (monitor, EdgeSink { table, misfits, since: from, .. }) in self.sinks {
            table.close()?;
            if misfits > 0 {
                let reason = format!(
                    "{misfits} rows at edges had another number of cells than the schema has columns"
                );
                gaps.push(SeriesGap { monitor, from, to: None, reason });
            }
        }
        Ok(gaps)
    }
}

impl EdgeSink {
    fn push(&mut self, at: Nanos, reading: &EdgeReading) -> Result<(), ArchiveError> {
        for cells in &reading.rows {
            if cells.len() != self.width {
                self.since = if self.misfits == 0 { at } else { self.since };
                self.misfits += 1;
                continue;
            }
            let row = self.table.row();
            row.set(EdgeRow::SLOT, to_stored_index(reading.slot));
            row.set(EdgeRow::EDGE, reading.edge.name());
            row.set(EdgeRow::TIME, to_stored_nanos(at));
            row.set(EdgeRow::TOOK, to_stored_nanos(reading.took));
            for (column, cell) in (EdgeRow::COLUMNS.len()..).zip(cells) {
                StoredValue::from_cell(cell).into_iter().for_each(|value| row.rows().set(column, value));
            }
            self.table.end_row()?;
        }
        Ok(())
    }
}

/// The tables of edges.
pub(crate) fn list_edge_tables(run: &Path) -> Result<Vec<series::NamedTable>, ArchiveError> {
    series::list_each_table(run, EDGES)
}

/// The monitors that the run at `run` has edges of, sorted.
pub(crate) fn list_edge_monitors(run: &Path) -> Result<Vec<String>, ArchiveError> {
    series::list_tables(run, EDGES)
}

/// What the monitor read at edges; none where it was not read at any.
pub(crate) fn read_edges(run: &Path, monitor: &str) -> Result<Option<EdgeReadings>, ArchiveError> {
    let path = edges_path(monitor);
    if !run.join(&path).exists() {
        return Ok(None);
    }
    let table = ParquetReader::open(run, path)?;
    let schema = series::stored_schema(&table, monitor, EdgeRow::COLUMNS);
    let columns: Arc<[ColumnSpec]> = schema.columns.clone().into();
    let (mut stamps, mut whole) = (Vec::new(), TableBuilder::new(Arc::clone(&columns)));
    for rows in table.read_whole_rows::<EdgeRow>(table.row_groups(), EdgeRow::READ)? {
        let rows = rows?;
        let mut edges = rows.column(EdgeRow::EDGE).map_texts(IterationEdge::from_name);
        let mut times = rows.column(EdgeRow::TIME).values().iter();
        let mut took = rows.column(EdgeRow::TOOK).values().iter();
        let stamp = |slot: &i32| {
            let (at, took) = (from_stored_nanos(*times.next()?), from_stored_nanos(*took.next()?));
            Some(EdgeStamp { slot: to_index(*slot), edge: edges.next()??.or(None)?, at, took })
        };
        stamps.extend(rows.column(EdgeRow::SLOT).values().iter().map_while(stamp));
        let part = rows.table().select(Arc::clone(&columns)).map_err(|error| table.damage(error))?;
        let cells = part.cell_columns();
        for row in 0..part.row_count() {
            for (index, column) in cells.iter().enumerate() {
                column.get(row).into_iter().for_each(|value| whole.set(index, value));
            }
            whole.end_row();
        }
    }
    if stamps.len() != whole.row_count() {
        return Err(table.damage("an edge is neither begin nor end"));
    }
    Ok(Some(EdgeReadings { schema, stamps, table: whole.finish() }))
}

/// The edges of `monitor` from a journal; none where it was not read at any.
pub(crate) fn read_journal_edges(
    journal: JournalReader,
    monitor: &str,
) -> Result<Option<EdgeReadings>, ArchiveError> {
    let (mut opened, mut rows) = (None, Vec::new());
    for event in journal.select_kinds(&[kind::SERIES_OPENED, kind::EDGE]) {
        let event = event?;
        match (event.what, &opened) {
            (RunEventKind::SeriesOpened(schema), None) if schema.monitor == monitor => opened = Some(schema),
            (RunEventKind::Edge(reading), Some(schema)) if reading.monitor == monitor => {
                let EdgeReading { slot, edge, took, rows: cells, .. } = reading;
                let stamp = EdgeStamp { slot, edge, at: event.at, took };
                let fitting = cells.into_iter().filter(|row| row.len() == schema.columns.len());
                rows.extend(fitting.map(|row| (stamp, row)));
            }
            _ => {}
        }
    }
    Ok(opened.filter(|_| !rows.is_empty()).map(|schema| EdgeReadings::from_rows(schema, &rows)))
}
