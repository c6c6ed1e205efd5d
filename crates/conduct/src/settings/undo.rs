//! How one thing is put back.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use perflab_observe::io::MountTable;
use serde::{Deserialize, Serialize};

use super::remove::remove_tree;
use super::setting_file::counterpart_file;
use super::setting_value::{SettingContent, is_same_value};
use crate::ConductError;
use crate::command::{run_command, run_level_command};

/// Between two attempts to unmount what is busy.
const BUSY: Duration = Duration::from_millis(100);

/// How to put one thing back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UndoEntry {
    /// Write a file's former content.
    Write {
        /// the file
        path: PathBuf,
        /// what it held
        value: String,
    },
    /// Run a command.
    Run {
        /// whose level it is
        factor: String,
        /// its argv
        argv: Vec<String>,
    },
    /// Unmount a file system.
    Unmount {
        /// the mount point
        path: PathBuf,
    },
    /// Give a loop device back, if it still lies over this file.
    Detach {
        /// the loop device
        device: PathBuf,
        /// the file under it
        file: PathBuf,
    },
    /// Have an emulated disk answer at once, where it is still served: what follows waits for it.
    Hurry {
        /// the switch beside its image
        switch: PathBuf,
    },
    /// Remove a folder that perflab made, or a file.
    Remove {
        /// the path
        path: PathBuf,
    },
}

impl UndoEntry {
    /// Puts the thing back.
    pub fn perform(&self) -> Result<(), ConductError> {
        match self {
            UndoEntry::Write { path, value } => write_back(path, value),
            UndoEntry::Run { argv, .. } => run_level_command(argv, None),
            UndoEntry::Unmount { path } => unmount_when_free(path),
            UndoEntry::Detach { device, file } => detach_loop_device(device, file),
            UndoEntry::Hurry { switch } => {
                crate::emulated::end_delays(switch);
                Ok(())
            }
            UndoEntry::Remove { path } => {
                remove_tree(path).map_err(|source| ConductError::Scratch { path: path.clone(), source })
            }
        }
    }

    /// What is put back, for people.
    pub fn name(&self) -> String {
        match self {
            UndoEntry::Write { path, value } => format!("{} = {value}", path.display()),
            UndoEntry::Run { factor, argv } => format!("{factor}: {}", argv.join(" ")),
            UndoEntry::Unmount { path } => format!("unmount {}", path.display()),
            UndoEntry::Detach { device, .. } => format!("detach {}", device.display()),
            UndoEntry::Hurry { switch } => format!("delays off: {}", switch.display()),
            UndoEntry::Remove { path } => format!("remove {}", path.display()),
        }
    }

    /// Whether a setting's file holds what it is to hold again; other things are not looked at.
    pub(super) fn is_done(&self) -> bool {
        match self {
            UndoEntry::Write { path, value } => {
                SettingContent::read(path).is_ok_and(|now| is_same_value(&now.value, value))
            }
            _ => false,
        }
    }

    /// The file of a setting, which others may have changed, too.
    pub(super) fn setting_path(&self) -> Option<&Path> {
        match self {
            UndoEntry::Write { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Whether a reboot has undone it already.
    pub(super) fn is_undone_by_reboot(&self) -> bool {
        matches!(
            self,
            UndoEntry::Write { .. }
                | UndoEntry::Unmount { .. }
                | UndoEntry::Detach { .. }
                | UndoEntry::Hurry { .. }
        )
    }
}

/// Writes what a setting was, and reads back whether it is; what it is already is not written.
fn write_back(path: &Path, value: &str) -> Result<(), ConductError> {
    let now = SettingContent::read(path)?.value;
    if is_same_value(&now, value) {
        return Ok(());
    }
    let left =
        |source, now| ConductError::NotPutBack { path: path.into(), before: value.into(), now, source };
    let written = fs::write(path, value);
    written
        .or_else(|error| zero_by_counterpart(path, value).ok_or(error))
        .map_err(|source| left(Some(source), now))?;
    let now = SettingContent::read(path)?.value;
    if is_same_value(&now, value) { Ok(()) } else { Err(left(None, now)) }
}

/// Of a pair of which neither was in force, the kernel refuses the zero of one: it comes with a change of the other.
fn zero_by_counterpart(path: &Path, value: &str) -> Option<()> {
    let other = counterpart_file(path).filter(|_| is_same_value(value, "0"))?;
    let before = SettingContent::read(&other).ok()?.value;
    let detour = if is_same_value(&before, "1") { "2" } else { "1" };
    fs::write(&other, detour).and_then(|()| fs::write(&other, before)).ok()
}

fn unmount_when_free(path: &Path) -> Result<(), ConductError> {
    if !MountTable::read().has_mount_at(path) {
        return Ok(());
    }
    let argv = ["umount".into(), path.display().to_string()];
    // Who looked at the disk only now (udev, a loop device on its way out) is gone in a moment.
    for _ in 0..20 {
        match run_command(&argv) {
            Err(ConductError::Command { reason, .. }) if reason.contains("busy") => sleep(BUSY),
            ended => return ended.map(drop),
        }
    }
    run_command(&argv).map(drop)
}

fn detach_loop_device(device: &Path, file: &Path) -> Result<(), ConductError> {
    let name = device.file_name().unwrap_or_default();
    let under = fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
    if !under.is_ok_and(|under| Path::new(under.trim()) == file) {
        return Ok(());
    }
    run_command(&["losetup".into(), "--detach".into(), device.display().to_string()]).map(drop)
}
