//! How one thing is put back.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::process;
use super::setting_value::{SettingContent, is_same_value};
use crate::ConductError;

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
            Undo::Run { argv, .. } => process::command(argv).map(drop),
            Undo::Unmount { path } => unmount(path),
            Undo::Detach { device, file } => detach(device, file),
            Undo::Hurry { switch } => {
                crate::emulated::hurry(switch);
                Ok(())
            }
            Undo::Remove { path } => remove(path),
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
    fs::write(path, value).map_err(|source| left(Some(source), now))?;
    let now = SettingContent::read(path)?.value;
    if is_same_value(&now, value) { Ok(()) } else { Err(left(None, now)) }
}

fn unmount(path: &Path) -> Result<(), ConductError> {
    if !is_mounted(path) {
        return Ok(());
    }
    let argv = ["umount".into(), path.display().to_string()];
    // Who looked at the disk only now (udev, a loop device on its way out) is gone in a moment.
    for _ in 0..20 {
        match process::command(&argv) {
            Err(ConductError::Command { reason, .. }) if reason.contains("busy") => sleep(BUSY),
            ended => return ended.map(drop),
        }
    }
    process::command(&argv).map(drop)
}

fn detach(device: &Path, file: &Path) -> Result<(), ConductError> {
    let name = device.file_name().unwrap_or_default();
    let under = fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
    if !under.is_ok_and(|under| Path::new(under.trim()) == file) {
        return Ok(());
    }
    process::command(&["losetup".into(), "--detach".into(), device.display().to_string()]).map(drop)
}

fn is_mounted(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1) == path.to_str())
}

fn remove(path: &Path) -> Result<(), ConductError> {
    // A folder that is still a mount point would take somebody's files with it.
    let gone =
        if path.is_dir() && !is_mounted(path) { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match gone {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ConductError::Scratch { path: path.into(), source: error })
        }
        _ => Ok(()),
    }
}
