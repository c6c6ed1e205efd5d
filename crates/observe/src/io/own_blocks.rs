//! Blocks of an ext file system's own that it does not list: directories, maps of extents, attributes. They are known by what
//! they begin or end with, and are read through the disk, whose pages are in memory because they have just been read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use perflab_model::io::{DeviceNumber, MetadataClass, MetadataRange, PAGE, PageSet};

use crate::words::read_uint_at;

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
