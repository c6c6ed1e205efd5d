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
    /// pages of disks themselves that came into memory: only a file system's own do
    own: HashMap<Device, Runs>,
}

impl<'a> DiskMap<'a> {
    /// Files over metadata: ext4 calls what it cannot name more closely nothing at all.
    pub(super) fn new(recording: &'a IoRecording) -> Self {
        let mut map = DiskMap { own: own(recording), ..DiskMap::default() };
        let told = &recording.told;
        for range in &told.metadata {
            let (disk, start) = told.disk(range.device);
            map.add(disk, start + range.physical, range.length, Of::Metadata(range.class));
        }
        for file in &recording.files {
            let (disk, start) = told.disk(file.device);
            for extent in &file.extents {
                map.add(disk, start + extent.physical, extent.length, Of::File(file, extent.logical));
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

    /// Where the page of a file, or the 4 KiB of a disk, ends that a sector lies in: pages need not lie on such bounds of
    /// the disk, where a file system has smaller blocks.
    fn boundary(&self, disk: Device, sector: u64) -> u64 {
        let block = (sector / BLOCK + 1) * BLOCK;
        match self.stretch(disk, sector * SECTOR) {
            Some((from, Stretch { end, of: Of::File(_, logical) })) => {
                let inside = (logical + sector * SECTOR - from) % PAGE;
                (sector + (PAGE - inside) / SECTOR).min(end / SECTOR).max(sector + 1)
            }
            Some((_, Stretch { end, .. })) => block.min(end / SECTOR).max(sector + 1),
            None => block,
        }
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
                .filter(|pages| pages.contains(byte / PAGE))
                .map(|_| Owner::Metadata(MetadataClass::Tree)),
        }
    }
}

/// Pages of disks themselves that came into memory, by the disk that requests name.
fn own(recording: &IoRecording) -> HashMap<Device, Runs> {
    let disks = recording.files.iter().filter(|file| file.class == FileClass::Disk);
    let of = |file: &IoFile| {
        let (disk, start) = recording.told.disk(Device(u32::try_from(file.inode).ok()?));
        let added = recording.events.iter().filter(|event| event.kind == IoKind::Added);
        let own = added.filter(|event| event.device == file.device && event.inode == file.inode);
        Some((disk, own.map(|event| (event.first + start / PAGE, event.count)).collect()))
    };
    disks.filter_map(of).collect()
}
