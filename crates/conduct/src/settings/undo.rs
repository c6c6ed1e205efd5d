//! How one thing is put back.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use perflab_observe::io::Mounts;
use serde::{Deserialize, Serialize};

use super::remove::remove_all;
use super::setting_file::counterpart;
use super::setting_value::{SettingContent, is_same_value};
use crate::ConductError;
use crate::command::{command, level_command};

/// Between two attempts to unmount what is busy.
const BUSY: Duration = Duration::from_millis(100);

/// How to put one thing back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
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

impl Undo {
    /// Puts the thing back.
    pub fn perform(&self) -> Result<(), ConductError> {
        match self {
            Undo::Write { path, value } => write_back(path, value),
            Undo::Run { argv, .. } => level_command(argv, None),
            Undo::Unmount { path } => unmount(path),
            Undo::Detach { device, file } => detach(device, file),
            Undo::Hurry { switch } => {
                crate::emulated::hurry(switch);
                Ok(())
            }
            Undo::Remove { path } => {
                remove_all(path).map_err(|source| ConductError::Scratch { path: path.clone(), source })
            }
        }
    }

    /// What is put back, for people.
    pub fn name(&self) -> String {
        match self {
            Undo::Write { path, value } => format!("{} = {value}", path.display()),
            Undo::Run { factor, argv } => format!("{factor}: {}", argv.join(" ")),
            Undo::Unmount { path } => format!("unmount {}", path.display()),
            Undo::Detach { device, .. } => format!("detach {}", device.display()),
            Undo::Hurry { switch } => format!("delays off: {}", switch.display()),
            Undo::Remove { path } => format!("remove {}", path.display()),
        }
    }

    /// Whether a setting's file holds what it is to hold again; other things are not looked at.
    pub(super) fn is_done(&self) -> bool {
        match self {
            Undo::Write { path, value } => {
                SettingContent::read(path).is_ok_and(|now| is_same_value(&now.value, value))
            }
            _ => false,
        }
    }

    /// The file of a setting, which others may have changed, too.
    pub(super) fn setting(&self) -> Option<&Path> {
        match self {
            Undo::Write { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Whether a reboot has undone it already.
    pub(super) fn gone_with_the_boot(&self) -> bool {
        matches!(self, Undo::Write { .. } | Undo::Unmount { .. } | Undo::Detach { .. } | Undo::Hurry { .. })
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
    let other = counterpart(path).filter(|_| is_same_value(value, "0"))?;
    let before = SettingContent::read(&other).ok()?.value;
    let detour = if is_same_value(&before, "1") { "2" } else { "1" };
    fs::write(&other, detour).and_then(|()| fs::write(&other, before)).ok()
}

fn unmount(path: &Path) -> Result<(), ConductError> {
    if !Mounts::read().are_at(path) {
        return Ok(());
    }
    let argv = ["umount".into(), path.display().to_string()];
    // Who looked at the disk only now (udev, a loop device on its way out) is gone in a moment.
    for _ in 0..20 {
        match command(&argv) {
            Err(ConductError::Command { reason, .. }) if reason.contains("busy") => sleep(BUSY),
            ended => return ended.map(drop),
        }
    }
    command(&argv).map(drop)
}

fn detach(device: &Path, file: &Path) -> Result<(), ConductError> {
    let name = device.file_name().unwrap_or_default();
    let under = fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
    if !under.is_ok_and(|under| Path::new(under.trim()) == file) {
        return Ok(());
    }
    command(&["losetup".into(), "--detach".into(), device.display().to_string()]).map(drop)
}
