//! From stamp words to records, on the writer's thread: span stack, exclusive times.
//!
//! The measured path need only stamp and store because this is done afterwards: the stack of open spans, their
//! exclusive times, the words of those that are whole. No time stamp is taken here, so that one stamp can end one
//! thing and begin the next.

use crate::layout::{
    FLAG_BACKWARDS, FLAG_LIMIT, FLAG_UNBALANCED, InnerOccurrence, encode_head_word, encode_number,
    encode_span,
};
use crate::stamp_words::{ABANDONED, CLOSED, StampWord, restore_stamp, tag};
use crate::vocabulary::{MOST_DEPTH, MOST_NUMBERS, MOST_SPANS};

/// What became of the begins of one kind of operation, or of span. All but `entered` and `unbegun` add up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryCounts {
    /// Begins.
    pub entered: u64,
    /// Ended as they should: these are in the trace.
    pub ended: u64,
    /// Left without an end: by longjmp, an exception, a panic.
    pub abandoned: u64,
    /// Operations inside one that was open: part of its time.
    pub nested: u64,
    /// Spans outside of any operation.
    pub outside: u64,
    /// Their end was lost, or came on another thread.
    pub lost: u64,
    /// Still open when watching ended.
    pub open: u64,
    /// Ends without a begin, which are no entries: what was open when watching began, or a begin that not all come by.
    pub unbegun: u64,
}

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

    /// Makes records of a chunk's words; they lie in `state` until they are taken.
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
            // Back on the measured path: what it waited for the writer is not a time of the operation's.
            _ => state.exclude_time(now.saturating_sub(self.left)),
        }
    }
}

/// The slot of time that belongs to the operation itself; 32 spans lie below it.
pub(crate) const OWN: u8 = MOST_SPANS as u8;

/// At most this many words say what lay inside: there is room for 127 with the numbers.
const MOST_INSIDE: usize = 100;

/// The record being made, and those that are whole.
pub(crate) struct RecordBuilder {
    /// whole records, word by word, and how many they are
    pub(crate) words: Vec<u64>,
    pub(crate) records: u32,
    begun: u64,
    last: u64,
    depth: u8,
    /// spans open beyond the limit
    beyond: u32,
    pub(crate) open: bool,
    kind: u8,
    pub(crate) flags: u8,
    numbers: Vec<u64>,
    /// one bit for each span that occurred
    used: u32,
    stack: [u8; MOST_DEPTH + 1],
    spent: [u64; MOST_SPANS + 1],
    count: [u32; MOST_SPANS + 1],
}

impl RecordBuilder {
    pub(crate) fn new() -> Self {
        Self {
            words: Vec::new(),
            records: 0,
            begun: 0,
            last: 0,
            depth: 0,
            beyond: 0,
            open: false,
            kind: 0,
            flags: 0,
            numbers: Vec::with_capacity(MOST_NUMBERS),
            used: 0,
            stack: [OWN; MOST_DEPTH + 1],
            spent: [0; MOST_SPANS + 1],
            count: [0; MOST_SPANS + 1],
        }
    }

    /// Forgets the whole records.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.records = 0;
    }

    pub(crate) fn open_record(&mut self, now: u64, kind: u8) {
        (self.open, self.kind, self.flags, self.beyond) = (true, kind, 0, 0);
        (self.begun, self.last) = (now, now);
        self.numbers.clear();
    }

    /// Takes time out of the operation, and of the innermost span.
    fn exclude_time(&mut self, ticks: u64) {
        self.begun = self.begun.saturating_add(ticks);
        self.last = self.last.saturating_add(ticks);
    }

    /// Gives the time since the last stamp to the innermost span.
    fn charge_innermost(&mut self, now: u64) {
        let slot = usize::from(self.stack[usize::from(self.depth) % (MOST_DEPTH + 1)]) % (MOST_SPANS + 1);
        if now < self.last {
            self.flags |= FLAG_BACKWARDS;
        }
        self.spent[slot] = self.spent[slot].saturating_add(now.saturating_sub(self.last));
        self.last = now;
    }

    pub(crate) fn enter_span(&mut self, now: u64, span: u8) {
        if usize::from(self.depth) >= MOST_DEPTH || usize::from(span) >= MOST_SPANS {
            self.beyond += 1;
            self.flags |= FLAG_LIMIT;
            return;
        }
        self.charge_innermost(now);
        self.depth += 1;
        self.stack[usize::from(self.depth) % (MOST_DEPTH + 1)] = span;
        self.used |= 1 << (span % 32);
        self.count[usize::from(span) % MOST_SPANS] += 1;
    }

    pub(crate) fn leave_span(&mut self, now: u64) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if self.depth == 0 {
            self.flags |= FLAG_UNBALANCED;
        } else {
            self.charge_innermost(now);
            self.depth -= 1;
        }
    }

    fn add_number(&mut self, kind: u8, value: i64) {
        if self.numbers.len() >= MOST_NUMBERS {
            self.flags |= FLAG_LIMIT;
            return;
        }
        self.numbers.push(encode_number(kind, value));
    }

    /// Says what lay inside, and how often.
    pub(crate) fn add_inner_occurrences(&mut self, inside: impl Iterator<Item = (InnerOccurrence, u32)>) {
        self.numbers.extend(inside.take(MOST_INSIDE).map(|(inside, count)| inside.encode(count)));
    }

    pub(crate) fn close_record(&mut self, now: u64) {
        if now < self.last {
            self.flags |= FLAG_BACKWARDS;
        }
        if self.used != 0 {
            self.charge_innermost(now);
        }
        let duration = now.saturating_sub(self.begun);
        let (spans, numbers) = (self.used.count_ones(), self.numbers.len() as u32);
        self.words.extend([self.begun, encode_head_word(duration, self.kind, self.flags, spans, numbers)]);
        self.words.append(&mut self.numbers);
        self.write_spans();
        self.records += 1;
        (self.open, self.depth) = (false, 0);
    }

    /// Forgets the operation that is open.
    pub(crate) fn abandon_record(&mut self) {
        self.numbers.clear();
        self.used = 0;
        self.spent = [0; MOST_SPANS + 1];
        self.count = [0; MOST_SPANS + 1];
        (self.open, self.depth, self.beyond) = (false, 0, 0);
    }

    /// Writes a word for each span that occurred, and clears the slots for the next operation.
    fn write_spans(&mut self) {
        let mut left = std::mem::take(&mut self.used);
        while left != 0 {
            let span = left.trailing_zeros() as usize % MOST_SPANS;
            self.words.push(encode_span(span as u8, self.spent[span], self.count[span]));
            (self.spent[span], self.count[span]) = (0, 0);
            left &= left - 1;
        }
    }
}
