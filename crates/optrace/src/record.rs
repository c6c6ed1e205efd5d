//! The record being made: the stack of open spans, their exclusive times, the words of the record in its chunk. Owns
//! the bookkeeping between time stamps; refuses to take any, so that one stamp can end one thing and begin the next.

use crate::clock::ClockKind;
use crate::format::{FLAG_BACKWARDS, FLAG_LIMIT, FLAG_UNBALANCED, head_word, number_word, span_word};
use crate::lane::Lane;
use crate::words::{MOST_DEPTH, MOST_NUMBERS, MOST_SPANS};

/// Words of the longest record.
pub(crate) const LONGEST: usize = 2 + MOST_NUMBERS + MOST_SPANS;
/// The slot of time that belongs to the operation itself; 32 spans lie below it.
const OWN: u8 = MOST_SPANS as u8;

/// The record being made.
pub(crate) struct State {
    pub(crate) clock: ClockKind,
    /// the chunk being filled
    pub(crate) chunk: usize,
    first: *mut u64,
    /// where the next record begins, and where the chunk ends
    at: *mut u64,
    end: *mut u64,
    pub(crate) records: u32,
    pub(crate) begun: u64,
    pub(crate) last: u64,
    depth: u8,
    /// spans open beyond the limit
    beyond: u32,
    pub(crate) open: bool,
    kind: u8,
    pub(crate) flags: u8,
    numbers: u32,
    /// one bit for each span that occurred
    used: u32,
    stack: [u8; MOST_DEPTH + 1],
    spent: [u64; MOST_SPANS + 1],
    count: [u32; MOST_SPANS + 1],
}

impl State {
    pub(crate) fn new(clock: ClockKind) -> Self {
        let none = std::ptr::null_mut();
        Self {
            clock,
            chunk: 0,
            first: none,
            at: none,
            end: none,
            records: 0,
            begun: 0,
            last: 0,
            depth: 0,
            beyond: 0,
            open: false,
            kind: 0,
            flags: 0,
            numbers: 0,
            used: 0,
            stack: [OWN; MOST_DEPTH + 1],
            spent: [0; MOST_SPANS + 1],
            count: [0; MOST_SPANS + 1],
        }
    }

    pub(crate) fn enter_chunk(&mut self, lane: &Lane, at: usize) {
        let none = std::ptr::null_mut();
        let memory = lane.memory(at).unwrap_or(none..none);
        (self.chunk, self.first, self.at, self.end) = (at, memory.start, memory.start, memory.end);
        self.records = 0;
    }

    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        (self.end as usize - self.at as usize) / size_of::<u64>()
    }

    pub(crate) fn used_words(&self) -> usize {
        (self.at as usize - self.first as usize) / size_of::<u64>()
    }

    #[inline(always)]
    pub(crate) fn open_record(&mut self, kind: u8) {
        (self.open, self.kind, self.flags, self.numbers, self.beyond) = (true, kind, 0, 0, 0);
    }

    /// Gives the time since the last stamp to the innermost span.
    #[inline(always)]
    fn charge(&mut self, now: u64) {
        let slot = usize::from(self.stack[usize::from(self.depth) % (MOST_DEPTH + 1)]) % (MOST_SPANS + 1);
        if now < self.last {
            self.flags |= FLAG_BACKWARDS;
        }
        self.spent[slot] += now.saturating_sub(self.last);
        self.last = now;
    }

    #[inline(always)]
    pub(crate) fn enter(&mut self, now: u64, span: u8) {
        if usize::from(self.depth) >= MOST_DEPTH || usize::from(span) >= MOST_SPANS {
            self.beyond += 1;
            self.flags |= FLAG_LIMIT;
            return;
        }
        self.charge(now);
        self.depth += 1;
        self.stack[usize::from(self.depth) % (MOST_DEPTH + 1)] = span;
        self.used |= 1 << (span % 32);
        self.count[usize::from(span) % MOST_SPANS] += 1;
    }

    #[inline(always)]
    pub(crate) fn leave(&mut self, now: u64) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if self.depth == 0 {
            self.flags |= FLAG_UNBALANCED;
        } else {
            self.charge(now);
            self.depth -= 1;
        }
    }

    #[inline(always)]
    pub(crate) fn number(&mut self, kind: u8, value: i64) {
        if self.numbers as usize >= MOST_NUMBERS {
            self.flags |= FLAG_LIMIT;
            return;
        }
        self.store(2 + self.numbers as usize, number_word(kind, value));
        self.numbers += 1;
    }

    #[inline(always)]
    pub(crate) fn close_record(&mut self, now: u64) {
        let duration = now.saturating_sub(self.begun);
        let spans = if self.used == 0 { 0 } else { self.spans(now) };
        if now < self.last {
            self.flags |= FLAG_BACKWARDS;
        }
        self.store(0, self.begun);
        self.store(1, head_word(duration, self.kind, self.flags, spans, self.numbers));
        self.at = self.at.wrapping_add(2 + self.numbers as usize + spans as usize);
        self.records += 1;
        self.open = false;
    }

    /// Writes a word for each span that occurred, and clears the slots for the next operation.
    #[inline]
    fn spans(&mut self, now: u64) -> u32 {
        self.charge(now);
        self.depth = 0;
        let (mut left, mut words) = (self.used, 0);
        while left != 0 {
            let span = left.trailing_zeros() as usize % MOST_SPANS;
            let word = span_word(span as u8, self.spent[span], self.count[span]);
            self.store(2 + self.numbers as usize + words as usize, word);
            (self.spent[span], self.count[span]) = (0, 0);
            left &= left - 1;
            words += 1;
        }
        self.used = 0;
        words
    }

    #[expect(unsafe_code, reason = "the chunk's end was looked at when the operation began")]
    #[inline(always)]
    fn store(&mut self, word: usize, value: u64) {
        // SAFETY: a record is only open while `LONGEST` words lie between `at` and the end of the chunk (`begin`, `next`),
        // `word` is at most 2 + numbers + spans <= LONGEST, and the chunk is this recorder's until it is handed over.
        unsafe { self.at.add(word).write(value) };
    }
}
