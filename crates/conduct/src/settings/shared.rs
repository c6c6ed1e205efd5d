//! Settings that several runs hold at a time: who comes later notes what they were before the first of them, and who ends last
//! puts them back.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use perflab_observe::own_directories::{self, Access};
use rustix::fs::{FlockOperation, flock};

use super::journal::{is_journal, open, read};
use super::setting_file::FileIdentity;
use super::undo::Undo;

/// While this is held, no other perflab decides what a setting was, or whether to put it back.
#[derive(Debug)]
pub(super) struct Turn {
    _folder: OwnedFd,
}

impl Turn {
    /// Waits for it; `folder` is where journals lie.
    pub fn take(folder: &Path) -> io::Result<Self> {
        let folder = own_directories::make(folder)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok(Turn { _folder: folder })
    }
}

/// What other runs have promised to make of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// what it held before them
    pub value: String,
    /// whether one of them goes on
    pub lives: bool,
}

/// Who else has promised to put a file back: runs of this boot, by the journals beside one's `own`.
pub(super) fn held(own: &Path, boot_id: &str, path: &Path) -> Option<Held> {
    let entries = fs::read_dir(own.parent()?).ok()?.flatten().map(|entry| entry.path());
    let others = entries.filter(|journal| journal != own && is_journal(journal));
    let identity = FileIdentity::of(path);
    let all = others.filter_map(|journal| held_by(&journal, boot_id, path, &identity));
    all.reduce(|one, other| if one.lives { one } else { other })
}

fn held_by(journal: &Path, boot_id: &str, path: &Path, identity: &FileIdentity) -> Option<Held> {
    let file = open(journal, Access::Read).ok()??;
    let (boot, pending) = read(&file);
    let value = pending.into_iter().find_map(|(_, undo)| match undo {
        Undo::Write { path: file, value } if identity.is_also(path, &file) => Some(value),
        _ => None,
    });
    let lives = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
    value.filter(|_| boot.as_deref() == Some(boot_id)).map(|value| Held { value, lives })
}
