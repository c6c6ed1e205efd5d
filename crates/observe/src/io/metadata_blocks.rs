//! Which blocks a file system keeps for itself (ext4, xfs).
//!
//! It lists most of them itself (`FS_IOC_GETFSMAP`). Blocks that an ext file system does not list (directories,
//! extent maps, attributes) are known by what they begin or end with, and are read through the disk, whose pages
//! are in memory because they have just been read.

#![expect(unsafe_code, reason = "ioctls of file systems have no safe wrappers")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt as _;

use perflab_model::PageSet;
use perflab_model::io_trace::{DeviceNumber, MetadataClass, MetadataRange, PAGE};

use crate::little_endian::read_uint_at;

/// `_IOWR('X', 59, struct fsmap_head)`
const GETFSMAP: libc::c_ulong = 0xc0c0_583b;

const AT_ONCE: usize = 512;

/// Owners that are not files: bit 4 of a record's flags.
const SPECIAL: u32 = 0x10;

const LAST: u32 = 0x20;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FsmapRecord {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

#[repr(C)]
struct FsmapRequest {
    iflags: u32,
    oflags: u32,
    room: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [FsmapRecord; 2],
    records: [FsmapRecord; AT_ONCE],
}

/// Every range of metadata of the file system that `file` lies on.
pub(crate) fn list_metadata_ranges(file: &File, device: DeviceNumber) -> io::Result<Vec<MetadataRange>> {
    let mut found = Vec::new();
    let mut low = FsmapRecord::default();
    loop {
        let head = request_records(file, low)?;
        let records = head.records.get(..head.entries as usize).unwrap_or_default();
        let range = |record: &FsmapRecord| {
            let class = classify_owner(record)?;
            Some(MetadataRange { device, physical: record.physical, length: record.length, class })
        };
        records.iter().filter_map(range).for_each(|next| append_metadata_range(&mut found, next));
        match records.last() {
            Some(last) if last.flags & LAST == 0 => low = *last,
            _ => return Ok(found),
        }
    }
}

/// Neighbours of one class are one.
fn append_metadata_range(found: &mut Vec<MetadataRange>, next: MetadataRange) {
    match found.last_mut() {
        Some(last) if last.class == next.class && last.physical + last.length == next.physical => {
            last.length += next.length;
        }
        _ => found.push(next),
    }
}

fn request_records(file: &File, low: FsmapRecord) -> io::Result<Box<FsmapRequest>> {
    let high = FsmapRecord {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        ..FsmapRecord::default()
    };
    let mut head = Box::new(FsmapRequest {
        iflags: 0,
        oflags: 0,
        room: AT_ONCE as u32,
        entries: 0,
        reserved: [0; 6],
        keys: [low, high],
        records: [FsmapRecord::default(); AT_ONCE],
    });
    // SAFETY: `head` is a `struct fsmap_head` with as many records behind it as `room` says; it outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), GETFSMAP as _, &raw mut *head) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(head) }
}

/// Owners have a letter for who defined them and a number (`linux/fsmap.h`, `fs/ext4/fsmap.h`, `xfs_fs.h`).
fn classify_owner(record: &FsmapRecord) -> Option<MetadataClass> {
    if record.flags & SPECIAL == 0 {
        return None;
    }
    let (letter, number) = ((record.owner >> 32) as u8, record.owner as u32);
    Some(match (letter, number) {
        (b'X', 1 | 3) | (b'f', 1 | 2) => MetadataClass::Superblock,
        (b'X', 2) => MetadataClass::Journal,
        (b'f', 3 | 4) => MetadataClass::Bitmap,
        (b'X', 5) => MetadataClass::InodeTable,
        (b'X', 4 | 6) => MetadataClass::Tree,
        _ => return None,
    })
}

/// How an index or leaf of extents begins.
const EXTENTS: u64 = 0xf30a;

/// How attributes begin.
const ATTRIBUTES: u64 = 0xea02_0000;

/// How a directory's block ends where blocks have checksums: no inode, 12 bytes, no name, this type.
const TAIL: [u8; 8] = [0, 0, 0, 0, 12, 0, 0, 0xde];

/// The classes of pages of a disk that are in none of the ranges that are known.
pub(crate) fn classify_unlisted_blocks(
    disk: &File,
    device: DeviceNumber,
    pages: &PageSet,
    block: u64,
    is_known: impl Fn(u64) -> bool,
) -> Vec<MetadataRange> {
    let (mut found, mut page) = (Vec::new(), [0; PAGE as usize]);
    let block = block.clamp(1024, PAGE);
    let all = pages.iter().flat_map(|(first, count)| first..first + count);
    for place in all.map(|page| page * PAGE) {
        if disk.read_exact_at(&mut page, place).is_err() {
            continue;
        }
        for (at, bytes) in (place..).step_by(block as usize).zip(page.chunks_exact(block as usize)) {
            let class = classify_block(bytes).filter(|_| !is_known(at));
            found.extend(class.map(|class| MetadataRange { device, physical: at, length: block, class }));
        }
    }
    found
}

fn classify_block(block: &[u8]) -> Option<MetadataClass> {
    let number = |at, size| read_uint_at(block, at, size);
    if number(0, 2)? == EXTENTS {
        return Some(MetadataClass::Extents);
    }
    if number(0, 4)? == ATTRIBUTES {
        return Some(MetadataClass::Tree);
    }
    let tail = block.len().checked_sub(12).and_then(|at| block.get(at..at + 8));
    // `.` is the first name of a directory's first block; an inner index is one free entry as long as the block.
    let is_first = number(4, 4)? & 0xff_ffff == 0x01_000c && block.get(8..10) == Some(b".\0");
    let is_index = number(0, 4)? == 0 && number(4, 2)? == block.len() as u64;
    let is_directory = tail == Some(&TAIL) || is_first || is_index;
    is_directory.then_some(MetadataClass::Directory)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn build_block(begin: &[u8], end: &[u8]) -> Vec<u8> {
        let middle = 1024 - begin.len() - end.len();
        [begin, &vec![0; middle], end].concat()
    }

    #[test]
    fn blocks_are_known_by_how_they_begin_or_end() {
        let tail = [&TAIL[..], &[1, 2, 3, 4]].concat();
        let blocks = [
            (build_block(&[0x0a, 0xf3, 1, 0], b""), Some(MetadataClass::Extents)),
            (build_block(&[0, 0, 2, 0xea], b""), Some(MetadataClass::Tree)),
            (build_block(&[5, 0, 0, 0], &tail), Some(MetadataClass::Directory)),
            (build_block(&[2, 0, 0, 0, 12, 0, 1, 2, b'.', 0, 0, 0], b""), Some(MetadataClass::Directory)),
            (build_block(&[0, 0, 0, 0, 0, 4], b""), Some(MetadataClass::Directory)),
            (build_block(b"", b""), None),
            (build_block(b"text", b""), None),
            (Vec::new(), None),
        ];
        for (bytes, expected) in blocks {
            assert_eq!(classify_block(&bytes), expected);
        }
    }

    #[test]
    fn only_what_is_not_known_is_classified() {
        let mut disk = tempfile::tempfile().unwrap();
        let extents = build_block(&[0x0a, 0xf3], b"");
        (0..8).for_each(|_| disk.write_all(&extents).unwrap());
        let pages = [(1, 1), (7, 1)].into_iter().collect();
        let found = classify_unlisted_blocks(&disk, DeviceNumber(1), &pages, 1024, |at| at == 5120);
        let places: Vec<_> = found.iter().map(|range| range.physical).collect();
        assert_eq!(places, [4096, 6144, 7168], "page 7 is beyond the end");
    }
}
