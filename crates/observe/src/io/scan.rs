//! Sectors made into files by walking a whole file system: for traces that name no file. Every file and folder is asked where
//! it lies; none is read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use perflab_model::io::{DeviceNumber, IoEventKind, IoFile, IoRecording, SECTOR};

use super::files::{describe_file_system, describe_inode, walk_file_system};
use super::mounts::{self, MountEntry, MountTable};
use super::stacks::{locate_stacked_devices, read_dmsetup_table};
use crate::Root;

/// Why a file system cannot be walked.
#[derive(Debug, thiserror::Error)]
pub enum FileScanError {
    /// Nothing is mounted there that lies on a disk.
    #[error("{} lies on no disk: it is {kind}", place.display())]
    NoDisk {
        /// the place
        place: PathBuf,
        /// its file system
        kind: String,
    },
    /// The place cannot be looked at.
    #[error("{}: {source}", place.display())]
    Place {
        /// the place
        place: PathBuf,
        /// what the system said
        source: std::io::Error,
    },
}

/// Whether the files below `place` can be held against sectors.
///
/// # Errors
/// A place that is not there, or on no disk.
pub fn require_disk_below(place: &Path) -> Result<(), FileScanError> {
    find_mount_and_disk(&MountTable::read(), place).map(drop)
}

/// The mount that a place belongs to, the disk below, and the number of the place.
fn find_mount_and_disk<'a>(
    mounts: &'a MountTable,
    place: &Path,
) -> Result<(&'a MountEntry, DeviceNumber, u64), FileScanError> {
    let about = fs::metadata(place).map_err(|source| FileScanError::Place { place: place.into(), source })?;
    let mount = mounts.find_by_path(place);
    let kind = mount.map_or("no mount", |mount| mount.kind.as_str());
    let found = mount.and_then(|mount| Some((mount, mounts::disk_below(mount)?, about.ino())));
    found.ok_or_else(|| FileScanError::NoDisk { place: place.into(), kind: kind.into() })
}

/// Adds the files below `place` to which sectors of a recording belong, and what is known of their file system. A recording of
/// one disk is taken to be of the disk below `place`, whatever its number was then.
///
/// # Errors
/// A place that is not there, or on no disk.
pub fn match_sectors_to_files(recording: &mut IoRecording, place: &Path) -> Result<(), FileScanError> {
    let mounts = MountTable::read();
    let (mount, now, inode) = find_mount_and_disk(&mounts, place)?;
    let mut files = vec![describe_inode(mount.device, inode, place)];
    walk_file_system(place, &mut |inode, path| {
        files.push(describe_inode(mount.device, inode, path));
        true
    });
    recording.files.extend(files.into_iter().filter(|file| !file.extents.is_empty()));
    describe_file_system(recording, mount);
    locate_stacked_devices(recording, &Root::host(), &read_dmsetup_table);
    // Unless its requests were those of a disk on which this one lies.
    let below = recording.told.segments.iter().map(|segment| segment.disk).collect::<Vec<_>>();
    if let Some(then) = find_only_disk(recording).filter(|then| *then != now && !below.contains(then)) {
        renumber_device(recording, mount.device, then);
    }
    drop_unrequested_files(recording);
    Ok(())
}

/// The disk of all requests, if it is one.
fn find_only_disk(recording: &IoRecording) -> Option<DeviceNumber> {
    let requests = recording.events.iter().filter(|event| event.kind == IoEventKind::Issued);
    let mut disks = requests.map(|event| event.device);
    let first = disks.next()?;
    disks.all(|disk| disk == first).then_some(first)
}

/// Says that the file system lay on a disk of another number when it was traced.
fn renumber_device(recording: &mut IoRecording, device: DeviceNumber, then: DeviceNumber) {
    let told = &mut recording.told;
    let (_, start) = told.disk_below(device);
    told.partitions.retain(|partition| partition.device != device);
    told.partitions.push(perflab_model::io::DiskPartition { device, disk: then, start });
}

/// Forgets files of which no sector was asked for.
fn drop_unrequested_files(recording: &mut IoRecording) {
    let requests =
        recording.events.iter().filter(|event| event.kind == IoEventKind::Issued && event.count > 0);
    let mut asked: Vec<(DeviceNumber, u64, u64)> = requests
        .map(|event| (event.device, event.first * SECTOR, (event.first + event.count) * SECTOR))
        .collect();
    asked.sort_unstable();
    let told = &recording.told;
    // No request is longer than that: none that begins earlier reaches into an extent.
    let longest = asked.iter().map(|(_, from, end)| end - from).max().unwrap_or(0);
    let was_asked = |file: &IoFile| {
        let places = file
            .extents
            .iter()
            .flat_map(|extent| told.disk_ranges(file.device, extent.physical, extent.length));
        places.into_iter().any(|place| {
            let (disk, from, end) = (place.disk, place.physical, place.physical + place.length);
            let at = asked.partition_point(|request| *request < (disk, from.saturating_sub(longest), 0));
            let near = asked.iter().skip(at).take_while(|(of, begin, _)| *of == disk && *begin < end);
            near.into_iter().any(|(_, _, reached)| *reached > from)
        })
    };
    recording.files.retain(was_asked);
}
