//! Btrfs: its addresses made into disk addresses, and the extents of the disk that hold its trees.
//!
//! `FS_IOC_FIEMAP` gives btrfs's own addresses; `BTRFS_IOC_TREE_SEARCH` over the chunk tree (as root) translates
//! them. File systems over several disks, or striped ones, are not translated: there an address alone has no place.

#![expect(unsafe_code, reason = "ioctls of file systems have no safe wrappers")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use perflab_model::io_trace::{DeviceNumber, FileExtent, MetadataClass, MetadataRange};

use crate::little_endian::read_uint_at;

/// `_IOWR(0x94, 17, struct btrfs_ioctl_search_args)`
const TREE_SEARCH: libc::c_ulong = 0xd000_9411;

const ROOM: usize = 4096 - 104;

/// The chunk tree, the only object in it, and the type of its items.
const CHUNK_TREE: u64 = 3;

const CHUNKS: u64 = 256;

const CHUNK_ITEM: u32 = 228;

/// Bytes before an item, before a chunk's stripes, and of a stripe.
const ITEM_HEAD: usize = 32;

const CHUNK_HEAD: usize = 48;

const STRIPE: usize = 32;

/// Kinds of chunks: trees, and all that spread one address over several disk addresses.
const TREES: u64 = 1 << 1 | 1 << 2;

const STRIPED: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;

/// Where the first superblock lies.
const SUPERBLOCK: u64 = 64 << 10;

#[repr(C)]
struct BtrfsSearch {
    tree: u64,
    objects: [u64; 2],
    offsets: [u64; 2],
    transactions: [u64; 2],
    types: [u32; 2],
    items: u32,
    unused: u32,
    reserved: [u64; 4],
    room: [u8; ROOM],
}

/// A range of addresses, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BtrfsChunk {
    logical: u64,
    length: u64,
    kind: u64,
    /// every copy: number of the disk, address there
    copies: Vec<(u64, u64)>,
}

/// All chunks of a file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BtrfsChunks(Vec<BtrfsChunk>);

impl BtrfsChunks {
    /// Of the file system that an open file or folder lies on.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        let mut all = Vec::new();
        let mut next = 0;
        loop {
            let found = search_chunks(file, next)?;
            match found.last() {
                Some(last) => next = last.logical + 1,
                None => break,
            }
            all.extend(found);
        }
        let mut disks = all.iter().flat_map(|chunk: &BtrfsChunk| chunk.copies.iter().map(|(disk, _)| *disk));
        let first = disks.next();
        let has_place = disks.all(|disk| Some(disk) == first);
        let is_striped = all.iter().any(|chunk| chunk.kind & STRIPED != 0);
        if has_place && !is_striped { Ok(BtrfsChunks(all)) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// The same extents, with disk addresses in place of btrfs's own. What lies across two chunks is two extents.
    pub(crate) fn map_to_disk(&self, extents: &[FileExtent]) -> Vec<FileExtent> {
        extents
            .iter()
            .flat_map(|extent| self.0.iter().filter_map(|chunk| map_extent_in_chunk(chunk, extent)))
            .collect()
    }

    /// What the trees lie in.
    pub(crate) fn metadata_ranges(&self, device: DeviceNumber) -> Vec<MetadataRange> {
        let range = |physical, length, class| MetadataRange { device, physical, length, class };
        let trees = self.0.iter().filter(|chunk| chunk.kind & TREES != 0);
        let copies = trees.flat_map(|chunk| chunk.copies.iter().map(|(_, place)| (*place, chunk.length)));
        let superblock = range(SUPERBLOCK, 4096, MetadataClass::Superblock);
        let trees = copies.map(|(place, length)| range(place, length, MetadataClass::Tree));
        std::iter::once(superblock).chain(trees).collect()
    }
}

/// The part of an extent that lies in a chunk.
fn map_extent_in_chunk(chunk: &BtrfsChunk, extent: &FileExtent) -> Option<FileExtent> {
    let from = extent.physical.max(chunk.logical);
    let end = (extent.physical + extent.length).min(chunk.logical + chunk.length);
    let (_, place) = chunk.copies.first()?;
    (from < end).then(|| FileExtent {
        logical: extent.logical + (from - extent.physical),
        physical: place + (from - chunk.logical),
        length: end - from,
    })
}

/// Some chunks from an address on; none where there are no more.
fn search_chunks(file: &File, from: u64) -> io::Result<Vec<BtrfsChunk>> {
    let mut search = BtrfsSearch {
        tree: CHUNK_TREE,
        objects: [CHUNKS; 2],
        offsets: [from, u64::MAX],
        transactions: [0, u64::MAX],
        types: [CHUNK_ITEM; 2],
        items: u32::MAX,
        unused: 0,
        reserved: [0; 4],
        room: [0; ROOM],
    };
    // SAFETY: `search` is a `struct btrfs_ioctl_search_args` of 4096 bytes, as the request's number says; it outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), TREE_SEARCH as _, &raw mut search) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(parse_search_items(&search.room, search.items))
    }
}

/// Items: transaction, object, address, type, length; then the item.
fn parse_search_items(room: &[u8], items: u32) -> Vec<BtrfsChunk> {
    let (mut rest, mut all) = (room, Vec::new());
    for _ in 0..items {
        let Some((length, body)) = read_uint_at(rest, 28, 4).zip(rest.get(ITEM_HEAD..)) else { break };
        let Some(item) = body.get(..length as usize) else { break };
        all.extend(read_uint_at(rest, 16, 8).and_then(|logical| parse_chunk_item(logical, item)));
        rest = body.get(length as usize..).unwrap_or_default();
    }
    all
}

fn parse_chunk_item(logical: u64, item: &[u8]) -> Option<BtrfsChunk> {
    let copies = item.get(CHUNK_HEAD..)?.chunks_exact(STRIPE).take(read_uint_at(item, 44, 2)? as usize);
    let copies =
        copies.filter_map(|copy| Some((read_uint_at(copy, 0, 8)?, read_uint_at(copy, 8, 8)?))).collect();
    Some(BtrfsChunk { logical, length: read_uint_at(item, 0, 8)?, kind: read_uint_at(item, 24, 8)?, copies })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: u64 = 1;

    fn build_search_item(logical: u64, length: u64, kind: u64, copies: &[(u64, u64)]) -> Vec<u8> {
        let mut body = vec![0; CHUNK_HEAD];
        body[..8].copy_from_slice(&length.to_le_bytes());
        body[24..32].copy_from_slice(&kind.to_le_bytes());
        body[44..46].copy_from_slice(&(copies.len() as u16).to_le_bytes());
        for (disk, place) in copies {
            body.extend([disk.to_le_bytes(), place.to_le_bytes()].concat());
            body.extend([0; 16]);
        }
        let mut head = vec![0; ITEM_HEAD];
        head[16..24].copy_from_slice(&logical.to_le_bytes());
        head[28..].copy_from_slice(&(body.len() as u32).to_le_bytes());
        [head, body].concat()
    }

    #[test]
    fn addresses_become_places_over_the_bounds_of_chunks() {
        let bytes = [
            build_search_item(1 << 20, 1 << 20, DATA, &[(1, 5 << 20)]),
            build_search_item(2 << 20, 1 << 20, DATA, &[(1, 1 << 30)]),
        ];
        let found = BtrfsChunks(parse_search_items(&bytes.concat(), 2));
        let extents = [FileExtent { logical: 4096, physical: (2 << 20) - 8192, length: 16384 }];
        assert_eq!(
            found.map_to_disk(&extents),
            [
                FileExtent { logical: 4096, physical: (6 << 20) - 8192, length: 8192 },
                FileExtent { logical: 4096 + 8192, physical: 1 << 30, length: 8192 },
            ]
        );
    }

    #[test]
    fn every_copy_of_a_tree_is_metadata() {
        let bytes = build_search_item(0, 1 << 20, 1 << 2 | 1 << 5, &[(1, 7 << 20), (1, 9 << 20)]);
        let metadata = BtrfsChunks(parse_search_items(&bytes, 1)).metadata_ranges(DeviceNumber(3));
        let places: Vec<_> = metadata.iter().map(|range| range.physical).collect();
        assert_eq!(places, [SUPERBLOCK, 7 << 20, 9 << 20]);
        assert!(parse_search_items(&bytes[..40], 1).is_empty(), "an answer that is cut short");
    }
}
