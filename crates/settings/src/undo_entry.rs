//! How one thing is put back: a setting, a mount, a loop device, a folder.
//!
//! Folders are perflab's own, removed with all that lies in them, but never what is mounted there.

use std::ffi::{CStr, OsStr};
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use perflab_model::Nanos;
use perflab_observe::NetworkOffload;
use perflab_observe::io::MountTable;
use perflab_workload::Invocation;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, StatxFlags, chmodat, openat, statat, statx, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::child_command::{CommandFailure, run_command, run_undo_command, run_user_command};
use crate::control_group;
use crate::error::SettingError;
use crate::kernel_device::KernelDevice;
use crate::namespaced_sysctls::is_namespaced_file;
use crate::offload_level::{self, read_offload, set_offload};
use crate::queue_discipline;
use crate::setting::{SettingContent, counterpart_file, is_same_value, write_value};
use crate::swap_areas;

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
        /// the device that it was of, where it was of one
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<KernelDevice>,
    },
    /// Run a command.
    Run {
        /// whose level it is
        factor: String,
        /// its argv
        argv: Vec<String>,
    },
    /// Carry out what was to come after something of a run, once: whether it fails or not.
    CleanUp {
        /// what it is
        name: String,
        /// the command, with its directory
        invocation: Invocation,
        /// how long it may take
        limit: Nanos,
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
    /// Swap to an area again that was turned off.
    SwapOn {
        /// the partition or file
        path: PathBuf,
        /// its priority; a negative one is the kernel's choice
        priority: i32,
    },
    /// Swap to an area no more.
    SwapOff {
        /// the file or device
        path: PathBuf,
    },
    /// Give the memory of a zram device back.
    ResetZram {
        /// its name: `zram0`
        device: String,
        /// whether it was added, and goes
        added: bool,
    },
    /// Give a network device the kernel's queue discipline again, where it still has perflab's.
    RemoveQueueDiscipline {
        /// its name: `eth0`
        device: String,
        /// which one that was
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<KernelDevice>,
    },
    /// Have a network device do something again, or no more, that it did before.
    RestoreOffload {
        /// its name: `eth0`
        device: String,
        /// which one that was
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<KernelDevice>,
        /// what
        offload: NetworkOffload,
        /// whether it did it
        is_on: bool,
    },
    /// Remove a control group of perflab's own; whoever is in it moves.
    RemoveControlGroup {
        /// its folder
        path: PathBuf,
        /// the group that they move to
        home: PathBuf,
    },
    /// Take a controller from the groups below one, unless somebody uses it.
    DisableController {
        /// the group's folder
        group: PathBuf,
        /// its name: `memory`
        controller: String,
    },
    /// Have an emulated disk answer at once, where it is still served: what follows waits for it.
    #[serde(alias = "hurry")]
    EndDelays {
        /// the switch beside its image
        switch: PathBuf,
    },
    /// Remove a folder that perflab made, or a file.
    Remove {
        /// the path
        path: PathBuf,
    },
    /// Put back what an agent in a container has set of this kernel, and remove the container's folder.
    EndContainer {
        /// the folder, with the agent's journals in [`CONTAINER_STATE`]
        folder: PathBuf,
    },
}

/// The folder in a container's own in which its agent keeps its journals.
pub const CONTAINER_STATE: &str = "state";

impl UndoEntry {
    /// A file's content, to be written back.
    pub fn write(path: &Path, value: &str) -> Self {
        UndoEntry::Write { path: path.into(), value: value.into(), device: KernelDevice::of_file(path) }
    }

    /// The queue discipline of a device, to be removed.
    pub(crate) fn remove_queue_discipline(device: &str) -> Self {
        UndoEntry::RemoveQueueDiscipline {
            device: device.into(),
            identity: KernelDevice::of_network_device(device),
        }
    }

    /// A switch of a network device as it is.
    pub(crate) fn restore_offload(device: &str, offload: NetworkOffload, is_on: bool) -> Self {
        let identity = KernelDevice::of_network_device(device);
        UndoEntry::RestoreOffload { device: device.into(), identity, offload, is_on }
    }

    /// Whether both are of one switch of one network device.
    pub(crate) fn is_of_same_switch(&self, other: &Self) -> bool {
        let switch = |entry: &Self| match entry {
            UndoEntry::RestoreOffload { identity, offload, .. } => Some((identity.clone()?, *offload)),
            _ => None,
        };
        switch(self).is_some_and(|own| Some(own) == switch(other))
    }

    /// The same of what is there now: a device may have another name. None where it is gone, and what was set with it.
    pub(crate) fn locate(&self) -> Option<Self> {
        match self {
            UndoEntry::Write { path, value, device: Some(device) } => {
                let (path, device) = (device.find_file(path)?, Some(device.clone()));
                Some(UndoEntry::Write { path, value: value.clone(), device })
            }
            UndoEntry::RemoveQueueDiscipline { identity: Some(identity), .. } => {
                let (device, identity) = (identity.find_name()?, Some(identity.clone()));
                Some(UndoEntry::RemoveQueueDiscipline { device, identity })
            }
            UndoEntry::RestoreOffload { identity: Some(identity), offload, is_on, .. } => {
                let (device, identity) = (identity.find_name()?, Some(identity.clone()));
                Some(UndoEntry::RestoreOffload { device, identity, offload: *offload, is_on: *is_on })
            }
            other => Some(other.clone()),
        }
    }

    /// Puts the thing back.
    pub fn perform(&self) -> Result<(), SettingError> {
        match self {
            UndoEntry::Write { path, value, .. } => write_back(path, value),
            UndoEntry::Run { argv, .. } => run_undo_command(argv),
            UndoEntry::CleanUp { name, invocation, limit } => clean_up(name, invocation, *limit),
            UndoEntry::Unmount { path } => unmount_when_free(path),
            UndoEntry::Detach { device, file } => detach_loop_device(device, file),
            UndoEntry::SwapOn { path, priority } => swap_areas::restore_area(path, *priority),
            UndoEntry::SwapOff { path } => swap_areas::end_area(path),
            UndoEntry::ResetZram { device, added } => swap_areas::reset_zram(device, *added),
            UndoEntry::RemoveQueueDiscipline { device, .. } => queue_discipline::remove_discipline(device),
            UndoEntry::RestoreOffload { device, offload, is_on, .. } => {
                match read_offload(*offload, device)? == *is_on {
                    true => Ok(()),
                    false => set_offload(*offload, device, *is_on),
                }
            }
            UndoEntry::RemoveControlGroup { path, home } => control_group::remove_control_group(path, home),
            UndoEntry::DisableController { group, controller } => {
                control_group::disable_controller(group, controller);
                Ok(())
            }
            UndoEntry::EndDelays { switch } => {
                end_delays(switch);
                Ok(())
            }
            // What its journals say was put back before: by who has journals.
            UndoEntry::Remove { path } | UndoEntry::EndContainer { folder: path } => {
                remove_tree(path).map_err(|source| SettingError::NotRemoved { path: path.clone(), source })
            }
        }
    }

    /// What is put back, for people.
    pub fn name(&self) -> String {
        match self {
            UndoEntry::Write { path, value, .. } => format!("{} = {value}", path.display()),
            UndoEntry::Run { factor, argv } => format!("{factor}: {}", argv.join(" ")),
            UndoEntry::CleanUp { name, invocation, .. } => format!("{name}: {}", invocation.argv.join(" ")),
            UndoEntry::Unmount { path } => format!("unmount {}", path.display()),
            UndoEntry::Detach { device, .. } => format!("detach {}", device.display()),
            UndoEntry::SwapOn { path, .. } => format!("swap on {}", path.display()),
            UndoEntry::SwapOff { path } => format!("swap off {}", path.display()),
            UndoEntry::ResetZram { device, .. } => format!("reset {device}"),
            UndoEntry::RemoveQueueDiscipline { device, .. } => {
                format!("queue discipline of {device}: the kernel's own")
            }
            UndoEntry::RestoreOffload { device, offload, is_on, .. } => {
                format!("{} of {device} = {}", offload.name(), offload_level::word(*is_on))
            }
            UndoEntry::RemoveControlGroup { path, .. } => format!("remove control group {}", path.display()),
            UndoEntry::DisableController { group, controller } => {
                format!("controller {controller} off below {}", group.display())
            }
            UndoEntry::EndDelays { switch } => format!("delays off: {}", switch.display()),
            UndoEntry::Remove { path } => format!("remove {}", path.display()),
            UndoEntry::EndContainer { folder } => format!("remove the container {}", folder.display()),
        }
    }

    /// Whether a setting's file holds what it is to hold again; other things are not looked at.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            UndoEntry::Write { path, value, .. } => {
                SettingContent::read(path).is_ok_and(|now| is_same_value(&now.value, value))
            }
            _ => false,
        }
    }

    /// Whether it is carried out once, and not again where it fails.
    pub(crate) fn is_tried_once(&self) -> bool {
        matches!(self, UndoEntry::CleanUp { .. })
    }

    /// The file of a setting, which others may have changed, too.
    pub(crate) fn setting_path(&self) -> Option<&Path> {
        match self {
            UndoEntry::Write { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Whether it is of the kernel that a container shares with its host. All else is of the container's own root, and went with that:
    /// a command or a path means something else outside.
    pub(crate) fn is_of_shared_kernel(&self) -> bool {
        match self {
            UndoEntry::Write { path, .. } => {
                let is_kernel_file = ["/proc", "/sys"].iter().any(|mount| path.starts_with(mount));
                is_kernel_file && !is_namespaced_file(path)
            }
            UndoEntry::Detach { .. }
            | UndoEntry::ResetZram { .. }
            | UndoEntry::RemoveQueueDiscipline { .. }
            | UndoEntry::RestoreOffload { .. }
            | UndoEntry::RemoveControlGroup { .. }
            | UndoEntry::DisableController { .. } => true,
            UndoEntry::Run { .. }
            | UndoEntry::CleanUp { .. }
            | UndoEntry::Unmount { .. }
            | UndoEntry::SwapOn { .. }
            | UndoEntry::SwapOff { .. }
            | UndoEntry::EndDelays { .. }
            | UndoEntry::Remove { .. }
            | UndoEntry::EndContainer { .. } => false,
        }
    }

    /// Whether a reboot has undone it already.
    pub(crate) fn is_undone_by_reboot(&self) -> bool {
        matches!(
            self,
            UndoEntry::Write { .. }
                | UndoEntry::Unmount { .. }
                | UndoEntry::Detach { .. }
                | UndoEntry::SwapOn { .. }
                | UndoEntry::SwapOff { .. }
                | UndoEntry::ResetZram { .. }
                | UndoEntry::RemoveQueueDiscipline { .. }
                | UndoEntry::RestoreOffload { .. }
                | UndoEntry::RemoveControlGroup { .. }
                | UndoEntry::DisableController { .. }
                | UndoEntry::EndDelays { .. }
        )
    }
}

fn clean_up(name: &str, invocation: &Invocation, limit: Nanos) -> Result<(), SettingError> {
    // A stop of the run is no reason to leave things as they are.
    match run_user_command(invocation, limit, None) {
        Ok(()) => Ok(()),
        Err(CommandFailure::Failed(reason)) => Err(SettingError::CleanUp { name: name.into(), reason }),
        Err(CommandFailure::Stopped) => Err(SettingError::Stopped { command: name.into() }),
    }
}

/// Writes what a setting was, and reads back whether it is; what it is already is not written.
fn write_back(path: &Path, value: &str) -> Result<(), SettingError> {
    let now = SettingContent::read(path)?.value;
    if is_same_value(&now, value) {
        return Ok(());
    }
    let left =
        |source, now| SettingError::NotPutBack { path: path.into(), before: value.into(), now, source };
    let written = write_value(path, value);
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

/// Has a disk answer at once from now on, before the journal's entries are undone: what waits to be written to a slow one would
/// hold its file system, and whoever writes, for minutes. Nothing where there is no such disk.
pub fn end_delays(switch: &Path) {
    let switch = fs::File::options().write(true).open(switch);
    let _ = switch.and_then(|mut switch| switch.write_all(b"1"));
}

fn unmount_when_free(path: &Path) -> Result<(), SettingError> {
    if !MountTable::read().has_mount_at(path) {
        return Ok(());
    }
    let argv = ["umount".into(), path.display().to_string()];
    // Who looked at the disk only now (udev, a loop device on its way out) is gone in a moment.
    for _ in 0..20 {
        match run_command(&argv) {
            Err(SettingError::Command { reason, .. }) if reason.contains("busy") => sleep(BUSY),
            ended => return ended.map(drop),
        }
    }
    run_command(&argv).map(drop)
}

fn detach_loop_device(device: &Path, file: &Path) -> Result<(), SettingError> {
    let name = device.file_name().unwrap_or_default();
    let under = fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
    if !under.is_ok_and(|under| Path::new(under.trim()) == file) {
        return Ok(());
    }
    run_command(&["losetup".into(), "--detach".into(), device.display().to_string()]).map(drop)
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a file, or a folder with what lies in it. Nothing is removed where a file system is mounted there or below: that would
/// take a user's files with it.
///
/// # Errors
/// A file system is mounted there, or something cannot be removed. What is not there is not an error.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let is_folder = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => FileType::from_raw_mode(found.st_mode) == FileType::Directory,
        Err(Errno::NOENT) => return Ok(()),
        // Of one whose server is gone: it is mounted.
        Err(Errno::NOTCONN) => return Err(mounted_error(path)),
        Err(error) => return Err(error.into()),
    };
    if let Some(place) = MountTable::read().mount_points_within(path).first() {
        return Err(mounted_error(place));
    }
    if is_folder {
        let folder = openat(CWD, path, FOLDER | OFlags::RDONLY, Mode::empty())?;
        remove_contents(&folder, mount_id(folder.as_fd())?, path)?;
    }
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(CWD, path, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes what lies in a folder; `mount` is the mount that all of it lies on.
fn remove_contents(folder: &OwnedFd, mount: u64, path: &Path) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let gone = match unlinkat(folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                let place = path.join(OsStr::from_bytes(name.to_bytes()));
                make_enterable(folder, name);
                let below = openat(folder, name, FOLDER | OFlags::RDONLY, Mode::empty())?;
                if mount_id(below.as_fd())? != mount {
                    return Err(mounted_error(&place));
                }
                remove_contents(&below, mount, &place)?;
                unlinkat(folder, name, AtFlags::REMOVEDIR)
            }
            gone => gone,
        };
        match gone {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Gives the owner all rights to a folder: of an overlay's `work`, the kernel leaves one that even he may not enter.
fn make_enterable(folder: &OwnedFd, name: &CStr) {
    let is_closed_folder = |found: Stat| {
        FileType::from_raw_mode(found.st_mode) == FileType::Directory
            && !Mode::from_raw_mode(found.st_mode).contains(Mode::RWXU)
    };
    if statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_closed_folder) {
        // Where it is refused, what follows says so.
        let _ = chmodat(folder, name, Mode::RWXU, AtFlags::empty());
    }
}

/// The mount that an opened folder lies on; before Linux 5.8 its file system, which is one on each of its mounts.
fn mount_id(folder: BorrowedFd<'_>) -> io::Result<u64> {
    let mask = StatxFlags::MNT_ID | StatxFlags::BASIC_STATS;
    let found = statx(folder, c"", AtFlags::EMPTY_PATH, mask)?;
    let has_mount = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    let device = u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor);
    Ok(if has_mount { found.stx_mnt_id } else { device })
}

fn mounted_error(place: &Path) -> io::Error {
    io::Error::other(format!("a file system is mounted on {}: `umount` it first", place.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_folder_goes_with_all_that_lies_in_it_and_links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (folder, other) = (home.path().join("sp ace"), home.path().join("other"));
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "").unwrap();
        fs::write(folder.join("a/b/file"), "").unwrap();
        std::os::unix::fs::symlink(&other, folder.join("a/link")).unwrap();
        remove_tree(&folder).unwrap();
        assert!(!folder.exists() && other.join("kept").exists());
        remove_tree(&folder).unwrap();
    }

    #[test]
    fn what_is_mounted_in_a_folder_stays_and_so_does_the_folder_root() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP what_is_mounted_in_a_folder_stays_and_so_does_the_folder_root: needs root");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let (folder, theirs) = (home.path().join("line\nand blank"), home.path().join("theirs"));
        let place = folder.join("mount");
        fs::create_dir_all(&place).unwrap();
        fs::create_dir(&theirs).unwrap();
        for file in [folder.join("image"), theirs.join("kept")] {
            fs::write(file, "").unwrap();
        }
        // A view of the same file system: no device number distinguishes it.
        assert!(Command::new("mount").arg("--bind").arg(&theirs).arg(&place).status().unwrap().success());
        let refused = remove_tree(&folder).map_err(|error| error.to_string());
        let opened = openat(CWD, &folder, FOLDER, Mode::empty()).unwrap();
        let walked = remove_contents(&opened, mount_id(opened.as_fd()).unwrap(), &folder);
        let stays = (theirs.join("kept").exists(), place.join("kept").exists());
        assert!(Command::new("umount").arg(&place).status().unwrap().success());
        let refused = refused.unwrap_err().replace(place.to_str().unwrap(), "PLACE");
        insta::assert_snapshot!(refused, @"a file system is mounted on PLACE: `umount` it first");
        assert!(walked.is_err(), "nor does the walk go there, where no table told of it");
        assert_eq!(stays, (true, true));
        remove_tree(&folder).unwrap();
        assert!(!folder.exists() && theirs.join("kept").exists());
    }
}
