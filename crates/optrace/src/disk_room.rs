//! The file of a trace being made, and who has which room in it: blocks from its beginning, one behind the other,
//! and far behind them the memory of recording threads.
//!
//! No file of anybody else's is ever written to.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::layout::{BLOCK_WORDS, TraceBlockKind, TraceHeader, encode_block_word};
use crate::living_trace;

/// Where the memory of threads begins: most traces end before it, and are cut there.
const FAR: u64 = 32 << 20;

const PAGE: u64 = 4096;

/// Bytes of a block's head: so many are left before a region, for the block that leads over it.
const BLOCK_HEAD: u64 = BLOCK_WORDS as u64 * 8;

/// The file and its room.
pub(crate) struct TraceFileSpace {
    file: File,
    occupied: Mutex<OccupiedSpace>,
}

#[derive(Debug, Default)]
struct OccupiedSpace {
    /// Where the next block begins.
    next_block: u64,
    /// Memory of threads: begins and ends, one behind the other.
    regions: Vec<(u64, u64)>,
}

impl OccupiedSpace {
    /// Where the regions end that a block of this length has no room before.
    fn end_of_blocking_regions(&self, length: u64) -> Option<u64> {
        let ahead = self.regions.iter().position(|(_, end)| *end > self.next_block)?;
        let ahead = self.regions.get(ahead..)?;
        let (begin, end) = ahead.first()?;
        // Those that lie one behind the other have no room between them either.
        let behind = |end: u64, (begin, next): &(u64, u64)| if *begin == end { *next } else { end };
        (self.next_block + length + BLOCK_HEAD > *begin).then(|| ahead.iter().skip(1).fold(*end, behind))
    }
}

/// Makes a new file that is the caller's own, in place of an earlier one, and readable by no other user: keys and names of a
/// program may be in it. No link is followed.
pub(crate) fn create_owned_file(path: &Path) -> io::Result<File> {
    if let Ok(about) = fs::symlink_metadata(path) {
        if !about.is_file() {
            return Err(io::Error::other("it is there already, and a link, a folder, a pipe or a device"));
        }
        if about.uid() != effective_user() {
            return Err(io::Error::other("it is there already, and another user's"));
        }
        // Not cut: who still writes to it, or reads it, goes on with what was there.
        fs::remove_file(path)?;
    }
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

#[expect(unsafe_code, reason = "the standard library hides the number")]
fn effective_user() -> u32 {
    if cfg!(miri) {
        return 0;
    }
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

impl TraceFileSpace {
    /// Writes the header.
    pub(crate) fn create(file: File, header: &TraceHeader) -> io::Result<Self> {
        let bytes = header.to_bytes();
        file.write_all_at(&bytes, 0)?;
        let space = OccupiedSpace { next_block: bytes.len() as u64, regions: Vec::new() };
        Ok(Self { file, occupied: Mutex::new(space) })
    }

    /// Writes the header again, which must be as long as it was.
    pub(crate) fn set_header(&self, header: &TraceHeader) -> io::Result<()> {
        self.file.write_all_at(&header.to_bytes(), 0)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Room for the memory of a thread, allocated; `None` where it cannot be had.
    pub(crate) fn allocate_region(&self, bytes: u64) -> Option<u64> {
        let mut space = self.occupied.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = space.regions.last().map_or(FAR, |(_, end)| *end);
        let begin = behind.max(space.next_block + BLOCK_HEAD).next_multiple_of(PAGE);
        if !living_trace::allocate_region(&self.file, begin, bytes) {
            return None;
        }
        space.regions.push((begin, begin + bytes));
        Some(begin)
    }

    /// Appends a block.
    pub(crate) fn append_block(&self, block: &[u8]) -> io::Result<()> {
        let mut space = self.occupied.lock().unwrap_or_else(PoisonError::into_inner);
        let length = block.len() as u64;
        while let Some(end) = space.end_of_blocking_regions(length) {
            let head =
                [encode_block_word(TraceBlockKind::Skip, 0, 0), end - space.next_block - BLOCK_HEAD, 0, 0];
            let bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.file.write_all_at(&bytes, space.next_block)?;
            space.next_block = end;
        }
        // The head last: a process that ends before leaves zeros there, and not half a block.
        let (head, body) = block.split_at(block.len().min(BLOCK_WORDS * 8));
        self.file.write_all_at(body, space.next_block + head.len() as u64)?;
        self.file.write_all_at(head, space.next_block)?;
        space.next_block += length;
        Ok(())
    }

    /// Cuts off what lies behind the last block, and gives back the room of what lies before it.
    pub(crate) fn trim_to_blocks(&self) -> io::Result<()> {
        let space = self.occupied.lock().unwrap_or_else(PoisonError::into_inner);
        for (begin, end) in space.regions.iter().filter(|(begin, _)| *begin < space.next_block) {
            living_trace::release_region(&self.file, *begin, end - begin);
        }
        if space.regions.is_empty() { Ok(()) } else { self.file.set_len(space.next_block) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn blocks_go_round_the_memory_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("room");
        let file = create_owned_file(&path).unwrap();
        let next = FAR - 200;
        let regions = vec![(FAR, FAR + 8192), (FAR + 8192, FAR + 12_288)];
        let room = TraceFileSpace { file, occupied: Mutex::new(OccupiedSpace { next_block: next, regions }) };
        room.append_block(&[1; 96]).unwrap();
        room.append_block(&[2; 96]).unwrap();
        room.trim_to_blocks().unwrap();
        let bytes = fs::read(&path).unwrap();
        let at = |place: u64| usize::try_from(place).unwrap();
        assert_eq!(bytes.len(), at(FAR + 12_288 + 96));
        assert_eq!(bytes[at(next)..at(next) + 96], [1; 96]);
        // One block leads over both regions, from where the second block had no room.
        let word = |place: u64| u64::from_le_bytes(bytes[at(place)..at(place) + 8].try_into().unwrap());
        assert_eq!(word(next + 96), TraceBlockKind::Skip as u64);
        assert_eq!(next + 96 + BLOCK_HEAD + word(next + 104), FAR + 12_288);
        assert_eq!(bytes[at(FAR + 12_288)..], [2; 96]);
    }

    #[test]
    fn only_a_file_of_ones_own_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("victim"), "precious").unwrap();
        symlink(path("victim"), path("link")).unwrap();
        assert!(create_owned_file(&path("link")).is_err());
        assert!(create_owned_file(Path::new("/dev/null")).is_err());
        assert_eq!(fs::read_to_string(path("victim")).unwrap(), "precious");
        let old = File::open(path("victim")).unwrap();
        create_owned_file(&path("victim")).unwrap();
        assert_eq!(path("victim").metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!((old.metadata().unwrap().len(), path("victim").metadata().unwrap().len()), (8, 0));
        if effective_user() == 0 {
            std::os::unix::fs::chown(path("victim"), Some(65_534), None).unwrap();
            assert!(create_owned_file(&path("victim")).is_err());
        }
    }
}
