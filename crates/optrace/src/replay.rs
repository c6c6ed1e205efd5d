//! From what the measured path wrote to records, on the writer's thread: so the path need only stamp and store. Owns the
//! order of notes; what they mean for a record is [`State`]'s matter.

use crate::format::FLAG_UNBALANCED;
use crate::pen::{Note, near, tag};
use crate::record::State;

/// One lane's notes becoming records, chunk by chunk: an operation may begin in one and end in another.
pub(crate) struct Replay {
    pub(crate) state: State,
    /// the last stamp, whole
    now: u64,
    /// when the recorder left the path
    left: u64,
}

impl Replay {
    /// For a lane whose first stamp comes soon after `opened`.
    pub(crate) fn new(opened: u64) -> Self {
        Self { state: State::new(), now: opened, left: opened }
    }

    /// Makes records of a chunk's words; they lie in `state` until somebody takes them.
    pub(crate) fn chunk(&mut self, words: &[u64]) {
        for word in words {
            match Note::of(*word) {
                Note::Stamp(tag, kind, bits) => {
                    self.now = near(self.now, bits);
                    self.stamp(tag, kind);
                }
                Note::Number(kind, value) => {
                    if self.state.open {
                        self.state.number(kind, value);
                    }
                }
            }
        }
    }

    fn stamp(&mut self, tag: u64, kind: u8) {
        let (now, state) = (self.now, &mut self.state);
        match tag {
            tag::AWAY if kind == 0 => self.left = now,
            tag::BEGIN if !state.open => state.open_record(now, kind),
            tag::NEXT => {
                if state.open {
                    state.close_record(now);
                }
                state.open_record(now, kind);
            }
            _ if !state.open => {}
            tag::BEGIN => state.flags |= FLAG_UNBALANCED,
            tag::END => state.close_record(now),
            tag::ENTER => state.enter(now, kind),
            tag::LEAVE => state.leave(now),
            tag::SWITCH => {
                state.leave(now);
                state.enter(now, kind);
            }
            // Back on the path: what it waited for the writer is no time of the operation's.
            _ => state.skip(now.saturating_sub(self.left)),
        }
    }
}
