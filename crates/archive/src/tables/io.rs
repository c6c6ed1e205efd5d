//! `events/io.parquet`: block and page-cache events, one row per event.
//!
//! The tracer's file (the recording as JSON) is kept under `raw/` while the run lives, and read into the table when it
//! is closed; files and metadata ranges are in the table's metadata.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use perflab_model::column::ColumnType::{Int, Int32, Text};
use perflab_model::column::{ColumnKind, ColumnType, stored_columns};
use perflab_model::io_trace::{
    DeviceNumber, IO_TRACER, IoEvent, IoEventKind, IoFile, IoRecording, IoTraceSummary,
};
use perflab_model::operation::TracedIteration;
use perflab_model::{ColumnRef, DeclaredColumn, Nanos, RowSchema, TypedTable};
use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::parquet::{ParquetReader, ParquetWriter};
use crate::run_layout::{EVENTS, events_path, raw_trace_path};
use crate::tables::samples::to_stored_index;

const KEY: &str = "perflab.io";

/// What the metadata say about an iteration.
#[derive(Debug, Serialize, Deserialize)]
struct IoTablePart {
    slot: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<u32>,
    rows: u64,
    #[serde(alias = "told")]
    summary: IoTraceSummary,
    files: Vec<IoFile>,
}

/// A row of `events/io.parquet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IoEventRow;

impl RowSchema for IoEventRow {
    const NAME: &'static str = "io";
    const COLUMNS: &'static [DeclaredColumn] = &[
        event_column("slot", Int32, "1", false, "index into plan.slots of run.json"),
        event_column("at_ns", Int, "ns", false, "when"),
        event_column("pid", Int32, "1", false, "the thread in whose name it happened"),
        event_column(
            "kind",
            Text,
            "1",
            false,
            "pages: added, fault, read, mapped; requests: queued, issued, completed; processes: exec, exit",
        ),
        event_column("device", Text, "1", false, "file system, or disk of a request: major:minor"),
        event_column(
            "inode",
            Int,
            "1",
            false,
            "the file; the disk's number where the page is the disk's own; 0 for requests",
        ),
        event_column(
            "first",
            Int,
            "1",
            false,
            "first page in the file, or first sector of 512 bytes on the disk",
        ),
        event_column("count", Int, "1", false, "pages of 4 KiB, or sectors"),
        event_column(
            "name",
            Text,
            "1",
            true,
            "a request's flags (R, RA, WS), a program's file, an ended thread's name",
        ),
        event_column("path", Text, "1", true, "the file's path, where it was found"),
        event_column("target", Int32, "1", true, "index into targets of run.json; missing on this host"),
    ];
}

impl IoEventRow {
    const SLOT: ColumnRef<Self, i32> = ColumnRef::named("slot");
    const AT: ColumnRef<Self, i64> = ColumnRef::named("at_ns");
    const PID: ColumnRef<Self, i32> = ColumnRef::named("pid");
    const KIND: ColumnRef<Self, str> = ColumnRef::named("kind");
    const DEVICE: ColumnRef<Self, str> = ColumnRef::named("device");
    const INODE: ColumnRef<Self, i64> = ColumnRef::named("inode");
    const FIRST: ColumnRef<Self, i64> = ColumnRef::named("first");
    const COUNT: ColumnRef<Self, i64> = ColumnRef::named("count");
    const FLAGS: ColumnRef<Self, str> = ColumnRef::named("name");
    const PATH: ColumnRef<Self, str> = ColumnRef::named("path");
    const TARGET: ColumnRef<Self, i32> = ColumnRef::named("target");

    /// The columns that are read.
    const READ: [&str; 8] = [
        Self::AT.name(),
        Self::PID.name(),
        Self::KIND.name(),
        Self::DEVICE.name(),
        Self::INODE.name(),
        Self::FIRST.name(),
        Self::COUNT.name(),
        Self::FLAGS.name(),
    ];
}

/// A column of events: its name, type, unit, whether cells may be missing, and what it means.
pub(crate) const fn event_column(
    name: &'static str,
    stored: ColumnType,
    unit: &'static str,
    optional: bool,
    meaning: &'static str,
) -> DeclaredColumn {
    let kind = if matches!(stored, ColumnType::Int) { ColumnKind::Value } else { ColumnKind::Key };
    match optional {
        true => DeclaredColumn::optional(name, stored, unit, kind, meaning),
        false => DeclaredColumn::required(name, stored, unit, kind, meaning),
    }
}

/// Writes the table under `stage` from the recordings of these iterations.
pub(crate) fn write_io_table(
    run: &Path,
    stage: &Path,
    iterations: &[TracedIteration],
) -> Result<(), ArchiveError> {
    let directory = stage.join(EVENTS);
    fs::create_dir_all(&directory).map_err(ArchiveError::io("create", &directory))?;
    let mut table =
        ParquetWriter::create(&stage.join(events_path(IO_TRACER)), stored_columns(IoEventRow::COLUMNS), &[])?;
    let mut parts = Vec::new();
    for iteration in iterations {
        let path = run.join(raw_trace_path(IO_TRACER, *iteration));
        let text = fs::read(&path).map_err(ArchiveError::io("read", &path))?;
        let recording: IoRecording = serde_json::from_slice(&text).map_err(ArchiveError::damaged(&path))?;
        append_io_events(&mut table, *iteration, &recording)?;
        table.end_row_group()?;
        let (rows, summary, files) = (recording.events.len() as u64, recording.summary, recording.files);
        let TracedIteration { slot, target } = *iteration;
        parts.push(IoTablePart { slot, target, rows, summary, files });
    }
    table.add_metadata(KEY, serde_json::to_string(&parts).unwrap_or_default());
    table.close()
}

fn append_io_events(
    table: &mut ParquetWriter<IoEventRow>,
    iteration: TracedIteration,
    recording: &IoRecording,
) -> Result<(), ArchiveError> {
    let paths: HashMap<(DeviceNumber, u64), &str> = recording
        .files
        .iter()
        .filter_map(|file| Some(((file.device, file.inode), file.path.as_deref()?)))
        .collect();
    for event in &recording.events {
        let row = table.row();
        row.set(IoEventRow::SLOT, to_stored_index(iteration.slot));
        row.set(IoEventRow::AT, event.at.0 as i64);
        row.set(IoEventRow::PID, event.pid);
        row.set(IoEventRow::KIND, event.kind.name());
        row.set(IoEventRow::DEVICE, event.device.to_string().as_str());
        row.set(IoEventRow::INODE, event.inode as i64);
        row.set(IoEventRow::FIRST, event.first as i64);
        row.set(IoEventRow::COUNT, event.count as i64);
        row.set(IoEventRow::FLAGS, event.name.as_deref());
        row.set(IoEventRow::PATH, paths.get(&(event.device, event.inode)).copied());
        row.set(IoEventRow::TARGET, iteration.target.map(to_stored_index));
        table.end_row()?;
    }
    Ok(())
}

/// The recordings of a closed run, by iteration.
pub(crate) fn read_io_recordings(
    run: &Path,
    id: &str,
) -> Result<Vec<(TracedIteration, IoRecording)>, ArchiveError> {
    let path = run.join(events_path(IO_TRACER));
    if !path.exists() {
        return Err(ArchiveError::NoIo { id: id.into() });
    }
    let table = ParquetReader::open(run, events_path(IO_TRACER))?;
    let parts: Vec<IoTablePart> = serde_json::from_str(table.metadata(KEY).unwrap_or_default())
        .map_err(ArchiveError::damaged(&path))?;
    let mut first = 0;
    let mut all = Vec::new();
    for part in parts {
        let events = read_io_events(&table, table.row_group_range(first, part.rows), &path)?;
        first += part.rows;
        let iteration = TracedIteration { slot: part.slot, target: part.target };
        all.push((iteration, IoRecording { events, files: part.files, summary: part.summary }));
    }
    Ok(all)
}

fn read_io_events(
    table: &ParquetReader,
    groups: std::ops::Range<usize>,
    path: &Path,
) -> Result<Vec<IoEvent>, ArchiveError> {
    let mut events = Vec::new();
    for rows in table.read_rows(groups, &IoEventRow::READ)? {
        let rows: TypedTable<IoEventRow> = rows?;
        let mut kinds = rows.column(IoEventRow::KIND).map_texts(IoEventKind::from_name);
        let mut devices = rows.column(IoEventRow::DEVICE).map_texts(DeviceNumber::parse);
        let number = |column, row| rows.column::<i64>(column).get(row).map(|number| number as u64);
        let mut event = |row: usize| {
            Some(IoEvent {
                at: Nanos(number(IoEventRow::AT, row)?),
                pid: rows.column(IoEventRow::PID).get(row)?,
                kind: kinds.next()???,
                device: devices.next()???,
                inode: number(IoEventRow::INODE, row)?,
                first: number(IoEventRow::FIRST, row)?,
                count: number(IoEventRow::COUNT, row)?,
                name: rows.column(IoEventRow::FLAGS).get(row).map(str::to_owned),
            })
        };
        for row in 0..rows.row_count() {
            let wrong = || ArchiveError::damaged(path)(format!("row {row} is no event"));
            events.push(event(row).ok_or_else(wrong)?);
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_io_event(at: u64, kind: IoEventKind, name: Option<&str>) -> IoEvent {
        let name = name.map(String::from);
        IoEvent {
            at: Nanos(at),
            pid: 7,
            kind,
            device: DeviceNumber::new(254, 0),
            inode: 12,
            first: 3,
            count: 4,
            name,
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let home = tempfile::tempdir().unwrap();
        let recording = |at| IoRecording {
            events: vec![
                make_io_event(at, IoEventKind::Added, None),
                make_io_event(at + 1, IoEventKind::Issued, Some("RA")),
            ],
            files: Vec::new(),
            summary: IoTraceSummary { lost: at, ..IoTraceSummary::default() },
        };
        fs::create_dir(home.path().join("raw")).unwrap();
        let all = [(0, None, 1), (5, Some(0), 6), (5, Some(1), 7)]
            .map(|(slot, target, at)| (TracedIteration { slot, target }, recording(at)));
        for (iteration, recording) in &all {
            let text = serde_json::to_vec(recording).unwrap();
            fs::write(home.path().join(raw_trace_path(IO_TRACER, *iteration)), text).unwrap();
        }
        write_io_table(home.path(), home.path(), &all.each_ref().map(|(iteration, _)| *iteration)).unwrap();
        assert_eq!(read_io_recordings(home.path(), "x").unwrap(), all);
        assert!(matches!(read_io_recordings(Path::new("/nowhere"), "x"), Err(ArchiveError::NoIo { .. })));
    }
}
