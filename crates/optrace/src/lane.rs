//! One thread's chunks of memory, going round between the recorder that fills them and the writer that empties them.
//! Owns the hand-over; every chunk is touched when it is made, so that recording never faults.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::clock::Pair;

/// What the recorder filled.
pub(crate) struct Filled {
    pub words: Box<[u64]>,
    /// words in use
    pub used: usize,
    pub closed: Pair,
}

struct Chunk {
    /// whether the writer may look at it
    full: AtomicBool,
    filled: UnsafeCell<Filled>,
}

/// The chunks of one recording thread.
pub(crate) struct Lane {
    pub number: u32,
    /// the thread's id as the kernel counts
    pub thread: i32,
    /// in ticks of the clock
    pub opened: u64,
    chunks: Vec<Chunk>,
    /// set by the recorder when it ends
    pub closed: AtomicBool,
    /// how often, and for how many nanoseconds, the recorder waited for the writer
    pub waits: AtomicU32,
    pub waited: AtomicU64,
}

#[expect(unsafe_code, reason = "a chunk changes hands by its flag, which the compiler cannot see")]
// SAFETY: `filled` is touched by the recorder only while `full` is false and by the writer only while it is true; the
// flag is set with release and read with acquire ordering, and each side goes round the chunks in the same order.
unsafe impl Sync for Lane {}

impl Lane {
    /// `count` chunks of `words` 64-bit words, all touched, for the calling thread from this time on.
    pub(crate) fn new(number: u32, count: usize, words: usize, opened: u64) -> Self {
        let chunk = || {
            // Not zero: zeroed memory would be mapped and not there.
            let words = vec![u64::MAX; words].into_boxed_slice();
            let filled = Filled { words, used: 0, closed: Pair { ticks: 0, ns: 0 } };
            Chunk { full: AtomicBool::new(false), filled: UnsafeCell::new(filled) }
        };
        Self {
            number,
            thread: thread_id(),
            opened,
            chunks: std::iter::repeat_with(chunk).take(count.max(2)).collect(),
            closed: AtomicBool::new(false),
            waits: AtomicU32::new(0),
            waited: AtomicU64::new(0),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.chunks.len()
    }

    /// Whether the recorder may fill this chunk.
    pub(crate) fn is_free(&self, at: usize) -> bool {
        self.chunks.get(at).is_some_and(|chunk| !chunk.full.load(Ordering::Acquire))
    }

    /// Where a free chunk's memory begins and ends. Only for the recorder, and only for a free chunk.
    #[expect(unsafe_code, reason = "see `Sync` above")]
    pub(crate) fn memory(&self, at: usize) -> Option<std::ops::Range<*mut u64>> {
        let chunk = self.chunks.get(at).filter(|_| self.is_free(at))?;
        // SAFETY: the chunk is free, so the writer does not look at it, and there is one recorder.
        Some(unsafe { (*chunk.filled.get()).words.as_mut_ptr_range() })
    }

    /// Hands a chunk with so many words to the writer.
    #[expect(unsafe_code, reason = "see `Sync` above")]
    pub(crate) fn hand_over(&self, at: usize, used: usize, closed: Pair) {
        let Some(chunk) = self.chunks.get(at) else { return };
        // SAFETY: the chunk is the recorder's until the store below.
        let filled = unsafe { &mut *chunk.filled.get() };
        (filled.used, filled.closed) = (used, closed);
        chunk.full.store(true, Ordering::Release);
    }

    /// Gives a full chunk to `write` and frees it; `false` where it is not full.
    #[expect(unsafe_code, reason = "see `Sync` above")]
    pub(crate) fn take(&self, at: usize, write: impl FnOnce(&Filled)) -> bool {
        let Some(chunk) = self.chunks.get(at).filter(|chunk| chunk.full.load(Ordering::Acquire)) else {
            return false;
        };
        // SAFETY: the chunk is full, so it is the writer's until the store below.
        write(unsafe { &*chunk.filled.get() });
        chunk.full.store(false, Ordering::Release);
        true
    }
}

#[expect(unsafe_code, reason = "the standard library hides the number")]
fn thread_id() -> i32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }
}
