//! What the list does, told to the recorder: each piece of work a span, the list's state as numbers when it changes.

use optrace::Recorder;
use slablist::{SlabEvent, SlabProbe, SlabWork};

/// The kind of operation.
pub(super) const INSERT: u8 = 0;

/// Names of the spans, in the order of their numbers.
pub(super) const SPANS: [&str; 5] = ["allocate", "spill", "shift", "reap", "reap-index"];
const ALLOCATE: u8 = 0;
const SPILL: u8 = 1;
const SHIFT: u8 = 2;
const REAP: u8 = 3;
const REAP_INDEX: u8 = 4;

/// Names of the numbers, in the order of theirs.
pub(super) const NUMBERS: [&str; 8] = [
    "elements",
    "slabs",
    "index nodes",
    "index levels",
    "examined",
    "saved",
    "nodes examined",
    "nodes saved",
];
pub(super) const ELEMENTS: u8 = 0;
const SLABS: u8 = 1;
const NODES: u8 = 2;
const LEVELS: u8 = 3;
const EXAMINED: u8 = 4;
const SAVED: u8 = 5;
const NODES_EXAMINED: u8 = 6;
const NODES_SAVED: u8 = 7;

/// A probe that passes everything on to a recorder.
pub(super) struct RecordingProbe<'a> {
    recorder: &'a Recorder<'a>,
    reaps: u64,
    saved: u64,
    /// inside a reap: what the state is meanwhile is nobody's business
    reaping: bool,
    /// slabs, nodes and levels after a reap, for the next operation: this one's are those before it
    after: [Option<i64>; 3],
}

impl<'a> RecordingProbe<'a> {
    pub(super) fn new(recorder: &'a Recorder<'a>) -> Self {
        RecordingProbe { recorder, reaps: 0, saved: 0, reaping: false, after: [None; 3] }
    }

    /// Reaps of either level, and slabs and nodes that they saved.
    pub(super) fn reap_totals(&self) -> (u64, u64) {
        (self.reaps, self.saved)
    }

    /// At the beginning of an operation: tells what the last one's reap left.
    #[inline]
    pub(super) fn record_pending_state(&mut self) {
        if self.after != [None; 3] {
            for (kind, value) in [SLABS, NODES, LEVELS].into_iter().zip(std::mem::take(&mut self.after)) {
                value.into_iter().for_each(|value| self.recorder.number(kind, value));
            }
        }
    }

    fn record_state(&mut self, kind: u8, value: i64) {
        match kind {
            _ if !self.reaping => self.recorder.number(kind, value),
            SLABS => self.after[0] = Some(value),
            NODES => self.after[1] = Some(value),
            _ => self.after[2] = Some(value),
        }
    }

    fn record_reap(&mut self, level: u8, examined: usize, saved: usize) {
        self.reaping = false;
        (self.reaps, self.saved) = (self.reaps + 1, self.saved + saved as u64);
        self.recorder.leave();
        let numbers = if level == 0 { (EXAMINED, SAVED) } else { (NODES_EXAMINED, NODES_SAVED) };
        self.recorder.number(numbers.0, examined as i64);
        self.recorder.number(numbers.1, saved as i64);
    }
}

impl SlabProbe for RecordingProbe<'_> {
    #[inline]
    fn begin(&mut self, work: SlabWork) {
        self.reaping |= matches!(work, SlabWork::Reap { .. });
        self.recorder.enter(match work {
            SlabWork::MakeSlab => ALLOCATE,
            SlabWork::Spill => SPILL,
            SlabWork::Shift => SHIFT,
            SlabWork::Reap { level: 0 } => REAP,
            _ => REAP_INDEX,
        });
    }

    #[inline]
    fn event(&mut self, event: SlabEvent) {
        match event {
            SlabEvent::SlabMade { slabs } => {
                self.recorder.leave();
                self.record_state(SLABS, slabs as i64);
            }
            SlabEvent::Spilled { .. } | SlabEvent::Shifted { .. } => self.recorder.leave(),
            SlabEvent::SlabFreed { slabs } => self.record_state(SLABS, slabs as i64),
            SlabEvent::NodeMade { nodes } | SlabEvent::NodeFreed { nodes } => {
                self.record_state(NODES, nodes as i64)
            }
            SlabEvent::IndexGrown { levels } | SlabEvent::IndexShrunk { levels } => {
                self.record_state(LEVELS, levels.into());
            }
            SlabEvent::Reaped { level, examined, saved, .. } => self.record_reap(level, examined, saved),
            _ => {}
        }
    }
}
