//! The bytes of a trace file, version by version: header, blocks, records, clock pairs. No I/O.
//!
//! All numbers are little-endian. The file is a header and blocks, each of them whole 64-bit words.
//!
//! Header: `OPTRACE\0`; version (u32) and length of the header in bytes (u32); clock (u64: 0 time-stamp counter, 1
//! CLOCK_MONOTONIC); process id; an instant in ticks and in nanoseconds of CLOCK_MONOTONIC; nanoseconds a tick (f64);
//! what recording costs, in ticks as f64: an operation, a span as seen from outside, a span as seen by itself; whether
//! the kernel's events were allowed (u64; 0 is yes, else the errno); length of the words' text; the text, padded: a line
//! `o NAME` for each kind of operation, `s NAME` of span, `n NAME` of number, and, where each kind costs something else,
//! `c o OWN AROUND` and `c s OWN AROUND` in the order of the names (nanoseconds as decimals, see [`StampCost`]).
//!
//! Block: a word with its type (u8), its lane (u24) and its number of records (u32); its length in bytes; an instant
//! in ticks and in nanoseconds, taken when the block was closed; then its records:
//!
//! - `operations`: begin in ticks; a word with duration in ticks (40 bits), kind (8), flags (3), spans (6) and numbers
//!   (7 bits); for each number a word with value (56 bits, signed) and kind (8); for each kind of span that occurred a
//!   word with exclusive ticks (40 bits), how often (16) and kind (8). A number of kind 255 is not one of the program's: it
//!   says what lay inside and cost it time by its stamps: how often (30 bits), whether an operation or a span (1), in which
//!   span (8; 32: in none), and its kind (8). Of spans it is there only where one lay in another.
//! - `events` of the kernel: nanoseconds of CLOCK_MONOTONIC; a word that says which (see [`ThreadEventKind`]).
//! - `lane`: a thread began to record; its thread id; where in the file its memory is (see `living_trace`) and how many bytes it
//!   has, 0 where it is not in the file.
//! - `end`: how many operations, how many lost, how often and how long recorders waited for the writer (ns), how many
//!   of the kernel's events were lost; how often the process forked during the trace; how many operations were entered, abandoned,
//!   nested in another, and open at the end. A file without it was cut short, or its process ended without closing it.
//! - `skip`: the room up to the next block, which a thread's memory was in; it has no records.
//!
//! While a trace is made, the memory of its threads lies far behind the blocks, and is cut off at the end.

use crate::clock::{ClockKind, ClockPair};

/// The version of the format, here and in the files that are written.
pub const VERSION: u32 = 2;

/// The oldest that is read.
pub(crate) const OLDEST: u32 = 1;

pub(crate) const MAGIC: [u8; 8] = *b"OPTRACE\0";

/// Bytes of the header before the vocabulary's text.
pub(crate) const HEAD: usize = 96;

/// Words of a block's header.
pub(crate) const BLOCK_WORDS: usize = 4;

const DURATION_BITS: u32 = 40;

/// The longest duration that a record can hold, in ticks.
const LONGEST: u64 = (1 << DURATION_BITS) - 1;

/// The operation nested deeper than the limit, or carried more numbers than the limit.
pub(crate) const FLAG_LIMIT: u8 = 1;

/// A time stamp was below the one before it.
pub(crate) const FLAG_BACKWARDS: u8 = 2;

/// `leave` without `enter`, or `begin` inside an operation.
pub(crate) const FLAG_UNBALANCED: u8 = 4;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceBlockKind {
    Operations = 1,
    Events = 2,
    ThreadStart = 3,
    End = 4,
    Skip = 5,
}

/// What the kernel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadEventKind {
    /// preempted
    Preempted = 1,
    /// left the CPU to wait
    Waited = 2,
    /// on the CPU again
    Resumed = 3,
    /// a page was not there
    Fault = 4,
}

impl ThreadEventKind {
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        [Self::Preempted, Self::Waited, Self::Resumed, Self::Fault]
            .into_iter()
            .find(|kind| *kind as u64 == word)
    }
}

/// The header of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TraceHeader {
    pub clock: ClockKind,
    pub process: u64,
    pub start: ClockPair,
    pub ns_per_tick: f64,
    pub cost: RecordingCost,
    /// errno that refused the kernel's events; 0 where they are there
    pub refused: u64,
    pub words: String,
}

/// What recording costs, in ticks, as it shows in the records.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RecordingCost {
    /// an operation without spans lasts so long when nothing is done in it
    pub operation: f64,
    /// a span lengthens what is around it by so much more than it measures itself
    pub around: f64,
    /// a span measures so much when nothing is done in it
    pub span: f64,
}

/// What taking the stamps costs, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StampCost {
    /// Between the stamps of a begin and an end with nothing between.
    pub between: f64,
    /// A begin and an end in all: what they lengthen the operation around them by.
    pub pair: f64,
}

impl StampCost {
    /// As a line of a header has it, behind its list.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (between, pair) = text.split_once(' ')?;
        let number = |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite());
        Some(Self { between: number(between)?, pair: number(pair)? })
    }

    pub(crate) fn largest(of: &[Self]) -> Self {
        let greater =
            |a: Self, b: &Self| Self { between: a.between.max(b.between), pair: a.pair.max(b.pair) };
        of.iter().fold(Self::default(), greater)
    }
}

/// What recording each kind costs, in ticks.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RecordingKindCosts {
    /// of kinds that have none of their own
    pub all: RecordingCost,
    pub operations: Vec<StampCost>,
    pub spans: Vec<StampCost>,
}

impl RecordingKindCosts {
    /// Those of a header; its own are what `c` lines of its text say.
    pub(crate) fn from_header(header: &TraceHeader) -> Self {
        let of = |list: &str| {
            let lines = header.words.lines().filter_map(|line| line.strip_prefix(list));
            lines.filter_map(StampCost::parse).collect()
        };
        Self { all: header.cost, operations: of("c o "), spans: of("c s ") }
    }

    /// What an operation of a kind measures of recording itself.
    pub(crate) fn operation_cost(&self, kind: u8) -> f64 {
        self.operations.get(usize::from(kind)).map_or(self.all.operation, |cost| cost.between)
    }

    /// What an operation of a kind costs in all, where each has a cost of its own.
    pub(crate) fn whole_operation_cost(&self, kind: u8) -> f64 {
        self.operations.get(usize::from(kind)).map_or(0.0, |cost| cost.pair.max(cost.between))
    }

    /// What a span of a kind measures of recording itself, and what it lengthens that around it by, both in all.
    pub(crate) fn span_costs(&self, kind: u8) -> (f64, f64) {
        let all = (self.all.span, self.all.span + self.all.around);
        self.spans.get(usize::from(kind)).map_or(all, |cost| (cost.between, cost.pair.max(cost.between)))
    }
}

impl TraceHeader {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let text = self.words.len().next_multiple_of(8);
        let words = [
            u64::from(VERSION) | ((HEAD + text) as u64) << 32,
            u64::from(self.clock == ClockKind::Monotonic),
            self.process,
            self.start.ticks,
            self.start.ns,
            self.ns_per_tick.to_bits(),
            self.cost.operation.to_bits(),
            self.cost.around.to_bits(),
            self.cost.span.to_bits(),
            self.refused,
            self.words.len() as u64,
        ];
        let mut bytes = MAGIC.to_vec();
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(self.words.as_bytes());
        bytes.resize(HEAD + text, 0);
        bytes
    }
}

/// The first word of a block.
pub(crate) fn encode_block_word(kind: TraceBlockKind, lane: u32, records: u32) -> u64 {
    kind as u64 | u64::from(lane & 0xff_ffff) << 8 | u64::from(records) << 32
}

/// The second word of a record.
#[inline(always)]
pub(crate) fn encode_head_word(duration: u64, kind: u8, flags: u8, spans: u32, numbers: u32) -> u64 {
    duration.min(LONGEST)
        | u64::from(kind) << 40
        | u64::from(flags) << 48
        | u64::from(spans) << 51
        | u64::from(numbers) << 57
}

/// The second word of a record, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeadWord {
    pub duration: u64,
    pub kind: u8,
    pub flags: u8,
    pub spans: usize,
    pub numbers: usize,
}

impl RecordHeadWord {
    pub(crate) fn decode(word: u64) -> Self {
        Self {
            duration: word & LONGEST,
            kind: (word >> 40) as u8,
            flags: (word >> 48) as u8 & 7,
            spans: (word >> 51) as usize & 63,
            numbers: (word >> 57) as usize,
        }
    }
}

#[inline(always)]
pub(crate) fn encode_number(kind: u8, value: i64) -> u64 {
    const MOST: i64 = (1 << 55) - 1;
    (value.clamp(-MOST, MOST) << 8) as u64 | u64::from(kind)
}

pub(crate) fn decode_number(word: u64) -> (u8, i64) {
    (word as u8, word as i64 >> 8)
}

/// The kind of number that says what lay inside.
pub(crate) const INSIDE: u8 = 255;

/// Operations or spans inside an operation or one of its spans: their time stamps are part of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InnerOccurrence {
    pub is_operation: bool,
    /// which span they lay in; beyond all where in none
    pub span: u8,
    pub kind: u8,
}

impl InnerOccurrence {
    pub(crate) fn encode(self, count: u32) -> u64 {
        let count = i64::from(count.min((1 << 30) - 1));
        let value = count << 17 | i64::from(self.is_operation) << 16 | i64::from(self.span) << 8;
        encode_number(INSIDE, value | i64::from(self.kind))
    }

    pub(crate) fn decode(value: i64) -> (Self, u32) {
        let inside = Self { is_operation: value >> 16 & 1 == 1, span: (value >> 8) as u8, kind: value as u8 };
        (inside, (value >> 17) as u32 & ((1 << 30) - 1))
    }
}

#[inline(always)]
pub(crate) fn encode_span(kind: u8, ticks: u64, count: u32) -> u64 {
    ticks.min(LONGEST) | u64::from(count.min(0xffff)) << 40 | u64::from(kind) << 56
}

pub(crate) fn decode_span(word: u64) -> (u8, u64, u32) {
    ((word >> 56) as u8, word & LONGEST, (word >> 40) as u32 & 0xffff)
}

/// What a block says of a thread that begins to record: its memory is at an offset of the file, or not in it.
pub(crate) fn encode_thread_start(thread: i32, place: Option<(u64, u64)>) -> [u64; 3] {
    let (at, bytes) = place.unwrap_or((0, 0));
    [thread as u64, at, bytes]
}

/// A block in place of what `bytes` held: its head and its records.
pub(crate) fn encode_block(bytes: &mut Vec<u8>, word: u64, closed: Option<ClockPair>, words: &[u64]) {
    let closed = closed.unwrap_or(ClockPair { ticks: 0, ns: 0 });
    let head = [word, size_of_val(words) as u64, closed.ticks, closed.ns];
    bytes.resize(size_of_val(&head) + size_of_val(words), 0);
    for (to, word) in bytes.chunks_exact_mut(8).zip(head.iter().chain(words)) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_what_was_put_in() {
        let word = encode_head_word(12_345_678_901, 249, FLAG_BACKWARDS, 32, 16);
        let head = RecordHeadWord { duration: 12_345_678_901, kind: 249, flags: 2, spans: 32, numbers: 16 };
        assert_eq!(RecordHeadWord::decode(word), head);
        assert_eq!(RecordHeadWord::decode(encode_head_word(u64::MAX, 0, 0, 0, 0)).duration, LONGEST);
        let inside = InnerOccurrence { is_operation: true, span: 32, kind: 249 };
        for (inside, count) in
            [(inside, 77), (InnerOccurrence { is_operation: false, span: 31, ..inside }, (1 << 30) - 1)]
        {
            let (kind, value) = decode_number(inside.encode(count));
            assert_eq!((kind, InnerOccurrence::decode(value)), (INSIDE, (inside, count)));
        }
        for value in [0, -1, 1_416_100, -(1 << 55) + 1, (1 << 55) - 1] {
            assert_eq!(decode_number(encode_number(15, value)), (15, value));
        }
        assert_eq!(decode_number(encode_number(1, i64::MIN)).1, -(1 << 55) + 1);
        assert_eq!(decode_span(encode_span(31, 77, 3)), (31, 77, 3));
        assert_eq!(decode_span(encode_span(0, u64::MAX, 70_000)), (0, LONGEST, 65_535));
    }
}
