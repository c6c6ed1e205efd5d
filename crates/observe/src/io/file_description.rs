//! What a file and its file system say of themselves: name, extents, blocks of the file system's own.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use perflab_model::PageSet;
use perflab_model::io_trace::{
    DeviceNumber, FileClass, IoEvent, IoEventKind, IoFile, IoRecording, MetadataRange,
};
use rustix::fs::OFlags;

use crate::io::{btrfs_chunks, file_ioctls, metadata_blocks};
use crate::mounts::{self, MountEntry, MountTable};

/// What is known of a file system that was read: where it lies, and which of its blocks are its own.
pub fn describe_file_system(recording: &mut IoRecording, mount: &MountEntry) {
    recording.summary.partitions.extend(mounts::partition_of_mount(mount));
    let Ok(folder) = File::open(&mount.mount_point) else { return };
    if mount.kind == "btrfs" {
        let chunks = btrfs_chunks::BtrfsChunks::read(&folder).unwrap_or_default();
        let own = recording.files.iter_mut().filter(|file| file.device == mount.device);
        own.for_each(|file| file.extents = chunks.map_to_disk(&file.extents));
        recording.summary.metadata.extend(chunks.metadata_ranges(mount.device));
        return;
    }
    recording
        .summary
        .metadata
        .extend(metadata_blocks::list_metadata_ranges(&folder, mount.device).unwrap_or_default());
    if mount.kind.starts_with("ext") {
        let found = find_unlisted_blocks(recording, mount);
        recording.summary.metadata.extend(found);
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
        let mut ranges = recording.summary.metadata.iter().filter(|range| range.device == device);
        ranges.any(|range| (range.physical..range.physical + range.length).contains(&at))
    };
    metadata_blocks::classify_unlisted_blocks(&node, device, &pages, about.f_bsize, listed)
}

pub(crate) fn refers_to_file(event: &IoEvent) -> bool {
    matches!(event.kind, IoEventKind::Added | IoEventKind::Fault | IoEventKind::Read | IoEventKind::Mapped)
}

/// Everything about the file of this name: `None` where there is none.
pub fn describe_file(path: &Path) -> Option<IoFile> {
    let found = fs::symlink_metadata(path).ok()?;
    // What is not a disk's may be a subvolume's, which no mount names.
    let device = Some(device_of(&found)).filter(|device| device.major() != 0);
    let device = device.or_else(|| Some(MountTable::read().find_by_path(path)?.device));
    Some(describe_inode(device.unwrap_or(device_of(&found)), found.ino(), path))
}

/// The file system's device that a file lies on.
pub fn device_of(about: &fs::Metadata) -> DeviceNumber {
    DeviceNumber::new(rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()))
}

/// When a file was changed last, ns since 1970.
pub fn modified_ns(about: &fs::Metadata) -> i64 {
    about.mtime().saturating_mul(1_000_000_000) + about.mtime_nsec()
}

pub(crate) fn describe_inode(device: DeviceNumber, inode: u64, path: &Path) -> IoFile {
    let is_openable = fs::symlink_metadata(path)
        .is_ok_and(|found| found.ino() == inode && (found.is_file() || found.is_dir()));
    match is_openable.then(|| open_unnoticed(path).ok()).flatten() {
        Some(file) => describe_open_file(device, inode, &file, Some(path.into())),
        None => IoFile { path: Some(path.display().to_string()), ..unknown_file(device, inode) },
    }
}

/// A file that is looked at and not used: never through a link, never waiting for a pipe's other end, closed in whatever
/// program is started in the meantime, and where that is allowed, without changing its access time.
///
/// # Errors
/// The system's error.
pub fn open_unnoticed(path: &Path) -> io::Result<File> {
    open_with_options(path, OpenOptions::new().read(true))
}

/// The same, for its blocks to be moved: the kernel wants who does that to be allowed to write.
///
/// # Errors
/// The system's error; `ExecutableFileBusy` of a program that runs.
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

pub(crate) fn describe_open_file(
    device: DeviceNumber,
    inode: u64,
    file: &File,
    path: Option<PathBuf>,
) -> IoFile {
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
        generation: file_ioctls::file_generation(file),
        class,
        path: path.map(|path| path.display().to_string()),
        size: found.as_ref().map_or(0, fs::Metadata::len),
        changed: found.as_ref().map_or(0, modified_ns),
        extents: file_ioctls::file_extents(file).unwrap_or_default(),
    }
}

pub(crate) fn unknown_file(device: DeviceNumber, inode: u64) -> IoFile {
    let (generation, path, extents) = (None, None, Vec::new());
    IoFile { device, inode, generation, class: FileClass::Other, path, size: 0, changed: 0, extents }
}
