//! The file of a trace being made, and who has which room in it: blocks from its beginning, one behind the other, and far
//! behind them the memory of recording threads. Owns that no file of somebody else's is written to.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::format::{BLOCK_WORDS, BlockKind, Header, block_word};
use crate::live;

/// Where the memory of threads begins: most traces end before it, and are cut there.
const FAR: u64 = 32 << 20;
const PAGE: u64 = 4096;
/// Bytes of a block's head: so many are left before a region, for the block that leads over it.
const BLOCK_HEAD: u64 = BLOCK_WORDS as u64 * 8;

/// The file and its room.
pub(crate) struct Room {
    file: File,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// Where the next block begins.
    next: u64,
    /// Memory of threads: begins and ends, one behind the other.
    regions: Vec<(u64, u64)>,
}

impl Taken {
    /// Where the regions end that a block of this length has no room before.
    fn in_the_way(&self, length: u64) -> Option<u64> {
        let ahead = self.regions.iter().position(|(_, end)| *end > self.next)?;
        let ahead = self.regions.get(ahead..)?;
        let (begin, end) = ahead.first()?;
        // Those that lie one behind the other have no room between them either.
        let behind = |end: u64, (begin, next): &(u64, u64)| if *begin == end { *next } else { end };
        (self.next + length + BLOCK_HEAD > *begin).then(|| ahead.iter().skip(1).fold(*end, behind))
    }
}

/// Makes a new file that is the caller's own, in the place of one that was, and nobody else's to read: keys and names of a
/// program may be in it. No link is followed.
pub(crate) fn create_own(path: &Path) -> io::Result<File> {
    if let Ok(about) = fs::symlink_metadata(path) {
        if !about.is_file() {
            return Err(io::Error::other("it is there already, and a link, a folder, a pipe or a device"));
        }
        if about.uid() != own_user() {
            return Err(io::Error::other("it is there already, and another user's"));
        }
        // Not cut: who still writes to it, or reads it, goes on with what was there.
        fs::remove_file(path)?;
    }
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

#[expect(unsafe_code, reason = "the standard library hides the number")]
fn own_user() -> u32 {
    if cfg!(miri) {
        return 0;
    }
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

impl Room {
    /// Writes the header.
    pub(crate) fn begin(file: File, header: &Header) -> io::Result<Self> {
        let bytes = header.bytes();
        file.write_all_at(&bytes, 0)?;
        let taken = Taken { next: bytes.len() as u64, regions: Vec::new() };
        Ok(Self { file, taken: Mutex::new(taken) })
    }

    /// Writes the header again, which must be as long as it was.
    pub(crate) fn set_header(&self, header: &Header) -> io::Result<()> {
        self.file.write_all_at(&header.bytes(), 0)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Room for the memory of a thread, allocated; `None` where it cannot be had.
    pub(crate) fn region(&self, bytes: u64) -> Option<u64> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = taken.regions.last().map_or(FAR, |(_, end)| *end);
        let begin = behind.max(taken.next + BLOCK_HEAD).next_multiple_of(PAGE);
        if !live::allocate(&self.file, begin, bytes) {
            return None;
        }
        taken.regions.push((begin, begin + bytes));
        Some(begin)
    }

    /// Appends a block.
    pub(crate) fn append(&self, block: &[u8]) -> io::Result<()> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let length = block.len() as u64;
        while let Some(end) = taken.in_the_way(length) {
            let head = [block_word(BlockKind::Skip, 0, 0), end - taken.next - BLOCK_HEAD, 0, 0];
            let bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.file.write_all_at(&bytes, taken.next)?;
            taken.next = end;
        }
        // The head last: a process that ends meanwhile leaves zeros there, and not half a block.
        let (head, body) = block.split_at(block.len().min(BLOCK_WORDS * 8));
        self.file.write_all_at(body, taken.next + head.len() as u64)?;
        self.file.write_all_at(head, taken.next)?;
        taken.next += length;
        Ok(())
    }

    /// Cuts off what lies behind the last block, and gives back the room of what lies before it.
    pub(crate) fn end(&self) -> io::Result<()> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for (begin, end) in taken.regions.iter().filter(|(begin, _)| *begin < taken.next) {
            live::punch(&self.file, *begin, end - begin);
        }
        if taken.regions.is_empty() { Ok(()) } else { self.file.set_len(taken.next) }
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
        let file = create_own(&path).unwrap();
        let next = FAR - 200;
        let regions = vec![(FAR, FAR + 8192), (FAR + 8192, FAR + 12_288)];
        let room = Room { file, taken: Mutex::new(Taken { next, regions }) };
        room.append(&[1; 96]).unwrap();
        room.append(&[2; 96]).unwrap();
        room.end().unwrap();
        let bytes = fs::read(&path).unwrap();
        let at = |place: u64| usize::try_from(place).unwrap();
        assert_eq!(bytes.len(), at(FAR + 12_288 + 96));
        assert_eq!(bytes[at(next)..at(next) + 96], [1; 96]);
        // One block leads over both regions, from where the second block had no room.
        let word = |place: u64| u64::from_le_bytes(bytes[at(place)..at(place) + 8].try_into().unwrap());
        assert_eq!(word(next + 96), BlockKind::Skip as u64);
        assert_eq!(next + 96 + BLOCK_HEAD + word(next + 104), FAR + 12_288);
        assert_eq!(bytes[at(FAR + 12_288)..], [2; 96]);
    }

    #[test]
    fn only_a_file_of_ones_own_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("victim"), "precious").unwrap();
        symlink(path("victim"), path("link")).unwrap();
        assert!(create_own(&path("link")).is_err());
        assert!(create_own(Path::new("/dev/null")).is_err());
        assert_eq!(fs::read_to_string(path("victim")).unwrap(), "precious");
        let old = File::open(path("victim")).unwrap();
        create_own(&path("victim")).unwrap();
        assert_eq!(path("victim").metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!((old.metadata().unwrap().len(), path("victim").metadata().unwrap().len()), (8, 0));
        if own_user() == 0 {
            std::os::unix::fs::chown(path("victim"), Some(65_534), None).unwrap();
            assert!(create_own(&path("victim")).is_err());
        }
    }
}
