//! Emulated disks whose server is gone, and of which no journal tells: that was lost with its machine, its home or its test.
//!
//! What is mounted from such a disk answers nothing, and stops others: `mkfs.btrfs` looks at every mounted device of the machine,
//! and fails at the first that is dead. Any user may mount a file system that is called like it: only one that this user mounted,
//! in folders that nobody else may change, is looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use perflab_observe::io::{MountEntry, MountTable};
use perflab_observe::own_directories;

use super::server::MOUNT_SOURCE;
use crate::settings::{RecoveredRun, UndoEntry};

/// How long a server may take to answer before it counts as one that lives.
const PATIENCE: Duration = Duration::from_secs(5);

/// Removes every emulated disk of this machine that this user mounted and whose server is gone. Those that are served are left
/// alone, and so is whatever else is called so.
pub fn remove_dead_emulated_disks() -> Vec<RecoveredRun> {
    let mounts = MountTable::read();
    let own = rustix::process::geteuid().as_raw();
    let is_ours = |mount: &&MountEntry| {
        mount.source == MOUNT_SOURCE && is_fuse_mount(mount) && mount.maker == Some(own)
    };
    let served: Vec<&MountEntry> = mounts.iter().filter(is_ours).collect();
    find_dead_disks(&served).into_iter().map(|place| remove_disk(place, &mounts)).collect()
}

fn remove_disk(served: &Path, mounts: &MountTable) -> RecoveredRun {
    let home = served.parent().unwrap_or(served);
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let mut found = RecoveredRun::new(name.trim_start_matches("perflab-"));
    // From here on, nobody but this user and root can put something else in the place of any of it.
    if let Err(error) = own_directories::open_own_directory(home) {
        found.failed.push(format!("{}: {error}", served.display()));
        return found;
    }
    for step in undo_steps(served, home, mounts) {
        found.record_undo(&step, || step.perform());
        // What follows rests on it.
        if !found.failed.is_empty() {
            break;
        }
    }
    found
}

/// What was done to have the disk, undone: the latest first.
fn undo_steps(served: &Path, home: &Path, mounts: &MountTable) -> Vec<UndoEntry> {
    let mut steps = Vec::new();
    for (device, file) in loop_devices_over(served) {
        let is_from_it = |mount: &&MountEntry| Path::new(&mount.source) == device && !is_fuse_mount(mount);
        let from_it = mounts.iter().filter(is_from_it);
        steps.extend(from_it.map(|mount| UndoEntry::Unmount { path: mount.mount_point.clone() }));
        steps.push(UndoEntry::Detach { device, file });
    }
    steps.push(UndoEntry::Unmount { path: served.into() });
    if home.file_name().is_some_and(|name| name.to_string_lossy().starts_with("perflab-")) {
        steps.push(UndoEntry::Remove { path: home.into() });
    }
    steps
}

/// Loop devices over files in a folder, with those files.
fn loop_devices_over(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let looped = devices.filter_map(|device| {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        Some((Path::new("/dev").join(device.file_name()), PathBuf::from(file.trim())))
    });
    looped.filter(|(_, file)| file.starts_with(folder)).collect()
}

fn is_fuse_mount(mount: &MountEntry) -> bool {
    mount.kind.starts_with("fuse")
}

/// Those whose server is gone. One that does not answer may be stopped or slow.
fn find_dead_disks<'a>(served: &[&'a MountEntry]) -> Vec<&'a Path> {
    let (told, answers) = channel();
    for (index, mount) in served.iter().enumerate() {
        let (place, told) = (mount.mount_point.clone(), told.clone());
        // A thread: this may wait for ever, and ends with the process.
        std::thread::spawn(move || {
            // Of the file system, not of the folder: the kernel keeps a folder's attributes for as long as its server said.
            let seen = rustix::fs::statfs(&place);
            let _ = told.send((index, seen.is_err_and(|error| error == rustix::io::Errno::NOTCONN)));
        });
    }
    let end = Instant::now() + PATIENCE;
    let next = |_: &&MountEntry| answers.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    let found = served.iter().map_while(next).filter(|(_, is_dead)| *is_dead);
    found.filter_map(|(index, _)| Some(served.get(index)?.mount_point.as_path())).collect()
}
