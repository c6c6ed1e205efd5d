//! Maps from the blocks of a file system to its files, as e2block2file (2007) wrote them of the blocks that a trace had asked
//! for: a file's line (`PATH (ino N):`, or `Inode N:` without names), and below it `BLOCK+COUNT OFFSET` for each extent; or,
//! with `-t`, a line an extent, `BLOCK+COUNT OFFSET INO N PATH`. All count blocks of the file system from its beginning. A
//! negative offset is that of a block that says where others lie.
//!
//! Owns the format, and where on the disk the file system begins, which a map does not say: a map lists only blocks that were
//! asked for, so of all places the right one is where they are among the requests.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use perflab_model::Bytes;
use perflab_model::io::{
    DeviceNumber, DiskPartition, FileClass, FileExtent, ImportedBlockMap, IoEvent, IoEventKind, IoFile,
    IoRecording, MetadataClass, MetadataRange, PageSet, SECTOR,
};

use super::super::lines::InputLines;
use super::super::took::{FileReport, LineOutcome};
use super::END_OF_DISKS;
use crate::ArchiveError;

/// A map, and what is known of the file system that it is of.
#[derive(Debug, Clone, Default)]
pub struct BlockMapFile {
    /// the map
    pub path: PathBuf,
    /// first sector (512 bytes) of the file system on the disk that requests name; found by the requests where left out
    pub partition_start: Option<u64>,
    /// bytes of a block of the file system; found by the requests where left out
    pub block_size: Option<Bytes>,
}

/// Sizes of blocks that ext file systems have, the most usual first.
const BLOCK_SIZES: [u64; 3] = [4096, 1024, 2048];
/// Numbers from this on are no blocks of any file system: of the smallest they are 16 PiB.
const BLOCKS: u64 = 1 << 44;
/// How many extents, the longest, and how many requests are held against each other for where a file system begins.
const TRIED: (usize, usize) = (32, 4096);
/// How many of the beginnings that fit most often are looked at closely.
const CLOSELY: usize = 8;
/// The share of a map's blocks that must have been asked for, or it is of another trace.
const ENOUGH: f64 = 0.9;

/// An extent of a map: blocks of the file system, whose, and where in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MappedExtent {
    first: u64,
    count: u64,
    inode: u64,
    /// in blocks; negative of a block that says where others lie
    offset: i64,
}

/// What stands in a map.
#[derive(Debug, Default)]
struct BlockMapText {
    extents: Vec<MappedExtent>,
    paths: BTreeMap<u64, String>,
}

/// Where a map's file system lies, and which share of its blocks was asked for there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FileSystemPlacement {
    disk: DeviceNumber,
    /// in sectors
    start: u64,
    block_size: u64,
    share: f64,
}

/// Gives a recording the files of a map.
pub(super) fn add_block_map(
    recording: &mut IoRecording,
    file: &BlockMapFile,
) -> Result<FileReport, ArchiveError> {
    let (map, mut took) = read_block_map(&file.path)?;
    if map.extents.is_empty() {
        let reason = "it is no map from blocks to files: e2block2file writes `PATH (ino N):`, then lines of `BLOCK+COUNT OFFSET`";
        return Err(ArchiveError::not_importable(&file.path, None, reason));
    }
    let found = locate_file_system(recording, &map, file).filter(|found| found.share > 0.0);
    let given = file.partition_start.is_some();
    let Some(found) = found.filter(|found| given || found.share >= ENOUGH) else {
        let reason = format!(
            "its blocks are not those that the trace asked for{}: it is of another trace, or --partition-start and \
             --block-size must say where its file system begins on the disk",
            found.map_or(String::new(), |best| format!(", at best {:.0} % of them", best.share * 100.0)),
        );
        return Err(ArchiveError::not_importable(&file.path, None, reason));
    };
    if !given || found.share < ENOUGH {
        let how = if given { "as was said" } else { "found by the requests" };
        took.add_note(format!(
            "the file system begins at sector {} of {} and has blocks of {} bytes, {how}: {:.1} % of the map's blocks were asked for there",
            found.start,
            found.disk,
            found.block_size,
            found.share * 100.0
        ));
    }
    add_mapped_files(recording, map, found);
    Ok(took)
}

fn read_block_map(path: &Path) -> Result<(BlockMapText, FileReport), ArchiveError> {
    let (mut map, mut took) = (BlockMapText::default(), FileReport::new(path, "io"));
    let mut lines = InputLines::open(path)?;
    let mut inode = None;
    while let Some(line) = lines.next_line()? {
        let (number, text) = (line.number, line.text);
        let read = match parse_block_map_line(text, inode) {
            None if text.trim().is_empty() => LineOutcome::Nothing,
            None => LineOutcome::Unusable("it is no line of a map of e2block2file".into()),
            Some(BlockMapLine::Unmapped) => LineOutcome::Nothing,
            Some(BlockMapLine::File(number, name)) => {
                inode = Some(number);
                name.into_iter().for_each(|name| drop(map.paths.insert(number, name.into())));
                LineOutcome::Nothing
            }
            Some(BlockMapLine::Extent(extent, name)) => {
                name.into_iter().for_each(|name| drop(map.paths.insert(extent.inode, name.into())));
                map.extents.push(extent);
                LineOutcome::Used
            }
        };
        took.count_row(number, read);
    }
    took.note_early_end(&lines);
    Ok((map, took))
}

/// A line, understood.
#[derive(Debug, PartialEq)]
enum BlockMapLine<'a> {
    File(u64, Option<&'a str>),
    Extent(MappedExtent, Option<&'a str>),
    /// blocks that belong to no file
    Unmapped,
}

/// `inode` is that of the last file's line, which extents of the long form belong to.
fn parse_block_map_line(text: &str, inode: Option<u64>) -> Option<BlockMapLine<'_>> {
    if let Some(extent) = parse_mapped_extent(text.trim_start(), inode) {
        return Some(extent);
    }
    if let Some(number) = text.strip_prefix("Inode ") {
        return Some(BlockMapLine::File(number.strip_suffix(':')?.parse().ok()?, None));
    }
    let (path, number) = text.rsplit_once(" (ino ")?;
    Some(BlockMapLine::File(number.strip_suffix("):")?.parse().ok()?, Some(path)))
}

/// `3751+134 2950`, `3885+1 -12336`, `3751+8 2950 INO 8 /path`, `3751+8 unmapped`
fn parse_mapped_extent(text: &str, inode: Option<u64>) -> Option<BlockMapLine<'_>> {
    let (blocks, rest) = text.split_once(' ')?;
    let (first, count) = blocks.split_once('+')?;
    let (first, count): (u64, u64) = (first.parse().ok()?, count.parse().ok()?);
    if first >= BLOCKS || count == 0 || count >= BLOCKS {
        return None;
    }
    if rest.trim_end() == "unmapped" {
        return Some(BlockMapLine::Unmapped);
    }
    let (offset, owner) =
        rest.split_once(" INO ").map_or((rest, None), |(offset, owner)| (offset, Some(owner)));
    let (inode, name) = match owner.map(|owner| owner.split_once(' ').unwrap_or((owner, ""))) {
        Some((number, name)) => (number.trim_end().parse().ok()?, Some(name).filter(|name| !name.is_empty())),
        None => (inode?, None),
    };
    let offset: i64 = offset.trim_end().parse().ok()?;
    let extent = MappedExtent { first, count, inode, offset };
    (offset.unsigned_abs() < BLOCKS).then_some(BlockMapLine::Extent(extent, name))
}

/// Where most of a map's blocks were asked for.
fn locate_file_system(
    recording: &IoRecording,
    map: &BlockMapText,
    file: &BlockMapFile,
) -> Option<FileSystemPlacement> {
    let sizes =
        file.block_size.map_or_else(|| BLOCK_SIZES.to_vec(), |size| vec![size.0.clamp(SECTOR, 1 << 16)]);
    let mut best: Option<FileSystemPlacement> = None;
    for (disk, requests) in requests_by_disk(recording) {
        let asked: PageSet = requests.iter().map(|event| (event.first, event.count)).collect();
        for block_size in &sizes {
            let starts = match file.partition_start {
                Some(start) => vec![start],
                None => likely_starts(&requests, map, block_size / SECTOR),
            };
            for start in starts {
                let share = share_requested(&asked, map, start, block_size / SECTOR);
                if start < END_OF_DISKS && best.is_none_or(|best| share > best.share) {
                    best = Some(FileSystemPlacement { disk, start, block_size: *block_size, share });
                }
            }
        }
    }
    best
}

fn requests_by_disk(recording: &IoRecording) -> BTreeMap<DeviceNumber, Vec<&IoEvent>> {
    let mut all: BTreeMap<DeviceNumber, Vec<&IoEvent>> = BTreeMap::new();
    let is_request =
        |event: &&IoEvent| matches!(event.kind, IoEventKind::Queued | IoEventKind::Issued) && event.count > 0;
    recording
        .events
        .iter()
        .filter(is_request)
        .for_each(|event| all.entry(event.device).or_default().push(event));
    all
}

/// Beginnings of the file system with which most of the longest extents begin where requests do.
fn likely_starts(requests: &[&IoEvent], map: &BlockMapText, sectors: u64) -> Vec<u64> {
    let mut longest = map.extents.clone();
    longest.sort_by_key(|extent| std::cmp::Reverse(extent.count));
    let mut votes: HashMap<u64, usize> = HashMap::new();
    for extent in longest.iter().take(TRIED.0) {
        let starts =
            requests.iter().take(TRIED.1).filter_map(|event| event.first.checked_sub(extent.first * sectors));
        starts.for_each(|start| *votes.entry(start).or_default() += 1);
    }
    let mut votes: Vec<(u64, usize)> = votes.into_iter().collect();
    votes.sort_by_key(|(start, count)| (std::cmp::Reverse(*count), *start));
    votes.into_iter().take(CLOSELY).map(|(start, _)| start).collect()
}

/// Which share of a map's blocks lies among what was asked for, if its file system begins at this sector.
fn share_requested(asked: &PageSet, map: &BlockMapText, start: u64, sectors: u64) -> f64 {
    let extents = map.extents.iter();
    let mapped: PageSet = extents
        .map(|extent| (start.saturating_add(extent.first * sectors), extent.count * sectors))
        .collect();
    mapped.intersection(asked).page_count() as f64 / mapped.page_count().max(1) as f64
}

fn add_mapped_files(recording: &mut IoRecording, map: BlockMapText, found: FileSystemPlacement) {
    // A map does not say the number of its partition: the disk's stands for it.
    let device = found.disk;
    let bytes = |blocks: u64| blocks * found.block_size;
    let mut extents: BTreeMap<u64, Vec<FileExtent>> = BTreeMap::new();
    for extent in &map.extents {
        let (physical, length) = (bytes(extent.first), bytes(extent.count));
        match u64::try_from(extent.offset) {
            Ok(offset) => extents.entry(extent.inode).or_default().push(FileExtent {
                logical: bytes(offset),
                physical,
                length,
            }),
            Err(_) => {
                let class = MetadataClass::Extents;
                recording.told.metadata.push(MetadataRange { device, physical, length, class });
            }
        }
    }
    let file = |(inode, extents): (u64, Vec<FileExtent>)| IoFile {
        device,
        inode,
        generation: None,
        class: FileClass::Other,
        path: Some(map.paths.get(&inode).cloned().unwrap_or_else(|| format!("Inode {inode}"))),
        size: 0,
        changed: 0,
        extents,
    };
    recording.files.extend(extents.into_iter().map(file));
    let told = &mut recording.told;
    told.partitions.push(DiskPartition { device, disk: found.disk, start: found.start * SECTOR });
    told.block_map = Some(ImportedBlockMap { block_size: found.block_size });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_forms_are_understood() {
        let extent = |first, count, inode, offset| MappedExtent { first, count, inode, offset };
        let all = [
            ("Inode 8:", Some(BlockMapLine::File(8, None))),
            ("/a (b)/c (ino 3) (ino 77):", Some(BlockMapLine::File(77, Some("/a (b)/c (ino 3)")))),
            ("  3751+134 2950", Some(BlockMapLine::Extent(extent(3751, 134, 5, 2950), None))),
            ("  3885+1 -12336", Some(BlockMapLine::Extent(extent(3885, 1, 5, -12336), None))),
            ("10+2 4 INO 12 /a name", Some(BlockMapLine::Extent(extent(10, 2, 12, 4), Some("/a name")))),
            ("10+2 4 INO 12", Some(BlockMapLine::Extent(extent(10, 2, 12, 4), None))),
            ("10+2 unmapped", Some(BlockMapLine::Unmapped)),
            ("10+0 4", None),
            ("1+18446744073709551615 4", None),
            ("17592186044416+1 4", None),
            ("  1+1 word", None),
            ("2133571404", None),
            ("", None),
        ];
        for (text, expected) in all {
            assert_eq!(parse_block_map_line(text, Some(5)), expected, "{text}");
        }
        assert_eq!(parse_block_map_line("  3751+134 2950", None), None, "an extent of no file");
    }
}
