//! Records of many runs, read through the index: for histories.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use perflab_model::{RunRecord, RunStatus};
use rayon::prelude::*;

use super::index_changes::{IndexChanges, write_changes};
use super::index_file::{IndexError, IndexFile};
use super::run_records::{RecordReader, StoredRecord, condense_record};
use super::run_stamp::{RecordStamp, RunsFolder, nanos_since_1970};
use super::sample_blob::MOST_SAMPLES;
use crate::error::ArchiveError;
use crate::manifest;
use crate::run_dir::RunDir;
use crate::run_layout::RUNS;
use crate::tables::samples;

/// How long it waits to write what took long to read.
const PATIENCE: Duration = Duration::from_secs(5);

/// A record that was read from the run itself, with the row to be stored.
type ReadRecord = Result<(RunRecord, Option<StoredRecord>), ArchiveError>;

/// Runs that are read before what was read is written: as many as are held in memory twice.
pub(super) const RUNS_AT_ONCE: usize = 256;

/// The condensed records of `runs` of `archive`, each given by its id and shortest prefix, in their order.
pub(crate) fn read_condensed_records(
    archive: &Path,
    runs: &[(&str, &str)],
) -> Vec<Result<RunRecord, ArchiveError>> {
    let mut found: Vec<Option<Result<RunRecord, ArchiveError>>> = match read_stored_records(archive, runs) {
        Ok(stored) => stored.into_iter().map(|stored| stored.map(Ok)).collect(),
        Err(_) => runs.iter().map(|_| None).collect(),
    };
    let missing: Vec<usize> =
        (0..runs.len()).filter(|at| found.get(*at).is_none_or(Option::is_none)).collect();
    let mut is_writable = true;
    for part in missing.chunks(RUNS_AT_ONCE) {
        let names: Vec<(&str, &str)> = part.iter().filter_map(|at| runs.get(*at).copied()).collect();
        let mut records = Vec::new();
        for (at, outcome) in part.iter().zip(read_records(archive, &names)) {
            let record = outcome.map(|(record, row)| {
                records.extend(row);
                record
            });
            if let Some(place) = found.get_mut(*at) {
                *place = Some(record);
            }
        }
        if is_writable && !records.is_empty() {
            // Without a right to write it, the index stays as it is.
            let changes = IndexChanges { records, ..IndexChanges::default() };
            is_writable = write_changes(archive, PATIENCE, &changes).is_ok();
        }
    }
    found.into_iter().flatten().collect()
}

/// The records that the index has, in the order of `runs`.
fn read_stored_records(archive: &Path, runs: &[(&str, &str)]) -> Result<Vec<Option<RunRecord>>, IndexError> {
    let index = IndexFile::open_to_read(archive)?;
    let mut reader = RecordReader::new(&index.connection)?;
    let folder = RunsFolder::open(&archive.join(RUNS)).ok_or(IndexError::Absent)?;
    let read = |(id, _): &(&str, &str)| {
        let Some(stamp) = RecordStamp::of_record(folder.as_fd(), id) else { return Ok(None) };
        Ok(reader.read(id, |stored, read_at| stamp.matches(stored, read_at))?)
    };
    runs.iter().map(read).collect()
}

/// Reads runs, in their order.
fn read_records(archive: &Path, runs: &[(&str, &str)]) -> Vec<ReadRecord> {
    runs.par_iter().map(|(id, short)| read_record(archive, id, short)).collect()
}

/// Reads one run of `archive`.
fn read_record(archive: &Path, id: &str, short: &str) -> ReadRecord {
    let path = archive.join(RUNS).join(id);
    let read_at = nanos_since_1970();
    let stamp =
        RunsFolder::open(&archive.join(RUNS)).and_then(|folder| RecordStamp::of_record(folder.as_fd(), id));
    let record = condense_record(RunDir::from_archive(path.clone(), id.into(), short.into()).read_record()?);
    // One that is not closed may be recovered, and is not stored.
    let is_closed = manifest::read_manifest_head(&path)?.status != RunStatus::Running;
    let row = stamp
        .filter(|_| is_closed)
        .and_then(|stamp| StoredRecord::from_record(&record, id, stamp.as_bytes(), read_at));
    Ok((record, row))
}

/// The row of a run that was just closed, labelled or moved here; `None` for one with many samples, which is not read.
pub(super) fn read_small_record(archive: &Path, id: &str) -> Option<StoredRecord> {
    let run = archive.join(RUNS).join(id);
    let count = samples::count_samples(&run).ok()?;
    (count <= MOST_SAMPLES).then(|| read_record(archive, id, id).ok()?.1).flatten()
}
