//! `series/MONITOR.parquet`: the rows of one monitor.
//!
//! They are written while the journal streams by and read back column by column, from the table or from the journal of
//! a run that has none.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perflab_model::column::{ColumnKind, ColumnType, stored_columns};
use perflab_model::series::{
    RowChanges, RowRuns, RowRunsBuilder, Series, SeriesGap, SeriesSchema, StoredRows,
};
use perflab_model::table::StoredValue;
use perflab_model::{
    CellRow, ColumnRef, ColumnSpec, DeclaredColumn, LatestTicks, Nanos, RowSchema, RunEvent, RunEventKind,
    TableBuilder,
};

use crate::error::ArchiveError;
use crate::journal::{JournalReader, kind};
use crate::parquet::{ParquetReader, ParquetWriter};
use crate::run_layout::{SERIES, series_path};
use crate::tables::samples::{from_stored_nanos, to_stored_nanos};

/// What every series has: its other columns are the monitor's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickRow;

impl RowSchema for TickRow {
    const NAME: &'static str = "series";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::required("time_ns", ColumnType::Int, "ns", ColumnKind::Key, "when the reading began"),
        DeclaredColumn::optional(
            "took_ns",
            ColumnType::Int,
            "ns",
            ColumnKind::Key,
            "how long the reading took; missing where that is not known",
        ),
    ];
}

impl TickRow {
    const TIME: ColumnRef<Self, i64> = ColumnRef::named("time_ns");
    const TOOK: ColumnRef<Self, i64> = ColumnRef::named("took_ns");

    const ALL: &'static [&'static str] = &[Self::TIME.name(), Self::TOOK.name()];

    /// The columns that a series has: those of earlier versions do not say how long a reading took.
    fn columns_of(table: &ParquetReader) -> &'static [&'static str] {
        let has_took = table.columns().iter().any(|column| column.name == Self::TOOK.name());
        Self::ALL.get(..1 + usize::from(has_took)).unwrap_or_default()
    }
}

const MONITOR_KEY: &str = "perflab.monitor";

const SOURCE_KEY: &str = "perflab.source";

const INTERVAL_KEY: &str = "perflab.interval_ns";

const ROWS_KEY: &str = "perflab.rows";

/// The columns of a series' table: the time, and those of the schema.
fn series_columns(schema: &SeriesSchema) -> Vec<ColumnSpec> {
    stored_columns(TickRow::COLUMNS).into_iter().chain(monitor_columns(schema)).collect()
}

/// The columns of a monitor, as they are stored.
pub(crate) fn monitor_columns(schema: &SeriesSchema) -> impl Iterator<Item = ColumnSpec> {
    let stored = |column: &ColumnSpec| {
        let meaning = match column.kind {
            ColumnKind::Key => "names the row's subject",
            ColumnKind::Counter => "only grows; its rate means something",
            ColumnKind::Gauge => "goes up and down; its value means something",
            ColumnKind::Value => "",
        };
        ColumnSpec { nullable: true, meaning: meaning.into(), ..column.clone() }
    };
    schema.columns.iter().map(stored)
}

/// What the file of a monitor says of it.
pub(crate) fn series_metadata(schema: &SeriesSchema) -> [(&'static str, String); 3] {
    [
        (MONITOR_KEY, schema.monitor.clone()),
        (SOURCE_KEY, schema.source.clone()),
        (INTERVAL_KEY, schema.interval.0.to_string()),
    ]
}

/// Where a monitor's rows go, and how many did not fit its schema.
struct SeriesSink {
    table: ParquetWriter<TickRow>,
    width: usize,
    misfits: u64,
    since: Nanos,
    /// What is left out of the ticks of a series of which changed rows are stored.
    changes: Option<RowChanges>,
}

/// All series of a run being written.
pub(crate) struct SeriesTableWriter {
    directory: PathBuf,
    sinks: SeriesSinks,
    latest: LatestTicks,
}

#[derive(Default)]
struct SeriesSinks {
    /// Those of monitors on a clock, and of all that had a row.
    open: BTreeMap<String, SeriesSink>,
    /// Without a clock and without a row so far: what is only read at edges has no table of ticks.
    waiting: BTreeMap<String, SeriesSchema>,
}

impl SeriesTableWriter {
    /// `directory` is the run's; the tables go to `series/` in it.
    pub(crate) fn create(directory: &Path) -> Result<Self, ArchiveError> {
        let series = directory.join(SERIES);
        fs::create_dir_all(&series).map_err(ArchiveError::io("create", &series))?;
        Ok(SeriesTableWriter {
            directory: directory.into(),
            sinks: SeriesSinks::default(),
            latest: LatestTicks::default(),
        })
    }

    /// Begins a table, unless the monitor has one already: the first schema stands.
    pub(crate) fn open_table(&mut self, schema: &SeriesSchema) -> Result<(), ArchiveError> {
        let SeriesSinks { open, waiting } = &mut self.sinks;
        if open.contains_key(&schema.monitor) || waiting.contains_key(&schema.monitor) {
            return Ok(());
        }
        if schema.interval == Nanos(0) {
            waiting.insert(schema.monitor.clone(), schema.clone());
            return Ok(());
        }
        self.sinks.create(&self.directory, schema)
    }

    /// Takes a tick, whole or as what changed; says whether it could be made whole.
    pub(crate) fn push_tick(&mut self, event: RunEvent) -> Result<bool, ArchiveError> {
        let when = (event.at, event.what.reading_time());
        let Some((monitor, rows)) = self.latest.apply(event) else { return Ok(false) };
        let Some(sink) = self.sinks.find(&self.directory, monitor)? else { return Ok(true) };
        sink.push_tick(when, rows).map(|()| true)
    }

    /// Something was lost of the stream: what changed since is not known.
    pub(crate) fn mark_lost(&mut self) {
        self.latest.clear();
    }

    /// Takes the rows of one tick, which began then and took so long. Rows of a monitor that was never opened have no columns to go to.
    pub(crate) fn push_rows(
        &mut self,
        when: (Nanos, Nanos),
        monitor: &str,
        rows: &[CellRow],
    ) -> Result<(), ArchiveError> {
        let Some(sink) = self.sinks.find(&self.directory, monitor)? else { return Ok(()) };
        sink.push_tick(when, rows)
    }

    /// Closes all tables; gives a gap for each monitor with rows that did not fit.
    pub(crate) fn close(self) -> Result<Vec<SeriesGap>, ArchiveError> {
        let mut gaps = Vec::new();
        for (monitor, sink) in self.sinks.open {
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

/// A time that is known.
fn known_time(took: Nanos) -> Option<Nanos> {
    Some(took).filter(|took| took.0 > 0)
}

impl SeriesSinks {
    fn create(&mut self, directory: &Path, schema: &SeriesSchema) -> Result<(), ArchiveError> {
        let path = directory.join(series_path(&schema.monitor));
        let [monitor, source, interval] = series_metadata(schema);
        let metadata = [monitor, source, interval, (ROWS_KEY, schema.stored.name().to_owned())];
        let changes = (!schema.stored.is_every()).then(|| RowChanges::new(schema));
        let table = ParquetWriter::create(&path, series_columns(schema), &metadata)?;
        let sink = SeriesSink { table, width: schema.columns.len(), misfits: 0, since: Nanos(0), changes };
        self.open.insert(schema.monitor.clone(), sink);
        Ok(())
    }

    /// The table of a monitor that has a row; none where it was never opened.
    fn find(&mut self, directory: &Path, monitor: &str) -> Result<Option<&mut SeriesSink>, ArchiveError> {
        if let Some(schema) = self.waiting.remove(monitor) {
            self.create(directory, &schema)?;
        }
        Ok(self.open.get_mut(monitor))
    }
}

impl SeriesSink {
    fn push_tick(&mut self, when: (Nanos, Nanos), rows: &[CellRow]) -> Result<(), ArchiveError> {
        match &mut self.changes {
            Some(changes) => changes.take_tick(rows).iter().try_for_each(|row| self.push_row(when, row)),
            None => rows.iter().try_for_each(|row| self.push_row(when, row)),
        }
    }

    fn push_row(&mut self, (at, took): (Nanos, Nanos), row: &CellRow) -> Result<(), ArchiveError> {
        if row.len() != self.width {
            self.since = if self.misfits == 0 { at } else { self.since };
            self.misfits += 1;
            return Ok(());
        }
        let table = self.table.row();
        table.set(TickRow::TIME, to_stored_nanos(at));
        table.set(TickRow::TOOK, known_time(took).map(to_stored_nanos));
        for (column, cell) in (TickRow::COLUMNS.len()..).zip(row) {
            StoredValue::from_cell(cell).into_iter().for_each(|value| table.rows().set(column, value));
        }
        self.table.end_row()
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

/// The monitors that the run at `run` has series of, sorted.
pub(crate) fn list_monitors(run: &Path) -> Result<Vec<String>, ArchiveError> {
    list_tables(run, SERIES)
}

/// A table of a monitor.
pub(crate) struct NamedTable {
    /// its file's name without the ending
    pub(crate) file: String,
    /// the monitor, or why the table cannot be read
    pub(crate) monitor: Result<String, ArchiveError>,
}

/// The tables of monitors.
pub(crate) fn list_monitor_tables(run: &Path) -> Result<Vec<NamedTable>, ArchiveError> {
    list_each_table(run, SERIES)
}

/// The monitors that have a table in a folder of the run, sorted; none where there is no such folder, as in one that was packed
/// without any.
pub(crate) fn list_tables(run: &Path, folder: &str) -> Result<Vec<String>, ArchiveError> {
    let mut names = list_each_table(run, folder)?
        .into_iter()
        .map(|table| table.monitor)
        .collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(names)
}

/// The tables of a folder of the run, also those that cannot be read.
pub(crate) fn list_each_table(run: &Path, folder: &str) -> Result<Vec<NamedTable>, ArchiveError> {
    let directory = run.join(folder);
    let mut found = Vec::new();
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(ArchiveError::io("read", &directory))?,
    };
    for entry in entries {
        let file = Path::new(folder).join(entry.map_err(ArchiveError::io("read", &directory))?.file_name());
        if file.extension().is_none_or(|extension| extension != "parquet") {
            continue;
        }
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        match ParquetReader::open(run, file) {
            Ok(table) => {
                let source = table.metadata(SOURCE_KEY).unwrap_or_default();
                let name = table.metadata(MONITOR_KEY).map(|name| current_name(name, source).to_owned());
                found.extend(name.map(|name| NamedTable { file: stem, monitor: Ok(name) }));
            }
            Err(error) => found.push(NamedTable { file: stem, monitor: Err(error) }),
        }
    }
    Ok(found)
}

/// Reads the table of `monitor`, by its stored name, with the rows that one of changed rows leaves out.
pub(crate) fn read_series(run: &Path, monitor: &str) -> Result<Series, ArchiveError> {
    read_stored_rows(run, monitor).map(Series::with_unchanged_rows)
}

/// The rows that are in the table.
fn read_stored_rows(run: &Path, monitor: &str) -> Result<Series, ArchiveError> {
    let (table, schema) = open_series(run, monitor)?;
    let mut parts = read_series_parts(&table, &schema)?;
    let first = parts.next().unwrap_or_else(|| Ok(Series::empty(schema.clone())))?;
    let Some(second) = parts.next() else { return Ok(first) };
    let (mut at, mut took) = (Vec::new(), Vec::new());
    let mut whole = TableBuilder::new(schema.columns.clone().into());
    for part in [Ok(first), second].into_iter().chain(parts) {
        let part = part?;
        let columns = part.table.cell_columns();
        for row in 0..part.at.len() {
            for (index, column) in columns.iter().enumerate() {
                column.get(row).into_iter().for_each(|value| whole.set(index, value));
            }
            whole.end_row();
        }
        at.extend(part.at);
        took.extend(part.took);
    }
    Ok(Series { schema, took: as_long_as(took, &at), at, table: whole.finish() })
}

/// The same, each row once for all ticks at which it stood, in memory for these and a row group.
pub(crate) fn read_series_spans(run: &Path, monitor: &str) -> Result<RowRuns, ArchiveError> {
    let (table, schema) = open_series(run, monitor)?;
    if !schema.stored.is_every() {
        return Ok(RowRuns::from_series(&read_series(run, monitor)?));
    }
    let mut runs = RowRunsBuilder::new(schema.clone());
    for part in read_series_parts(&table, &schema)? {
        if runs.extend(&part?).is_err() {
            return Ok(RowRuns::from_series(&read_series(run, monitor)?));
        }
    }
    Ok(runs.finish())
}

/// The durations of all readings, or none where some are not known.
fn as_long_as(took: Vec<Nanos>, at: &[Nanos]) -> Vec<Nanos> {
    if took.len() == at.len() { took } else { Vec::new() }
}

/// The series, a row group at a time.
fn read_series_parts(
    table: &ParquetReader,
    schema: &SeriesSchema,
) -> Result<impl Iterator<Item = Result<Series, ArchiveError>>, ArchiveError> {
    let parts = table.read_whole_rows::<TickRow>(table.row_groups(), TickRow::columns_of(table))?;
    let columns: Arc<[ColumnSpec]> = schema.columns.clone().into();
    Ok(parts.map(move |rows| {
        let rows = rows?;
        let at = rows.column(TickRow::TIME).values().iter().copied().map(from_stored_nanos).collect();
        let took = rows.column(TickRow::TOOK).iter().map(|took| took.map_or(Nanos(0), from_stored_nanos));
        let took: Vec<Nanos> = took.collect();
        let took = if took.iter().all(|took| took.0 == 0) { Vec::new() } else { took };
        let table = rows.table().select(Arc::clone(&columns)).map_err(|error| table.damage(error))?;
        Ok(Series { schema: schema.clone(), at, took, table })
    }))
}

fn open_series(run: &Path, monitor: &str) -> Result<(ParquetReader, SeriesSchema), ArchiveError> {
    let table = ParquetReader::open(run, series_path(monitor))?;
    let schema = stored_schema(&table, monitor, TickRow::COLUMNS);
    Ok((table, schema))
}

/// The schema of a monitor's table, without the columns that all such tables have.
pub(crate) fn stored_schema(table: &ParquetReader, monitor: &str, own: &[DeclaredColumn]) -> SeriesSchema {
    let interval = table.metadata(INTERVAL_KEY).and_then(|text| text.parse().ok()).unwrap_or(0);
    let is_own = |column: &&ColumnSpec| own.iter().any(|own| own.name == column.name);
    let columns = table.columns().iter().filter(|column| !is_own(column));
    let is_changed = table.metadata(ROWS_KEY) == Some(StoredRows::Changed.name());
    SeriesSchema {
        monitor: current_name(monitor, table.metadata(SOURCE_KEY).unwrap_or_default()).into(),
        source: table.metadata(SOURCE_KEY).unwrap_or_default().into(),
        interval: Nanos(interval),
        columns: columns.map(|column| ColumnSpec { meaning: String::new(), ..column.clone() }).collect(),
        stored: if is_changed { StoredRows::Changed } else { StoredRows::Every },
    }
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
    let (mut series, mut latest): (Option<GatheredSeries>, _) = (None, LatestTicks::default());
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
                series = Some(GatheredSeries::new(schema));
            }
            (event, Some(series)) => {
                let when = (event.at, event.what.reading_time());
                let tick = latest.apply(event).filter(|(of, _)| *of == monitor);
                tick.into_iter().flat_map(|(_, rows)| rows).for_each(|row| series.push_row(when, row));
            }
            _ => {}
        }
    }
    Ok(series.map(GatheredSeries::finish))
}

/// A series of a journal, row by row.
struct GatheredSeries {
    schema: SeriesSchema,
    at: Vec<Nanos>,
    took: Vec<Nanos>,
    table: TableBuilder,
}

impl GatheredSeries {
    fn new(schema: SeriesSchema) -> Self {
        let table = TableBuilder::new(schema.columns.clone().into());
        GatheredSeries { schema, at: Vec::new(), took: Vec::new(), table }
    }

    /// Takes a row, unless it has another number of cells than the schema has columns.
    fn push_row(&mut self, (at, took): (Nanos, Nanos), row: &CellRow) {
        if row.len() == self.schema.columns.len() {
            self.at.push(at);
            self.took.push(took);
            self.table.push_cells(row);
        }
    }

    /// The rows of a journal are all there.
    fn finish(mut self) -> Series {
        let is_known = self.took.iter().any(|took| took.0 > 0);
        let took = if is_known { self.took } else { Vec::new() };
        let schema = SeriesSchema { stored: StoredRows::Every, ..self.schema };
        Series { schema, at: self.at, took, table: self.table.finish() }
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::TableCell;

    use super::*;

    fn write_old_import(run: &Path) {
        let mut writer = SeriesTableWriter::create(run).unwrap();
        for (monitor, source, column) in [
            ("proc-vmstat", "/proc/vmstat", ColumnSpec::counter("pgfault", "1")),
            ("vmstat", "vmstat", ColumnSpec::gauge("free", "bytes")),
        ] {
            let schema = SeriesSchema {
                stored: perflab_model::series::StoredRows::Every,
                monitor: monitor.into(),
                source: source.into(),
                interval: Nanos(0),
                columns: vec![column],
            };
            writer.open_table(&schema).unwrap();
            writer.push_rows((Nanos(1), Nanos(0)), monitor, &[vec![TableCell::Int(7)]]).unwrap();
        }
        writer.close().unwrap();
    }

    #[test]
    fn a_table_of_changed_rows_is_read_as_if_it_had_all() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path();
        let schema = SeriesSchema {
            monitor: "interrupts".into(),
            source: "/proc/interrupts".into(),
            interval: Nanos(10),
            columns: vec![ColumnSpec::key("cpu"), ColumnSpec::counter("count", "1")],
            stored: StoredRows::Changed,
        };
        let mut writer = SeriesTableWriter::create(run).unwrap();
        writer.open_table(&schema).unwrap();
        let row = |cpu: &str, count| vec![TableCell::Text(cpu.into()), TableCell::Int(count)];
        for (at, count) in [(10, 1), (20, 1), (30, 4)] {
            writer
                .push_rows((Nanos(at), Nanos(0)), "interrupts", &[row("cpu0", 7), row("cpu1", count)])
                .unwrap();
        }
        writer.close().unwrap();
        assert_eq!(read_stored_rows(run, "interrupts").unwrap().at, [10, 10, 20, 30].map(Nanos));
        let read = read_series(run, "interrupts").unwrap();
        assert_eq!(read.at, [10, 10, 20, 20, 30, 30].map(Nanos));
        let counts: Vec<_> = read.named_column::<i64>("count").iter().collect();
        assert_eq!(counts, [7, 1, 7, 1, 7, 4].map(Some));
        assert_eq!(read_series_spans(run, "interrupts").unwrap().to_series(), read);
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
