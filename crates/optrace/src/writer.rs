//! The thread that writes the file. Owns the order of blocks; a file that cannot be written costs records, which are
//! counted, and never the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Pair;
use crate::format::{BlockKind, block_word};
use crate::lane::Lane;
use crate::record::State;
use crate::replay::Replay;
use crate::room::Room;
use crate::stamps::Entries;
use crate::trace::{Shared, Summary};

/// How long the kernel's events may wait where operations are so slow that no chunk fills.
const REST: Duration = Duration::from_millis(100);

pub(crate) struct Writer {
    room: Arc<Room>,
    bytes: Vec<u8>,
    /// for each lane: the chunk that is full next, and what became of those before
    next: Vec<(usize, Replay)>,
    summary: Summary,
    failed: Option<io::Error>,
}

impl Writer {
    pub(crate) fn new(room: Arc<Room>) -> Self {
        Self { room, bytes: Vec::new(), next: Vec::new(), summary: Summary::default(), failed: None }
    }

    /// Writes until the trace stops.
    pub(crate) fn run(mut self, shared: &Shared) -> io::Result<Summary> {
        loop {
            let stop = shared.stop.load(Ordering::Acquire);
            let wrote = self.round(shared);
            if stop {
                return self.end(shared);
            }
            if !wrote {
                std::thread::park_timeout(REST);
            }
        }
    }

    /// Writes what every lane has; whether that was anything.
    fn round(&mut self, shared: &Shared) -> bool {
        let mut wrote = false;
        let (mut lanes, mut next) = (shared.lanes(), std::mem::take(&mut self.next));
        for (at, (lane, kernel)) in lanes.iter_mut().enumerate() {
            if at >= next.len() {
                next.push((0, Replay::new(lane.opened)));
                if !lane.announced.load(Ordering::Acquire) {
                    self.opened(lane.number, lane.thread, lane.place);
                }
            }
            while next.get_mut(at).is_some_and(|next| self.chunk(next, lane)) {
                wrote = true;
            }
            if let Some(kernel) = kernel {
                let mut words = Vec::new();
                kernel.drain(|ns, kind| words.extend([ns, kind as u64]));
                self.events(lane.number, &words);
            }
        }
        self.next = next;
        wrote
    }

    /// Writes the lane's next chunk if it is full.
    fn chunk(&mut self, (next, replay): &mut (usize, Replay), lane: &Lane) -> bool {
        // The chunk is free again when its operations are written: until then they are in one of both.
        let took = lane.take(*next, |filled| {
            replay.chunk(filled.words);
            self.operations(lane.number, &mut replay.state, filled.closed);
        });
        if took {
            *next = (*next + 1) % lane.count();
        }
        took
    }

    /// A thread begins to record, into memory that is at a place of the file or nowhere.
    pub(crate) fn opened(&mut self, lane: u32, thread: i32, place: Option<(u64, u64)>) {
        self.block(BlockKind::Lane, lane, 1, None, &lane_words(thread, place));
    }

    /// What the kernel did with a thread: times and kinds.
    pub(crate) fn events(&mut self, lane: u32, words: &[u64]) {
        if !words.is_empty() {
            self.block(BlockKind::Events, lane, words.len() as u32 / 2, None, words);
        }
    }

    /// Writes the records that are whole, and forgets them.
    pub(crate) fn operations(&mut self, lane: u32, state: &mut State, closed: Pair) {
        if state.records > 0 {
            self.block(BlockKind::Operations, lane, state.records, Some(closed), &state.words);
            match self.failed {
                None => self.summary.operations += u64::from(state.records),
                Some(_) => self.summary.lost += u64::from(state.records),
            }
        }
        state.clear();
    }

    fn block(&mut self, kind: BlockKind, lane: u32, records: u32, closed: Option<Pair>, words: &[u64]) {
        if self.failed.is_some() {
            return;
        }
        fill_block(&mut self.bytes, block_word(kind, lane, records), closed, words);
        self.failed = self.room.append(&self.bytes).err();
    }

    fn end(mut self, shared: &Shared) -> io::Result<Summary> {
        let mut more = Summary { forks: shared.forks(), ..Summary::default() };
        for (_, replay) in &mut self.next {
            replay.settle();
            let Entries { entered, ended, abandoned, nested, .. } = replay.entries;
            let sum = &mut more.entries;
            sum.entered += entered;
            sum.ended += ended;
            sum.abandoned += abandoned;
            sum.nested += nested;
            sum.open += u64::from(replay.state.open);
        }
        for (lane, kernel) in shared.lanes().iter() {
            more.waits += u64::from(lane.waits.load(Ordering::Relaxed));
            more.waited += lane.waited.load(Ordering::Relaxed);
            more.events_lost += kernel.as_ref().map_or(0, |kernel| kernel.lost);
        }
        self.close(more)
    }

    /// Writes the last block, with what others know of waits and losses.
    pub(crate) fn close(mut self, more: Summary) -> io::Result<Summary> {
        let told = Summary { operations: self.summary.operations, lost: self.summary.lost, ..more };
        let Entries { entered, abandoned, nested, open, .. } = told.entries;
        let words = [told.operations, told.lost, told.waits, told.waited, told.events_lost];
        let words = [words.as_slice(), &[told.forks, entered, abandoned, nested, open]].concat();
        self.block(BlockKind::End, 0, 1, None, &words);
        let cut = self.room.end();
        self.failed.map_or(cut.map(|()| told), Err)
    }
}

fn lane_words(thread: i32, place: Option<(u64, u64)>) -> [u64; 3] {
    let (at, bytes) = place.unwrap_or((0, 0));
    [thread as u64, at, bytes]
}

/// Writes that a thread begins to record, on that thread: whoever ends with the process soon after leaves a trace that says where
/// its memory lies.
pub(crate) fn announce_lane(room: &Room, lane: &Lane) {
    let mut bytes = Vec::new();
    let word = block_word(BlockKind::Lane, lane.number, 1);
    fill_block(&mut bytes, word, None, &lane_words(lane.thread, lane.place));
    // Where it cannot be written, the writer tries again, and counts what is lost.
    lane.announced.store(room.append(&bytes).is_ok(), Ordering::Release);
}

fn fill_block(bytes: &mut Vec<u8>, word: u64, closed: Option<Pair>, words: &[u64]) {
    let closed = closed.unwrap_or(Pair { ticks: 0, ns: 0 });
    let head = [word, size_of_val(words) as u64, closed.ticks, closed.ns];
    bytes.resize(size_of_val(&head) + size_of_val(words), 0);
    for (to, word) in bytes.chunks_exact_mut(8).zip(head.iter().chain(words)) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}
