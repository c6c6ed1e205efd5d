//! A run that comes from elsewhere, file by file: it stands under `runs/` as a whole, or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use crate::archive_dir::Archive;
use crate::error::ArchiveError;
use crate::fresh_file::check_folder_owners;
use crate::half_made::own_name_prefix;
use crate::index::index_refresh;
use crate::manifest;
use crate::run_dir::RunDir;
use crate::run_id::is_run_id;
use crate::run_layout::{CHECKSUMS, RunLock};

/// A folder beside the runs, in which one is put together. What is not kept is gone with this value.
#[derive(Debug)]
pub struct IncomingRun<'a> {
    archive: &'a Archive,
    half: TempDir,
    _lock: Option<RunLock>,
}

impl Archive {
    /// Makes room for a run that comes from elsewhere.
    ///
    /// # Errors
    /// [`ArchiveError::OthersArchive`]; a directory that cannot be written.
    pub fn receive_run(&self) -> Result<IncomingRun<'_>, ArchiveError> {
        let runs = self.runs_directory();
        check_folder_owners(&runs, None)?;
        fs::create_dir_all(&runs).map_err(ArchiveError::io("create", &runs))?;
        let half = tempfile::Builder::new().prefix(&own_name_prefix()).tempdir_in(&runs);
        let half = half.map_err(ArchiveError::io("create", &runs))?;
        let lock = RunLock::try_lock(half.path())?;
        Ok(IncomingRun { archive: self, half, _lock: lock })
    }
}

impl IncomingRun<'_> {
    /// Where the run's own folder, which is called as its id, is made.
    pub(crate) fn folder(&self) -> &Path {
        self.half.path()
    }

    /// Whether the files of the run `id` were held against their hashes; of a run that was never closed there are none.
    pub fn has_hashes(&self, id: &str) -> bool {
        self.folder().join(id).join(CHECKSUMS).is_file()
    }

    /// Where the file `name` of the run `id` goes; the folder above it is there afterwards.
    ///
    /// # Errors
    /// An id that is none, a name that leads out of the run, a folder that cannot be made.
    pub fn place_file(&self, id: &str, name: &str) -> Result<PathBuf, ArchiveError> {
        let refuse = |reason: &str| ArchiveError::Refused {
            path: Path::new(id).join(name),
            reason: reason.to_owned(),
        };
        if !is_run_id(id) {
            return Err(refuse("it does not lie under the id of a run"));
        }
        let is_inside = |name: &Path| name.components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !is_inside(Path::new(name)) {
            return Err(refuse("it leads out of the run's directory"));
        }
        let place = self.half.path().join(id).join(name);
        let parent = place.parent().unwrap_or(&place);
        fs::create_dir_all(parent).map_err(ArchiveError::io("create", parent))?;
        Ok(place)
    }

    /// Holds the run against its own list of hashes and its id: what arrived is what was sent.
    ///
    /// # Errors
    /// [`ArchiveError::Altered`], [`ArchiveError::Newer`], [`ArchiveError::Damaged`].
    pub fn verify(&self, id: &str) -> Result<(), ArchiveError> {
        let run = RunDir::open(&self.half.path().join(id))?;
        if run.id() != id {
            return Err(ArchiveError::damaged(run.path())(format!("folder {id} holds the run {}", run.id())));
        }
        run.verify_files()
    }

    /// The hash of its `run.json` and its notes, as [`RunDir::hash_head`] has it.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn hash_head(&self, id: &str) -> Result<String, ArchiveError> {
        RunDir::open(&self.half.path().join(id))?.hash_head()
    }

    /// Puts the run among the others, synced.
    ///
    /// # Errors
    /// [`ArchiveError::Exists`] where the archive has it; what the disk refuses.
    pub fn keep(self, id: &str) -> Result<RunDir, ArchiveError> {
        let runs = self.archive.runs_directory();
        // Once for all its files: one by one, each waits for the disk.
        let synced: io::Result<()> =
            File::open(self.half.path()).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
        synced.map_err(ArchiveError::io("write", &runs))?;
        let place = runs.join(id);
        if place.exists() {
            return Err(ArchiveError::Exists { path: place });
        }
        fs::rename(self.half.path().join(id), &place).map_err(ArchiveError::io("create", &place))?;
        index_refresh::note_changed_run(&place);
        let mut found = self.archive.find_runs(id)?;
        found.pop().ok_or_else(|| ArchiveError::damaged(&place)("it vanished while it was imported"))
    }
}

impl Archive {
    /// Puts other contents in the place of those files of a closed run that may change after its end: `run.json`, which has the
    /// label, and the notes.
    ///
    /// # Errors
    /// [`ArchiveError::Live`]; a manifest that is none, or another run's; files that cannot be written.
    pub fn replace_run_head(
        &self,
        id: &str,
        manifest_text: &[u8],
        notes: Option<&[u8]>,
    ) -> Result<(), ArchiveError> {
        let run = self.run_path(id);
        check_folder_owners(&self.runs_directory(), Some(&run))?;
        let _lock = RunLock::try_lock(&run)?.ok_or_else(|| ArchiveError::Live { id: id.into() })?;
        manifest::replace_manifest_text(&run, id, manifest_text)?;
        if let Some(notes) = notes {
            let path = run.join(crate::run_layout::NOTES);
            manifest::replace_file(&path, |file| io::Write::write_all(file, notes))
                .map_err(ArchiveError::io("write", &path))?;
        }
        index_refresh::note_changed_run(&run);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01M86D3BNFDJPTHCANQJZN3H5V";

    #[test]
    fn nothing_that_arrives_leads_out_of_the_run() {
        let home = tempfile::tempdir().unwrap();
        let archive = Archive::open(home.path()).unwrap();
        let incoming = archive.receive_run().unwrap();
        for name in ["../x", "/etc/passwd", "a/../../x", ""] {
            assert!(matches!(incoming.place_file(ID, name), Err(ArchiveError::Refused { .. })), "{name:?}");
        }
        assert!(matches!(incoming.place_file("../up", "x"), Err(ArchiveError::Refused { .. })));
        let place = incoming.place_file(ID, "series/vmstat.parquet").unwrap();
        assert!(place.starts_with(incoming.folder()) && place.parent().unwrap().is_dir());
    }

    #[test]
    fn what_is_not_kept_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let archive = Archive::open(home.path()).unwrap();
        let incoming = archive.receive_run().unwrap();
        fs::write(incoming.place_file(ID, "run.json").unwrap(), "{}").unwrap();
        assert!(incoming.verify(ID).is_err());
        drop(incoming);
        assert_eq!(fs::read_dir(home.path().join("runs")).unwrap().count(), 0);
    }
}
