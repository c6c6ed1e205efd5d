//! Settings that several runs hold at a time: who comes later notes what they were before the first of them, and who ends last
//! puts them back.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use perflab_observe::own_directories::{self, OwnFileAccess};
use rustix::fs::{FlockOperation, flock};

use super::journal::{is_journal_path, open_own_journal, read_journal};
use super::setting_file::FileIdentity;
use super::undo::UndoEntry;

/// While this is held, no other perflab decides what a setting was, or whether to put it back.
#[derive(Debug)]
pub(super) struct SettingsLock {
    _folder: OwnedFd,
}

impl SettingsLock {
    /// Waits for it; `folder` is where journals lie.
    pub fn acquire(folder: &Path) -> io::Result<Self> {
        let folder = own_directories::create_own_directory(folder)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok(SettingsLock { _folder: folder })
    }
}

/// What other runs have promised to make of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldSetting {
    /// what it held before them
    pub value: String,
    /// whether one of them goes on
    pub lives: bool,
}

/// Who else has promised to put a file back: runs of this boot, by the journals beside one's `own`.
pub(super) fn find_other_holder(own: &Path, boot_id: &str, path: &Path) -> Option<HeldSetting> {
    let entries = fs::read_dir(own.parent()?).ok()?.flatten().map(|entry| entry.path());
    let others = entries.filter(|journal| journal != own && is_journal_path(journal));
    let identity = FileIdentity::of_path(path);
    let all = others.filter_map(|journal| find_promise_in_journal(&journal, boot_id, path, &identity));
    all.reduce(|one, other| if one.lives { one } else { other })
}

fn find_promise_in_journal(
    journal: &Path,
    boot_id: &str,
    path: &Path,
    identity: &FileIdentity,
) -> Option<HeldSetting> {
    let file = open_own_journal(journal, OwnFileAccess::Read).ok()??;
    let (boot, pending) = read_journal(&file);
    let value = pending.into_iter().find_map(|(_, undo)| match undo {
        UndoEntry::Write { path: file, value } if identity.is_same_file(path, &file) => Some(value),
        _ => None,
    });
    let lives = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
    value.filter(|_| boot.as_deref() == Some(boot_id)).map(|value| HeldSetting { value, lives })
}
