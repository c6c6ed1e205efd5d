//! The words that the measured path writes: one for each time stamp, one for each number, one behind the other.
//!
//! What they mean for a record is worked out by [`RecordBuilder`](crate::record_builder::RecordBuilder) on the
//! writer's thread.

use crate::chunks::ThreadChunks;
use crate::clock::ClockKind;

/// What a word says: its lowest three bits.
pub(crate) mod tag {

    pub(crate) const BEGIN: u64 = 0;

    pub(crate) const END: u64 = 1;

    pub(crate) const NEXT: u64 = 2;

    pub(crate) const ENTER: u64 = 3;

    pub(crate) const LEAVE: u64 = 4;

    pub(crate) const SWITCH: u64 = 5;

    pub(crate) const NUMBER: u64 = 6;

    /// The recorder left the path (kind 0) to change chunks, and came back (kind 1); or the operation was abandoned
    /// ([`ABANDONED`](super::ABANDONED)), or the recorder ended ([`CLOSED`](super::CLOSED)).
    pub(crate) const AWAY: u64 = 7;
}

/// The kind of [`tag::AWAY`] that abandons an operation.
pub(crate) const ABANDONED: u8 = 2;

/// The one with which a recorder ends.
pub(crate) const CLOSED: u8 = 3;

const TAG_BITS: u32 = 3;

const KIND_BITS: u32 = 8;

/// Bits of a time stamp that do not fit beside tag and kind.
const STAMP_SHIFT: u32 = TAG_BITS + KIND_BITS;

/// Bits of a number's kind: what is higher is not a kind at all ([`MOST_NUMBERS`](crate::vocabulary::MOST_NUMBERS) are possible).
const NUMBER_SHIFT: u32 = 8;

/// A word of the measured path, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StampWord {
    /// Tag, kind and the lower 53 bits of the time.
    Stamp(u64, u8, u64),
    /// Kind and value.
    Number(u8, i64),
}

impl StampWord {
    pub(crate) fn decode(word: u64) -> Self {
        match word & 7 {
            tag::NUMBER => Self::Number((word >> TAG_BITS) as u8 & 31, word as i64 >> NUMBER_SHIFT),
            tag => Self::Stamp(tag, (word >> TAG_BITS) as u8, word >> STAMP_SHIFT),
        }
    }
}

/// The time that a stamp's 53 bits mean, when they are within half their range (19 days of a 2.7 GHz counter) of another.
pub(crate) fn restore_stamp(last: u64, bits: u64) -> u64 {
    let away = (bits.wrapping_sub(last) << STAMP_SHIFT) as i64 >> STAMP_SHIFT;
    last.wrapping_add_signed(away)
}

/// Writes into one chunk after the other.
pub(crate) struct StampWriter {
    pub(crate) clock: ClockKind,
    /// the chunk being filled
    pub(crate) chunk: usize,
    /// chunks that were entered
    round: u64,
    first: *mut u64,
    at: *mut u64,
    end: *mut u64,
}

impl StampWriter {
    /// One without a chunk: there is never room.
    pub(crate) fn new(clock: ClockKind) -> Self {
        let none = std::ptr::null_mut();
        Self { clock, chunk: 0, round: 0, first: none, at: none, end: none }
    }

    pub(crate) fn enter_chunk(&mut self, lane: &ThreadChunks, at: usize) {
        let none = std::ptr::null_mut();
        self.round += 1;
        let memory = lane.open_free_chunk(at, self.round).unwrap_or(none..none);
        (self.chunk, self.first, self.at, self.end) = (at, memory.start, memory.start, memory.end);
    }

    /// Leaves its chunk: there is no room any more.
    pub(crate) fn leave_chunk(&mut self) {
        let none = std::ptr::null_mut();
        (self.first, self.at, self.end) = (none, none, none);
    }

    /// Words that the chunk has room for.
    #[inline(always)]
    pub(crate) fn free_words(&self) -> usize {
        (self.end as usize - self.at as usize) / size_of::<u64>()
    }

    /// Words of the chunk that are written.
    pub(crate) fn used_words(&self) -> usize {
        (self.at as usize - self.first as usize) / size_of::<u64>()
    }

    /// The time now, for `tag` and `kind`. Nothing where there is no room.
    #[inline(always)]
    pub(crate) fn stamp(&mut self, tag: u64, kind: u8) {
        self.stamp_at(self.clock.now(), tag, kind);
    }

    /// One time for two stamps: what begins, and its first span.
    #[inline(always)]
    pub(crate) fn stamp_with_span(&mut self, tag: u64, kind: u8, span: u8) {
        let now = self.clock.now();
        self.stamp_at(now, tag, kind);
        self.stamp_at(now, tag::ENTER, span);
    }

    #[inline(always)]
    fn stamp_at(&mut self, now: u64, tag: u64, kind: u8) {
        self.write_word(now << STAMP_SHIFT | u64::from(kind) << TAG_BITS | tag);
    }

    /// The recorder left the path then, and is back now.
    pub(crate) fn stamp_absence(&mut self, left: u64) {
        self.write_word(left << STAMP_SHIFT | tag::AWAY);
        self.stamp(tag::AWAY, 1);
    }

    #[inline(always)]
    pub(crate) fn write_number(&mut self, kind: u8, value: i64) {
        const MOST: i64 = (1 << 55) - 1;
        let value = value.clamp(-MOST, MOST) << NUMBER_SHIFT;
        self.write_word(value as u64 | u64::from(kind.min(31)) << TAG_BITS | tag::NUMBER);
    }

    #[expect(unsafe_code, reason = "a slice would cost its bounds, and a chunk changes hands")]
    #[inline(always)]
    fn write_word(&mut self, word: u64) {
        if self.at == self.end {
            return;
        }
        // SAFETY: `at` is inside the chunk since it is not its end, which it only moves towards; the chunk is this
        // recorder's until it is handed over, and `enter_chunk` comes before anything else is written.
        unsafe {
            self.at.write(word);
            self.at = self.at.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::living_trace::RegionShape;

    #[test]
    fn words_hold_what_was_put_in() {
        let lane = ThreadChunks::new(0, RegionShape { chunk_words: 8, chunks: 2 }, None, 0);
        let mut pen = StampWriter::new(ClockKind::Monotonic);
        pen.stamp(tag::BEGIN, 1);
        assert_eq!((pen.free_words(), pen.used_words()), (0, 0), "no chunk, no room");
        pen.enter_chunk(&lane, 0);
        pen.stamp(tag::SWITCH, 249);
        for (kind, value) in [(15, -1), (200, 1_416_100), (0, i64::MAX), (3, i64::MIN)] {
            pen.write_number(kind, value);
        }
        lane.submit_chunk(0, pen.used_words(), ClockKind::Monotonic.read_pair());
        let mut notes = Vec::new();
        lane.write_full_chunk(0, |filled| {
            notes = filled.words.iter().map(|word| StampWord::decode(*word)).collect()
        });
        let most = (1 << 55) - 1;
        assert!(matches!(notes[0], StampWord::Stamp(tag::SWITCH, 249, _)));
        let numbers = [(15, -1), (31, 1_416_100), (0, most), (3, -most)];
        assert!(notes[1..].iter().eq(&numbers.map(|(kind, value)| StampWord::Number(kind, value))));
    }

    proptest! {
        #[test]
        fn a_stamp_near_another_is_whole(last in any::<u64>(), away in -(1_i64 << 52)..(1 << 52)) {
            let now = last.wrapping_add_signed(away);
            prop_assert_eq!(restore_stamp(last, now << STAMP_SHIFT >> STAMP_SHIFT), now);
        }
    }
}
