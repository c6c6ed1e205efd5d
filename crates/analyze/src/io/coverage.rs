//! Block reads held against a prefetch trace, block by block of 4 KiB, so that what the trace lacks is seen by its reason.
//!
//! Every block that a disk was asked for gets exactly one [`BlockStatus`], so the classes sum to the bytes that the disk
//! delivered; that is a check on the analysis itself, and [`DiskReadBytes`] are counted apart from them.

use std::collections::{BTreeMap, HashMap, HashSet};

use perflab_model::Nanos;
use perflab_model::io::{
    DeviceNumber, FileClass, IoEvent, IoEventKind, IoRecording, PageRange, PageSet, SECTOR, ThreadNames,
};

use super::answers::{DiskReadBytes, completed_reads};
use super::disk::{BLOCK, BlockOwner, BlockOwners, OwnedSectors};

/// What a prefetch trace would have brought: pages of files, and sectors of disks.
#[derive(Debug, Clone, Default)]
pub struct TraceContents {
    /// pages by file
    pub files: HashMap<(DeviceNumber, u64), PageSet>,
    /// sectors by disk: partitions may put a file system's blocks off the disk's 4 KiB grid
    pub sectors: HashMap<DeviceNumber, PageSet>,
}

/// What a block that was read is to the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockStatus {
    /// the trace has it
    Found,
    /// it was needed, and the trace lacks it
    Missing,
    /// the trace lacks it, and which pages were needed was not recorded
    NotInTrace,
    /// it came along with others, and nobody needed it
    ReadAround,
    /// a file system's own block that the trace lacks
    Metadata,
    /// it was read before the traced program was started
    Before,
    /// it belongs to no file that was seen
    Unknown,
}

/// All of them, with a name.
pub const BLOCK_STATUSES: [(BlockStatus, &str); 7] = [
    (BlockStatus::Found, "found"),
    (BlockStatus::Missing, "missing"),
    (BlockStatus::NotInTrace, "not in trace"),
    (BlockStatus::ReadAround, "read around"),
    (BlockStatus::Metadata, "metadata"),
    (BlockStatus::Before, "before"),
    (BlockStatus::Unknown, "unknown"),
];

impl BlockStatus {
    /// Its name.
    pub fn name(self) -> &'static str {
        BLOCK_STATUSES.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }
}

/// One request's part with one status: neighbouring blocks of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockRead {
    /// when it was asked for, since tracing began
    pub at: Nanos,
    /// the disk
    pub disk: DeviceNumber,
    /// first sector
    pub sector: u64,
    /// sectors
    pub sectors: u64,
    /// in whose name
    pub pid: i32,
    /// the program that this thread ran; its number, where nothing tells
    pub program: String,
    /// what it is to the trace
    pub status: BlockStatus,
    /// file it belongs to, and first page there
    pub file: Option<(u64, u64)>,
    /// path, or class of metadata
    pub name: String,
}

/// Everything that disks were asked to read, by status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceCoverage {
    /// in the order of time
    pub blocks: Vec<BlockRead>,
    /// bytes by status, every status once
    pub bytes: BTreeMap<BlockStatus, u64>,
    /// the same bytes, counted from what disks answered
    pub answers: DiskReadBytes,
}

impl TraceContents {
    /// The pages of a list that another tool made, and under which device it names the file system of the recording's files,
    /// where these are of a map: that knows no number of its partition, so that is the one with most of its inodes.
    pub fn from_pages(recording: &IoRecording, ranges: &[PageRange]) -> (Self, Option<DeviceNumber>) {
        let mapped = recording.told.block_map.and(recording.files.first()).map(|file| file.device);
        let inodes: HashSet<u64> = recording.files.iter().map(|file| file.inode).collect();
        let mut common: BTreeMap<DeviceNumber, HashSet<u64>> = BTreeMap::new();
        for range in ranges.iter().filter(|range| inodes.contains(&range.inode)) {
            common.entry(range.device).or_default().insert(range.inode);
        }
        let named =
            mapped.and(common.into_iter().max_by_key(|(_, inodes)| inodes.len()).map(|(device, _)| device));
        let mut files: HashMap<(DeviceNumber, u64), Vec<(u64, u64)>> = HashMap::new();
        for range in ranges {
            let device = match (named, mapped) {
                (Some(named), Some(mapped)) if range.device == named => mapped,
                // Of another file system: under the number of the mapped one it would be taken for its own.
                (_, Some(mapped)) if range.device == mapped => continue,
                _ => range.device,
            };
            files.entry((device, range.inode)).or_default().push((range.first, range.count));
        }
        let files = files.into_iter().map(|(file, pages)| (file, pages.into_iter().collect())).collect();
        (TraceContents { files, ..TraceContents::default() }, named)
    }
}

/// Holds a recording against what a trace knows.
pub fn trace_coverage(recording: &IoRecording, known: &TraceContents) -> TraceCoverage {
    let held = CoverageInputs {
        map: BlockOwners::new(recording),
        needed: needed_pages(recording),
        tells_uses: recording.events.iter().any(|event| event.kind.is_page_use()),
        contents: known,
        begin: recording.events.iter().find(|event| event.kind == IoEventKind::Exec).map(|event| event.at),
        begun: recording.told.begun,
        programs: ThreadNames::from_recording(recording),
    };
    let (reads, answers) = completed_reads(recording);
    let bytes = BLOCK_STATUSES.map(|(status, _)| (status, 0)).into();
    let mut found = TraceCoverage { bytes, answers, ..TraceCoverage::default() };
    for event in &reads {
        for piece in held
            .map
            .split_by_owner(event)
            .into_iter()
            .flat_map(|piece| held.split_by_trace(event.device, piece))
        {
            let block = held.classify_block(event, &piece);
            *found.bytes.entry(block.status).or_default() += block.sectors * SECTOR;
            append_block_read(&mut found.blocks, block);
        }
    }
    found
}

/// What a recording is held against.
struct CoverageInputs<'a> {
    map: BlockOwners<'a>,
    needed: HashMap<(DeviceNumber, u64), PageSet>,
    /// whether it was recorded which pages were needed
    tells_uses: bool,
    contents: &'a TraceContents,
    /// when the first program was started; none where none was seen, and then nothing is before it
    begin: Option<Nanos>,
    begun: Nanos,
    programs: ThreadNames<'a>,
}

impl CoverageInputs<'_> {
    fn classify_block(&self, event: &IoEvent, piece: &OwnedSectors<'_>) -> BlockRead {
        let status = match self.begin {
            Some(begin) if event.at < begin => BlockStatus::Before,
            _ => self.block_status(event.device, piece),
        };
        let (file, name) = match piece.owner {
            Some(BlockOwner::File(file, page)) => {
                (Some((file.inode, page)), file.path.clone().unwrap_or_default())
            }
            Some(BlockOwner::Metadata(class)) => (None, class.name().to_owned()),
            None => (None, String::new()),
        };
        let program = self.programs.name_at(event.pid, event.at);
        BlockRead {
            at: event.at.since(self.begun),
            disk: event.device,
            sector: piece.sector,
            sectors: piece.end - piece.sector,
            pid: event.pid,
            program: program.map_or_else(|| event.pid.to_string(), String::from),
            status,
            file,
            name,
        }
    }

    fn is_traced(&self, disk: DeviceNumber, sector: u64) -> bool {
        self.contents.sectors.get(&disk).is_some_and(|sectors| sectors.contains(sector))
    }

    /// A piece, parted where the trace begins or ends to know its sectors.
    fn split_by_trace<'a>(&self, disk: DeviceNumber, piece: OwnedSectors<'a>) -> Vec<OwnedSectors<'a>> {
        let mut parts: Vec<OwnedSectors<'a>> = Vec::new();
        let mut before = None;
        for sector in piece.sector..piece.end {
            let is_traced = self.is_traced(disk, sector);
            match parts.last_mut().filter(|_| before == Some(is_traced)) {
                Some(last) => last.end = sector + 1,
                None => parts.push(OwnedSectors { sector, end: sector + 1, ..piece }),
            }
            before = Some(is_traced);
        }
        parts
    }

    fn block_status(&self, disk: DeviceNumber, piece: &OwnedSectors<'_>) -> BlockStatus {
        let is_traced = self.is_traced(disk, piece.sector);
        match piece.owner {
            _ if is_traced => BlockStatus::Found,
            Some(BlockOwner::File(file, page)) => {
                let has = |all: &HashMap<(DeviceNumber, u64), PageSet>| {
                    all.get(&(file.device, file.inode)).is_some_and(|runs| runs.contains(page))
                };
                match () {
                    () if has(&self.contents.files) => BlockStatus::Found,
                    () if file.class == FileClass::Directory => BlockStatus::Metadata,
                    () if !self.tells_uses => BlockStatus::NotInTrace,
                    () if has(&self.needed) => BlockStatus::Missing,
                    () => BlockStatus::ReadAround,
                }
            }
            Some(BlockOwner::Metadata(_)) => BlockStatus::Metadata,
            None => BlockStatus::Unknown,
        }
    }
}

fn needed_pages(recording: &IoRecording) -> HashMap<(DeviceNumber, u64), PageSet> {
    let mut all: HashMap<(DeviceNumber, u64), Vec<(u64, u64)>> = HashMap::new();
    for event in recording.events.iter().filter(|event| event.kind.is_page_use()) {
        all.entry((event.device, event.inode)).or_default().push((event.first, event.count));
    }
    all.into_iter().map(|(file, runs)| (file, runs.into_iter().collect())).collect()
}

/// Neighbours of one request, file and status are one line.
fn append_block_read(all: &mut Vec<BlockRead>, next: BlockRead) {
    let joins = |last: &BlockRead| {
        let pages = last.sectors.div_ceil(BLOCK);
        last.at == next.at
            && last.status == next.status
            && last.name == next.name
            && last.sector + last.sectors == next.sector
            && last.file.map(|(inode, page)| (inode, page + pages)) == next.file
    };
    match all.last_mut().filter(|last| joins(last)) {
        Some(last) => last.sectors += next.sectors,
        None => all.push(next),
    }
}
