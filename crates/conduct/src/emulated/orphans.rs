//! Emulated disks whose server is gone, and of which no journal tells: that was lost with its machine, its home or its test.
//!
//! What is mounted from such a disk answers nothing, and stops others: `mkfs.btrfs` looks at every mounted device of the machine,
//! and fails at the first that is dead. Any user may mount a file system that is called like it: only one that this user mounted,
//! in folders that nobody else may change, is looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use perflab_observe::io::{Mount, Mounts};
use perflab_observe::own_directories;

use super::server::SOURCE;
use crate::settings::{Recovered, Undo};

/// How long a server may take to answer before it counts as one that lives.
const PATIENCE: Duration = Duration::from_secs(5);

/// Removes every emulated disk of this machine that this user mounted and whose server is gone. Those that are served are left
/// alone, and so is whatever else is called so.
pub fn sweep() -> Vec<Recovered> {
    let mounts = Mounts::read();
    let own = rustix::process::geteuid().as_raw();
    let is_ours = |mount: &&Mount| mount.source == SOURCE && is_fuse(mount) && mount.maker == Some(own);
    let served: Vec<&Mount> = mounts.iter().filter(is_ours).collect();
    dead_disks(&served).into_iter().map(|place| remove_disk(place, &mounts)).collect()
}

fn remove_disk(served: &Path, mounts: &Mounts) -> Recovered {
    let home = served.parent().unwrap_or(served);
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let mut found = Recovered::of(name.trim_start_matches("perflab-"));
    // From here on, nobody but this user and root can put something else in the place of any of it.
    if let Err(error) = own_directories::open(home) {
        found.failed.push(format!("{}: {error}", served.display()));
        return found;
    }
    for step in undo_steps(served, home, mounts) {
        found.attempt(&step, || step.perform());
        // What follows rests on it.
        if !found.failed.is_empty() {
            break;
        }
    }
    found
}

/// What was done to have the disk, undone: the latest first.
fn undo_steps(served: &Path, home: &Path, mounts: &Mounts) -> Vec<Undo> {
    let mut steps = Vec::new();
    for (device, file) in loops_over(served) {
        let is_from_it = |mount: &&Mount| Path::new(&mount.source) == device && !is_fuse(mount);
        let from_it = mounts.iter().filter(is_from_it);
        steps.extend(from_it.map(|mount| Undo::Unmount { path: mount.place.clone() }));
        steps.push(Undo::Detach { device, file });
    }
    steps.push(Undo::Unmount { path: served.into() });
    if home.file_name().is_some_and(|name| name.to_string_lossy().starts_with("perflab-")) {
        steps.push(Undo::Remove { path: home.into() });
    }
    steps
}

/// Loop devices over files in a folder, with those files.
fn loops_over(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let looped = devices.filter_map(|device| {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        Some((Path::new("/dev").join(device.file_name()), PathBuf::from(file.trim())))
    });
    looped.filter(|(_, file)| file.starts_with(folder)).collect()
}

fn is_fuse(mount: &Mount) -> bool {
    mount.kind.starts_with("fuse")
}

/// Those whose server is gone. One that does not answer may be stopped or slow.
fn dead_disks<'a>(served: &[&'a Mount]) -> Vec<&'a Path> {
    let (told, answers) = channel();
    for (index, mount) in served.iter().enumerate() {
        let (place, told) = (mount.place.clone(), told.clone());
        // A thread: this may wait for ever, and ends with the process.
        std::thread::spawn(move || {
            // Of the file system, not of the folder: the kernel keeps a folder's attributes for as long as its server said.
            let seen = rustix::fs::statfs(&place);
            let _ = told.send((index, seen.is_err_and(|error| error == rustix::io::Errno::NOTCONN)));
        });
    }
    let end = Instant::now() + PATIENCE;
    let next = |_: &&Mount| answers.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    let found = served.iter().map_while(next).filter(|(_, is_dead)| *is_dead);
    found.filter_map(|(index, _)| Some(served.get(index)?.place.as_path())).collect()
}
