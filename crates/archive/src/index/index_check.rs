//! The index held against the runs, and made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::time::Duration;

use perflab_model::RunRecord;
use rayon::prelude::*;
use serde::Serialize;

use super::index_changes::IndexChanges;
use super::index_file::{IndexError, IndexFile};
use super::index_lock::IndexLock;
use super::index_refresh::read_row;
use super::record_refresh::{RUNS_AT_ONCE, read_small_record};
use super::run_heads::{StoredHead, read_heads};
use super::run_records::{RecordReader, condense_record};
use super::run_stamp::{HeadStamp, RecordStamp, RunsFolder};
use crate::archive_dir::Archive;
use crate::error::ArchiveError;
use crate::run_dir::RunDir;
use crate::run_layout::RUNS;

/// How long another writer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The index held against the runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IndexCheck {
    /// Why it cannot be used at all; the runs are read then, and the next writer makes another.
    pub unusable: Option<String>,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Runs of the archive that are closed and can be read: each has a row, in time.
    pub runs: u64,
    /// Rows that say what the runs say.
    pub right: u64,
    /// Runs without a row, and rows that are known to be old: the next reader reads these runs.
    pub stale: BTreeSet<String>,
    /// Rows of runs that are gone.
    pub gone: BTreeSet<String>,
    /// Rows that are taken for right and are not.
    pub wrong: BTreeSet<String>,
}

impl IndexCheck {
    /// Whether a reader that trusts it is never misled.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl Archive {
    /// Reads every run and holds its row of the index against it; writes nothing.
    ///
    /// # Errors
    /// The archive's directory cannot be read.
    pub fn check_index(&self) -> Result<IndexCheck, ArchiveError> {
        let names = self.list_run_names()?;
        let mut check = IndexCheck {
            bytes: IndexFile::path(self.path()).metadata().map_or(0, |file| file.len()),
            ..IndexCheck::default()
        };
        let (index, rows) = match read_sound_rows(self) {
            Ok((index, rows)) => (Some(index), rows),
            Err(error) => {
                check.unusable = Some(error.to_string());
                (None, Vec::new())
            }
        };
        let mut records = index.as_ref().and_then(|index| RecordReader::new(&index.connection).ok());
        let mut rows: BTreeMap<String, StoredHead> =
            rows.into_iter().map(|row| (row.head.id.clone(), row)).collect();
        let folder = RunsFolder::open(&self.path().join(RUNS));
        for (name, short) in names {
            let record = records.as_mut().zip(folder.as_ref()).and_then(|(records, folder)| {
                let stamp = RecordStamp::of_record(folder.as_fd(), &name)?;
                records.read(&name, |stored, read_at| stamp.matches(stored, read_at)).ok().flatten()
            });
            if record.is_some_and(|record| !self.is_record_of(&record, &name, &short)) {
                check.wrong.insert(name.clone());
            }
            let row = rows.remove(&name);
            let stamp = folder.as_ref().and_then(|folder| HeadStamp::of_head(folder.as_fd(), &name));
            let read = read_row(self.path(), &name);
            check.runs += u64::from(read.is_some());
            let is_trusted =
                row.as_ref().zip(stamp).is_some_and(|(row, stamp)| stamp.matches(&row.stamp, row.read_at));
            match (row, read) {
                (Some(row), read)
                    if is_trusted && read.as_ref().map(|read| &read.head) != Some(&row.head) =>
                {
                    check.wrong.insert(name);
                }
                (Some(row), Some(read)) if row.head == read.head => {
                    check.right += u64::from(!check.wrong.contains(&name));
                }
                (None, None) => {}
                (_, None) => drop(check.gone.insert(name)),
                (_, Some(_)) => drop(check.stale.insert(name)),
            }
        }
        check.gone.extend(rows.into_keys());
        Ok(check)
    }

    fn is_record_of(&self, record: &RunRecord, id: &str, short: &str) -> bool {
        let run = RunDir::from_archive(self.path().join(RUNS).join(id), id.into(), short.into());
        run.read_record().is_ok_and(|read| condense_record(read) == *record)
    }

    /// Throws the index away and makes it anew from the runs; gives how many have a row.
    ///
    /// # Errors
    /// [`ArchiveError::Index`] where it cannot be written; the archive's directory cannot be read.
    pub fn rebuild_index(&self) -> Result<u64, ArchiveError> {
        let names = self.list_run_names()?;
        let failed = |error: IndexError| ArchiveError::Index {
            path: IndexFile::path(self.path()),
            reason: error.to_string(),
        };
        let lock = IndexLock::acquire(self.path(), PATIENCE).map_err(|error| failed(error.into()))?;
        let mut index = IndexFile::replace(self.path(), &lock).map_err(failed)?;
        let mut count = 0;
        for part in names.chunks(RUNS_AT_ONCE) {
            let read = |(name, _): &(String, String)| {
                read_row(self.path(), name).map(|head| (head, read_small_record(self.path(), name)))
            };
            let (heads, records): (Vec<_>, Vec<_>) = part.par_iter().filter_map(read).unzip();
            count += heads.len() as u64;
            let records = records.into_iter().flatten().collect();
            let changes = IndexChanges { heads, records, ..IndexChanges::default() };
            changes.write_into(&mut index).map_err(failed)?;
        }
        Ok(count)
    }
}

/// All rows, where SQLite finds nothing wrong with the file.
fn read_sound_rows(archive: &Archive) -> Result<(IndexFile, Vec<StoredHead>), IndexError> {
    let index = IndexFile::open_to_read(archive.path())?;
    let found: String = index.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(IndexError::Foreign(found));
    }
    let rows = read_heads(&index.connection, None)?;
    Ok((index, rows))
}
