//! File systems of a trace, where they are mounted now.

use std::fs::File;
use std::path::Path;

use perflab_model::io::Device;
use perflab_observe::io::{Mounts, files, mounts};

use super::Replayed;
use crate::trace::FileSystem;

/// A file system as it is mounted now.
pub(super) struct Here {
    pub device: Device,
    /// the disk below it, or where there is none, itself
    pub disk: Device,
    pub rotates: bool,
}

/// The device of a file system that is mounted where it was, and is the same one.
pub(crate) fn mounted(system: &FileSystem) -> Option<Device> {
    let folder = File::open(&system.place).ok()?;
    let is_same = perflab_observe::io::uuid(&folder) == system.uuid;
    folder.metadata().ok().filter(|_| is_same).map(|about| files::device(&about))
}

/// Whether a file system is mounted where it was.
pub(crate) fn is_mounted(system: &FileSystem) -> bool {
    mounted(system).is_some()
}

/// The same with what its disk does; a file system that is another one is noted.
pub(super) fn here(system: &FileSystem, mounts: &Mounts, done: &mut Replayed) -> Option<Here> {
    let device = mounted(system);
    if device.is_none() {
        done.foreign.insert(system.place.clone());
    }
    // A device of the kernel's invention (btrfs) turns as the disk below does.
    let below = || mounts.under(Path::new(&system.place)).and_then(mounts::disk);
    device.map(|device| {
        let below = below().unwrap_or(device);
        let disk = mounts::partition(below).map_or(below, |part| part.disk);
        Here { device, disk, rotates: mounts::rotates(below).unwrap_or(false) }
    })
}
