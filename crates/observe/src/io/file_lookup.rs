//! Inode numbers and disk sectors made into files.
//!
//! A file is opened by its inode number right after the recording, when the kernel still knows by which name it was
//! used; where that is refused, its file system is walked, by name, without leaving it. Nothing is read of a file
//! but its extents.
//!
//! For traces that name no file, sectors are found by walking a whole file system: every file and folder is asked
//! where it lies; none is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::io_trace::{DeviceNumber, FileClass, IoEventKind, IoFile, IoRecording, SECTOR};

use crate::io::device_stack::read_device_stacks;
use crate::io::device_stack::segments::{locate_stacked_devices, read_dmsetup_table};
use crate::io::file_description::{
    describe_file_system, describe_inode, describe_open_file, refers_to_file, unknown_file,
};
use crate::io::file_ioctls;
use crate::mounts::{self, MountEntry, MountTable};
use crate::root::Root;

/// Names, extents and metadata of everything that a recording names.
pub fn resolve_files(recording: &mut IoRecording) {
    let mounts = MountTable::read();
    let mut missing: BTreeMap<DeviceNumber, BTreeSet<u64>> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| refers_to_file(event)) {
        missing.entry(event.device).or_default().insert(event.inode);
    }
    let requests = recording.events.iter().filter(|event| event.kind == IoEventKind::Issued);
    let disks: BTreeSet<DeviceNumber> = requests.map(|event| event.device).collect();
    recording.summary.stacks = read_device_stacks(&Root::host(), &disks);
    for (device, inodes) in missing {
        recording.files.extend(resolve_inodes(&mounts, device, inodes));
    }
    let systems: BTreeSet<DeviceNumber> = recording.files.iter().map(|file| file.device).collect();
    recording.files.extend(list_parent_folders(&mounts, &recording.files));
    systems
        .into_iter()
        .filter_map(|device| mounts.find_by_device(device))
        .for_each(|mount| describe_file_system(recording, mount));
    locate_stacked_devices(recording, &Root::host(), &read_dmsetup_table);
}

/// The folders of files, up to the mount: their blocks are read to find the files.
fn list_parent_folders(mounts: &MountTable, files: &[IoFile]) -> Vec<IoFile> {
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.class == FileClass::File) {
        let Some(place) = mounts.find_by_device(file.device).map(|mount| &mount.mount_point) else {
            continue;
        };
        let above = file.path.iter().flat_map(|path| Path::new(path).ancestors().skip(1));
        for folder in above.take_while(|folder| folder.starts_with(place)) {
            if !known.insert(folder.into()) {
                break;
            }
            let inode = fs::symlink_metadata(folder).ok().map(|about| about.ino());
            found.extend(inode.map(|inode| describe_inode(file.device, inode, folder)));
        }
    }
    let own: BTreeSet<(DeviceNumber, u64)> = files.iter().map(|file| (file.device, file.inode)).collect();
    found.retain(|folder| !own.contains(&(folder.device, folder.inode)));
    found
}

/// Pages of a disk itself lie in a file system that no mount shows, and the file's number is the disk's.
fn is_disk_inode(mounts: &MountTable, device: DeviceNumber, inode: u64) -> bool {
    let disk = u32::try_from(inode).ok().map(DeviceNumber);
    device.major() == 0 && mounts.find_by_device(device).is_none() && disk.is_some_and(mounts::is_disk_device)
}

fn resolve_inodes(mounts: &MountTable, device: DeviceNumber, mut missing: BTreeSet<u64>) -> Vec<IoFile> {
    let mut found = Vec::new();
    let mut take = |inode: u64, file: IoFile| found.push((inode, file));
    missing.retain(|inode| {
        let is_disk = is_disk_inode(mounts, device, *inode);
        if is_disk {
            take(*inode, disk_as_file(device, *inode));
        }
        !is_disk
    });
    if let Some((mount, folder)) =
        mounts.find_by_device(device).and_then(|mount| Some((mount, File::open(&mount.mount_point).ok()?)))
    {
        missing.retain(|inode| match describe_by_inode(&folder, device, *inode) {
            Ok(file) => {
                take(*inode, file);
                false
            }
            // Removed since: a walk over everything would not find it either.
            Err(error) if mount.kind.starts_with("ext") && is_stale_handle(&error) => {
                take(*inode, unknown_file(device, *inode));
                false
            }
            Err(_) => true,
        });
        if !missing.is_empty() && is_walkable(&mount.kind) {
            walk_to_inodes(&mount.mount_point, &mut missing, &mut |inode, path| {
                take(inode, describe_inode(device, inode, path))
            });
        }
    }
    missing.into_iter().for_each(|inode| take(inode, unknown_file(device, inode)));
    found.into_iter().map(|(_, file)| file).collect()
}

/// Whether a walk ends: file systems of the kernel's invention and of other machines are left alone.
fn is_walkable(kind: &str) -> bool {
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "tmpfs", "squashfs", "erofs"].contains(&kind)
}

fn disk_as_file(device: DeviceNumber, inode: u64) -> IoFile {
    let node = u32::try_from(inode).ok().and_then(|number| mounts::device_node(DeviceNumber(number)));
    IoFile {
        class: FileClass::Disk,
        path: node.map(|node| node.display().to_string()),
        ..unknown_file(device, inode)
    }
}

fn describe_by_inode(folder: &File, device: DeviceNumber, inode: u64) -> std::io::Result<IoFile> {
    let file = file_ioctls::open_by_inode(folder, inode, 0)?;
    let path = read_file_name(&file);
    Ok(describe_open_file(device, inode, &file, path))
}

fn is_stale_handle(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::STALE.raw_os_error())
}

/// By which name the kernel knows an open file, if it is that file's.
fn read_file_name(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;
    let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let (there, held_file) = (fs::symlink_metadata(&name).ok()?, file.metadata().ok()?);
    (there.ino() == held_file.ino() && there.dev() == held_file.dev()).then_some(name)
}

/// Calls `found` for every file below `place`, on the same file system, whose inode number is still missing.
fn walk_to_inodes(place: &Path, missing: &mut BTreeSet<u64>, found: &mut dyn FnMut(u64, &Path)) {
    walk_file_system(place, &mut |inode, path| {
        if missing.remove(&inode) {
            found(inode, path);
        }
        !missing.is_empty()
    });
}

/// Calls `found` for every file below `place`, on the same file system, with its number, until that says `false`.
fn walk_file_system(place: &Path, found: &mut dyn FnMut(u64, &Path) -> bool) {
    let Ok(base) = fs::symlink_metadata(place) else { return };
    let mut folders = vec![place.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.dev() != base.dev() {
                continue;
            }
            if !found(about.ino(), &entry.path()) {
                return;
            }
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
}

/// Why a file system cannot be walked.
#[derive(Debug, thiserror::Error)]
pub enum FileScanError {
    /// Nothing is mounted there that lies on a disk.
    #[error("{} is on no disk: its file system is {kind}", place.display())]
    NoDisk {
        /// the path
        place: PathBuf,
        /// its file system
        kind: String,
    },
    /// The path cannot be looked at.
    #[error("{}: {source}", place.display())]
    Place {
        /// the path
        place: PathBuf,
        /// the system's error
        source: std::io::Error,
    },
}

impl Classify for FileScanError {
    fn class(&self) -> ErrorClass {
        match self {
            FileScanError::NoDisk { .. } | FileScanError::Place { .. } => ErrorClass::Usage,
        }
    }
}

/// Whether the files below `place` can be held against sectors.
///
/// # Errors
/// A path that is not there, or on no disk.
pub fn require_disk_below(place: &Path) -> Result<(), FileScanError> {
    find_mount_and_disk(&MountTable::read(), place).map(drop)
}

/// The mount that a path belongs to, the disk below, and the inode number of the path.
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
/// A path that is not there, or on no disk.
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
    let below = recording.summary.segments.iter().map(|segment| segment.disk).collect::<Vec<_>>();
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
    let summary = &mut recording.summary;
    let (_, start) = summary.disk_below(device);
    summary.partitions.retain(|partition| partition.device != device);
    summary.partitions.push(perflab_model::io_trace::DiskPartition { device, disk: then, start });
}

/// Forgets files of which no sector was asked for.
fn drop_unrequested_files(recording: &mut IoRecording) {
    let requests =
        recording.events.iter().filter(|event| event.kind == IoEventKind::Issued && event.count > 0);
    let mut asked: Vec<(DeviceNumber, u64, u64)> = requests
        .map(|event| (event.device, event.first * SECTOR, (event.first + event.count) * SECTOR))
        .collect();
    asked.sort_unstable();
    let summary = &recording.summary;
    // No request is longer than that: none that begins earlier reaches into an extent.
    let longest = asked.iter().map(|(_, from, end)| end - from).max().unwrap_or(0);
    let was_asked = |file: &IoFile| {
        let places = file
            .extents
            .iter()
            .flat_map(|extent| summary.disk_ranges(file.device, extent.physical, extent.length));
        places.into_iter().any(|place| {
            let (disk, from, end) = (place.disk, place.physical, place.physical + place.length);
            let at = asked.partition_point(|request| *request < (disk, from.saturating_sub(longest), 0));
            let near = asked.iter().skip(at).take_while(|(of, begin, _)| *of == disk && *begin < end);
            near.into_iter().any(|(_, _, reached)| *reached > from)
        })
    };
    recording.files.retain(was_asked);
}
