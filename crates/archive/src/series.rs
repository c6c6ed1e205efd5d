//! `series/MONITOR.parquet`: the rows of one monitor, written while the journal streams by and read
//! back column by column, from the table or from the journal of a run that has none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::series::{
    Cell, Column, ColumnData, ColumnKind, ColumnType, Gap, Latest, Series, SeriesSchema, Spans,
};
use perflab_model::{Event, Nanos, Row, Unit, What};

use crate::ArchiveError;
use crate::events::{Events, kind};
use crate::layout::{SERIES, series_file};
use crate::samples::{signed, unsigned};
use crate::table::{Declaration, Item, Stored, TableReader, TableWriter};

const TIME: &str = "time_ns";
const MONITOR_KEY: &str = "perflab.monitor";
const SOURCE_KEY: &str = "perflab.source";
const INTERVAL_KEY: &str = "perflab.interval_ns";

/// The columns of a series' table.
fn columns(schema: &SeriesSchema) -> Vec<Declaration> {
    let meaning = "when the tick was taken, CLOCK_MONOTONIC of the target";
    let time = Declaration::new(TIME, Stored::Int64, "ns", "key", meaning);
    std::iter::once(time).chain(schema.columns.iter().map(declared)).collect()
}

fn declared(column: &Column) -> Declaration {
    let stored = match column.stored {
        ColumnType::Int => Stored::Int64,
        ColumnType::Float => Stored::Double,
        ColumnType::Text => Stored::Text,
    };
    let (kind, meaning) = match column.kind {
        ColumnKind::Key => ("key", "names the row's subject"),
        ColumnKind::Counter => ("counter", "only grows; its rate means something"),
        ColumnKind::Gauge => ("gauge", "goes up and down; its value means something"),
    };
    Declaration::new(&column.name, stored, &column.unit.0, kind, meaning).optional()
}

/// Where a monitor's rows go, and how many did not fit its schema.
struct Sink {
    table: TableWriter,
    width: usize,
    misfits: u64,
    since: Nanos,
}

/// All series of a run being written.
pub(crate) struct SeriesWriter {
    directory: PathBuf,
    sinks: BTreeMap<String, Sink>,
    latest: Latest,
}

impl SeriesWriter {
    /// `directory` is the run's; the tables go to `series/` in it.
    pub(crate) fn create(directory: &Path) -> Result<Self, ArchiveError> {
        let series = directory.join(SERIES);
        fs::create_dir_all(&series).map_err(ArchiveError::io("create", &series))?;
        Ok(SeriesWriter { directory: directory.into(), sinks: BTreeMap::new(), latest: Latest::default() })
    }

    /// Begins a table, unless the monitor has one already: the first schema stands.
    pub(crate) fn opened(&mut self, schema: &SeriesSchema) -> Result<(), ArchiveError> {
        if self.sinks.contains_key(&schema.monitor) {
            return Ok(());
        }
        let metadata = [
            (MONITOR_KEY, schema.monitor.clone()),
            (SOURCE_KEY, schema.source.clone()),
            (INTERVAL_KEY, schema.interval.0.to_string()),
        ];
        let path = self.directory.join(series_file(&schema.monitor));
        let table = TableWriter::create(&path, &columns(schema), &metadata)?;
        let sink = Sink { table, width: schema.columns.len(), misfits: 0, since: Nanos(0) };
        self.sinks.insert(schema.monitor.clone(), sink);
        Ok(())
    }

    /// Takes a tick, whole or as what changed; says whether it could be made whole.
    pub(crate) fn tick(&mut self, event: Event) -> Result<bool, ArchiveError> {
        let at = event.at;
        let Some((monitor, rows)) = self.latest.take(event) else { return Ok(false) };
        let Some(sink) = self.sinks.get_mut(monitor) else { return Ok(true) };
        rows.iter().try_for_each(|row| sink.row(at, row)).map(|()| true)
    }

    /// Something was lost of the stream: what changed since cannot be told.
    pub(crate) fn lost(&mut self) {
        self.latest.forget();
    }

    /// Takes the rows of one tick. Rows of a monitor that was never opened have no columns to go to.
    pub(crate) fn rows(&mut self, at: Nanos, monitor: &str, rows: &[Row]) -> Result<(), ArchiveError> {
        let Some(sink) = self.sinks.get_mut(monitor) else { return Ok(()) };
        rows.iter().try_for_each(|row| sink.row(at, row))
    }

    /// Closes all tables; gives a gap for each monitor with rows that did not fit.
    pub(crate) fn close(self) -> Result<Vec<Gap>, ArchiveError> {
        let mut gaps = Vec::new();
        for (monitor, sink) in self.sinks {
            let (misfits, from) = (sink.misfits, sink.since);
            sink.table.close()?;
            if misfits > 0 {
                let reason =
                    format!("{misfits} rows had another number of cells than the schema has columns");
                gaps.push(Gap { monitor, from, to: None, reason });
            }
        }
        Ok(gaps)
    }
}

impl Sink {
    fn row(&mut self, at: Nanos, row: &Row) -> Result<(), ArchiveError> {
        if row.len() != self.width {
            self.since = if self.misfits == 0 { at } else { self.since };
            self.misfits += 1;
            return Ok(());
        }
        self.table.push(std::iter::once(Item::Int(signed(at))).chain(row.iter().map(item)))
    }
}

fn item(cell: &Cell) -> Item<'_> {
    match cell {
        Cell::Int(n) => Item::Int(*n),
        Cell::Float(n) => Item::Float(*n),
        Cell::Text(text) => Item::Text(text),
        Cell::Missing => Item::Missing,
    }
}

/// The monitors that the run at `run` has tables of, sorted.
pub(crate) fn monitors(run: &Path) -> Result<Vec<String>, ArchiveError> {
    let directory = run.join(SERIES);
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).map_err(ArchiveError::io("read", &directory))? {
        let file = Path::new(SERIES).join(entry.map_err(ArchiveError::io("read", &directory))?.file_name());
        if file.extension().is_some_and(|extension| extension == "parquet") {
            let table = TableReader::open(run, file)?;
            names.extend(table.metadata(MONITOR_KEY).map(String::from));
        }
    }
    names.sort();
    Ok(names)
}

/// Reads the table of `monitor`.
pub(crate) fn read(run: &Path, monitor: &str) -> Result<Series, ArchiveError> {
    let (table, schema) = open(run, monitor)?;
    part(&table, schema)
}

/// The same, each row once for all ticks at which it stood, in memory for these and a row group.
pub(crate) fn spans(run: &Path, monitor: &str) -> Result<Spans, ArchiveError> {
    let (table, schema) = open(run, monitor)?;
    let mut spans = Spans::new(schema.clone());
    for group in table.parts() {
        if spans.extend(&part(&group, schema.clone())?).is_err() {
            return Ok(Spans::of(&read(run, monitor)?));
        }
    }
    Ok(spans)
}

fn open(run: &Path, monitor: &str) -> Result<(TableReader, SeriesSchema), ArchiveError> {
    let table = TableReader::open(run, series_file(monitor))?;
    let declared = table.columns()?;
    let interval = table.metadata(INTERVAL_KEY).and_then(|text| text.parse().ok()).unwrap_or(0);
    let schema = SeriesSchema {
        monitor: monitor.into(),
        source: table.metadata(SOURCE_KEY).unwrap_or_default().into(),
        interval: Nanos(interval),
        columns: declared.iter().filter(|column| column.name != TIME).map(column).collect(),
    };
    Ok((table, schema))
}

fn part(table: &TableReader, schema: SeriesSchema) -> Result<Series, ArchiveError> {
    let columns = schema.columns.iter().map(|column| data(table, column)).collect::<Result<_, _>>()?;
    Ok(Series { schema, at: table.int64(TIME)?.into_iter().map(unsigned).collect(), columns })
}

fn column(declared: &Declaration) -> Column {
    Column {
        name: declared.name.clone(),
        unit: Unit::new(&declared.unit),
        kind: match declared.kind.as_str() {
            "key" => ColumnKind::Key,
            "counter" => ColumnKind::Counter,
            _ => ColumnKind::Gauge,
        },
        stored: match declared.stored {
            Stored::Int32 | Stored::Int64 | Stored::Boolean => ColumnType::Int,
            Stored::Double => ColumnType::Float,
            Stored::Text => ColumnType::Text,
        },
    }
}

fn data(table: &TableReader, column: &Column) -> Result<ColumnData, ArchiveError> {
    Ok(match column.stored {
        ColumnType::Int => ColumnData::Int(table.optional_int64(&column.name)?),
        ColumnType::Float => ColumnData::Float(table.optional_double(&column.name)?),
        ColumnType::Text => ColumnData::Text(table.optional_text(&column.name)?),
    })
}

/// The monitors of a journal, sorted.
pub(crate) fn monitors_of(journal: Events) -> Result<Vec<String>, ArchiveError> {
    let mut names = std::collections::BTreeSet::new();
    for event in journal.only(&[kind::SERIES_OPENED]) {
        if let What::SeriesOpened(schema) = event?.what {
            names.insert(schema.monitor);
        }
    }
    Ok(names.into_iter().collect())
}

/// The series of `monitor` from a journal; `None` where it was never opened.
pub(crate) fn read_of(journal: Events, monitor: &str) -> Result<Option<Series>, ArchiveError> {
    let (mut series, mut latest): (Option<Series>, _) = (None, Latest::default());
    let mut events = journal.only(&[kind::SERIES_OPENED, kind::ROWS, kind::CHANGED]);
    let mut damaged = 0;
    while let Some(event) = events.next() {
        if events.damaged() > damaged {
            latest.forget();
            damaged = events.damaged();
        }
        match (event?, &mut series) {
            (Event { what: What::SeriesOpened(schema), .. }, None) if schema.monitor == monitor => {
                series = Some(Series::empty(schema));
            }
            (event, Some(series)) => {
                let at = event.at;
                let tick = latest.take(event).filter(|(of, _)| *of == monitor);
                tick.into_iter().flat_map(|(_, rows)| rows).for_each(|row| push(series, at, row));
            }
            _ => {}
        }
    }
    Ok(series)
}

fn push(series: &mut Series, at: Nanos, row: &Row) {
    if row.len() != series.columns.len() {
        return;
    }
    series.at.push(at);
    for (column, cell) in series.columns.iter_mut().zip(row) {
        match (column, cell) {
            (ColumnData::Int(cells), Cell::Int(n)) => cells.push(Some(*n)),
            (ColumnData::Float(cells), Cell::Float(n)) => cells.push(Some(*n)),
            (ColumnData::Float(cells), Cell::Int(n)) => cells.push(Some(*n as f64)),
            (ColumnData::Text(cells), Cell::Text(text)) => cells.push(Some(text.clone())),
            (ColumnData::Int(cells), _) => cells.push(None),
            (ColumnData::Float(cells), _) => cells.push(None),
            (ColumnData::Text(cells), _) => cells.push(None),
        }
    }
}
