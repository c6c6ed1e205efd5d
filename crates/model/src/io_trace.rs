//! Page-cache and disk events of a process tree, their files, extents and metadata blocks, thread names.
//!
//! Here is also the arithmetic of pages and extents. The name of a thread at a time is that of the program that it
//! started last, or the name with which it ended, or what else a tracer reports.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::quantity::Nanos;

/// The name of the tracer whose file is an [`IoRecording`].
pub const IO_TRACER: &str = "io";

/// Bytes of a page, which every number of pages here counts.
pub const PAGE: u64 = 4096;

/// Bytes of a sector, which every block number here counts.
pub const SECTOR: u64 = 512;

/// A device, as the kernel numbers it inside: 12 bits of major number, 20 of minor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceNumber(pub u32);

impl DeviceNumber {
    /// From its two numbers.
    pub fn new(major: u32, minor: u32) -> Self {
        DeviceNumber(major << 20 | (minor & 0xf_ffff))
    }

    /// The major number: which driver.
    pub fn major(self) -> u32 {
        self.0 >> 20
    }

    /// The minor number: which of the driver's devices.
    pub fn minor(self) -> u32 {
        self.0 & 0xf_ffff
    }

    /// From `254:0`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber::new(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}", self.major(), self.minor())
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoEventKind {
    /// pages came into the page cache: they are being read, or written anew
    Added,
    /// a page was needed by a page fault
    Fault,
    /// pages were needed by a read
    Read,
    /// pages that lay around a fault, and in the cache, were mapped with it
    Mapped,
    /// a request came to a disk's queue, where it may be merged with others; only other tools' block traces have it
    Queued,
    /// a request went to a disk
    Issued,
    /// a disk answered a request
    Completed,
    /// a program was started
    Exec,
    /// a thread ended
    Exit,
}

/// Every kind, with its name in tables.
pub const IO_KINDS: [(IoEventKind, &str); 9] = [
    (IoEventKind::Added, "added"),
    (IoEventKind::Fault, "fault"),
    (IoEventKind::Read, "read"),
    (IoEventKind::Mapped, "mapped"),
    (IoEventKind::Queued, "queued"),
    (IoEventKind::Issued, "issued"),
    (IoEventKind::Completed, "completed"),
    (IoEventKind::Exec, "exec"),
    (IoEventKind::Exit, "exit"),
];

impl IoEventKind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        IO_KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        IO_KINDS.iter().find(|(_, other)| *other == name).map(|(kind, _)| *kind)
    }

    /// Whether it says that a page was needed.
    pub fn is_page_use(self) -> bool {
        matches!(self, IoEventKind::Fault | IoEventKind::Read)
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoEvent {
    /// CLOCK_MONOTONIC
    pub at: Nanos,
    /// the thread in whose name it happened
    pub pid: i32,
    /// what
    pub kind: IoEventKind,
    /// file system of the file, or disk of the request
    pub device: DeviceNumber,
    /// the file; the disk's own number for pages of a disk itself, which is where file systems keep their metadata
    pub inode: u64,
    /// first page in the file, or first sector on the disk
    pub first: u64,
    /// pages or sectors
    pub count: u64,
    /// of a request: `R`, `RA`, `WS`; of a program: its file; of a thread that ended: its name
    pub name: Option<String>,
}

impl IoEvent {
    /// Whether it is a request that reads.
    pub fn is_disk_read(&self) -> bool {
        self.kind == IoEventKind::Issued && self.is_read_request()
    }

    /// Whether a request, sent or answered, is one that reads: its flags begin so.
    pub fn is_read_request(&self) -> bool {
        self.name.as_deref().is_some_and(|flags| flags.starts_with('R'))
    }
}

/// A range of a file that is contiguous on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileExtent {
    /// first byte in the file
    pub logical: u64,
    /// first byte on the disk
    pub physical: u64,
    /// bytes
    pub length: u64,
}

impl FileExtent {
    /// Where this byte of the file lies, if here.
    pub fn disk_offset(&self, logical: u64) -> Option<u64> {
        let inside = logical.checked_sub(self.logical).filter(|inside| *inside < self.length)?;
        Some(self.physical + inside)
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileClass {
    /// a regular file
    File,
    /// a directory
    Directory,
    /// the disk itself: the file system's own blocks
    Disk,
    /// anything else, or gone before it could be asked
    Other,
}

/// A file that events name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoFile {
    /// its file system
    pub device: DeviceNumber,
    /// its number there
    pub inode: u64,
    /// changes when the number is given to another file
    pub generation: Option<u32>,
    /// what it is
    pub class: FileClass,
    /// where it was found; none where it is gone, or lies on no mount that can be seen from here
    pub path: Option<String>,
    /// bytes
    pub size: u64,
    /// when it was changed last, ns since 1970
    pub changed: i64,
    /// where it lies on its disk; empty where its file system cannot say
    pub extents: Vec<FileExtent>,
}

impl IoFile {
    /// Where a page lies on the disk, in bytes.
    pub fn disk_offset_of_page(&self, page: u64) -> Option<u64> {
        self.extents.iter().find_map(|extent| extent.disk_offset(page * PAGE))
    }
}

/// What the blocks of a file system's own are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataClass {
    /// superblock and group descriptors
    Superblock,
    /// which blocks and inodes are free
    Bitmap,
    /// inodes
    InodeTable,
    /// the journal
    Journal,
    /// names of files
    Directory,
    /// where files lie
    Extents,
    /// attributes, trees of other kinds, or what could not be distinguished
    Tree,
}

/// Every class, with its name in tables.
pub const METADATA_CLASSES: [(MetadataClass, &str); 7] = [
    (MetadataClass::Superblock, "superblock and groups"),
    (MetadataClass::Bitmap, "bitmap"),
    (MetadataClass::InodeTable, "inode table"),
    (MetadataClass::Journal, "journal"),
    (MetadataClass::Directory, "directory"),
    (MetadataClass::Extents, "extents"),
    (MetadataClass::Tree, "tree"),
];

impl MetadataClass {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        METADATA_CLASSES.iter().find(|(class, _)| *class == self).map_or("", |(_, name)| name)
    }
}

/// A range of a disk that holds metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataRange {
    /// the disk
    pub device: DeviceNumber,
    /// first byte
    pub physical: u64,
    /// bytes
    pub length: u64,
    /// what for
    pub class: MetadataClass,
}

/// Where a partition lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskPartition {
    /// its device
    pub device: DeviceNumber,
    /// the disk's
    pub disk: DeviceNumber,
    /// its first byte there
    pub start: u64,
}

/// Sectors of a disk that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectorRange {
    /// the disk that requests name
    pub disk: DeviceNumber,
    /// first sector
    pub first: u64,
    /// sectors
    pub sectors: u64,
}

/// Pages of a file that follow one another, as a list of pages of another tool names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PageRange {
    /// the file system
    pub device: DeviceNumber,
    /// the file's number there
    pub inode: u64,
    /// first page
    pub first: u64,
    /// pages
    pub count: u64,
}

/// A list of the owners of a file system's blocks, made by another tool: a recording's files were taken from it, in place of
/// the file system itself. It does not distinguish directories from files, and its files have no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedBlockMap {
    /// bytes of a block
    pub block_size: u64,
}

/// A disk that lies upon others: a loop device, RAID, device mapper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackedDisk {
    /// the upper disk
    pub device: DeviceNumber,
    /// what it lies on: its requests come again there
    pub below: Vec<SectorRange>,
}

/// Where a part of a stacked device lies on a disk below, which is the one that requests name: a volume of device mapper, a
/// mirror. A mirror has such a part on each of its disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSegment {
    /// the upper device
    pub device: DeviceNumber,
    /// first byte on it
    pub from: u64,
    /// bytes
    pub length: u64,
    /// the disk below
    pub disk: DeviceNumber,
    /// first byte there
    pub start: u64,
}

/// A device of which it is not known where it lies on the disks that requests name, so that what it was asked for has no owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmappedDevice {
    /// the device
    pub device: DeviceNumber,
    /// why not
    pub reason: String,
}

/// A part of a disk that belongs to a part of a device above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRange {
    /// the disk that requests name
    pub disk: DeviceNumber,
    /// first byte there
    pub physical: u64,
    /// how far from the beginning of what was asked about
    pub skipped: u64,
    /// bytes
    pub length: u64,
}

/// Everything that was traced in one iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoRecording {
    /// in the order of time
    pub events: Vec<IoEvent>,
    /// the files that they name
    pub files: Vec<IoFile>,
    /// what else is known
    #[serde(alias = "told")]
    pub summary: IoTraceSummary,
}

/// What a tracer of I/O says about an iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoTraceSummary {
    /// when tracing began
    pub begun: Nanos,
    /// when it ended
    pub ended: Nanos,
    /// events that the kernel had no room for
    pub lost: u64,
    /// events that this kernel does not have, and what is therefore not seen
    pub missing: Vec<String>,
    /// whether only one process tree was followed; else the I/O of all processes is here
    pub tree: bool,
    /// CPU time of reading the kernel's buffers
    pub cost: Nanos,
    /// metadata of the file systems that were read
    pub metadata: Vec<MetadataRange>,
    /// partitions among the file systems' devices: requests name the whole disk
    pub partitions: Vec<DiskPartition>,
    /// disks that lie upon others
    #[serde(default)]
    pub stacks: Vec<StackedDisk>,
    /// names of threads, where no start of a program gives them
    #[serde(default)]
    pub names: BTreeMap<i32, String>,
    /// where devices that pass their requests on lie on the disks below
    #[serde(default)]
    pub segments: Vec<DeviceSegment>,
    /// devices that pass their requests on, and of which that is not known
    #[serde(default)]
    pub unplaced: Vec<UnmappedDevice>,
    /// where the files are from, if not from the file system itself
    #[serde(default)]
    pub block_map: Option<ImportedBlockMap>,
}

impl IoTraceSummary {
    /// The disk below a file system's device, and where on it the device begins.
    pub fn disk_below(&self, device: DeviceNumber) -> (DeviceNumber, u64) {
        let found = self.partitions.iter().find(|partition| partition.device == device);
        found.map_or((device, 0), |partition| (partition.disk, partition.start))
    }

    /// Where some bytes of a file system's device lie on the disks that requests name: in segments on stacked devices, and more than
    /// once on mirrors.
    pub fn disk_ranges(&self, device: DeviceNumber, physical: u64, length: u64) -> Vec<DiskRange> {
        let (disk, start) = self.disk_below(device);
        let (first, end) =
            (start.saturating_add(physical), start.saturating_add(physical).saturating_add(length));
        let own = self.segments.iter().filter(|segment| segment.device == disk);
        let mut places: Vec<DiskRange> = own
            .clone()
            .filter_map(|segment| {
                let from = first.max(segment.from);
                let to = end.min(segment.from.saturating_add(segment.length));
                let physical = segment.start.saturating_add(from.checked_sub(segment.from)?);
                let place = DiskRange {
                    disk: segment.disk,
                    physical,
                    skipped: from - first,
                    length: to.checked_sub(from)?,
                };
                (place.length > 0).then_some(place)
            })
            .collect();
        if own.count() == 0 {
            places.push(DiskRange { disk, physical: first, skipped: 0, length });
        }
        places
    }
}

/// The names of all threads of a recording.
#[derive(Debug, Clone, Default)]
pub struct ThreadNames<'a> {
    /// starts of programs, in the order of time
    started: HashMap<i32, Vec<(Nanos, &'a str)>>,
    named: HashMap<i32, &'a str>,
}

impl<'a> ThreadNames<'a> {
    /// Collects them.
    pub fn from_recording(recording: &'a IoRecording) -> Self {
        let mut all = ThreadNames::default();
        let names = recording.summary.names.iter();
        all.named.extend(names.map(|(pid, name)| (*pid, name.as_str())));
        for event in &recording.events {
            let Some(name) = event.name.as_deref() else { continue };
            match event.kind {
                IoEventKind::Exec => {
                    all.started.entry(event.pid).or_default().push((event.at, base_name(name)))
                }
                IoEventKind::Exit => drop(all.named.insert(event.pid, name)),
                _ => {}
            }
        }
        all
    }

    /// The name of a thread at a time; none where it is unknown.
    pub fn name_at(&self, pid: i32, at: Nanos) -> Option<&'a str> {
        let started = self.started.get(&pid);
        let last = started.and_then(|all| all.iter().rev().find(|(since, _)| *since <= at));
        last.map(|(_, name)| *name).or_else(|| self.named.get(&pid).copied())
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use super::{DeviceNumber, IoEvent, IoTraceSummary};

    #[test]
    fn devices_are_read_and_written_as_the_kernel_does() {
        let device = DeviceNumber::parse("254:17").unwrap();
        assert_eq!((device, device.to_string()), (DeviceNumber(254 << 20 | 17), "254:17".into()));
        assert!(DeviceNumber::parse("254").is_none());
    }

    #[test]
    fn a_file_on_a_volume_in_pieces_has_its_places_below() {
        let [volume, partition, sda, sdb] =
            [(253, 0), (253, 1), (8, 0), (8, 16)].map(|(a, b)| DeviceNumber::new(a, b));
        let segment = |from, length, disk, start| DeviceSegment { device: volume, from, length, disk, start };
        let summary = IoTraceSummary {
            partitions: vec![DiskPartition { device: partition, disk: volume, start: 50 }],
            segments: vec![
                segment(0, 100, sda, 1000),
                segment(100, 100, sdb, 7000),
                segment(0, 200, sdb, 9000),
            ],
            ..IoTraceSummary::default()
        };
        let place = |disk, physical, skipped, length| DiskRange { disk, physical, skipped, length };
        let mirrored = place(sdb, 9090, 0, 20);
        let both = [place(sda, 1090, 0, 10), place(sdb, 7000, 10, 10), mirrored];
        assert_eq!(summary.disk_ranges(volume, 90, 20), both);
        assert_eq!(summary.disk_ranges(partition, 40, 20), both, "a partition of the volume");
        assert_eq!(summary.disk_ranges(volume, 300, 20), [], "beyond its end");
        assert_eq!(summary.disk_ranges(sda, 5, 9), [place(sda, 5, 0, 9)]);
    }

    #[test]
    fn a_page_has_a_place_only_inside_an_extent() {
        let extent = FileExtent { logical: 8192, physical: 1 << 20, length: 4096 };
        assert_eq!(extent.disk_offset(8192 + 5), Some((1 << 20) + 5));
        assert_eq!((extent.disk_offset(8191), extent.disk_offset(12288)), (None, None));
    }

    #[test]
    fn a_thread_has_the_name_of_what_it_started_last() {
        let event = |at, pid, kind, name: &str| IoEvent {
            at: Nanos(at),
            pid,
            kind,
            device: DeviceNumber::default(),
            inode: 0,
            first: 0,
            count: 0,
            name: Some(name.into()),
        };
        let recording = IoRecording {
            events: vec![
                event(5, 1, IoEventKind::Exec, "/bin/sh"),
                event(9, 1, IoEventKind::Exec, "/usr/bin/git"),
                event(12, 2, IoEventKind::Exit, "worker"),
                event(13, 1, IoEventKind::Exit, "git"),
            ],
            summary: IoTraceSummary { names: [(3, "kjournald".into())].into(), ..IoTraceSummary::default() },
            ..IoRecording::default()
        };
        let programs = ThreadNames::from_recording(&recording);
        let name = |pid, at| programs.name_at(pid, Nanos(at));
        assert_eq!([name(1, 6), name(1, 9)], [Some("sh"), Some("git")]);
        assert_eq!([name(2, 1), name(3, 1), name(4, 1)], [Some("worker"), Some("kjournald"), None]);
    }
}
