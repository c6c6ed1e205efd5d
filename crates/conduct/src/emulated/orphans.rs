//! Emulated disks whose server is gone, and of which no journal tells: that was lost with its machine, its home or its test.
//!
//! What is mounted from such a disk answers nothing, and stops others: `mkfs.btrfs` looks at every mounted device of the machine,
//! and fails at the first that is dead.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_observe::io::Mounts;

use super::server::SOURCE;
use crate::settings::{Recovered, Undo};

/// Removes every emulated disk of this machine whose server is gone. Those that are served are left alone.
pub fn sweep() -> Vec<Recovered> {
    let mounts = Mounts::read();
    let served = mounts.iter().filter(|mount| mount.source == SOURCE && is_dead(&mount.place));
    served.map(|mount| removed(&mount.place, &mounts)).collect()
}

fn removed(served: &Path, mounts: &Mounts) -> Recovered {
    let home = served.parent().unwrap_or(served);
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let mut found = Recovered::of(name.trim_start_matches("perflab-"));
    steps(served, home, mounts).iter().for_each(|step| found.attempt(step, || step.perform()));
    found
}

/// What was done to have the disk, undone: the latest first.
fn steps(served: &Path, home: &Path, mounts: &Mounts) -> Vec<Undo> {
    let mut steps = Vec::new();
    for (device, file) in loops_over(served) {
        let from_it = mounts.iter().filter(|mount| Path::new(&mount.source) == device);
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

fn is_dead(place: &Path) -> bool {
    // Of the file system, not of the folder: the kernel keeps a folder's attributes for as long as its server said.
    let seen = rustix::fs::statfs(place);
    seen.is_err_and(|error| error == rustix::io::Errno::NOTCONN)
}
