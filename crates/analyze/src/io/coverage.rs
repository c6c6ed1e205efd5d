//! Block reads held against a prefetch trace, block by block of 4 KiB, so that what the trace lacks is seen by its reason.
//!
//! Every block that a disk was asked for gets exactly one [`Status`], so the classes sum to the bytes that the disk
//! delivered; that is a check on the analysis itself, and [`Answers`] are counted apart from them.

use std::collections::{BTreeMap, HashMap, HashSet};

use perflab_model::Nanos;
use perflab_model::io::{Device, FileClass, IoEvent, IoKind, IoRecording, PageRange, Programs, Runs, SECTOR};

use super::answers::{Answers, reads};
use super::disk::{BLOCK, DiskMap, Owner, Piece};

/// What a prefetch trace would have brought: pages of files, and sectors of disks.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// pages by file
    pub files: HashMap<(Device, u64), Runs>,
    /// sectors by disk: partitions may put a file system's blocks off the disk's 4 KiB grid
    pub sectors: HashMap<Device, Runs>,
}

/// What a block that was read is to the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
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
pub const STATUSES: [(Status, &str); 7] = [
    (Status::Found, "found"),
    (Status::Missing, "missing"),
    (Status::NotInTrace, "not in trace"),
    (Status::ReadAround, "read around"),
    (Status::Metadata, "metadata"),
    (Status::Before, "before"),
    (Status::Unknown, "unknown"),
];

impl Status {
    /// Its name.
    pub fn name(self) -> &'static str {
        STATUSES.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }
}

/// One request's part with one status: neighbouring blocks of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// when it was asked for, since tracing began
    pub at: Nanos,
    /// the disk
    pub disk: Device,
    /// first sector
    pub sector: u64,
    /// sectors
    pub sectors: u64,
    /// in whose name
    pub pid: i32,
    /// the program that this thread ran; its number, where nothing tells
    pub program: String,
    /// what it is to the trace
    pub status: Status,
    /// file it belongs to, and first page there
    pub file: Option<(u64, u64)>,
    /// path, or class of metadata
    pub name: String,
}

/// Everything that disks were asked to read, by status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coverage {
    /// in the order of time
    pub blocks: Vec<Block>,
    /// bytes by status, every status once
    pub bytes: BTreeMap<Status, u64>,
    /// the same bytes, counted from what disks answered
    pub answers: Answers,
}

impl Known {
    /// The pages of a list that another tool made, and under which device it names the file system of the recording's files,
    /// where these are of a map: that knows no number of its partition, so that is the one with most of its inodes.
    pub fn of_pages(recording: &IoRecording, ranges: &[PageRange]) -> (Self, Option<Device>) {
        let mapped = recording.told.block_map.and(recording.files.first()).map(|file| file.device);
        let inodes: HashSet<u64> = recording.files.iter().map(|file| file.inode).collect();
        let mut common: BTreeMap<Device, HashSet<u64>> = BTreeMap::new();
        for range in ranges.iter().filter(|range| inodes.contains(&range.inode)) {
            common.entry(range.device).or_default().insert(range.inode);
        }
        let named =
            mapped.and(common.into_iter().max_by_key(|(_, inodes)| inodes.len()).map(|(device, _)| device));
        let mut files: HashMap<(Device, u64), Vec<(u64, u64)>> = HashMap::new();
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
        (Known { files, ..Known::default() }, named)
    }
}

/// Holds a recording against what a trace knows.
pub fn coverage(recording: &IoRecording, known: &Known) -> Coverage {
    let held = Held {
        map: DiskMap::new(recording),
        needed: needed(recording),
        tells_uses: recording.events.iter().any(|event| event.kind.is_use()),
        known,
        begin: recording.events.iter().find(|event| event.kind == IoKind::Exec).map(|event| event.at),
        begun: recording.told.begun,
        programs: Programs::of(recording),
    };
    let (reads, answers) = reads(recording);
    let bytes = STATUSES.map(|(status, _)| (status, 0)).into();
    let mut found = Coverage { bytes, answers, ..Coverage::default() };
    for event in &reads {
        for piece in held.map.pieces(event).into_iter().flat_map(|piece| held.split(event.device, piece)) {
            let block = held.block(event, &piece);
            *found.bytes.entry(block.status).or_default() += block.sectors * SECTOR;
            add(&mut found.blocks, block);
        }
    }
    found
}

/// What a recording is held against.
struct Held<'a> {
    map: DiskMap<'a>,
    needed: HashMap<(Device, u64), Runs>,
    /// whether it was recorded which pages were needed
    tells_uses: bool,
    known: &'a Known,
    /// when the first program was started; none where none was seen, and then nothing is before it
    begin: Option<Nanos>,
    begun: Nanos,
    programs: Programs<'a>,
}

impl Held<'_> {
    fn block(&self, event: &IoEvent, piece: &Piece<'_>) -> Block {
        let status = match self.begin {
            Some(begin) if event.at < begin => Status::Before,
            _ => self.status(event.device, piece),
        };
        let (file, name) = match piece.owner {
            Some(Owner::File(file, page)) => {
                (Some((file.inode, page)), file.path.clone().unwrap_or_default())
            }
            Some(Owner::Metadata(class)) => (None, class.name().to_owned()),
            None => (None, String::new()),
        };
        let program = self.programs.name(event.pid, event.at);
        Block {
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

    fn is_traced(&self, disk: Device, sector: u64) -> bool {
        self.known.sectors.get(&disk).is_some_and(|sectors| sectors.contains(sector))
    }

    /// A piece, parted where the trace begins or ends to know its sectors.
    fn split<'a>(&self, disk: Device, piece: Piece<'a>) -> Vec<Piece<'a>> {
        let mut parts: Vec<Piece<'a>> = Vec::new();
        let mut before = None;
        for sector in piece.sector..piece.end {
            let is_traced = self.is_traced(disk, sector);
            match parts.last_mut().filter(|_| before == Some(is_traced)) {
                Some(last) => last.end = sector + 1,
                None => parts.push(Piece { sector, end: sector + 1, ..piece }),
            }
            before = Some(is_traced);
        }
        parts
    }

    fn status(&self, disk: Device, piece: &Piece<'_>) -> Status {
        let is_traced = self.is_traced(disk, piece.sector);
        match piece.owner {
            _ if is_traced => Status::Found,
            Some(Owner::File(file, page)) => {
                let has = |all: &HashMap<(Device, u64), Runs>| {
                    all.get(&(file.device, file.inode)).is_some_and(|runs| runs.contains(page))
                };
                match () {
                    () if has(&self.known.files) => Status::Found,
                    () if file.class == FileClass::Directory => Status::Metadata,
                    () if !self.tells_uses => Status::NotInTrace,
                    () if has(&self.needed) => Status::Missing,
                    () => Status::ReadAround,
                }
            }
            Some(Owner::Metadata(_)) => Status::Metadata,
            None => Status::Unknown,
        }
    }
}

fn needed(recording: &IoRecording) -> HashMap<(Device, u64), Runs> {
    let mut all: HashMap<(Device, u64), Vec<(u64, u64)>> = HashMap::new();
    for event in recording.events.iter().filter(|event| event.kind.is_use()) {
        all.entry((event.device, event.inode)).or_default().push((event.first, event.count));
    }
    all.into_iter().map(|(file, runs)| (file, runs.into_iter().collect())).collect()
}

/// Neighbours of one request, file and status are one line.
fn add(all: &mut Vec<Block>, next: Block) {
    let joins = |last: &Block| {
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
