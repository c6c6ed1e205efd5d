//! `events/io.parquet`: block and page-cache events, one row per event.
//!
//! The tracer's file (the recording as JSON) is kept under `raw/` while the run lives, and read into the table when it
//! is closed; files and metadata ranges are in the table's metadata.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use perflab_model::Nanos;
use perflab_model::io_trace::{
    DeviceNumber, IO_TRACER, IoEvent, IoEventKind, IoFile, IoRecording, IoTraceSummary,
};
use perflab_model::operation::TracedIteration;
use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::parquet_reader::ParquetReader;
use crate::parquet_writer::{self, ParquetWriter, StorageType, StoredCell, StoredColumn};
use crate::run_layout::{EVENTS, events_path, raw_trace_path};

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

/// The columns: name, type, unit, whether cells may be missing, meaning.
const COLUMNS: [(&str, StorageType, &str, bool, &str); 11] = [
    ("slot", StorageType::Int32, "1", false, "index into plan.slots of run.json"),
    ("at_ns", StorageType::Int64, "ns", false, "when, CLOCK_MONOTONIC of the target"),
    ("pid", StorageType::Int32, "1", false, "the thread in whose name it happened"),
    (
        "kind",
        StorageType::Text,
        "1",
        false,
        "pages: added, fault, read, mapped; requests: queued, issued, completed; processes: exec, exit",
    ),
    ("device", StorageType::Text, "1", false, "file system, or disk of a request: major:minor"),
    (
        "inode",
        StorageType::Int64,
        "1",
        false,
        "the file; the disk's number where the page is the disk's own; 0 for requests",
    ),
    (
        "first",
        StorageType::Int64,
        "1",
        false,
        "first page in the file, or first sector of 512 bytes on the disk",
    ),
    ("count", StorageType::Int64, "1", false, "pages of 4 KiB, or sectors"),
    (
        "name",
        StorageType::Text,
        "1",
        true,
        "a request's flags (R, RA, WS), a program's file, an ended thread's name",
    ),
    ("path", StorageType::Text, "1", true, "the file's path, where it was found"),
    ("target", StorageType::Int32, "1", true, "index into targets of run.json; missing on this host"),
];

pub(crate) fn io_columns() -> Vec<StoredColumn> {
    parquet_writer::event_columns(&COLUMNS)
}

/// Writes the table under `stage` from the recordings of these iterations.
pub(crate) fn write_io_table(
    run: &Path,
    stage: &Path,
    iterations: &[TracedIteration],
) -> Result<(), ArchiveError> {
    let directory = stage.join(EVENTS);
    fs::create_dir_all(&directory).map_err(ArchiveError::io("create", &directory))?;
    let mut table = ParquetWriter::create(&stage.join(events_path(IO_TRACER)), &io_columns(), &[])?;
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
    table: &mut ParquetWriter,
    iteration: TracedIteration,
    recording: &IoRecording,
) -> Result<(), ArchiveError> {
    let paths: HashMap<(DeviceNumber, u64), &str> = recording
        .files
        .iter()
        .filter_map(|file| Some(((file.device, file.inode), file.path.as_deref()?)))
        .collect();
    for event in &recording.events {
        let device = event.device.to_string();
        let row = [
            StoredCell::Int(iteration.slot.into()),
            StoredCell::Int(event.at.0 as i64),
            StoredCell::Int(event.pid.into()),
            StoredCell::Text(event.kind.name()),
            StoredCell::Text(&device),
            StoredCell::Int(event.inode as i64),
            StoredCell::Int(event.first as i64),
            StoredCell::Int(event.count as i64),
        ];
        let path = paths.get(&(event.device, event.inode)).copied();
        let texts =
            [event.name.as_deref(), path].map(|text| text.map_or(StoredCell::Missing, StoredCell::Text));
        let target = iteration.target.map_or(StoredCell::Missing, |target| StoredCell::Int(target.into()));
        table.push_row(row.into_iter().chain(texts).chain([target]))?;
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
    let at = table.dense_column::<Int64Type>("at_ns", groups.clone())?;
    let pid = table.dense_column::<Int32Type>("pid", groups.clone())?;
    let kind = table.dense_column::<ByteArrayType>("kind", groups.clone())?;
    let device = table.dense_column::<ByteArrayType>("device", groups.clone())?;
    let [inode, first, count] =
        ["inode", "first", "count"].map(|name| table.dense_column::<Int64Type>(name, groups.clone()));
    let (inode, first, count) = (inode?, first?, count?);
    let name = table.optional_text_in_groups("name", groups)?;
    let event = |row: usize| {
        Some(IoEvent {
            at: Nanos(*at.get(row)? as u64),
            pid: *pid.get(row)?,
            kind: IoEventKind::from_name(kind.get(row)?.as_utf8().ok()?)?,
            device: DeviceNumber::parse(device.get(row)?.as_utf8().ok()?)?,
            inode: *inode.get(row)? as u64,
            first: *first.get(row)? as u64,
            count: *count.get(row)? as u64,
            name: name.get(row)?.clone(),
        })
    };
    let wrong = |row| ArchiveError::damaged(path)(format!("row {row} is no event"));
    (0..at.len()).map(|row| event(row).ok_or_else(|| wrong(row))).collect()
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
