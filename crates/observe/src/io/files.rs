//! Numbers of files made into names, and where files lie on disks.
//!
//! A file is opened by its number right after the recording, when the kernel still knows by which name it was used; where
//! that is refused, its file system is walked, by name, without leaving it. Nothing is read of a file but its extents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use perflab_model::io::{
    DeviceNumber, FileClass, IoEvent, IoEventKind, IoFile, IoRecording, MetadataRange, PageSet,
};

use rustix::fs::OFlags;

use super::mounts::{self, MountEntry, MountTable};
use super::stacks::{locate_stacked_devices, read_device_stacks, read_dmsetup_table};
use super::{btrfs, fiemap, fsmap, handle, own_blocks};
use crate::Root;

/// Names, places and metadata of everything that a recording names.
pub fn resolve_files(recording: &mut IoRecording) {
    let mounts = MountTable::read();
    let mut wanted: BTreeMap<DeviceNumber, BTreeSet<u64>> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| refers_to_file(event)) {
        wanted.entry(event.device).or_default().insert(event.inode);
    }
    let requests = recording.events.iter().filter(|event| event.kind == IoEventKind::Issued);
    let disks: BTreeSet<DeviceNumber> = requests.map(|event| event.device).collect();
    recording.told.stacks = read_device_stacks(&Root::host(), &disks);
    for (device, inodes) in wanted {
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

/// What is known of a file system that was read: where it lies, and which of its blocks are its own.
pub fn describe_file_system(recording: &mut IoRecording, mount: &MountEntry) {
    recording.told.partitions.extend(mounts::partition_of_mount(mount));
    let Ok(folder) = File::open(&mount.mount_point) else { return };
    if mount.kind == "btrfs" {
        let chunks = btrfs::BtrfsChunks::read(&folder).unwrap_or_default();
        let own = recording.files.iter_mut().filter(|file| file.device == mount.device);
        own.for_each(|file| file.extents = chunks.map_to_disk(&file.extents));
        recording.told.metadata.extend(chunks.metadata_ranges(mount.device));
        return;
    }
    recording.told.metadata.extend(fsmap::list_metadata_ranges(&folder, mount.device).unwrap_or_default());
    if mount.kind.starts_with("ext") {
        let found = find_unlisted_blocks(recording, mount);
        recording.told.metadata.extend(found);
    }
}

/// Blocks of an ext file system's own that came into memory, and that it does not list.
fn find_unlisted_blocks(recording: &IoRecording, mount: &MountEntry) -> Vec<MetadataRange> {
    let (device, number) = (mount.device, u64::from(mount.device.0));
    let is_disk = |file: &&IoFile| file.class == FileClass::Disk && file.inode == number;
    let Some(disk) = recording.files.iter().find(is_disk) else { return Vec::new() };
    let opened = mounts::device_node(device).and_then(|node| File::open(node).ok());
    let Some((node, about)) = opened.zip(rustix::fs::statvfs(&mount.mount_point).ok()) else {
        return Vec::new();
    };
    let added = recording.events.iter().filter(|event| event.kind == IoEventKind::Added);
    let own = added.filter(|event| (event.device, event.inode) == (disk.device, disk.inode));
    let pages: PageSet = own.map(|event| (event.first, event.count)).collect();
    let listed = |at: u64| {
        let mut ranges = recording.told.metadata.iter().filter(|range| range.device == device);
        ranges.any(|range| (range.physical..range.physical + range.length).contains(&at))
    };
    own_blocks::classify_unlisted_blocks(&node, device, &pages, about.f_bsize, listed)
}

fn refers_to_file(event: &IoEvent) -> bool {
    matches!(event.kind, IoEventKind::Added | IoEventKind::Fault | IoEventKind::Read | IoEventKind::Mapped)
}

/// Pages of a disk itself lie in a file system that no mount shows, and the file's number is the disk's.
fn is_disk_inode(mounts: &MountTable, device: DeviceNumber, inode: u64) -> bool {
    let disk = u32::try_from(inode).ok().map(DeviceNumber);
    device.major() == 0 && mounts.find_by_device(device).is_none() && disk.is_some_and(mounts::is_disk_device)
}

fn resolve_inodes(mounts: &MountTable, device: DeviceNumber, mut wanted: BTreeSet<u64>) -> Vec<IoFile> {
    let mut found = Vec::new();
    let mut take = |inode: u64, file: IoFile| found.push((inode, file));
    wanted.retain(|inode| {
        let is_disk = is_disk_inode(mounts, device, *inode);
        if is_disk {
            take(*inode, disk_as_file(device, *inode));
        }
        !is_disk
    });
    if let Some((mount, folder)) =
        mounts.find_by_device(device).and_then(|mount| Some((mount, File::open(&mount.mount_point).ok()?)))
    {
        wanted.retain(|inode| match describe_by_inode(&folder, device, *inode) {
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
        if !wanted.is_empty() && is_walkable(&mount.kind) {
            walk_to_inodes(&mount.mount_point, &mut wanted, &mut |inode, path| {
                take(inode, describe_inode(device, inode, path))
            });
        }
    }
    wanted.into_iter().for_each(|inode| take(inode, unknown_file(device, inode)));
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

fn unknown_file(device: DeviceNumber, inode: u64) -> IoFile {
    let (generation, path, extents) = (None, None, Vec::new());
    IoFile { device, inode, generation, class: FileClass::Other, path, size: 0, changed: 0, extents }
}

fn describe_by_inode(folder: &File, device: DeviceNumber, inode: u64) -> std::io::Result<IoFile> {
    let file = handle::open_by_inode(folder, inode, 0)?;
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
    let (there, here) = (fs::symlink_metadata(&name).ok()?, file.metadata().ok()?);
    (there.ino() == here.ino() && there.dev() == here.dev()).then_some(name)
}

/// Everything about the file of this name: `None` where there is none.
pub fn describe_file(path: &Path) -> Option<IoFile> {
    let found = fs::symlink_metadata(path).ok()?;
    // What is no disk's may be a subvolume's, which no mount names.
    let device = Some(device_of(&found)).filter(|device| device.major() != 0);
    let device = device.or_else(|| Some(MountTable::read().find_by_path(path)?.device));
    Some(describe_inode(device.unwrap_or(self::device_of(&found)), found.ino(), path))
}

/// The file system's device that a file lies on.
pub fn device_of(about: &fs::Metadata) -> DeviceNumber {
    DeviceNumber::new(rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()))
}

/// When a file was changed last, ns since 1970.
pub fn modified_ns(about: &fs::Metadata) -> i64 {
    about.mtime().saturating_mul(1_000_000_000) + about.mtime_nsec()
}

pub(super) fn describe_inode(device: DeviceNumber, inode: u64, path: &Path) -> IoFile {
    let is_openable = fs::symlink_metadata(path)
        .is_ok_and(|found| found.ino() == inode && (found.is_file() || found.is_dir()));
    match is_openable.then(|| open_unnoticed(path).ok()).flatten() {
        Some(file) => describe_open_file(device, inode, &file, Some(path.into())),
        None => IoFile { path: Some(path.display().to_string()), ..unknown_file(device, inode) },
    }
}

/// A file that is looked at for somebody else: never through a link, never waiting for a pipe's other end, closed in whatever
/// program is started meanwhile, and where that is allowed, without a time of access that would tell of it.
///
/// # Errors
/// What the system said.
pub fn open_unnoticed(path: &Path) -> io::Result<File> {
    open_with_options(path, OpenOptions::new().read(true))
}

/// The same, for its blocks to be moved: the kernel wants who does that to be allowed to write.
///
/// # Errors
/// What the system said; `ExecutableFileBusy` of a program that runs.
pub fn open_for_relocation(path: &Path) -> io::Result<File> {
    open_with_options(path, OpenOptions::new().read(true).write(true))
}

fn open_with_options(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut with = |flags: OFlags| options.custom_flags(flags.bits() as i32).open(path);
    with(flags | OFlags::NOATIME).or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => with(flags),
        _ => Err(error),
    })
}

fn describe_open_file(device: DeviceNumber, inode: u64, file: &File, path: Option<PathBuf>) -> IoFile {
    let found = file.metadata().ok();
    let class = found.as_ref().map_or(FileClass::Other, |found| {
        let kind = found.file_type();
        match () {
            () if kind.is_file() => FileClass::File,
            () if kind.is_dir() => FileClass::Directory,
            () if kind.is_block_device() => FileClass::Disk,
            () => FileClass::Other,
        }
    });
    IoFile {
        device,
        inode,
        generation: fiemap::file_generation(file),
        class,
        path: path.map(|path| path.display().to_string()),
        size: found.as_ref().map_or(0, fs::Metadata::len),
        changed: found.as_ref().map_or(0, modified_ns),
        extents: fiemap::file_extents(file).unwrap_or_default(),
    }
}

/// Calls `found` for every file below `place`, on the same file system, whose number is still wanted.
fn walk_to_inodes(place: &Path, wanted: &mut BTreeSet<u64>, found: &mut dyn FnMut(u64, &Path)) {
    walk_file_system(place, &mut |inode, path| {
        if wanted.remove(&inode) {
            found(inode, path);
        }
        !wanted.is_empty()
    });
}

/// Calls `found` for every file below `place`, on the same file system, with its number, until that says `false`.
pub(super) fn walk_file_system(place: &Path, found: &mut dyn FnMut(u64, &Path) -> bool) {
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
