//! Whose a sector of a disk is: a file's, with its page; a file system's own, with its class; nobody's that is known.

use std::collections::{BTreeMap, HashMap};

use perflab_model::io::{
    Device, FileClass, IoEvent, IoFile, IoKind, IoRecording, MetadataClass, PAGE, Runs, SECTOR,
};

/// Sectors of a 4 KiB block.
pub(super) const BLOCK: u64 = PAGE / SECTOR;

/// Stretches that may begin within another one, at most: a block of a folder is told of by itself, too.
const NESTED: usize = 16;

/// Whose a part of a disk is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner<'a> {
    /// this page of this file
    File(&'a IoFile, u64),
    /// a file system's own
    Metadata(MetadataClass),
}

/// A part of a request: a page of a file, or a 4 KiB block, or less of either.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) sector: u64,
    pub(super) end: u64,
    pub(super) owner: Option<Owner<'a>>,
}

/// A stretch of a disk: its end, and what lies there; of a file, the byte of it with which the stretch begins.
#[derive(Debug, Clone, Copy)]
struct Stretch<'a> {
    end: u64,
    of: Of<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Of<'a> {
    File(&'a IoFile, u64),
    Metadata(MetadataClass),
}

/// All stretches of all disks that a recording knows.
#[derive(Debug, Default)]
pub(super) struct DiskMap<'a> {
    stretches: HashMap<Device, BTreeMap<u64, Stretch<'a>>>,
    /// sectors of disks themselves that came into memory, first and end: only a file system's own do
    own: HashMap<Device, BTreeMap<u64, u64>>,
}

impl<'a> DiskMap<'a> {
    /// Files over metadata: ext4 calls what it cannot name more closely nothing at all.
    pub(super) fn new(recording: &'a IoRecording) -> Self {
        let mut map = DiskMap { own: own(recording), ..DiskMap::default() };
        let told = &recording.told;
        for range in &told.metadata {
            for place in told.places(range.device, range.physical, range.length) {
                map.add(place.disk, place.physical, place.length, Of::Metadata(range.class));
            }
        }
        for file in &recording.files {
            for extent in &file.extents {
                for place in told.places(file.device, extent.physical, extent.length) {
                    map.add(
                        place.disk,
                        place.physical,
                        place.length,
                        Of::File(file, extent.logical + place.skipped),
                    );
                }
            }
        }
        map
    }

    fn add(&mut self, disk: Device, from: u64, length: u64, of: Of<'a>) {
        let end = from.saturating_add(length);
        self.stretches.entry(disk).or_default().insert(from, Stretch { end, of });
    }

    /// A request, in pieces with one owner each.
    pub(super) fn pieces(&self, event: &IoEvent) -> Vec<Piece<'a>> {
        let (mut sector, end) = (event.first, event.first.saturating_add(event.count));
        let mut pieces = Vec::new();
        while sector < end {
            let next = self.boundary(event.device, sector).min(end);
            let owner = self.owner(event, sector * SECTOR);
            pieces.push(Piece { sector, end: next, owner });
            sector = next;
        }
        pieces
    }

    /// Where the page of a file, or the 4 KiB of a disk, ends that a sector lies in, or something else begins: partitions and
    /// small blocks of file systems put pages off the 4 KiB grid of the disk.
    fn boundary(&self, disk: Device, sector: u64) -> u64 {
        let block = (sector / BLOCK + 1) * BLOCK;
        let end = match self.stretch(disk, sector * SECTOR) {
            Some((from, Stretch { end, of: Of::File(_, logical) })) => {
                let inside = (logical + sector * SECTOR - from) % PAGE;
                (sector + (PAGE - inside) / SECTOR).min(end / SECTOR)
            }
            Some((_, Stretch { end, .. })) => block.min(end / SECTOR),
            None => block.min(self.own_boundary(disk, sector)),
        };
        end.min(self.next(disk, sector)).max(sector + 1)
    }

    /// The first sector behind this one with which a stretch begins.
    fn next(&self, disk: Device, sector: u64) -> u64 {
        let behind = self.stretches.get(&disk).and_then(|all| all.range((sector + 1) * SECTOR..).next());
        behind.map_or(u64::MAX, |(from, _)| from / SECTOR)
    }

    /// Where the sectors end that came into memory as the disk's own, or, outside of them, begin.
    fn own_boundary(&self, disk: Device, sector: u64) -> u64 {
        let Some(own) = self.own.get(&disk) else { return u64::MAX };
        let around = own.range(..=sector).next_back().map(|(_, end)| *end).filter(|end| sector < *end);
        around.or_else(|| own.range(sector..).next().map(|(first, _)| *first)).unwrap_or(u64::MAX)
    }

    /// The stretch that a byte lies in, and where it begins.
    fn stretch(&self, disk: Device, byte: u64) -> Option<(u64, Stretch<'a>)> {
        let before = self.stretches.get(&disk)?.range(..=byte).rev().take(NESTED);
        before.into_iter().find(|(_, stretch)| byte < stretch.end).map(|(from, stretch)| (*from, *stretch))
    }

    fn owner(&self, event: &IoEvent, byte: u64) -> Option<Owner<'a>> {
        let disk = event.device;
        match self.stretch(disk, byte) {
            Some((from, Stretch { of: Of::File(file, logical), .. })) => {
                Some(Owner::File(file, (logical + byte - from) / PAGE))
            }
            Some((_, Stretch { of: Of::Metadata(class), .. })) => Some(Owner::Metadata(class)),
            // File systems that do not list their own blocks say of the request that it is for such.
            None if event.name.as_deref().is_some_and(|flags| flags.contains('M')) => {
                Some(Owner::Metadata(MetadataClass::Tree))
            }
            None => self
                .own
                .get(&disk)
                .and_then(|own| own.range(..=byte / SECTOR).next_back())
                .filter(|(_, end)| byte / SECTOR < **end)
                .map(|_| Owner::Metadata(MetadataClass::Tree)),
        }
    }
}

/// Sectors of disks themselves that came into memory, by the disk that requests name.
fn own(recording: &IoRecording) -> HashMap<Device, BTreeMap<u64, u64>> {
    let mut all: HashMap<Device, BTreeMap<u64, u64>> = HashMap::new();
    for file in recording.files.iter().filter(|file| file.class == FileClass::Disk) {
        let Ok(device) = u32::try_from(file.inode) else { continue };
        let added = recording.events.iter().filter(|event| event.kind == IoKind::Added);
        let pages: Runs = added
            .filter(|event| event.device == file.device && event.inode == file.inode)
            .map(|event| (event.first, event.count))
            .collect();
        for (first, count) in pages.iter() {
            for place in
                recording.told.places(Device(device), first.saturating_mul(PAGE), count.saturating_mul(PAGE))
            {
                let first = place.physical / SECTOR;
                all.entry(place.disk).or_default().insert(first, first + place.length / SECTOR);
            }
        }
    }
    all
}
