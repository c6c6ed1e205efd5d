//! Reading through the index: rows whose stamps are those of the files now are taken as they are, all other runs are
//! read, and their rows written, where that is possible.

use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use rayon::prelude::*;

use super::index_changes::{IndexChanges, write_changes};
use super::index_file::{IndexError, IndexFile};
use super::index_lock::IndexLock;
use super::record_refresh::read_small_record;
use super::run_heads::{RunHead, StoredHead, read_heads};
use super::run_stamp::{HeadStamp, RunsFolder, nanos_since_1970};
use crate::run_layout::RUNS;
use crate::run_summary::{RunSummary, directory_size, summarise_run};

/// How long a reader waits to write what it has read; the next one would read it again.
const READER_PATIENCE: Duration = Duration::from_millis(200);

/// How long who changed a run waits to write its row; readers do so themselves.
const WRITER_PATIENCE: Duration = Duration::from_millis(500);

/// A run of the list: its summary and bytes on the disk.
pub(crate) type ListedRun = (Result<RunSummary, String>, u64);

/// The rows of an index, by id, or why there are none.
pub(crate) struct IndexedHeads(Result<Vec<StoredHead>, IndexError>);

impl IndexedHeads {
    /// All rows of the index of `archive`, or those from an id on. What a killed writer began is taken back first, which needs
    /// the right to write.
    pub(crate) fn read(archive: &Path, from: Option<&str>) -> Self {
        let read =
            IndexFile::open_to_read(archive).and_then(|index| Ok(read_heads(&index.connection, from)?));
        IndexedHeads(match read {
            Err(IndexError::Sqlite(_)) => recover_rows(archive, from),
            read => read,
        })
    }
}

/// Opens the index so that what a killed writer began is taken back, and reads its rows.
fn recover_rows(archive: &Path, from: Option<&str>) -> Result<Vec<StoredHead>, IndexError> {
    let lock = IndexLock::acquire(archive, READER_PATIENCE)?;
    Ok(read_heads(&IndexFile::open_to_write(archive, &lock)?.connection, from)?)
}

/// The stamps of the manifests of some runs, each with the time at which it was taken.
pub(crate) struct ManifestStamps(Vec<(i64, Option<HeadStamp>)>);

impl ManifestStamps {
    /// Those of `names` in `archive` as they are now.
    pub(crate) fn read(archive: &Path, names: &[(String, String)]) -> Self {
        let folder = RunsFolder::open(&archive.join(RUNS));
        let read = |(name, _): &(String, String)| {
            let stamp = folder.as_ref().and_then(|folder| HeadStamp::of_head(folder.as_fd(), name));
            (nanos_since_1970(), stamp)
        };
        ManifestStamps(names.par_iter().map(read).collect())
    }
}

/// What a list shows of `names`, the sorted names in the folder of runs of `archive`, or the last of them: `rows` are those of
/// all, or from the first of these on.
pub(crate) fn list_heads(
    archive: &Path,
    names: &[(String, String)],
    stamps: ManifestStamps,
    IndexedHeads(stored): IndexedHeads,
) -> Vec<ListedRun> {
    let has_index = stored.is_ok();
    let mut stored = stored.unwrap_or_default().into_iter().peekable();
    let (mut listed, mut read, mut gone) = (Vec::with_capacity(names.len()), Vec::new(), Vec::new());
    for ((name, _), (read_at, stamp)) in names.iter().zip(stamps.0) {
        // Both are in the order of their bytes.
        while let Some(row) = stored.next_if(|row| row.head.id < *name) {
            gone.push(row.head.id);
        }
        let known = stored.next_if(|row| row.head.id == *name);
        let is_current =
            |row: &StoredHead| stamp.as_ref().is_some_and(|stamp| stamp.matches(&row.stamp, row.read_at));
        let known = match known {
            Some(row) if is_current(&row) => {
                listed.push((Ok(row.head.summary), row.head.bytes));
                continue;
            }
            known => known,
        };
        let found = read_head(archive, name);
        if let (Ok((head, true)), Some(stamp)) = (&found, stamp) {
            let fresh = StoredHead { head: head.clone(), stamp: *stamp.as_bytes(), read_at };
            // One that is too young to be trusted is written once only.
            let says_else = |known: StoredHead| known.stamp != fresh.stamp || known.head != fresh.head;
            if stamp.matches(&fresh.stamp, read_at) || known.is_none_or(says_else) {
                read.push(fresh);
            }
        }
        listed.push(match found {
            Ok((head, _)) => (Ok(head.summary), head.bytes),
            Err((reason, bytes)) => (Err(reason), bytes),
        });
    }
    gone.extend(stored.map(|row| row.head.id));
    let is_worth_it = !read.is_empty() || !gone.is_empty() || (!has_index && !names.is_empty());
    if is_worth_it {
        // Without a right to write it, or while somebody else does, the index stays as it is.
        let changes = IndexChanges { heads: read, gone, ..IndexChanges::default() };
        let _ = write_changes(archive, READER_PATIENCE, &changes);
    }
    listed
}

/// Label and title of each run that the index has a row of, whether or not that is still right; nothing is written, and none where
/// there is no index that can be read.
pub(crate) fn read_stored_summaries(archive: &Path) -> HashMap<String, (Option<String>, String)> {
    let read = IndexFile::open_to_read(archive).and_then(|index| Ok(read_heads(&index.connection, None)?));
    let named = |StoredHead { head, .. }: StoredHead| {
        (head.id, (head.summary.label, head.summary.title.as_str().to_owned()))
    };
    read.unwrap_or_default().into_iter().map(named).collect()
}

/// The head of a run as its files have it, and whether it is closed: only then is it stored. Of one that cannot be read the
/// reason and its bytes.
fn read_head(archive: &Path, name: &str) -> Result<(RunHead, bool), (String, u64)> {
    let run = archive.join(RUNS).join(name);
    let bytes = directory_size(&run);
    match summarise_run(&run) {
        Err(error) => Err((error.to_string(), bytes)),
        Ok(read) => {
            let head = RunHead { id: name.into(), summary: read.summary, bytes };
            Ok((head, read.is_closed))
        }
    }
}

/// A run of `archive` as a row of the index; `None` where it is not there, damaged, or not closed.
pub(super) fn read_row(archive: &Path, name: &str) -> Option<StoredHead> {
    let read_at = nanos_since_1970();
    let folder = RunsFolder::open(&archive.join(RUNS))?;
    let stamp = *HeadStamp::of_head(folder.as_fd(), name)?.as_bytes();
    let (head, is_closed) = read_head(archive, name).ok()?;
    is_closed.then_some(StoredHead { head, stamp, read_at })
}

/// Refreshes the row of a run that was just written, labelled or moved here. Where that fails, readers see that the row
/// is old.
pub(crate) fn note_changed_run(run: &Path) {
    let (Some(archive), Some(name)) = (find_archive(run), run.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let changes = match read_row(archive, name) {
        Some(row) => {
            let records = read_small_record(archive, name).into_iter().collect();
            IndexChanges { heads: vec![row], records, ..IndexChanges::default() }
        }
        None => IndexChanges { gone: vec![name.to_owned()], ..IndexChanges::default() },
    };
    let _ = write_changes(archive, WRITER_PATIENCE, &changes);
}

/// Removes the rows of runs of `archive` that are gone.
pub(crate) fn note_removed_runs(archive: &Path, runs: &[String]) {
    if IndexFile::path(archive).exists() {
        let changes = IndexChanges { gone: runs.to_vec(), ..IndexChanges::default() };
        let _ = write_changes(archive, WRITER_PATIENCE, &changes);
    }
}

/// The archive that a run lies in; one elsewhere has none.
fn find_archive(run: &Path) -> Option<&Path> {
    let runs = run.parent()?;
    runs.file_name().is_some_and(|name| name == RUNS).then(|| runs.parent()).flatten()
}
