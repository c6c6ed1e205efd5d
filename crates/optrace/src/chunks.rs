//! Chunks of memory that go round between the recorder that fills them and the writer that empties them.
//!
//! Every chunk is touched before it is filled, so that recording never faults.

use std::cell::UnsafeCell;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crate::clock::{ClockKind, ClockPair, read_monotonic_clock};
use crate::disk_room::TraceFileSpace;
use crate::layout::{TraceBlockKind, encode_block, encode_block_word, encode_thread_start};
use crate::living_trace::{self, ChunkMemory, RegionShape};
use crate::thread_events::ThreadEventRing;

/// What the recorder filled.
pub(crate) struct FilledChunk<'a> {
    /// words in use
    pub words: &'a [u64],
    pub closed: ClockPair,
}

struct RecordingChunk {
    /// whether the writer may look at it
    full: AtomicBool,
    /// words in use, and when it was closed
    filled: UnsafeCell<(usize, ClockPair)>,
}

/// The chunks of one recording thread.
pub(crate) struct ThreadChunks {
    pub number: u32,
    /// the thread's id as the kernel counts
    pub thread: i32,
    /// in ticks of the clock
    pub opened: u64,
    chunks: Vec<RecordingChunk>,
    memory: ChunkMemory,
    /// where its memory is in the file, in bytes: begin and length; ordinary memory is nowhere
    pub file_region: Option<(u64, u64)>,
    /// whether the file says that it is there
    pub announced: AtomicBool,
    /// set by the recorder when it ends
    pub closed: AtomicBool,
    /// how often, and for how many nanoseconds, the recorder waited for the writer
    pub waits: AtomicU32,
    pub waited: AtomicU64,
}

#[expect(unsafe_code, reason = "a chunk changes hands by its flag, which the compiler cannot see")]
// SAFETY: `filled` is touched by the recorder only while `full` is false and by the writer only while it is true; the
// flag is set with release and read with acquire ordering, and each side goes round the chunks in the same order.
unsafe impl Sync for ThreadChunks {}

impl ThreadChunks {
    /// Chunks of this shape, all touched, for the calling thread from this time on; in the file's pages at that offset,
    /// or in ordinary memory.
    pub(crate) fn new(number: u32, shape: RegionShape, file: Option<(&File, u64)>, opened: u64) -> Self {
        let chunk = || {
            let filled = (0, ClockPair { ticks: 0, ns: 0 });
            RecordingChunk { full: AtomicBool::new(false), filled: UnsafeCell::new(filled) }
        };
        let mapped = file.and_then(|(file, at)| Some((ChunkMemory::map_file(file, at, shape)?, at)));
        let (memory, place) = match mapped {
            Some((memory, at)) => (memory, Some((at, shape.byte_size() as u64))),
            None => (ChunkMemory::allocate_ordinary(shape), None),
        };
        memory.store_opened(opened);
        Self {
            number,
            thread: read_thread_id(),
            opened,
            chunks: std::iter::repeat_with(chunk).take(shape.chunks).collect(),
            memory,
            file_region: place,
            announced: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waits: AtomicU32::new(0),
            waited: AtomicU64::new(0),
        }
    }

    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Whether the recorder may fill this chunk.
    pub(crate) fn is_free(&self, at: usize) -> bool {
        self.chunks.get(at).is_some_and(|chunk| !chunk.full.load(Ordering::Acquire))
    }

    /// Where a free chunk's memory begins and ends, as the recorder enters it in this round. Only for the recorder, and only
    /// for a free chunk.
    pub(crate) fn open_free_chunk(&self, at: usize, round: u64) -> Option<std::ops::Range<*mut u64>> {
        self.chunks.get(at).filter(|_| self.is_free(at))?;
        self.memory.touch_chunk(at);
        self.memory.store_entered(at, round);
        Some(self.memory.chunk_range(at))
    }

    /// Hands a chunk with this many words to the writer.
    #[expect(unsafe_code, reason = "see `Sync` above")]
    pub(crate) fn submit_chunk(&self, at: usize, used: usize, closed: ClockPair) {
        let Some(chunk) = self.chunks.get(at) else { return };
        // SAFETY: the chunk is the recorder's until the store below.
        unsafe { *chunk.filled.get() = (used, closed) };
        self.memory.store_closed(at, used, closed);
        chunk.full.store(true, Ordering::Release);
    }

    /// Gives a full chunk to `write` and frees it; `false` where it is not full.
    #[expect(unsafe_code, reason = "see `Sync` above")]
    pub(crate) fn write_full_chunk(&self, at: usize, write: impl FnOnce(&FilledChunk<'_>)) -> bool {
        let Some(chunk) = self.chunks.get(at).filter(|chunk| chunk.full.load(Ordering::Acquire)) else {
            return false;
        };
        let all = self.memory.chunk_range(at);
        // SAFETY: the chunk is full, so it is the writer's until the store below, and its first words are in use.
        let (words, closed) = unsafe {
            let (used, closed) = *chunk.filled.get();
            (std::slice::from_raw_parts(all.start, used), closed)
        };
        write(&FilledChunk { words, closed });
        chunk.full.store(false, Ordering::Release);
        true
    }
}

/// What recorders and the writer share.
pub(crate) struct RecorderChunks {
    pub clock: ClockKind,
    pub kernel: bool,
    shape: RegionShape,
    /// the file, and who has which room in it
    pub space: Arc<TraceFileSpace>,
    process: u32,
    /// how often the process had forked when the trace began
    forks: u64,
    next: AtomicU32,
    pub threads: Mutex<Vec<(Arc<ThreadChunks>, Option<ThreadEventRing>)>>,
    pub stop: AtomicBool,
    pub writer: OnceLock<Thread>,
}

impl RecorderChunks {
    /// For a trace in this file, of threads that have chunks of this shape each.
    pub(crate) fn new(
        clock: ClockKind,
        kernel: bool,
        shape: RegionShape,
        space: Arc<TraceFileSpace>,
    ) -> Self {
        Self {
            clock,
            kernel,
            shape,
            space,
            process: std::process::id(),
            forks: living_trace::fork_count(),
            next: AtomicU32::new(0),
            threads: Mutex::new(Vec::new()),
            stop: AtomicBool::new(false),
            writer: OnceLock::new(),
        }
    }

    pub(crate) fn open_thread_chunks(&self) -> Arc<ThreadChunks> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let region = self.space.allocate_region(self.shape.byte_size() as u64);
        let file = region.map(|at| (self.space.file(), at));
        Arc::new(ThreadChunks::new(number, self.shape, file, self.clock.now()))
    }

    /// Whether this is a child of the process that made the trace.
    pub(crate) fn is_forked_child(&self) -> bool {
        std::process::id() != self.process
    }

    /// How often the process forked since the trace began.
    pub(crate) fn forks_since_begin(&self) -> u64 {
        living_trace::fork_count() - self.forks
    }

    pub(crate) fn add_thread(&self, lane: &Arc<ThreadChunks>, kernel: Option<ThreadEventRing>) {
        let mut lanes = self.lock_threads();
        announce_thread(&self.space, lane);
        lanes.push((Arc::clone(lane), kernel));
    }

    /// Lanes are only pushed: a panic while one is leaves nothing half-done.
    pub(crate) fn lock_threads(&self) -> MutexGuard<'_, Vec<(Arc<ThreadChunks>, Option<ThreadEventRing>)>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wake_writer(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Waits until the writer has emptied a chunk.
    pub(crate) fn wait_for_chunk(&self, lane: &ThreadChunks, chunk: usize) {
        if lane.is_free(chunk) {
            return;
        }
        let since = read_monotonic_clock();
        while !lane.is_free(chunk) {
            self.wake_writer();
            std::thread::sleep(Duration::from_micros(50));
        }
        lane.waits.fetch_add(1, Ordering::Relaxed);
        lane.waited.fetch_add(read_monotonic_clock().saturating_sub(since), Ordering::Relaxed);
    }
}

impl std::fmt::Debug for RecorderChunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecorderChunks")
            .field("clock", &self.clock)
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}

/// Writes that a thread begins to record, on that thread: whoever ends with the process soon after leaves a trace that says where
/// its memory lies.
fn announce_thread(room: &TraceFileSpace, lane: &ThreadChunks) {
    let mut bytes = Vec::new();
    let word = encode_block_word(TraceBlockKind::ThreadStart, lane.number, 1);
    encode_block(&mut bytes, word, None, &encode_thread_start(lane.thread, lane.file_region));
    // Where it cannot be written, the writer tries again, and counts what is lost.
    lane.announced.store(room.append_block(&bytes).is_ok(), Ordering::Release);
}

#[expect(unsafe_code, reason = "the standard library hides the number")]
fn read_thread_id() -> i32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }
}
