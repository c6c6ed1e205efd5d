//! A trace being made: options, calibration of its own cost, header, end.
//!
//! What recording costs is measured before each trace, with the code that records: the three figures that a reader
//! subtracts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::chunks::{RecorderChunks, ThreadChunks};
use crate::clock::{ClockKind, ClockLine};
use crate::disk_room::{TraceFileSpace, create_owned_file};
use crate::error::OptraceError;
use crate::layout::{RecordHeadWord, RecordingCost, TraceHeader, decode_span};
use crate::living_trace::RegionShape;
use crate::record_builder::StampDecoder;
use crate::recorder::Recorder;
use crate::stamp_words::{StampWriter, tag};
use crate::thread_events::ThreadEventRing;
use crate::vocabulary::Vocabulary;
use crate::writer::{TraceRecordingSummary, TraceWriter};

/// The variable that names the trace file for [`Trace::from_environment`]; `perflab trace run` sets it.
pub const ENVIRONMENT: &str = "OPTRACE_FILE";

/// How a trace is made.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The clock of the time stamps; the best one where left out.
    pub clock: Option<ClockKind>,
    /// Ask the kernel for context switches and page faults.
    pub kernel: bool,
    /// Bytes of one chunk, and chunks for each recording thread. All of it is touched before the first operation.
    pub chunk_bytes: usize,
    /// Chunks of each thread: at least two.
    pub chunks: usize,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { clock: None, kernel: true, chunk_bytes: 256 * 1024, chunks: 16 }
    }
}

/// A trace file being written.
#[derive(Debug)]
pub struct Trace {
    shared: Arc<RecorderChunks>,
    path: PathBuf,
    writer: Option<JoinHandle<std::io::Result<TraceRecordingSummary>>>,
}

impl Trace {
    /// Begins a trace in a new file, in place of an earlier one of the same user. Takes some milliseconds: the
    /// clock and the recorder's own cost are measured.
    ///
    /// # Errors
    /// The file cannot be made, or there is a link, a file of another user or something that is not a file in its place.
    pub fn create(path: &Path, vocabulary: &Vocabulary, options: TraceOptions) -> Result<Self, OptraceError> {
        let file = create_owned_file(path).map_err(OptraceError::from_io("create", path))?;
        let clock = options.clock.unwrap_or_else(ClockKind::cheapest_steady);
        let refused = if options.kernel { ThreadEventRing::open().err() } else { None };
        let header = build_header(clock, vocabulary, measure_recording_cost(clock), refused);
        let room =
            Arc::new(TraceFileSpace::create(file, &header).map_err(OptraceError::from_io("write", path))?);
        let writer = TraceWriter::new(Arc::clone(&room));
        let chunk_words = (options.chunk_bytes / size_of::<u64>()).max(512);
        let shape = RegionShape { chunk_words, chunks: options.chunks.max(2) };
        let kernel = options.kernel && header.refused == 0;
        let shared = Arc::new(RecorderChunks::new(clock, kernel, shape, room));
        let handle = {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("optrace".into());
            thread
                .spawn(move || writer.run(&shared))
                .map_err(OptraceError::from_io("start a thread for", path))?
        };
        let _ = shared.writer.set(handle.thread().clone());
        Ok(Self { shared, path: path.into(), writer: Some(handle) })
    }

    /// Begins a trace in the file that [`ENVIRONMENT`] names; none where it is not set.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn from_environment(vocabulary: &Vocabulary) -> Result<Option<Self>, OptraceError> {
        let path = std::env::var_os(ENVIRONMENT).filter(|path| !path.is_empty());
        path.map(|path| Self::create(Path::new(&path), vocabulary, TraceOptions::default())).transpose()
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
    pub fn finish(mut self) -> Result<TraceRecordingSummary, OptraceError> {
        self.stop_writer().map_err(OptraceError::from_io("write", &self.path))
    }

    /// Whether this is a child of the process that made it.
    pub(crate) fn is_forked_child(&self) -> bool {
        self.shared.is_forked_child()
    }

    /// Recorders that have not been dropped.
    pub(crate) fn open_recorders(&self) -> usize {
        self.shared.lock_threads().iter().filter(|(lane, _)| !lane.closed.load(Ordering::Acquire)).count()
    }

    fn stop_writer(&mut self) -> std::io::Result<TraceRecordingSummary> {
        if self.shared.is_forked_child() {
            // The thread is the parent's, and so is the file.
            if let Some(writer) = self.writer.take() {
                std::mem::forget(writer);
            }
            return Ok(TraceRecordingSummary::default());
        }
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake_writer();
        let Some(writer) = self.writer.take() else { return Ok(TraceRecordingSummary::default()) };
        writer.join().unwrap_or_else(|_| Err(std::io::Error::other("the writing thread died")))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.stop_writer();
    }
}

fn build_header(
    clock: ClockKind,
    vocabulary: &Vocabulary,
    cost: RecordingCost,
    refused: Option<std::io::Error>,
) -> TraceHeader {
    TraceHeader {
        clock,
        process: u64::from(std::process::id()),
        start: clock.read_pair(),
        ns_per_tick: measure_ns_per_tick(clock),
        cost,
        refused: refused.map_or(0, |error| error.raw_os_error().unwrap_or(-1) as u64),
        words: vocabulary.to_text(),
    }
}

/// Operations of one batch, and batches: the median of the quietest batch counts. Below Miri there is nothing to measure.
const BATCH: usize = if cfg!(miri) { 10 } else { 500 };

const BATCHES: usize = 9;

/// What an operation and a span cost, in ticks.
fn measure_recording_cost(clock: ClockKind) -> RecordingCost {
    let least = |figures: [f64; BATCHES]| figures.into_iter().fold(f64::INFINITY, f64::min);
    let lane = ThreadChunks::new(0, RegionShape { chunk_words: BATCH * 4, chunks: 2 }, None, clock.now());
    let empty = least([(); BATCHES].map(|()| time_batch(clock, &lane, false).0));
    let with = [(); BATCHES].map(|()| time_batch(clock, &lane, true));
    let (outer, inner) = (least(with.map(|(outer, _)| outer)), least(with.map(|(_, inner)| inner)));
    RecordingCost { operation: empty, around: (outer - empty - inner).max(0.0), span: inner }
}

/// Median duration of empty operations, and of the empty span inside each.
fn time_batch(clock: ClockKind, lane: &ThreadChunks, span: bool) -> (f64, f64) {
    let mut pen = StampWriter::new(clock);
    pen.enter_chunk(lane, 0);
    for _ in 0..BATCH {
        pen.stamp(tag::BEGIN, 0);
        if span {
            pen.stamp(tag::ENTER, 0);
            pen.stamp(tag::LEAVE, 0);
        }
        pen.stamp(tag::END, 0);
    }
    lane.submit_chunk(0, pen.used_words(), clock.read_pair());
    let mut replay = StampDecoder::new(lane.opened);
    lane.write_full_chunk(0, |filled| replay.decode_chunk(filled.words));
    median_durations(&replay.builder.words, span)
}

fn median_durations(words: &[u64], span: bool) -> (f64, f64) {
    let records = || words.chunks_exact(if span { 3 } else { 2 });
    let outer = records().filter_map(|record| Some(RecordHeadWord::decode(*record.get(1)?).duration));
    let inner = records().filter_map(|record| Some(decode_span(*record.get(2)?).1));
    (median(outer.collect()), median(inner.collect()))
}

fn median(mut ticks: Vec<u64>) -> f64 {
    ticks.sort_unstable();
    ticks.get(ticks.len() / 2).map_or(0.0, |ticks| *ticks as f64)
}

/// Nanoseconds a tick, over some two milliseconds. Good to a few parts in 10,000; blocks carry instants of their own.
fn measure_ns_per_tick(clock: ClockKind) -> f64 {
    if clock == ClockKind::Monotonic {
        return 1.0;
    }
    let from = clock.read_pair();
    std::thread::sleep(std::time::Duration::from_millis(2));
    ClockLine::through(from, clock.read_pair(), 1.0).slope()
}
