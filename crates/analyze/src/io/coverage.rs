//! Block reads held against a prefetch trace, block by block of 4 KiB, so that what the trace lacks is seen by its reason.
//!
//! Every block that a disk was asked for gets exactly one [`Status`], so the classes sum to the bytes that the disk
//! delivered; that is a check on the analysis itself, and [`Coverage::delivered`] is counted apart from them.

use std::collections::{BTreeMap, HashMap};

use perflab_model::Nanos;
use perflab_model::io::{
    Device, FileClass, IoEvent, IoFile, IoKind, IoRecording, MetadataClass, PAGE, Runs, SECTOR,
};

/// What a prefetch trace would have brought: pages of files, and 4 KiB blocks of disks.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// pages by file
    pub files: HashMap<(Device, u64), Runs>,
    /// blocks by disk
    pub blocks: HashMap<Device, Runs>,
}

/// What a block that was read is to the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// the trace has it
    Found,
    /// it was needed, and the trace lacks it
    Missing,
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
pub const STATUSES: [(Status, &str); 6] = [
    (Status::Found, "found"),
    (Status::Missing, "missing"),
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
    /// bytes that disks delivered while tracing, counted from their answers
    pub delivered: u64,
    /// bytes that disks were asked for
    pub asked: u64,
}

/// A stretch of a disk and whose it is.
#[derive(Debug, Clone, Copy)]
struct Owned<'a> {
    end: u64,
    owner: Owner<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Owner<'a> {
    File(&'a IoFile, u64),
    Metadata(MetadataClass),
}

/// Holds a recording against what a trace knows.
pub fn coverage(recording: &IoRecording, known: &Known) -> Coverage {
    let begin = recording.events.iter().find(|event| event.kind == IoKind::Exec).map(|event| event.at);
    let needed = needed(recording);
    let map = disk_map(recording);
    let mut found = Coverage { bytes: STATUSES.map(|(status, _)| (status, 0)).into(), ..Coverage::default() };
    for event in recording.events.iter().filter(|event| event.is_disk_read()) {
        found.asked += event.count * SECTOR;
        let mut sector = event.first;
        let end = event.first + event.count;
        while sector < end {
            let next = boundary(&map, event.device, sector).min(end);
            let block = one(event, (sector, next), &map, &needed, known, begin, recording.told.begun);
            *found.bytes.entry(block.status).or_default() += (next - sector) * SECTOR;
            add(&mut found.blocks, block);
            sector = next;
        }
    }
    let answers = recording.events.iter().filter(|event| event.kind == IoKind::Completed);
    let read = answers.filter(|event| event.name.as_deref().is_some_and(|flags| flags.starts_with('R')));
    found.delivered = read.map(|event| event.count * SECTOR).sum();
    found
}

/// Where the page of a file, or the 4 KiB of a disk, ends that a sector lies in: pages need not lie on such bounds of the
/// disk, where a file system has smaller blocks.
fn boundary(map: &DiskMap<'_>, disk: Device, sector: u64) -> u64 {
    let block = (sector / BLOCK + 1) * BLOCK;
    match owner(map, disk, sector * SECTOR) {
        Some((from, Owned { end, owner: Owner::File(_, logical) })) => {
            let inside = (logical + sector * SECTOR - from) % PAGE;
            (sector + (PAGE - inside) / SECTOR).min(end / SECTOR).max(sector + 1)
        }
        _ => block,
    }
}

/// Whose a byte of a disk is, and where the stretch begins.
fn owner<'a>(map: &DiskMap<'a>, disk: Device, byte: u64) -> Option<(u64, Owned<'a>)> {
    let (from, owned) = map.get(&disk)?.range(..=byte).next_back()?;
    (byte < owned.end).then_some((*from, *owned))
}

/// Sectors of a 4 KiB block.
const BLOCK: u64 = PAGE / SECTOR;

fn needed(recording: &IoRecording) -> HashMap<(Device, u64), Runs> {
    let mut all: HashMap<(Device, u64), Vec<(u64, u64)>> = HashMap::new();
    for event in recording.events.iter().filter(|event| event.kind.is_use()) {
        all.entry((event.device, event.inode)).or_default().push((event.first, event.count));
    }
    all.into_iter().map(|(file, runs)| (file, runs.into_iter().collect())).collect()
}

type DiskMap<'a> = HashMap<Device, BTreeMap<u64, Owned<'a>>>;

/// Files over metadata: ext4 calls what it cannot name more closely nothing at all.
fn disk_map(recording: &IoRecording) -> DiskMap<'_> {
    let mut map: DiskMap<'_> = HashMap::new();
    for range in &recording.told.metadata {
        let (disk, start) = recording.told.disk(range.device);
        let from = start + range.physical;
        let owned = Owned { end: from + range.length, owner: Owner::Metadata(range.class) };
        map.entry(disk).or_default().insert(from, owned);
    }
    for file in &recording.files {
        let (disk, start) = recording.told.disk(file.device);
        for extent in &file.extents {
            let from = start + extent.physical;
            let owned = Owned { end: from + extent.length, owner: Owner::File(file, extent.logical) };
            map.entry(disk).or_default().insert(from, owned);
        }
    }
    map
}

fn one(
    event: &IoEvent,
    (sector, end): (u64, u64),
    map: &DiskMap<'_>,
    needed: &HashMap<(Device, u64), Runs>,
    known: &Known,
    begin: Option<Nanos>,
    begun: Nanos,
) -> Block {
    let byte = sector * SECTOR;
    let owned = owner(map, event.device, byte);
    let traced = known.blocks.get(&event.device).is_some_and(|blocks| blocks.contains(byte / PAGE));
    let (status, file, name) = match owned {
        Some((from, Owned { owner: Owner::File(file, logical), .. })) => {
            let page = (logical + byte - from) / PAGE;
            let key = (file.device, file.inode);
            let has = |all: &HashMap<_, Runs>| all.get(&key).is_some_and(|runs| runs.contains(page));
            let status = match () {
                () if has(&known.files) || traced => Status::Found,
                () if file.class == FileClass::Directory => Status::Metadata,
                () if has(needed) => Status::Missing,
                () => Status::ReadAround,
            };
            (status, Some((file.inode, page)), file.path.clone().unwrap_or_default())
        }
        Some((_, Owned { owner: Owner::Metadata(class), .. })) => {
            (if traced { Status::Found } else { Status::Metadata }, None, class_name(class).to_owned())
        }
        None => (if traced { Status::Found } else { Status::Unknown }, None, String::new()),
    };
    let status = if begin.is_none_or(|begin| event.at < begin) { Status::Before } else { status };
    let (at, pid, disk) = (event.at.since(begun), event.pid, event.device);
    Block { at, disk, sector, sectors: end - sector, pid, status, file, name }
}

fn class_name(class: MetadataClass) -> &'static str {
    match class {
        MetadataClass::Superblock => "superblock and groups",
        MetadataClass::Bitmap => "bitmap",
        MetadataClass::InodeTable => "inode table",
        MetadataClass::Journal => "journal",
        MetadataClass::Directory => "directory",
        MetadataClass::Tree => "tree",
    }
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
