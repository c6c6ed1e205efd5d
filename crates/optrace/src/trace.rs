//! A trace being made. Owns its options, the lanes of its recorders and the thread that writes its file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use crate::calibrate::{calibrate, ns_per_tick};
use crate::clock::{ClockKind, monotonic};
use crate::format::{Cost, Header};
use crate::kernel::Kernel;
use crate::lane::Lane;
use crate::live::{self, Shape};
use crate::room::{Room, create_own};
use crate::writer::{Writer, announce_lane};
use crate::{Entries, Error, Recorder, Words};

/// The variable that names the trace file for [`Trace::from_environment`]; `perflab trace run` sets it.
pub const ENVIRONMENT: &str = "OPTRACE_FILE";

/// How a trace is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// The clock of the time stamps; the best one where left out.
    pub clock: Option<ClockKind>,
    /// Ask the kernel for context switches and page faults.
    pub kernel: bool,
    /// Bytes of one chunk, and chunks for each recording thread. All of it is touched before the first operation.
    pub chunk_bytes: usize,
    /// Chunks of each thread: at least two.
    pub chunks: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { clock: None, kernel: true, chunk_bytes: 256 * 1024, chunks: 16 }
    }
}

/// What became of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Operations in the file.
    pub operations: u64,
    /// Operations that are not in it: none, unless the file could not be written.
    pub lost: u64,
    /// How often a recorder waited for the writer, between two operations.
    pub waits: u64,
    /// For how long in all, in nanoseconds.
    pub waited: u64,
    /// Events that the kernel had no room for.
    pub events_lost: u64,
    /// How often the process forked meanwhile: what its children did is not in the trace.
    pub forks: u64,
    /// What became of the begins of all operations.
    pub entries: Entries,
}

/// A trace file being written.
#[derive(Debug)]
pub struct Trace {
    shared: Arc<Shared>,
    path: PathBuf,
    writer: Option<JoinHandle<std::io::Result<Summary>>>,
}

/// What recorders and the writer share.
pub(crate) struct Shared {
    pub clock: ClockKind,
    pub kernel: bool,
    shape: Shape,
    /// the file, and who has which room in it
    pub room: Arc<Room>,
    process: u32,
    /// how often the process had forked when the trace began
    forks: u64,
    next: AtomicU32,
    pub lanes: Mutex<Vec<(Arc<Lane>, Option<Kernel>)>>,
    pub stop: AtomicBool,
    writer: std::sync::OnceLock<Thread>,
}

impl Trace {
    /// Begins a trace in a new file, in the place of one of the same user's that is there. Takes some milliseconds: the
    /// clock and the recorder's own cost are measured.
    ///
    /// # Errors
    /// The file cannot be made, or there is a link, a file of another user or no file at all in its place.
    pub fn create(path: &Path, words: &Words, options: Options) -> Result<Self, Error> {
        let file = create_own(path).map_err(Error::io("create", path))?;
        let clock = options.clock.unwrap_or_else(ClockKind::best);
        let refused = if options.kernel { Kernel::open().err() } else { None };
        let header = header(clock, words, calibrate(clock), refused);
        let room = Arc::new(Room::begin(file, &header).map_err(Error::io("write", path))?);
        let writer = Writer::new(Arc::clone(&room));
        let shared = Arc::new(Shared::new(clock, &options, header.refused == 0, room));
        let handle = {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("optrace".into());
            thread.spawn(move || writer.run(&shared)).map_err(Error::io("start a thread for", path))?
        };
        let _ = shared.writer.set(handle.thread().clone());
        Ok(Self { shared, path: path.into(), writer: Some(handle) })
    }

    /// Begins a trace in the file that [`ENVIRONMENT`] names; none where it is not set.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn from_environment(words: &Words) -> Result<Option<Self>, Error> {
        let path = std::env::var_os(ENVIRONMENT).filter(|path| !path.is_empty());
        path.map(|path| Self::create(Path::new(&path), words, Options::default())).transpose()
    }

    /// A recorder for the calling thread. Its memory is made and touched here.
    #[must_use]
    pub fn recorder(&self) -> Recorder<'_> {
        Recorder::on(&self.shared)
    }

    /// Writes what is left and ends the file.
    ///
    /// # Errors
    /// The file could not be written as a whole; what could be is readable.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.end().map_err(Error::io("write", &self.path))
    }

    /// Whether this is a child of the process that made it.
    pub(crate) fn is_child(&self) -> bool {
        self.shared.is_child()
    }

    /// Recorders that have not been dropped.
    pub(crate) fn open_recorders(&self) -> usize {
        self.shared.lanes().iter().filter(|(lane, _)| !lane.closed.load(Ordering::Acquire)).count()
    }

    fn end(&mut self) -> std::io::Result<Summary> {
        if self.shared.is_child() {
            // The thread is the parent's, and so is the file.
            if let Some(writer) = self.writer.take() {
                std::mem::forget(writer);
            }
            return Ok(Summary::default());
        }
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        let Some(writer) = self.writer.take() else { return Ok(Summary::default()) };
        writer.join().unwrap_or_else(|_| Err(std::io::Error::other("the writing thread died")))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn header(clock: ClockKind, words: &Words, cost: Cost, refused: Option<std::io::Error>) -> Header {
    Header {
        clock,
        process: u64::from(std::process::id()),
        start: clock.pair(),
        ns_per_tick: ns_per_tick(clock),
        cost,
        refused: refused.map_or(0, |error| error.raw_os_error().unwrap_or(-1) as u64),
        words: words.text(),
    }
}

impl Shared {
    fn new(clock: ClockKind, options: &Options, kernel: bool, room: Arc<Room>) -> Self {
        let chunk_words = (options.chunk_bytes / size_of::<u64>()).max(512);
        Self {
            clock,
            kernel: options.kernel && kernel,
            shape: Shape { chunk_words, chunks: options.chunks.max(2) },
            room,
            process: std::process::id(),
            forks: live::forks(),
            next: AtomicU32::new(0),
            lanes: Mutex::new(Vec::new()),
            stop: AtomicBool::new(false),
            writer: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn open_lane(&self) -> Arc<Lane> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let region = self.room.region(self.shape.bytes() as u64);
        let file = region.map(|at| (self.room.file(), at));
        Arc::new(Lane::new(number, self.shape, file, self.clock.now()))
    }

    /// Whether this is a child of the process that made the trace.
    pub(crate) fn is_child(&self) -> bool {
        std::process::id() != self.process
    }

    /// How often the process forked since the trace began.
    pub(crate) fn forks(&self) -> u64 {
        live::forks() - self.forks
    }

    pub(crate) fn add_lane(&self, lane: &Arc<Lane>, kernel: Option<Kernel>) {
        let mut lanes = self.lanes();
        announce_lane(&self.room, lane);
        lanes.push((Arc::clone(lane), kernel));
    }

    /// Lanes are only pushed: a panic while one is leaves nothing half-done.
    pub(crate) fn lanes(&self) -> std::sync::MutexGuard<'_, Vec<(Arc<Lane>, Option<Kernel>)>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Waits until the writer has emptied a chunk.
    pub(crate) fn wait_for(&self, lane: &Lane, chunk: usize) {
        if lane.is_free(chunk) {
            return;
        }
        let since = monotonic();
        while !lane.is_free(chunk) {
            self.wake();
            std::thread::sleep(Duration::from_micros(50));
        }
        lane.waits.fetch_add(1, Ordering::Relaxed);
        lane.waited.fetch_add(monotonic().saturating_sub(since), Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("clock", &self.clock)
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}
