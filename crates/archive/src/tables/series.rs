//! `series/MONITOR.parquet`: the rows of one monitor.
//!
//! They are written while the journal streams by and read back column by column, from the table or from the journal of
//! a run that has none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::series::{ColumnData, RowRuns, Series, SeriesGap, SeriesSchema};
use perflab_model::table::{ColumnKind, ColumnSpec, ColumnType, TableCell};
use perflab_model::{CellRow, LatestTicks, Nanos, RunEvent, RunEventKind, Unit};

use crate::error::ArchiveError;
use crate::journal::{JournalReader, kind};
use crate::parquet_reader::ParquetReader;
use crate::parquet_writer::{ParquetWriter, StorageType, StoredCell, StoredColumn};
use crate::run_layout::{SERIES, series_path};
use crate::tables::samples::{from_stored_nanos, to_stored_nanos};

const TIME: &str = "time_ns";

const MONITOR_KEY: &str = "perflab.monitor";

const SOURCE_KEY: &str = "perflab.source";

const INTERVAL_KEY: &str = "perflab.interval_ns";

/// The columns of a series' table.
fn series_columns(schema: &SeriesSchema) -> Vec<StoredColumn> {
    let meaning = "when the tick was taken, CLOCK_MONOTONIC of the target";
    let time = StoredColumn::new(TIME, StorageType::Int64, "ns", "key", meaning);
    std::iter::once(time).chain(schema.columns.iter().map(to_stored_column)).collect()
}

fn to_stored_column(column: &ColumnSpec) -> StoredColumn {
    let stored = match column.stored {
        ColumnType::Int => StorageType::Int64,
        ColumnType::Float => StorageType::Double,
        ColumnType::Text => StorageType::Text,
    };
    let (kind, meaning) = match column.kind {
        ColumnKind::Key => ("key", "names the row's subject"),
        ColumnKind::Counter => ("counter", "only grows; its rate means something"),
        ColumnKind::Gauge => ("gauge", "goes up and down; its value means something"),
    };
    StoredColumn::new(&column.name, stored, &column.unit.0, kind, meaning).optional()
}

/// Where a monitor's rows go, and how many did not fit its schema.
struct SeriesSink {
    table: ParquetWriter,
    width: usize,
    misfits: u64,
    since: Nanos,
}

/// All series of a run being written.
pub(crate) struct SeriesTableWriter {
    directory: PathBuf,
    sinks: BTreeMap<String, SeriesSink>,
    latest: LatestTicks,
}

impl SeriesTableWriter {
    /// `directory` is the run's; the tables go to `series/` in it.
    pub(crate) fn create(directory: &Path) -> Result<Self, ArchiveError> {
        let series = directory.join(SERIES);
        fs::create_dir_all(&series).map_err(ArchiveError::io("create", &series))?;
        Ok(SeriesTableWriter {
            directory: directory.into(),
            sinks: BTreeMap::new(),
            latest: LatestTicks::default(),
        })
    }

    /// Begins a table, unless the monitor has one already: the first schema stands.
    pub(crate) fn open_table(&mut self, schema: &SeriesSchema) -> Result<(), ArchiveError> {
        if self.sinks.contains_key(&schema.monitor) {
            return Ok(());
        }
        let metadata = [
            (MONITOR_KEY, schema.monitor.clone()),
            (SOURCE_KEY, schema.source.clone()),
            (INTERVAL_KEY, schema.interval.0.to_string()),
        ];
        let path = self.directory.join(series_path(&schema.monitor));
        let table = ParquetWriter::create(&path, &series_columns(schema), &metadata)?;
        let sink = SeriesSink { table, width: schema.columns.len(), misfits: 0, since: Nanos(0) };
        self.sinks.insert(schema.monitor.clone(), sink);
        Ok(())
    }

    /// Takes a tick, whole or as what changed; says whether it could be made whole.
    pub(crate) fn push_tick(&mut self, event: RunEvent) -> Result<bool, ArchiveError> {
        let at = event.at;
        let Some((monitor, rows)) = self.latest.apply(event) else { return Ok(false) };
        let Some(sink) = self.sinks.get_mut(monitor) else { return Ok(true) };
        rows.iter().try_for_each(|row| sink.push_row(at, row)).map(|()| true)
    }

    /// Something was lost of the stream: what changed since is not known.
    pub(crate) fn mark_lost(&mut self) {
        self.latest.clear();
    }

    /// Takes the rows of one tick. Rows of a monitor that was never opened have no columns to go to.
    pub(crate) fn push_rows(
        &mut self,
        at: Nanos,
        monitor: &str,
        rows: &[CellRow],
    ) -> Result<(), ArchiveError> {
        let Some(sink) = self.sinks.get_mut(monitor) else { return Ok(()) };
        rows.iter().try_for_each(|row| sink.push_row(at, row))
    }

    /// Closes all tables; gives a gap for each monitor with rows that did not fit.
    pub(crate) fn close(self) -> Result<Vec<SeriesGap>, ArchiveError> {
        let mut gaps = Vec::new();
        for (monitor, sink) in self.sinks {
            let (misfits, from) = (sink.misfits, sink.since);
            sink.table.close()?;
            if misfits > 0 {
                let reason =
                    format!("{misfits} rows had another number of cells than the schema has columns");
                gaps.push(SeriesGap { monitor, from, to: None, reason });
            }
        }
        Ok(gaps)
    }
}

impl SeriesSink {
    fn push_row(&mut self, at: Nanos, row: &CellRow) -> Result<(), ArchiveError> {
        if row.len() != self.width {
            self.since = if self.misfits == 0 { at } else { self.since };
            self.misfits += 1;
            return Ok(());
        }
        self.table.push_row(
            std::iter::once(StoredCell::Int(to_stored_nanos(at))).chain(row.iter().map(to_stored_cell)),
        )
    }
}

fn to_stored_cell(cell: &TableCell) -> StoredCell<'_> {
    match cell {
        TableCell::Int(n) => StoredCell::Int(*n),
        TableCell::Float(n) => StoredCell::Float(*n),
        TableCell::Text(text) => StoredCell::Text(text),
        TableCell::Missing => StoredCell::Missing,
    }
}

/// Imports of earlier versions called /proc/vmstat `proc-vmstat`, and vmstat(8), which has other columns, `vmstat`: a series is
/// known by where its numbers are from. The name as it was stored, the source, and the name today.
const RENAMED: &[(&str, &str, &str)] =
    &[("proc-vmstat", "/proc/vmstat", "vmstat"), ("vmstat", "vmstat", "vmstat-tool")];

/// What a series that was stored under that name is called today.
fn current_name<'a>(stored: &'a str, source: &str) -> &'a str {
    let renamed = RENAMED.iter().find(|(name, from, _)| (*name, *from) == (stored, source));
    renamed.map_or(stored, |(_, _, today)| today)
}

/// The name under which the series of `monitor` is stored in the run at `run`; nothing where it has none. An old name that
/// nothing has today is understood.
pub(crate) fn find_stored_name<'a>(run: &Path, monitor: &'a str) -> Option<&'a str> {
    let is_current = |name: &str| RENAMED.iter().any(|(_, _, today)| *today == name);
    let renamed = RENAMED.iter().find(|(name, ..)| *name == monitor && !is_current(name));
    let wanted = renamed.map_or(monitor, |(_, _, today)| today);
    let old = RENAMED.iter().filter(|(_, _, today)| *today == wanted).map(|(name, ..)| *name);
    std::iter::once(wanted).chain(old).find(|name| holds_series(run, name, wanted))
}

/// Whether the table of that name holds what is called `wanted` today. One that cannot be read says so when it is.
fn holds_series(run: &Path, stored: &str, wanted: &str) -> bool {
    let path = series_path(stored);
    if !run.join(&path).exists() {
        return false;
    }
    if RENAMED.iter().all(|(name, ..)| *name != stored) {
        return stored == wanted;
    }
    ParquetReader::open(run, path).map_or(stored == wanted, |table| {
        current_name(stored, table.metadata(SOURCE_KEY).unwrap_or_default()) == wanted
    })
}

/// The monitors that the run at `run` has tables of, sorted.
pub(crate) fn list_monitors(run: &Path) -> Result<Vec<String>, ArchiveError> {
    let directory = run.join(SERIES);
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).map_err(ArchiveError::io("read", &directory))? {
        let file = Path::new(SERIES).join(entry.map_err(ArchiveError::io("read", &directory))?.file_name());
        if file.extension().is_some_and(|extension| extension == "parquet") {
            let table = ParquetReader::open(run, file)?;
            let source = table.metadata(SOURCE_KEY).unwrap_or_default();
            names.extend(table.metadata(MONITOR_KEY).map(|name| current_name(name, source).to_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Reads the table of `monitor`, by its stored name.
pub(crate) fn read_series(run: &Path, monitor: &str) -> Result<Series, ArchiveError> {
    let (table, schema) = open_series(run, monitor)?;
    read_series_part(&table, schema)
}

/// The same, each row once for all ticks at which it stood, in memory for these and a row group.
pub(crate) fn read_series_spans(run: &Path, monitor: &str) -> Result<RowRuns, ArchiveError> {
    let (table, schema) = open_series(run, monitor)?;
    let mut spans = RowRuns::new(schema.clone());
    for group in table.row_groups() {
        if spans.extend(&read_series_part(&group, schema.clone())?).is_err() {
            return Ok(RowRuns::from_series(&read_series(run, monitor)?));
        }
    }
    Ok(spans)
}

fn open_series(run: &Path, monitor: &str) -> Result<(ParquetReader, SeriesSchema), ArchiveError> {
    let table = ParquetReader::open(run, series_path(monitor))?;
    let declared = table.columns()?;
    let interval = table.metadata(INTERVAL_KEY).and_then(|text| text.parse().ok()).unwrap_or(0);
    let schema = SeriesSchema {
        monitor: current_name(monitor, table.metadata(SOURCE_KEY).unwrap_or_default()).into(),
        source: table.metadata(SOURCE_KEY).unwrap_or_default().into(),
        interval: Nanos(interval),
        columns: declared.iter().filter(|column| column.name != TIME).map(from_stored_column).collect(),
    };
    Ok((table, schema))
}

fn read_series_part(table: &ParquetReader, schema: SeriesSchema) -> Result<Series, ArchiveError> {
    let columns =
        schema.columns.iter().map(|column| read_column_data(table, column)).collect::<Result<_, _>>()?;
    Ok(Series { schema, at: table.int64(TIME)?.into_iter().map(from_stored_nanos).collect(), columns })
}

fn from_stored_column(declared: &StoredColumn) -> ColumnSpec {
    ColumnSpec {
        name: declared.name.clone(),
        unit: Unit::new(&declared.unit),
        kind: match declared.kind.as_str() {
            "key" => ColumnKind::Key,
            "counter" => ColumnKind::Counter,
            _ => ColumnKind::Gauge,
        },
        stored: match declared.stored {
            StorageType::Int32 | StorageType::Int64 | StorageType::Boolean => ColumnType::Int,
            StorageType::Double => ColumnType::Float,
            StorageType::Text => ColumnType::Text,
        },
    }
}

fn read_column_data(table: &ParquetReader, column: &ColumnSpec) -> Result<ColumnData, ArchiveError> {
    Ok(match column.stored {
        ColumnType::Int => ColumnData::Int(table.optional_int64(&column.name)?),
        ColumnType::Float => ColumnData::Float(table.optional_double(&column.name)?),
        ColumnType::Text => ColumnData::Text(table.optional_text(&column.name)?),
    })
}

/// The monitors of a journal, sorted.
pub(crate) fn list_journal_monitors(journal: JournalReader) -> Result<Vec<String>, ArchiveError> {
    let mut names = std::collections::BTreeSet::new();
    for event in journal.select_kinds(&[kind::SERIES_OPENED]) {
        if let RunEventKind::SeriesOpened(schema) = event?.what {
            names.insert(schema.monitor);
        }
    }
    Ok(names.into_iter().collect())
}

/// The series of `monitor` from a journal; `None` where it was never opened.
pub(crate) fn read_journal_series(
    journal: JournalReader,
    monitor: &str,
) -> Result<Option<Series>, ArchiveError> {
    let (mut series, mut latest): (Option<Series>, _) = (None, LatestTicks::default());
    let mut events = journal.select_kinds(&[kind::SERIES_OPENED, kind::ROWS, kind::CHANGED]);
    let mut damaged = 0;
    while let Some(event) = events.next() {
        if events.damaged_lines() > damaged {
            latest.clear();
            damaged = events.damaged_lines();
        }
        match (event?, &mut series) {
            (RunEvent { what: RunEventKind::SeriesOpened(schema), .. }, None)
                if schema.monitor == monitor =>
            {
                series = Some(Series::empty(schema));
            }
            (event, Some(series)) => {
                let at = event.at;
                let tick = latest.apply(event).filter(|(of, _)| *of == monitor);
                tick.into_iter().flat_map(|(_, rows)| rows).for_each(|row| push_series_row(series, at, row));
            }
            _ => {}
        }
    }
    Ok(series)
}

fn push_series_row(series: &mut Series, at: Nanos, row: &CellRow) {
    if row.len() != series.columns.len() {
        return;
    }
    series.at.push(at);
    for (column, cell) in series.columns.iter_mut().zip(row) {
        match (column, cell) {
            (ColumnData::Int(cells), TableCell::Int(n)) => cells.push(Some(*n)),
            (ColumnData::Float(cells), TableCell::Float(n)) => cells.push(Some(*n)),
            (ColumnData::Float(cells), TableCell::Int(n)) => cells.push(Some(*n as f64)),
            (ColumnData::Text(cells), TableCell::Text(text)) => cells.push(Some(text.clone())),
            (ColumnData::Int(cells), _) => cells.push(None),
            (ColumnData::Float(cells), _) => cells.push(None),
            (ColumnData::Text(cells), _) => cells.push(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_old_import(run: &Path) {
        let mut writer = SeriesTableWriter::create(run).unwrap();
        for (monitor, source, column) in [
            ("proc-vmstat", "/proc/vmstat", ColumnSpec::counter("pgfault", "1")),
            ("vmstat", "vmstat", ColumnSpec::gauge("free", "bytes")),
        ] {
            let schema = SeriesSchema {
                monitor: monitor.into(),
                source: source.into(),
                interval: Nanos(0),
                columns: vec![column],
            };
            writer.open_table(&schema).unwrap();
            writer.push_rows(Nanos(1), monitor, &[vec![TableCell::Int(7)]]).unwrap();
        }
        writer.close().unwrap();
    }

    #[test]
    fn an_old_import_has_its_series_under_their_names_of_today() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path();
        write_old_import(run);
        assert_eq!(list_monitors(run).unwrap(), ["vmstat", "vmstat-tool"]);
        let column = |monitor: &str| {
            let series = read_series(run, find_stored_name(run, monitor).unwrap()).unwrap();
            (series.schema.monitor, series.schema.columns[0].name.clone())
        };
        assert_eq!(column("vmstat"), ("vmstat".into(), "pgfault".into()));
        assert_eq!(column("proc-vmstat"), ("vmstat".into(), "pgfault".into()));
        assert_eq!(column("vmstat-tool"), ("vmstat-tool".into(), "free".into()));
        assert_eq!(find_stored_name(run, "iostat"), None);
    }
}
