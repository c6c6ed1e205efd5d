//! What was read and what of it was needed: by file, by directory, over time, over the disk.

use std::collections::{BTreeMap, HashMap, HashSet};

use perflab_model::io_trace::{DeviceNumber, FileClass, IoEventKind, IoFile, IoRecording, PAGE, SECTOR};
use perflab_model::{Nanos, PageSet};

use crate::block_owner::{BLOCK, BlockOwner, BlockOwners, OwnedSectors};

/// A file, as the recording saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct FileIoUse {
    /// its file system
    pub device: DeviceNumber,
    /// its number there
    pub inode: u64,
    /// its path, or the best that is known
    pub name: String,
    /// what it is
    pub class: FileClass,
    /// bytes that were read of it: whole pages where pages were traced, else the sectors that requests asked for
    pub read: u64,
    /// pages that came into the cache
    pub added: PageSet,
    /// pages that were needed, whether they had to come or were there
    pub used: PageSet,
    /// when the first of either happened, since tracing began
    pub first: Nanos,
    /// pieces in which it lies on its disk; none where unknown
    pub extents: Option<usize>,
}

#[derive(Default)]
struct ObservedFileIo {
    /// sectors of requests, where no pages were traced
    sectors: Option<u64>,
    added: Vec<(u64, u64)>,
    used: Vec<(u64, u64)>,
    first: Option<Nanos>,
}

/// Every file that pages were added to or used of, the one of which most was read first. Where pages were not traced, but
/// only disk requests, the sectors that these read, which sum to the requests.
pub fn reads_by_file(recording: &IoRecording) -> Vec<FileIoUse> {
    let is_of_a_page = |kind| matches!(kind, IoEventKind::Added | IoEventKind::Mapped) || kind.is_page_use();
    if !recording.events.iter().any(|event| is_of_a_page(event.kind)) {
        return requests_by_file(recording);
    }
    let known: HashMap<(DeviceNumber, u64), &IoFile> =
        recording.files.iter().map(|file| ((file.device, file.inode), file)).collect();
    let mut seen: BTreeMap<(DeviceNumber, u64), ObservedFileIo> = BTreeMap::new();
    for event in &recording.events {
        let of = |kind: IoEventKind| kind == IoEventKind::Added || kind.is_page_use();
        if !of(event.kind) {
            continue;
        }
        let seen = seen.entry((event.device, event.inode)).or_default();
        seen.first.get_or_insert(event.at.since(recording.summary.begun));
        let list = if event.kind == IoEventKind::Added { &mut seen.added } else { &mut seen.used };
        list.push((event.first, event.count));
    }
    sort_by_read(
        seen.into_iter().map(|(key, seen)| build_file_use(key, known.get(&key).copied(), seen)).collect(),
    )
}

fn sort_by_read(mut all: Vec<FileIoUse>) -> Vec<FileIoUse> {
    all.sort_by_key(|file| (std::cmp::Reverse(file.read), file.first));
    all
}

/// What disks were asked to read, by the file that it belongs to; by its class, where it is a file system's own.
fn requests_by_file(recording: &IoRecording) -> Vec<FileIoUse> {
    let map = BlockOwners::new(recording);
    let mut all: BTreeMap<(DeviceNumber, u64, String), (Option<&IoFile>, ObservedFileIo)> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| event.is_disk_read()) {
        for piece in map.split_by_owner(event) {
            let (file, page, name) = owner_of_piece(&piece, event.device);
            let (device, inode) = file.map_or((event.device, 0), |file| (file.device, file.inode));
            let (_, seen) =
                all.entry((device, inode, name)).or_insert_with(|| (file, ObservedFileIo::default()));
            seen.first.get_or_insert(event.at.since(recording.summary.begun));
            seen.added.push((page, 1));
            *seen.sectors.get_or_insert_default() += piece.end - piece.sector;
        }
    }
    let found = |((device, inode, name), (file, seen)): (_, (Option<&IoFile>, ObservedFileIo))| {
        let found = build_file_use((device, inode), file, seen);
        if file.is_some() { found } else { FileIoUse { name, class: FileClass::Disk, ..found } }
    };
    sort_by_read(all.into_iter().map(found).collect())
}

/// The file of a piece and its page there, or the disk's page and what it is for.
fn owner_of_piece<'a>(piece: &OwnedSectors<'a>, disk: DeviceNumber) -> (Option<&'a IoFile>, u64, String) {
    let block = piece.sector / BLOCK;
    match piece.owner {
        Some(BlockOwner::File(file, page)) => (Some(file), page, String::new()),
        Some(BlockOwner::Metadata(class)) => (None, block, format!("{} of {disk}", class.name())),
        None => (None, block, format!("no known file of {disk}")),
    }
}

fn build_file_use(
    (device, inode): (DeviceNumber, u64),
    file: Option<&IoFile>,
    seen: ObservedFileIo,
) -> FileIoUse {
    let name = file.and_then(|file| file.path.clone());
    let pages = file.map(|file| file.size.div_ceil(PAGE)).filter(|pages| *pages > 0);
    // A read asks for whole windows, and a mapping for what lies behind the end of the file.
    let within = |runs: Vec<(u64, u64)>| {
        let runs: PageSet = runs.into_iter().collect();
        pages.map_or_else(|| runs.clone(), |pages| runs.pages_below(pages))
    };
    let added = within(seen.added);
    FileIoUse {
        device,
        inode,
        read: seen.sectors.map_or_else(|| added.page_count() * PAGE, |sectors| sectors * SECTOR),
        name: name.unwrap_or_else(|| format!("inode {inode} of {device}")),
        class: file.map_or(FileClass::Other, |file| file.class),
        added,
        used: within(seen.used),
        first: seen.first.unwrap_or_default(),
        extents: file.map(|file| file.extents.len()).filter(|pieces| *pieces > 0),
    }
}

/// All files of a directory, those of its directories not among them.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryUse {
    /// its path; the disk's for what is not a file's
    pub name: String,
    /// how many files
    pub files: usize,
    /// bytes that were read, as of [`FileIoUse::read`]
    pub read: u64,
    /// pages that were needed
    pub used: u64,
}

/// The same by directory, the one of which most was read first.
pub fn reads_by_directory(files: &[FileIoUse]) -> Vec<DirectoryUse> {
    let mut folders: BTreeMap<&str, DirectoryUse> = BTreeMap::new();
    for file in files {
        let name = match (file.class, file.name.rsplit_once('/')) {
            (FileClass::File | FileClass::Other, Some((folder, _))) => {
                if folder.is_empty() {
                    "/"
                } else {
                    folder
                }
            }
            _ => file.name.as_str(),
        };
        let empty = || DirectoryUse { name: name.into(), files: 0, read: 0, used: 0 };
        let folder = folders.entry(name).or_insert_with(empty);
        folder.files += 1;
        folder.read += file.read;
        folder.used += file.used.page_count();
    }
    let mut all: Vec<DirectoryUse> = folders.into_values().collect();
    all.sort_by_key(|folder| std::cmp::Reverse(folder.read));
    all
}

/// What happened in a range of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IoInterval {
    /// its beginning, since tracing began
    pub at: Nanos,
    /// pages of files that came into the cache
    pub added: u64,
    /// pages of file systems' own blocks that did
    pub metadata: u64,
    /// times that a page was needed
    pub used: u64,
    /// requests that disks were sent for reading
    pub requests: u64,
    /// bytes that these asked for
    pub bytes: u64,
}

/// As many equal ranges of time as requested, from the beginning of tracing to its end.
pub fn reads_over_time(recording: &IoRecording, requested: usize) -> Vec<IoInterval> {
    let summary = &recording.summary;
    let whole = summary.ended.since(summary.begun).0.max(1);
    let width = whole.div_ceil(requested.max(1) as u64).max(1);
    let mut ticks: Vec<IoInterval> = (0..whole.div_ceil(width))
        .map(|tick| IoInterval { at: Nanos(tick * width), ..IoInterval::default() })
        .collect();
    let disks = disk_inodes(recording);
    for event in &recording.events {
        let at = (event.at.since(summary.begun).0 / width) as usize;
        let Some(tick) = ticks.get_mut(at) else { continue };
        match event.kind {
            IoEventKind::Added if disks.contains(&(event.device, event.inode)) => {
                tick.metadata += event.count
            }
            IoEventKind::Added => tick.added += event.count,
            IoEventKind::Fault | IoEventKind::Read => tick.used += 1,
            IoEventKind::Issued if event.is_disk_read() => {
                tick.requests += 1;
                tick.bytes += event.count * SECTOR;
            }
            _ => {}
        }
    }
    ticks
}

/// What events call a disk itself: its pages are file systems' own blocks.
fn disk_inodes(recording: &IoRecording) -> HashSet<(DeviceNumber, u64)> {
    let disks = recording.files.iter().filter(|file| file.class == FileClass::Disk);
    disks.map(|file| (file.device, file.inode)).collect()
}

/// Requests that went to a range of a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskRegion {
    /// the disk
    pub disk: DeviceNumber,
    /// first byte of the range
    pub from: u64,
    /// its length
    pub length: u64,
    /// requests for reading
    pub requests: u64,
    /// bytes that they asked for
    pub bytes: u64,
    /// requests that did not begin where the one before, of all on this disk, had ended
    pub seeks: u64,
}

/// Each disk that was read, from its first byte that was to its last, in as many equal ranges as requested; those that were
/// not read are left out.
pub fn reads_over_disk(recording: &IoRecording, requested: usize) -> Vec<DiskRegion> {
    let mut disks: BTreeMap<DeviceNumber, Vec<(u64, u64)>> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| event.is_disk_read()) {
        disks.entry(event.device).or_default().push((event.first * SECTOR, event.count * SECTOR));
    }
    disks.into_iter().flat_map(|(disk, requests)| disk_regions(disk, &requests, requested)).collect()
}

fn disk_regions(disk: DeviceNumber, requests: &[(u64, u64)], requested: usize) -> Vec<DiskRegion> {
    let first = requests.iter().map(|(at, _)| *at).min().unwrap_or(0);
    let end = requests.iter().map(|(at, length)| at + length).max().unwrap_or(0);
    let length = (end - first).div_ceil(requested.max(1) as u64).max(SECTOR);
    let mut all: BTreeMap<u64, DiskRegion> = BTreeMap::new();
    let mut before = None;
    for (at, bytes) in requests {
        let from = first + (at - first) / length * length;
        let place =
            all.entry(from).or_insert(DiskRegion { disk, from, length, requests: 0, bytes: 0, seeks: 0 });
        place.requests += 1;
        place.bytes += bytes;
        place.seeks += u64::from(before.is_some_and(|before| before != *at));
        before = Some(at + bytes);
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_in_regions_of_equal_length() {
        let disk = DeviceNumber::new(8, 0);
        let found = disk_regions(disk, &[(10_240, 512), (10_752, 512), (20_480, 512)], 2);
        let numbers: Vec<_> =
            found.iter().map(|one| (one.from, one.length, one.requests, one.bytes, one.seeks)).collect();
        assert_eq!(numbers, [(10_240, 5_376, 2, 1_024, 0), (15_616, 5_376, 1, 512, 1)]);
    }

    #[test]
    fn only_a_disk_itself_is_a_disk() {
        let device = DeviceNumber::new(8, 0);
        let file = |inode, class| IoFile {
            device,
            inode,
            generation: None,
            class,
            path: None,
            size: 0,
            changed: 0,
            extents: Vec::new(),
        };
        let files = vec![file(7, FileClass::File), file(8, FileClass::Disk)];
        let recording = IoRecording { files, ..IoRecording::default() };
        assert_eq!(disk_inodes(&recording), HashSet::from([(device, 8)]));
    }
}
