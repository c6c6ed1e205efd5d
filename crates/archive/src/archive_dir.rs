//! The directory of runs: open, list, begin a run.
//!
//! Nothing is hidden: what cannot be read is listed with the reason.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use perflab_model::{Manifest, RunRecord};

use crate::error::ArchiveError;
use crate::fresh_file::{check_folder_owners, create_fresh_file};
use crate::half_made::{HALF, is_abandoned, own_name_prefix};
use crate::index::index_refresh::{self, IndexedHeads, ManifestStamps};
use crate::index::record_refresh;
use crate::recorder::{BulkRecorder, RunRecorder};
use crate::run_dir::RunDir;
use crate::run_layout::{JOURNAL, RUNS, RunLock};
use crate::run_summary::RunSummary;
use crate::unpack_folder::{UnpackFolderMaker, make_unpack_folder};
use crate::{manifest, run_close, run_id};

/// A directory of runs.
#[derive(Debug, Clone)]
pub struct Archive {
    path: PathBuf,
    pub(crate) make_unpack_folder: UnpackFolderMaker,
}

/// One line of a list of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchiveEntry {
    /// The run's id: the name of its directory.
    pub id: String,
    /// The shortest prefix that names it.
    pub short: String,
    /// What it takes on the disk, in bytes.
    pub bytes: u64,
    /// What it is, or why it cannot be read.
    pub summary: Result<RunSummary, String>,
}

impl ArchiveEntry {
    /// The run that it and all its other parts are known by: the first of those that it goes on with, else itself.
    #[must_use]
    pub fn first_part_id(&self) -> &str {
        self.summary.as_ref().ok().and_then(|summary| summary.first_part.as_ref()).unwrap_or(&self.id)
    }
}

/// A run that has ended, and that nobody else changes or removes as long as this lives.
#[derive(Debug)]
pub struct HeldRun {
    run: PathBuf,
    _lock: RunLock,
}

impl HeldRun {
    /// Gives it another label, or none.
    ///
    /// # Errors
    /// Files that cannot be read or written.
    pub fn set_label(&self, label: Option<&str>) -> Result<(), ArchiveError> {
        write_label(&self.run, label)
    }
}

fn write_label(run: &Path, label: Option<&str>) -> Result<(), ArchiveError> {
    let manifest = manifest::read_manifest(run)?;
    manifest::write_manifest(run, &Manifest { label: label.map(String::from), ..manifest })?;
    index_refresh::note_changed_run(run);
    Ok(())
}

impl Archive {
    /// The archive at `path`; one that is not there yet is empty, and made when the first run begins.
    ///
    /// # Errors
    /// `path` is something else than a directory.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        if path.exists() && !path.is_dir() {
            return Err(ArchiveError::NoDirectory { path: path.into() });
        }
        Ok(Archive { path: path.into(), make_unpack_folder })
    }

    /// The same; portable files that are read without being imported are unpacked to folders that `make` makes.
    #[must_use]
    pub fn with_unpack_folders(self, make: UnpackFolderMaker) -> Self {
        Archive { make_unpack_folder: make, ..self }
    }

    /// Where the archive is: what the user passed, else `$PERFLAB_ARCHIVE`, else the nearest `perflab-archive` in the working
    /// directory or above it that is the user's own, else `perflab/archive` in the user's data folder if it is there, else
    /// `./perflab-archive`.
    pub fn locate(explicit: Option<&Path>) -> PathBuf {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(named) = explicit.map(PathBuf::from).or_else(|| variable("PERFLAB_ARCHIVE")) {
            return named;
        }
        let data = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")));
        let data = data.filter(|folder| folder.is_absolute());
        let here = std::env::current_dir().ok();
        find_archive(here.as_deref(), data.as_deref()).unwrap_or_else(|| FOLDER.into())
    }

    /// The archive's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn runs_directory(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// Makes the archive where it is not there yet, and tries whether a run could be begun in it: before anything is measured
    /// that could not be kept.
    ///
    /// # Errors
    /// [`ArchiveError::NotWritable`], [`ArchiveError::OthersArchive`].
    pub fn ensure_writable(&self) -> Result<(), ArchiveError> {
        let runs = self.runs_directory();
        check_folder_owners(&runs, None)?;
        let probe = runs.join(own_name_prefix() + "probe");
        let tried = fs::create_dir_all(&runs).and_then(|()| fs::create_dir(&probe)).and_then(|()| {
            // A directory may still fit where a file does not.
            let written =
                create_fresh_file(&probe.join(JOURNAL)).and_then(|mut file| file.write_all(&[b' '; 4096]));
            fs::remove_dir_all(&probe).and(written)
        });
        tried.map_err(|source| ArchiveError::NotWritable { path: self.path.clone(), source })
    }

    /// Whether there is anything at the archive's place.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Begins a run: makes its directory with its `run.json` (status running) and takes its lock. The
    /// caller then records all events, the first of them `Began`.
    ///
    /// # Errors
    /// An id that is none or taken; a directory that cannot be written.
    pub fn begin_run(&self, manifest: &Manifest) -> Result<RunRecorder, ArchiveError> {
        RunRecorder::begin(&self.runs_directory(), manifest)
    }

    /// Begins a run whose events are all there already: nothing of it is seen until it is whole.
    ///
    /// # Errors
    /// As [`Archive::begin_run`].
    pub fn begin_bulk_run(&self, manifest: &Manifest) -> Result<BulkRecorder, ArchiveError> {
        BulkRecorder::begin(&self.runs_directory(), manifest)
    }

    /// Where a run of this id is, if there is one.
    pub fn run_path(&self, id: &str) -> PathBuf {
        self.runs_directory().join(id)
    }

    /// When something was last written into the journal of the run of this id, as the file system says it; none where there is none.
    pub fn last_journal_write(&self, id: &str) -> Option<SystemTime> {
        self.run_path(id).join(JOURNAL).metadata().ok()?.modified().ok()
    }

    /// The run of a line of the list.
    pub fn open_run(&self, entry: &ArchiveEntry) -> RunDir {
        RunDir::from_archive(self.runs_directory().join(&entry.id), entry.id.clone(), entry.short.clone())
    }

    /// Gives a closed run another label, or none.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] while it is recorded; an id that none has; files that cannot be read or written.
    pub fn set_label(&self, id: &str, label: Option<&str>) -> Result<(), ArchiveError> {
        let run = self.runs_directory().join(id);
        let _lock = RunLock::try_lock(&run)?.ok_or_else(|| ArchiveError::Live { id: id.into() })?;
        write_label(&run, label)
    }

    /// Holds a run that has ended; one whose process died is closed.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] while it is recorded, or held by another process; files that cannot be read or written.
    pub fn hold_run(&self, id: &str) -> Result<HeldRun, ArchiveError> {
        let run = self.runs_directory().join(id);
        check_folder_owners(&self.runs_directory(), Some(&run))?;
        let lock = RunLock::try_lock(&run)?.ok_or_else(|| ArchiveError::Live { id: id.into() })?;
        run_close::close_run(&run, run_close::cut_status(&run))?;
        index_refresh::note_changed_run(&run);
        Ok(HeldRun { run, _lock: lock })
    }

    /// All runs, the oldest first; damaged ones with the reason. Read from the index, where that knows the runs as they are now.
    ///
    /// # Errors
    /// The archive's directory cannot be read.
    pub fn list_runs(&self) -> Result<Vec<ArchiveEntry>, ArchiveError> {
        self.list_latest_runs(usize::MAX)
    }

    /// The latest runs, as many as `most`, the oldest first: nothing is read of the others.
    ///
    /// # Errors
    /// As [`Archive::list_runs`].
    pub fn list_latest_runs(&self, most: usize) -> Result<Vec<ArchiveEntry>, ArchiveError> {
        let list = || -> Result<_, ArchiveError> {
            let mut names = self.list_run_names()?;
            let latest = names.split_off(names.len().saturating_sub(most));
            let stamps = ManifestStamps::read(&self.path, &latest);
            Ok((latest, stamps))
        };
        // Of all runs, the rows are read while their files are looked at.
        let (latest, stamps, rows) = match most {
            usize::MAX => {
                let (listed, rows) = rayon::join(list, || IndexedHeads::read(&self.path, None));
                let (latest, stamps) = listed?;
                (latest, stamps, rows)
            }
            _ => {
                let (latest, stamps) = list()?;
                let rows = IndexedHeads::read(&self.path, latest.first().map(|(id, _)| id.as_str()));
                (latest, stamps, rows)
            }
        };
        let listed = index_refresh::list_heads(&self.path, &latest, stamps, rows);
        let entry = |((id, short), (summary, bytes))| ArchiveEntry { bytes, id, short, summary };
        Ok(latest.into_iter().zip(listed).map(entry).collect())
    }

    /// The records of many runs, in their order, as far as a history needs them: without slots, iterations, gaps and
    /// warnings, and samples without their times. Read from the index, where that knows the runs as they are now.
    pub fn read_condensed_records(&self, runs: &[ArchiveEntry]) -> Vec<Result<RunRecord, ArchiveError>> {
        let runs: Vec<(&str, &str)> = runs.iter().map(|run| (run.id.as_str(), run.short.as_str())).collect();
        record_refresh::read_condensed_records(&self.path, &runs)
    }

    /// The names under `runs/` with their shortest prefixes, sorted; nothing of the runs is read.
    pub(crate) fn list_run_names(&self) -> Result<Vec<(String, String)>, ArchiveError> {
        let runs = self.runs_directory();
        let names: Vec<OsString> = match fs::read_dir(&runs) {
            Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
        .map_err(ArchiveError::io("read", &runs))?;
        let to_text =
            |name: OsString| name.into_string().unwrap_or_else(|name| name.to_string_lossy().into());
        let mut names: Vec<String> =
            names.into_iter().map(to_text).filter(|name| !name.starts_with(HALF)).collect();
        names.sort_unstable();
        let shorts = run_id::shortest_prefixes(&names);
        Ok(names.into_iter().zip(shorts).collect())
    }
}

impl Archive {
    /// Removes half-made and half-removed runs of processes that are gone, and gives where they were. What stays costs space
    /// only.
    pub fn remove_abandoned_runs(&self) -> Vec<PathBuf> {
        self.remove_half_made_where(is_abandoned)
    }

    /// Removes what this process made half before it became another program: it lives, and need not be old.
    pub fn remove_own_half_made_runs(&self) -> Vec<PathBuf> {
        let own = own_name_prefix();
        self.remove_half_made_where(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&own))
        })
    }

    fn remove_half_made_where(&self, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.runs_directory()) else { return Vec::new() };
        let all = entries.flatten().map(|entry| entry.path());
        all.filter(|path| is_wanted(path) && fs::remove_dir_all(path).is_ok()).collect()
    }
}

/// What an archive is called in a project's folder.
const FOLDER: &str = "perflab-archive";

/// The archive of whoever works in `here`: in it, in a folder above it, or in the folder of the user's data.
fn find_archive(here: Option<&Path>, data: Option<&Path>) -> Option<PathBuf> {
    let working = Path::new(FOLDER);
    if here.is_some_and(|here| here.join(FOLDER).is_dir()) {
        return Some(working.into());
    }
    let above = here.into_iter().flat_map(Path::ancestors).skip(1).map(|folder| folder.join(FOLDER));
    let of_data = data.map(|folder| folder.join("perflab/archive"));
    above.chain(of_data).find(|path| path.is_dir() && is_own(path))
}

/// Whether a folder that nobody named may be written to: what others put above a shared folder is not the user's archive. With
/// sudo, that of the user who called it is.
fn is_own(path: &Path) -> bool {
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    let me = rustix::process::geteuid().as_raw();
    std::fs::metadata(path).is_ok_and(|found| found.uid() == me || me == 0 && caller == Some(found.uid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_archive_above_is_found_and_then_that_of_the_user() {
        let home = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (deep, data) = (make("project/src/deep"), make("data"));
        assert_eq!(find_archive(Some(&deep), Some(&data)), None);
        let own = make("data/perflab/archive");
        assert_eq!(find_archive(Some(&deep), Some(&data)), Some(own));
        let above = make("project/perflab-archive");
        assert_eq!(find_archive(Some(&deep), Some(&data)), Some(above));
        make("project/src/deep/perflab-archive");
        assert_eq!(find_archive(Some(&deep), Some(&data)), Some(FOLDER.into()));
    }
}
