//! File systems of a trace, where they are mounted now.

use std::fs::File;
use std::path::Path;

use perflab_model::io::DeviceNumber;
use perflab_observe::io::{MountTable, files, mounts};

use super::ReplayResult;
use crate::trace::TracedFileSystem;

/// A file system as it is mounted now.
pub(super) struct MountedFileSystem {
    pub device: DeviceNumber,
    /// the disk below it, or where there is none, itself
    pub disk: DeviceNumber,
    pub rotates: bool,
}

/// The device of a file system that is mounted where it was, and is the same one.
pub(crate) fn mounted_device(system: &TracedFileSystem) -> Option<DeviceNumber> {
    let folder = File::open(&system.place).ok()?;
    let is_same = perflab_observe::io::file_system_uuid(&folder) == system.uuid;
    folder.metadata().ok().filter(|_| is_same).map(|about| files::device_of(&about))
}

/// Whether a file system is mounted where it was.
pub(crate) fn is_mounted_unchanged(system: &TracedFileSystem) -> bool {
    mounted_device(system).is_some()
}

/// The same with what its disk does; a file system that is another one is noted.
pub(super) fn find_mounted(
    system: &TracedFileSystem,
    mounts: &MountTable,
    done: &mut ReplayResult,
) -> Option<MountedFileSystem> {
    let device = mounted_device(system);
    if device.is_none() {
        done.foreign.insert(system.place.clone());
    }
    // A device of the kernel's invention (btrfs) turns as the disk below does.
    let below = || mounts.find_by_path(Path::new(&system.place)).and_then(mounts::disk_below);
    device.map(|device| {
        let below = below().unwrap_or(device);
        let disk = mounts::partition_of_device(below).map_or(below, |part| part.disk);
        MountedFileSystem { device, disk, rotates: mounts::is_rotational(below).unwrap_or(false) }
    })
}
