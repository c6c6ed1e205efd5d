//! Numbers of files made into names, and where files lie on disks.
//!
//! A file is opened by its number right after the recording, when the kernel still knows by which name it was used; where
//! that is refused, its file system is walked, by name, without leaving it. Nothing is read of a file but its extents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use perflab_model::io::{Device, FileClass, IoEvent, IoFile, IoKind, IoRecording, MetadataRange, Runs};

use rustix::fs::OFlags;

use super::mounts::{self, Mount, Mounts};
use super::stacks::{place_stacked, read_stacks, read_table};
use super::{btrfs, fiemap, fsmap, handle, own_blocks};
use crate::Root;

/// Names, places and metadata of everything that a recording names.
pub fn identify(recording: &mut IoRecording) {
    let mounts = Mounts::read();
    let mut wanted: BTreeMap<Device, BTreeSet<u64>> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| names_a_file(event)) {
        wanted.entry(event.device).or_default().insert(event.inode);
    }
    let requests = recording.events.iter().filter(|event| event.kind == IoKind::Issued);
    let disks: BTreeSet<Device> = requests.map(|event| event.device).collect();
    recording.told.stacks = read_stacks(&Root::host(), &disks);
    for (device, inodes) in wanted {
        recording.files.extend(inodes_of(&mounts, device, inodes));
    }
    let systems: BTreeSet<Device> = recording.files.iter().map(|file| file.device).collect();
    recording.files.extend(folders(&mounts, &recording.files));
    systems.into_iter().filter_map(|device| mounts.of(device)).for_each(|mount| tell(recording, mount));
    place_stacked(recording, &Root::host(), &read_table);
}

/// The folders of files, up to the mount: their blocks are read to find the files.
fn folders(mounts: &Mounts, files: &[IoFile]) -> Vec<IoFile> {
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.class == FileClass::File) {
        let Some(place) = mounts.of(file.device).map(|mount| &mount.place) else { continue };
        let above = file.path.iter().flat_map(|path| Path::new(path).ancestors().skip(1));
        for folder in above.take_while(|folder| folder.starts_with(place)) {
            if !known.insert(folder.into()) {
                break;
            }
            let inode = fs::symlink_metadata(folder).ok().map(|about| about.ino());
            found.extend(inode.map(|inode| look_at(file.device, inode, folder)));
        }
    }
    let own: BTreeSet<(Device, u64)> = files.iter().map(|file| (file.device, file.inode)).collect();
    found.retain(|folder| !own.contains(&(folder.device, folder.inode)));
    found
}

/// What is known of a file system that was read: where it lies, and which of its blocks are its own.
pub fn tell(recording: &mut IoRecording, mount: &Mount) {
    recording.told.partitions.extend(mounts::place(mount));
    let Ok(folder) = File::open(&mount.place) else { return };
    if mount.kind == "btrfs" {
        let chunks = btrfs::Chunks::of(&folder).unwrap_or_default();
        let own = recording.files.iter_mut().filter(|file| file.device == mount.device);
        own.for_each(|file| file.extents = chunks.placed(&file.extents));
        recording.told.metadata.extend(chunks.metadata(mount.device));
        return;
    }
    recording.told.metadata.extend(fsmap::metadata(&folder, mount.device).unwrap_or_default());
    if mount.kind.starts_with("ext") {
        let found = unlisted(recording, mount);
        recording.told.metadata.extend(found);
    }
}

/// Blocks of an ext file system's own that came into memory, and that it does not list.
fn unlisted(recording: &IoRecording, mount: &Mount) -> Vec<MetadataRange> {
    let (device, number) = (mount.device, u64::from(mount.device.0));
    let is_disk = |file: &&IoFile| file.class == FileClass::Disk && file.inode == number;
    let Some(disk) = recording.files.iter().find(is_disk) else { return Vec::new() };
    let opened = mounts::node(device).and_then(|node| File::open(node).ok());
    let Some((node, about)) = opened.zip(rustix::fs::statvfs(&mount.place).ok()) else { return Vec::new() };
    let added = recording.events.iter().filter(|event| event.kind == IoKind::Added);
    let own = added.filter(|event| (event.device, event.inode) == (disk.device, disk.inode));
    let pages: Runs = own.map(|event| (event.first, event.count)).collect();
    let listed = |at: u64| {
        let mut ranges = recording.told.metadata.iter().filter(|range| range.device == device);
        ranges.any(|range| (range.physical..range.physical + range.length).contains(&at))
    };
    own_blocks::classes(&node, device, &pages, about.f_bsize, listed)
}

fn names_a_file(event: &IoEvent) -> bool {
    matches!(event.kind, IoKind::Added | IoKind::Fault | IoKind::Read | IoKind::Mapped)
}

/// Pages of a disk itself lie in a file system that no mount shows, and the file's number is the disk's.
fn is_disk(mounts: &Mounts, device: Device, inode: u64) -> bool {
    let disk = u32::try_from(inode).ok().map(Device);
    device.major() == 0 && mounts.of(device).is_none() && disk.is_some_and(mounts::is_disk)
}

fn inodes_of(mounts: &Mounts, device: Device, mut wanted: BTreeSet<u64>) -> Vec<IoFile> {
    let mut found = Vec::new();
    let mut take = |inode: u64, file: IoFile| found.push((inode, file));
    wanted.retain(|inode| {
        let is_disk = is_disk(mounts, device, *inode);
        if is_disk {
            take(*inode, disk(device, *inode));
        }
        !is_disk
    });
    if let Some((mount, folder)) =
        mounts.of(device).and_then(|mount| Some((mount, File::open(&mount.place).ok()?)))
    {
        wanted.retain(|inode| match by_number(&folder, device, *inode) {
            Ok(file) => {
                take(*inode, file);
                false
            }
            // Removed since: a walk over everything would not find it either.
            Err(error) if mount.kind.starts_with("ext") && is_stale(&error) => {
                take(*inode, unknown(device, *inode));
                false
            }
            Err(_) => true,
        });
        if !wanted.is_empty() && walks(&mount.kind) {
            walk(&mount.place, &mut wanted, &mut |inode, path| take(inode, look_at(device, inode, path)));
        }
    }
    wanted.into_iter().for_each(|inode| take(inode, unknown(device, inode)));
    found.into_iter().map(|(_, file)| file).collect()
}

/// Whether a walk ends: file systems of the kernel's invention and of other machines are left alone.
fn walks(kind: &str) -> bool {
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "tmpfs", "squashfs", "erofs"].contains(&kind)
}

fn disk(device: Device, inode: u64) -> IoFile {
    let node = u32::try_from(inode).ok().and_then(|number| mounts::node(Device(number)));
    IoFile {
        class: FileClass::Disk,
        path: node.map(|node| node.display().to_string()),
        ..unknown(device, inode)
    }
}

fn unknown(device: Device, inode: u64) -> IoFile {
    let (generation, path, extents) = (None, None, Vec::new());
    IoFile { device, inode, generation, class: FileClass::Other, path, size: 0, changed: 0, extents }
}

fn by_number(folder: &File, device: Device, inode: u64) -> std::io::Result<IoFile> {
    let file = handle::open(folder, inode, 0)?;
    let path = name_of(&file);
    Ok(asked(device, inode, &file, path))
}

fn is_stale(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::STALE.raw_os_error())
}

/// By which name the kernel knows an open file, if it is that file's.
fn name_of(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;
    let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let (there, here) = (fs::symlink_metadata(&name).ok()?, file.metadata().ok()?);
    (there.ino() == here.ino() && there.dev() == here.dev()).then_some(name)
}

/// Everything about the file of this name: `None` where there is none.
pub fn look(path: &Path) -> Option<IoFile> {
    let found = fs::symlink_metadata(path).ok()?;
    // What is no disk's may be a subvolume's, which no mount names.
    let device = Some(device(&found)).filter(|device| device.major() != 0);
    let device = device.or_else(|| Some(Mounts::read().under(path)?.device));
    Some(look_at(device.unwrap_or(self::device(&found)), found.ino(), path))
}

/// The file system's device that a file lies on.
pub fn device(about: &fs::Metadata) -> Device {
    Device::new(rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()))
}

/// When a file was changed last, ns since 1970.
pub fn changed(about: &fs::Metadata) -> i64 {
    about.mtime().saturating_mul(1_000_000_000) + about.mtime_nsec()
}

pub(super) fn look_at(device: Device, inode: u64, path: &Path) -> IoFile {
    let is_openable = fs::symlink_metadata(path)
        .is_ok_and(|found| found.ino() == inode && (found.is_file() || found.is_dir()));
    match is_openable.then(|| open(path).ok()).flatten() {
        Some(file) => asked(device, inode, &file, Some(path.into())),
        None => IoFile { path: Some(path.display().to_string()), ..unknown(device, inode) },
    }
}

/// A file that is looked at for somebody else: never through a link, never waiting for a pipe's other end, closed in whatever
/// program is started meanwhile, and where that is allowed, without a time of access that would tell of it.
///
/// # Errors
/// What the system said.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path, OpenOptions::new().read(true))
}

/// The same, for its blocks to be moved: the kernel wants who does that to be allowed to write.
///
/// # Errors
/// What the system said; `ExecutableFileBusy` of a program that runs.
pub fn open_to_move(path: &Path) -> io::Result<File> {
    opened(path, OpenOptions::new().read(true).write(true))
}

fn opened(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut with = |flags: OFlags| options.custom_flags(flags.bits() as i32).open(path);
    with(flags | OFlags::NOATIME).or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => with(flags),
        _ => Err(error),
    })
}

fn asked(device: Device, inode: u64, file: &File, path: Option<PathBuf>) -> IoFile {
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
        generation: fiemap::generation(file),
        class,
        path: path.map(|path| path.display().to_string()),
        size: found.as_ref().map_or(0, fs::Metadata::len),
        changed: found.as_ref().map_or(0, changed),
        extents: fiemap::extents(file).unwrap_or_default(),
    }
}

/// Calls `found` for every file below `place`, on the same file system, whose number is still wanted.
fn walk(place: &Path, wanted: &mut BTreeSet<u64>, found: &mut dyn FnMut(u64, &Path)) {
    walk_all(place, &mut |inode, path| {
        if wanted.remove(&inode) {
            found(inode, path);
        }
        !wanted.is_empty()
    });
}

/// Calls `found` for every file below `place`, on the same file system, with its number, until that says `false`.
pub(super) fn walk_all(place: &Path, found: &mut dyn FnMut(u64, &Path) -> bool) {
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
