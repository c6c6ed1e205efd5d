//! Folders that exist only for a while, written to an undo journal before they are made, so that the next start or
//! `perflab undo` removes and names them if this perflab is killed.

use std::fs::DirBuilder;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use perflab_model::Refusal;
use perflab_observe::own_directories;

use crate::error::SettingError;
use crate::undo_entry::UndoEntry;
use crate::undo_journal::UndoJournal;

/// The folder for temporary files, if no other user may change what lies there.
///
/// # Errors
/// [`SettingError::Refused`], with what to do; [`SettingError::Folder`] where there is none.
pub fn temporary_folder() -> Result<PathBuf, SettingError> {
    own_directories::temporary_directory().map_err(|source| match source.kind() {
        ErrorKind::NotFound => SettingError::Folder { path: std::env::temp_dir(), source },
        _ => SettingError::Refused(Refusal {
            what: format!("no temporary files are made in {}: {source}", std::env::temp_dir().display()),
            hint: "set TMPDIR to a folder of your own, or unset it for /tmp".into(),
        }),
    })
}

/// A temporary folder, which no other user may look into; its name begins with `perflab-`.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    journal: Option<UndoJournal>,
    entry: u32,
}

impl TemporaryFolder {
    /// Makes one below the folder for temporary files. `state` is where journals lie.
    ///
    /// # Errors
    /// The journal or the folder cannot be written.
    pub fn create(state: &Path, boot_id: &str) -> Result<Self, SettingError> {
        Self::create_with_entry(state, boot_id, |path| UndoEntry::Remove { path })
    }

    /// Makes the folder of a container: what its agent has set of this kernel is put back before the folder goes.
    ///
    /// # Errors
    /// As [`TemporaryFolder::create`].
    pub fn create_for_container(state: &Path, boot_id: &str) -> Result<Self, SettingError> {
        Self::create_with_entry(state, boot_id, |folder| UndoEntry::EndContainer { folder })
    }

    fn create_with_entry(
        state: &Path,
        boot_id: &str,
        make_entry: fn(PathBuf) -> UndoEntry,
    ) -> Result<Self, SettingError> {
        // Unpredictable: what another user has put there already is not used, but would be in the way.
        let id = format!("{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish());
        let path = temporary_folder()?.join(format!("perflab-{id}"));
        let mut journal = UndoJournal::new(state, &format!("folder-{id}"), boot_id);
        let entry = journal.promise(make_entry(path.clone()))?;
        if let Err(source) = DirBuilder::new().mode(0o700).create(&path) {
            // Not ours: nothing is to be removed.
            journal.mark_undone(entry)?;
            let _ = journal.close();
            return Err(SettingError::Folder { path, source });
        }
        Ok(TemporaryFolder { path, journal: Some(journal), entry })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it where it is, for the user, who is told where.
    pub fn keep(mut self) -> PathBuf {
        if let Some(mut journal) = self.journal.take() {
            // A journal that cannot be written any more removes it at the next start: nothing worse.
            let _ = journal.mark_undone(self.entry);
            let _ = journal.close();
        }
        self.path.clone()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Some(mut journal) = self.journal.take() {
            // What cannot be removed stays in the journal, and is named at the next start.
            let _ = journal.undo_since(0);
            let _ = journal.close();
        }
    }
}

/// A temporary folder that is made when it is first asked for.
#[derive(Debug, Default)]
pub struct LazyTemporaryFolder(Mutex<Option<TemporaryFolder>>);

impl LazyTemporaryFolder {
    /// Its path.
    ///
    /// # Errors
    /// As [`TemporaryFolder::create`].
    pub fn path(&self, state: &Path, boot_id: &str) -> Result<PathBuf, SettingError> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*made {
            return Ok(folder.path().into());
        }
        let folder = TemporaryFolder::create(state, boot_id)?;
        let path = folder.path().into();
        *made = Some(folder);
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::undo_journal::recover_killed_runs;
    use crate::undo_journal::tests::recover_patiently;

    #[test]
    fn a_folder_goes_with_its_owner_or_by_the_next_start() {
        let state = tempfile::tempdir().unwrap();
        let folder = TemporaryFolder::create(state.path(), "boot").unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists() && std::fs::read_dir(state.path()).unwrap().next().is_none());

        let kept = TemporaryFolder::create(state.path(), "boot").unwrap().keep();
        assert!(recover_killed_runs(state.path(), "boot").is_empty() && kept.exists());
        std::fs::remove_dir(kept).unwrap();

        let mut killed = TemporaryFolder::create(state.path(), "boot").unwrap();
        let path = killed.path().to_owned();
        std::fs::write(path.join("trace"), "x").unwrap();
        // As the kernel closes the journal of a process that is killed.
        drop(killed.journal.take());
        drop(killed);
        let found = recover_patiently(state.path(), "boot");
        assert_eq!(found.len(), 1);
        assert!(found[0].undone[0].contains(path.to_str().unwrap()), "{found:?}");
        assert!(!path.exists());
    }
}
