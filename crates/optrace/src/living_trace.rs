//! The memory that a thread records into: pages of the trace file itself where that can be, so that what was
//! written there is in the file however the process ends.
//!
//! Where it cannot be, it is ordinary memory, and the last chunks are lost with the process. After a fork only the
//! parent writes to it.
//!
//! A region is a head of 64-bit words, padded to a page, and the chunks. Head: when the lane was opened, in ticks;
//! words of a chunk; how many chunks; 0; then for each chunk its round (from 1, counted over all chunks; 0 while it
//! was never entered), the words in use (0 while it is filled), and the instant it was closed in ticks and
//! nanoseconds.

#![expect(unsafe_code, reason = "pages of a file are shared with the kernel, and taken from a child")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::clock::ClockPair;

const PAGE: usize = 4096;

const WORD: usize = size_of::<u64>();

/// Words of a region's head before those of its chunks, and of each chunk.
const HEAD_WORDS: usize = 4;

const CHUNK_WORDS: usize = 4;

/// Regions that are mapped at one time; threads beyond them record into ordinary memory.
const MOST_MAPPED: usize = 1024;

/// How often the process forked since it first recorded.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// What is mapped, for a child to take it out of the file: addresses and lengths, 0 where an entry is free.
static MAPPED: [(AtomicUsize, AtomicUsize); MOST_MAPPED] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MOST_MAPPED];

/// The shape of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegionShape {
    pub chunk_words: usize,
    pub chunks: usize,
}

impl RegionShape {
    /// Words of the head, padded.
    fn head_words(self) -> usize {
        (HEAD_WORDS + CHUNK_WORDS * self.chunks).next_multiple_of(PAGE / WORD)
    }

    /// Bytes of the whole region, padded.
    pub(crate) fn byte_size(self) -> usize {
        ((self.head_words() + self.chunk_words * self.chunks) * WORD).next_multiple_of(PAGE)
    }
}

/// The memory of one lane.
pub(crate) struct ChunkMemory {
    shape: RegionShape,
    base: *mut u64,
    /// Its index in [`MAPPED`]; ordinary memory has none.
    mapped: Option<usize>,
}

// SAFETY: the words of a chunk are touched by one side at a time, as `ThreadChunks` says; those of the head by the recorder alone.
unsafe impl Send for ChunkMemory {}

// SAFETY: see `Send`.
unsafe impl Sync for ChunkMemory {}

impl ChunkMemory {
    /// Ordinary memory, all touched.
    pub(crate) fn allocate_ordinary(shape: RegionShape) -> Self {
        // Not zero: zeroed memory would be mapped and not there.
        let words = vec![u64::MAX; shape.byte_size() / WORD].into_boxed_slice();
        Self { shape, base: Box::into_raw(words).cast(), mapped: None }
    }

    /// Pages of a file, from an offset on, allocated and zero; `None` where they cannot be.
    pub(crate) fn map_file(file: &File, at: u64, shape: RegionShape) -> Option<Self> {
        let length = shape.byte_size();
        let offset = libc::off_t::try_from(at).ok()?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping of an open file, at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), offset)
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let Some(place) = register_mapping(base as usize, length) else {
            // SAFETY: unmaps what was mapped above, once.
            unsafe { libc::munmap(base, length) };
            return None;
        };
        let memory = Self { shape, base: base.cast(), mapped: Some(place) };
        (0..length / WORD).step_by(PAGE / WORD).for_each(|word| memory.touch_word(word));
        Some(memory)
    }

    fn is_file_backed(&self) -> bool {
        self.mapped.is_some()
    }

    /// Where a chunk's words are.
    pub(crate) fn chunk_range(&self, at: usize) -> std::ops::Range<*mut u64> {
        let begin = self.shape.head_words() + (at % self.shape.chunks) * self.shape.chunk_words;
        // SAFETY: the region is as long as `Shape::bytes` says, which the head and all chunks fit in.
        unsafe { self.base.add(begin)..self.base.add(begin + self.shape.chunk_words) }
    }

    /// Touches the pages of a chunk that is entered: those that the kernel has written to the disk would fault at the
    /// next word, inside an operation.
    pub(crate) fn touch_chunk(&self, at: usize) {
        if self.is_file_backed() {
            let begin = self.shape.head_words() + (at % self.shape.chunks) * self.shape.chunk_words;
            let all = begin..begin + self.shape.chunk_words;
            all.step_by(PAGE / WORD).for_each(|word| self.touch_word(word));
        }
    }

    fn touch_word(&self, word: usize) {
        // SAFETY: the word is inside the region, and nothing else writes to what is touched: a chunk is its recorder's
        // when it is entered, and a new region has no recorder yet.
        unsafe {
            let word = self.base.add(word);
            word.write_volatile(word.read_volatile());
        }
    }

    /// The lane was opened then.
    pub(crate) fn store_opened(&self, ticks: u64) {
        self.store_words(0, &[ticks, self.shape.chunk_words as u64, self.shape.chunks as u64, 0]);
    }

    /// The recorder enters a chunk, in this round.
    pub(crate) fn store_entered(&self, at: usize, round: u64) {
        let place = HEAD_WORDS + CHUNK_WORDS * at;
        self.store_words(place, &[0, 0]);
        self.store_words(place, &[round]);
    }

    /// The recorder closed a chunk that has this many words.
    pub(crate) fn store_closed(&self, at: usize, used: usize, closed: ClockPair) {
        let place = HEAD_WORDS + CHUNK_WORDS * at;
        self.store_words(place + 2, &[closed.ticks, closed.ns]);
        self.store_words(place + 1, &[used as u64]);
    }

    fn store_words(&self, at: usize, words: &[u64]) {
        for (place, word) in (at..self.shape.head_words()).zip(words) {
            // SAFETY: the index is in the head, which only the lane's recorder writes; what is read of it is read after the
            // process ended, so that the order alone counts.
            unsafe { self.base.add(place).write_volatile(*word) };
        }
    }
}

impl Drop for ChunkMemory {
    fn drop(&mut self) {
        let length = self.shape.byte_size();
        match self.mapped {
            // SAFETY: unmaps what `of_file` mapped (or a child put in its place), once; no recorder is left, as it holds
            // the lane that this is of.
            Some(place) => unsafe {
                let address = MAPPED.get(place).map(|(address, _)| address);
                // No child may put memory there once it is somebody else's.
                address.inspect(|address| address.store(1, Ordering::SeqCst));
                libc::munmap(self.base.cast(), length);
                address.inspect(|address| address.store(0, Ordering::Release));
            },
            None => {
                let words = std::ptr::slice_from_raw_parts_mut(self.base, length / WORD);
                // SAFETY: the slice came from `Box::into_raw` in `ordinary`, and had this length.
                drop(unsafe { Box::from_raw(words) });
            }
        }
    }
}

/// Remembers a mapping for children; `None` where there is no room, or they could not be listed.
fn register_mapping(address: usize, length: usize) -> Option<usize> {
    static ONCE: Once = Once::new();
    static IS_REGISTERED: AtomicUsize = AtomicUsize::new(0);
    ONCE.call_once(|| {
        // SAFETY: both functions live as long as the library, and do only what is allowed in a child.
        let failed = unsafe { libc::pthread_atfork(None, Some(count_fork), Some(replace_mappings_in_child)) };
        IS_REGISTERED.store(usize::from(failed == 0), Ordering::Release);
    });
    (IS_REGISTERED.load(Ordering::Acquire) == 1).then_some(())?;
    MAPPED.iter().position(|(place, size)| {
        // 1 marks an entry that is being taken.
        let is_free = place.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_free {
            size.store(length, Ordering::Release);
            place.store(address, Ordering::Release);
        }
        is_free
    })
}

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A child has its own memory in place of the file's: what it goes on to record is dropped.
extern "C" fn replace_mappings_in_child() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    for (address, length) in &MAPPED {
        let (address, length) = (address.load(Ordering::Acquire), length.load(Ordering::Acquire));
        if address > 1 {
            // SAFETY: the addresses are those of a mapping of ours, which is replaced as a whole; pens of this process
            // that point into it find memory there that they may write to.
            unsafe {
                libc::mmap(
                    address as *mut libc::c_void,
                    length,
                    libc::PROT_READ | libc::PROT_WRITE,
                    flags,
                    -1,
                    0,
                )
            };
        }
    }
}

/// How often this process forked so far.
pub(crate) fn fork_count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Allocates a region in a file, so that writing to its pages needs no room that may not be there: a full disk would end the
/// process with SIGBUS. `false` where the system cannot guarantee that, as where each write goes to a new block.
pub(crate) fn allocate_region(file: &File, at: u64, bytes: u64) -> bool {
    if cfg!(miri) {
        return false;
    }
    // SAFETY: plain structures of numbers, for which zeros are valid, filled by the calls; the descriptor is open.
    let fits = unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        let mut limit: libc::rlimit = std::mem::zeroed();
        let known = libc::fstatfs(file.as_raw_fd(), &raw mut about) == 0
            && libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0;
        // ext2 to ext4, XFS and tmpfs write allocated pages in place.
        known
            && matches!(about.f_type, 0xef53 | 0x5846_5342 | 0x0102_1994)
            && (limit.rlim_cur == libc::RLIM_INFINITY || limit.rlim_cur > at.saturating_add(bytes))
    };
    let (Ok(at), Ok(bytes)) = (libc::off_t::try_from(at), libc::off_t::try_from(bytes)) else { return false };
    // SAFETY: the descriptor is open; the call only allocates.
    fits && unsafe { libc::fallocate(file.as_raw_fd(), 0, at, bytes) } == 0
}

/// Gives the room of a region back that other blocks lie behind; it reads as zeros.
pub(crate) fn release_region(file: &File, at: u64, bytes: u64) {
    let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    if let (Ok(at), Ok(bytes)) = (libc::off_t::try_from(at), libc::off_t::try_from(bytes)) {
        // SAFETY: the descriptor is open. Where the file system cannot, the room stays taken.
        unsafe { libc::fallocate(file.as_raw_fd(), flags, at, bytes) };
    }
}

/// What was found of a chunk in the file of a process that ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChunkRemnant {
    round: u64,
    /// `None`: it was being filled.
    pub closed: Option<ClockPair>,
    pub words: Vec<u64>,
}

/// Reads a region: when its lane was opened, and its chunks in the order in which they were filled.
pub(crate) fn read_remnants(file: &File, at: u64, bytes: u64) -> Option<(u64, Vec<ChunkRemnant>)> {
    let mut head = vec![0; PAGE];
    file.read_exact_at(&mut head, at).ok()?;
    let first = words_from_bytes(&head);
    let [opened, chunk_words, chunks, _] = first.first_chunk::<HEAD_WORDS>().copied()?;
    let shape = RegionShape {
        chunk_words: usize::try_from(chunk_words).ok()?,
        chunks: usize::try_from(chunks).ok()?,
    };
    // Only what fits into the region that the file describes is believed.
    let all = shape.chunks.checked_mul(shape.chunk_words)?.checked_mul(WORD)?;
    if shape.chunks == 0 || shape.chunk_words == 0 || all as u64 > bytes || shape.byte_size() as u64 > bytes {
        return None;
    }
    let mut head = vec![0; shape.head_words() * WORD];
    file.read_exact_at(&mut head, at).ok()?;
    let head = words_from_bytes(&head);
    let mut found = Vec::new();
    for chunk in 0..shape.chunks {
        let [round, used, ticks, ns] =
            head.get(HEAD_WORDS + CHUNK_WORDS * chunk..)?.first_chunk().copied()?;
        if round == 0 {
            continue;
        }
        let used = usize::try_from(used).ok()?.min(shape.chunk_words);
        let length = if used == 0 { shape.chunk_words } else { used };
        let mut bytes = vec![0; length * WORD];
        let begin = (shape.head_words() + chunk * shape.chunk_words) * WORD;
        file.read_exact_at(&mut bytes, at + begin as u64).ok()?;
        let closed = (used > 0).then_some(ClockPair { ticks, ns });
        found.push(ChunkRemnant { round, closed, words: words_from_bytes(&bytes) });
    }
    found.sort_by_key(|remnant| remnant.round);
    Some((opened, found))
}

fn words_from_bytes(bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    bytes.chunks_exact(WORD).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_to_a_region_is_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("region");
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        let shape = RegionShape { chunk_words: 512, chunks: 3 };
        let at = PAGE as u64;
        if !allocate_region(&file, at, shape.byte_size() as u64) {
            return;
        }
        let memory = ChunkMemory::map_file(&file, at, shape).unwrap();
        memory.store_opened(77);
        memory.store_entered(1, 2);
        memory.store_entered(0, 1);
        // SAFETY: the chunks are this test's.
        unsafe {
            memory.chunk_range(0).start.write(5);
            memory.chunk_range(1).start.write(6);
        }
        memory.store_closed(0, 1, ClockPair { ticks: 80, ns: 90 });
        let (opened, found) = read_remnants(&file, at, shape.byte_size() as u64).unwrap();
        assert_eq!(opened, 77);
        assert_eq!(
            found[0],
            ChunkRemnant { round: 1, closed: Some(ClockPair { ticks: 80, ns: 90 }), words: vec![5] }
        );
        assert_eq!((found[1].round, found[1].closed, found[1].words[..2].to_vec()), (2, None, vec![6, 0]));
        assert_eq!(read_remnants(&file, at, 4096), None, "a region that is smaller than it says");
    }
}
