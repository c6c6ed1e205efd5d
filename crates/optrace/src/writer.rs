//! The thread that writes the file, block by block.
//!
//! A file that cannot be written costs records, which are counted, and never the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::chunks::{RecorderChunks, ThreadChunks};
use crate::clock::ClockPair;
use crate::disk_room::TraceFileSpace;
use crate::layout::{TraceBlockKind, encode_block, encode_block_word, encode_thread_start};
use crate::record_builder::{EntryCounts, RecordBuilder, StampDecoder};

/// How long the kernel's events may wait where operations are so slow that no chunk fills.
const REST: Duration = Duration::from_millis(100);

/// What became of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceRecordingSummary {
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
    /// How often the process forked during the trace: what its children did is not in the trace.
    pub forks: u64,
    /// What became of the begins of all operations.
    pub entries: EntryCounts,
}

pub(crate) struct TraceWriter {
    space: Arc<TraceFileSpace>,
    bytes: Vec<u8>,
    /// for each lane: the chunk that is full next, and what became of those before
    next_chunks: Vec<(usize, StampDecoder)>,
    summary: TraceRecordingSummary,
    failed: Option<io::Error>,
}

impl TraceWriter {
    pub(crate) fn new(room: Arc<TraceFileSpace>) -> Self {
        Self {
            space: room,
            bytes: Vec::new(),
            next_chunks: Vec::new(),
            summary: TraceRecordingSummary::default(),
            failed: None,
        }
    }

    /// Writes until the trace stops.
    pub(crate) fn run(mut self, shared: &RecorderChunks) -> io::Result<TraceRecordingSummary> {
        loop {
            let stop = shared.stop.load(Ordering::Acquire);
            let wrote = self.write_full_chunks(shared);
            if stop {
                return self.finish(shared);
            }
            if !wrote {
                std::thread::park_timeout(REST);
            }
        }
    }

    /// Writes what every lane has; whether that was anything.
    fn write_full_chunks(&mut self, shared: &RecorderChunks) -> bool {
        let mut wrote = false;
        let (mut lanes, mut next) = (shared.lock_threads(), std::mem::take(&mut self.next_chunks));
        for (at, (lane, kernel)) in lanes.iter_mut().enumerate() {
            if at >= next.len() {
                next.push((0, StampDecoder::new(lane.opened)));
                if !lane.announced.load(Ordering::Acquire) {
                    self.write_thread_start(lane.number, lane.thread, lane.file_region);
                }
            }
            while next.get_mut(at).is_some_and(|next| self.write_next_chunk(next, lane)) {
                wrote = true;
            }
            if let Some(kernel) = kernel {
                let mut words = Vec::new();
                kernel.drain(|ns, kind| words.extend([ns, kind as u64]));
                self.write_events(lane.number, &words);
            }
        }
        self.next_chunks = next;
        wrote
    }

    /// Writes the lane's next chunk if it is full.
    fn write_next_chunk(&mut self, (next, replay): &mut (usize, StampDecoder), lane: &ThreadChunks) -> bool {
        // The chunk is free again when its operations are written: until then they are in one of both.
        let took = lane.write_full_chunk(*next, |filled| {
            replay.decode_chunk(filled.words);
            self.write_operations(lane.number, &mut replay.builder, filled.closed);
        });
        if took {
            *next = (*next + 1) % lane.chunk_count();
        }
        took
    }

    /// A thread begins to record, into memory that is at an offset of the file or not in it.
    pub(crate) fn write_thread_start(&mut self, lane: u32, thread: i32, place: Option<(u64, u64)>) {
        self.write_block(TraceBlockKind::ThreadStart, lane, 1, None, &encode_thread_start(thread, place));
    }

    /// What the kernel did with a thread: times and kinds.
    pub(crate) fn write_events(&mut self, lane: u32, words: &[u64]) {
        if !words.is_empty() {
            self.write_block(TraceBlockKind::Events, lane, words.len() as u32 / 2, None, words);
        }
    }

    /// Writes the records that are whole, and forgets them.
    pub(crate) fn write_operations(&mut self, lane: u32, state: &mut RecordBuilder, closed: ClockPair) {
        if state.records > 0 {
            self.write_block(TraceBlockKind::Operations, lane, state.records, Some(closed), &state.words);
            match self.failed {
                None => self.summary.operations += u64::from(state.records),
                Some(_) => self.summary.lost += u64::from(state.records),
            }
        }
        state.clear();
    }

    fn write_block(
        &mut self,
        kind: TraceBlockKind,
        lane: u32,
        records: u32,
        closed: Option<ClockPair>,
        words: &[u64],
    ) {
        if self.failed.is_some() {
            return;
        }
        encode_block(&mut self.bytes, encode_block_word(kind, lane, records), closed, words);
        self.failed = self.space.append_block(&self.bytes).err();
    }

    fn finish(mut self, shared: &RecorderChunks) -> io::Result<TraceRecordingSummary> {
        let mut more =
            TraceRecordingSummary { forks: shared.forks_since_begin(), ..TraceRecordingSummary::default() };
        for (_, replay) in &mut self.next_chunks {
            replay.count_unended();
            let EntryCounts { entered, ended, abandoned, nested, .. } = replay.entries;
            let sum = &mut more.entries;
            sum.entered += entered;
            sum.ended += ended;
            sum.abandoned += abandoned;
            sum.nested += nested;
            sum.open += u64::from(replay.builder.open);
        }
        for (lane, kernel) in shared.lock_threads().iter() {
            more.waits += u64::from(lane.waits.load(Ordering::Relaxed));
            more.waited += lane.waited.load(Ordering::Relaxed);
            more.events_lost += kernel.as_ref().map_or(0, |kernel| kernel.lost);
        }
        self.write_last_block(more)
    }

    /// Writes the last block, with what others know of waits and losses.
    pub(crate) fn write_last_block(
        mut self,
        more: TraceRecordingSummary,
    ) -> io::Result<TraceRecordingSummary> {
        let totals =
            TraceRecordingSummary { operations: self.summary.operations, lost: self.summary.lost, ..more };
        let EntryCounts { entered, abandoned, nested, open, .. } = totals.entries;
        let words = [totals.operations, totals.lost, totals.waits, totals.waited, totals.events_lost];
        let words = [words.as_slice(), &[totals.forks, entered, abandoned, nested, open]].concat();
        self.write_block(TraceBlockKind::End, 0, 1, None, &words);
        let cut = self.space.trim_to_blocks();
        self.failed.map_or(cut.map(|()| totals), Err)
    }
}
