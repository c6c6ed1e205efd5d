//! From what the measured path wrote to records, on the writer's thread: so the path need only stamp and store. Owns the
//! order of notes; what they mean for a record is [`RecordBuilder`]'s matter.

use crate::format::FLAG_UNBALANCED;
use crate::pen::{ABANDONED, CLOSED, StampWord, restore_stamp, tag};
use crate::record::RecordBuilder;
use crate::stamps::EntryCounts;

/// One lane's notes becoming records, chunk by chunk: an operation may begin in one and end in another.
pub(crate) struct StampDecoder {
    pub(crate) builder: RecordBuilder,
    /// the last stamp, whole
    now: u64,
    /// when the recorder left the path
    left: u64,
    /// begins inside the operation that is open, or that ended last
    inside: u64,
    pub(crate) entries: EntryCounts,
}

impl StampDecoder {
    /// For a lane whose first stamp comes soon after `opened`.
    pub(crate) fn new(opened: u64) -> Self {
        Self {
            builder: RecordBuilder::new(),
            now: opened,
            left: opened,
            inside: 0,
            entries: EntryCounts::default(),
        }
    }

    /// Makes records of a chunk's words; they lie in `state` until somebody takes them.
    pub(crate) fn decode_chunk(&mut self, words: &[u64]) {
        for word in words {
            match StampWord::decode(*word) {
                StampWord::Stamp(tag, kind, bits) => {
                    self.now = restore_stamp(self.now, bits);
                    self.apply_stamp(tag, kind);
                }
                StampWord::Number(kind, value) => {
                    if self.builder.open {
                        self.builder.add_number(kind, value);
                    }
                }
            }
        }
    }

    /// Makes records of the chunk that was being filled when the process ended: up to the first stamp that is older than the
    /// last one of the chunk before, which was left there a round ago. Gives the time of the last.
    pub(crate) fn decode_last_chunk(&mut self, words: &[u64]) -> u64 {
        let since = self.now;
        let is_fresh = |word: &&u64| match StampWord::decode(**word) {
            // Never written: a begin at the very first tick does not occur.
            StampWord::Stamp(..) if **word == 0 => false,
            StampWord::Stamp(_, _, bits) => restore_stamp(since, bits) >= since,
            StampWord::Number(..) => true,
        };
        let fresh = words.iter().take_while(is_fresh).count();
        self.decode_chunk(words.get(..fresh).unwrap_or_default());
        self.now
    }

    /// No end of the operation that was open last comes any more: what began inside of it was left without one.
    pub(crate) fn count_unended(&mut self) {
        self.entries.abandoned += std::mem::take(&mut self.inside);
    }

    fn apply_stamp(&mut self, tag: u64, kind: u8) {
        if matches!(tag, tag::BEGIN | tag::NEXT) {
            self.entries.entered += 1;
            if !self.builder.open || tag == tag::NEXT {
                self.count_unended();
            }
        }
        let (now, state) = (self.now, &mut self.builder);
        match tag {
            tag::AWAY if kind == 0 => self.left = now,
            tag::AWAY if kind == ABANDONED => {
                self.entries.abandoned += u64::from(state.open);
                state.abandon_record();
            }
            tag::AWAY if kind == CLOSED => {
                if state.open {
                    self.entries.ended += 1;
                    state.close_record(now);
                }
                self.count_unended();
            }
            tag::BEGIN if !state.open => state.open_record(now, kind),
            tag::NEXT => {
                if state.open {
                    self.entries.ended += 1;
                    state.close_record(now);
                }
                state.open_record(now, kind);
            }
            // The end of one that began inside another: only now it is known that it did not replace it.
            tag::END if !state.open && self.inside > 0 => {
                self.inside -= 1;
                self.entries.nested += 1;
            }
            _ if !state.open => {}
            tag::BEGIN => {
                self.inside += 1;
                state.flags |= FLAG_UNBALANCED;
            }
            tag::END => {
                self.entries.ended += 1;
                state.close_record(now);
            }
            tag::ENTER => state.enter_span(now, kind),
            tag::LEAVE => state.leave_span(now),
            tag::SWITCH => {
                state.leave_span(now);
                state.enter_span(now, kind);
            }
            // Back on the path: what it waited for the writer is no time of the operation's.
            _ => state.exclude_time(now.saturating_sub(self.left)),
        }
    }
}
