//! Who owns a sector of a disk: a file (with the page), a file system's metadata (with its class), or nobody known.

use std::collections::{BTreeMap, HashMap};

use perflab_model::PageSet;
use perflab_model::io_trace::{
    DeviceNumber, FileClass, IoEvent, IoEventKind, IoFile, IoRecording, MetadataClass, PAGE, SECTOR,
};

/// Sectors of a 4 KiB block.
pub(crate) const BLOCK: u64 = PAGE / SECTOR;

/// Extents that may begin within another one, at most: a block of a folder is listed by itself, too.
const NESTED: usize = 16;

/// Whose a part of a disk is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BlockOwner<'a> {
    /// this page of this file
    File(&'a IoFile, u64),
    /// a file system's own
    Metadata(MetadataClass),
}

/// A part of a request: a page of a file, or a 4 KiB block, or less of either.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnedSectors<'a> {
    pub(crate) sector: u64,
    pub(crate) end: u64,
    pub(crate) owner: Option<BlockOwner<'a>>,
}

/// An extent of a disk: its end, and what lies there; of a file, the byte of it with which the extent begins.
#[derive(Debug, Clone, Copy)]
struct DiskExtent<'a> {
    end: u64,
    of: ExtentOwner<'a>,
}

#[derive(Debug, Clone, Copy)]
enum ExtentOwner<'a> {
    File(&'a IoFile, u64),
    Metadata(MetadataClass),
}

/// All extents of all disks that a recording knows.
#[derive(Debug, Default)]
pub(crate) struct BlockOwners<'a> {
    extents: HashMap<DeviceNumber, BTreeMap<u64, DiskExtent<'a>>>,
    /// sectors of disks themselves that came into memory, first and end: only a file system's own do
    own: HashMap<DeviceNumber, BTreeMap<u64, u64>>,
}

impl<'a> BlockOwners<'a> {
    /// Files over metadata: ext4 calls what it cannot name more closely nothing at all.
    pub(crate) fn new(recording: &'a IoRecording) -> Self {
        let mut map = BlockOwners { own: metadata_blocks(recording), ..BlockOwners::default() };
        let summary = &recording.summary;
        for range in &summary.metadata {
            for place in summary.disk_ranges(range.device, range.physical, range.length) {
                map.add_extent(place.disk, place.physical, place.length, ExtentOwner::Metadata(range.class));
            }
        }
        for file in &recording.files {
            for extent in &file.extents {
                for place in summary.disk_ranges(file.device, extent.physical, extent.length) {
                    map.add_extent(
                        place.disk,
                        place.physical,
                        place.length,
                        ExtentOwner::File(file, extent.logical + place.skipped),
                    );
                }
            }
        }
        map
    }

    fn add_extent(&mut self, disk: DeviceNumber, from: u64, length: u64, of: ExtentOwner<'a>) {
        let end = from.saturating_add(length);
        self.extents.entry(disk).or_default().insert(from, DiskExtent { end, of });
    }

    /// A request, in pieces with one owner each.
    pub(crate) fn split_by_owner(&self, event: &IoEvent) -> Vec<OwnedSectors<'a>> {
        let (mut sector, end) = (event.first, event.first.saturating_add(event.count));
        let mut pieces = Vec::new();
        while sector < end {
            let next = self.next_boundary(event.device, sector).min(end);
            let owner = self.owner_at(event, sector * SECTOR);
            pieces.push(OwnedSectors { sector, end: next, owner });
            sector = next;
        }
        pieces
    }

    /// Where the page of a file, or the 4 KiB of a disk, ends that a sector lies in, or something else begins: partitions and
    /// small blocks of file systems put pages off the 4 KiB grid of the disk.
    fn next_boundary(&self, disk: DeviceNumber, sector: u64) -> u64 {
        let block = (sector / BLOCK + 1) * BLOCK;
        let end = match self.extent_at(disk, sector * SECTOR) {
            Some((from, DiskExtent { end, of: ExtentOwner::File(_, logical) })) => {
                let inside = (logical + sector * SECTOR - from) % PAGE;
                (sector + (PAGE - inside) / SECTOR).min(end / SECTOR)
            }
            Some((_, DiskExtent { end, .. })) => block.min(end / SECTOR),
            None => block.min(self.metadata_boundary(disk, sector)),
        };
        end.min(self.next_extent_start(disk, sector)).max(sector + 1)
    }

    /// The first sector behind this one with which an extent begins.
    fn next_extent_start(&self, disk: DeviceNumber, sector: u64) -> u64 {
        let behind = self.extents.get(&disk).and_then(|all| all.range((sector + 1) * SECTOR..).next());
        behind.map_or(u64::MAX, |(from, _)| from / SECTOR)
    }

    /// Where the sectors end that came into memory as the disk's own, or, outside of them, begin.
    fn metadata_boundary(&self, disk: DeviceNumber, sector: u64) -> u64 {
        let Some(own) = self.own.get(&disk) else { return u64::MAX };
        let around = own.range(..=sector).next_back().map(|(_, end)| *end).filter(|end| sector < *end);
        around.or_else(|| own.range(sector..).next().map(|(first, _)| *first)).unwrap_or(u64::MAX)
    }

    /// The extent that a byte lies in, and where it begins.
    fn extent_at(&self, disk: DeviceNumber, byte: u64) -> Option<(u64, DiskExtent<'a>)> {
        let before = self.extents.get(&disk)?.range(..=byte).rev().take(NESTED);
        before.into_iter().find(|(_, extent)| byte < extent.end).map(|(from, extent)| (*from, *extent))
    }

    fn owner_at(&self, event: &IoEvent, byte: u64) -> Option<BlockOwner<'a>> {
        let disk = event.device;
        match self.extent_at(disk, byte) {
            Some((from, DiskExtent { of: ExtentOwner::File(file, logical), .. })) => {
                Some(BlockOwner::File(file, (logical + byte - from) / PAGE))
            }
            Some((_, DiskExtent { of: ExtentOwner::Metadata(class), .. })) => {
                Some(BlockOwner::Metadata(class))
            }
            // File systems that do not list their own blocks say of the request that it is for such.
            None if event.name.as_deref().is_some_and(|flags| flags.contains('M')) => {
                Some(BlockOwner::Metadata(MetadataClass::Tree))
            }
            None => self
                .own
                .get(&disk)
                .and_then(|own| own.range(..=byte / SECTOR).next_back())
                .filter(|(_, end)| byte / SECTOR < **end)
                .map(|_| BlockOwner::Metadata(MetadataClass::Tree)),
        }
    }
}

/// Sectors of disks themselves that came into memory, by the disk that requests name.
fn metadata_blocks(recording: &IoRecording) -> HashMap<DeviceNumber, BTreeMap<u64, u64>> {
    let mut all: HashMap<DeviceNumber, BTreeMap<u64, u64>> = HashMap::new();
    for file in recording.files.iter().filter(|file| file.class == FileClass::Disk) {
        let Ok(device) = u32::try_from(file.inode) else { continue };
        let added = recording.events.iter().filter(|event| event.kind == IoEventKind::Added);
        let pages: PageSet = added
            .filter(|event| event.device == file.device && event.inode == file.inode)
            .map(|event| (event.first, event.count))
            .collect();
        for (first, count) in pages.iter() {
            for place in recording.summary.disk_ranges(
                DeviceNumber(device),
                first.saturating_mul(PAGE),
                count.saturating_mul(PAGE),
            ) {
                let first = place.physical / SECTOR;
                all.entry(place.disk).or_default().insert(first, first + place.length / SECTOR);
            }
        }
    }
    all
}
