//! Pages of the kernel's ring buffer, as `trace_pipe_raw` gives them: a head (time, filled bytes) and records, each with
//! the time since the one before. Layout: `Documentation/trace/ring-buffer-design.rst` and `events/header_page`.

use crate::words::{read_u32_at, read_u64_at};

/// Bytes of time and fill count before the records.
const HEAD: usize = 16;
/// Bits of the fill count that say that events before this page were lost, and are no count.
const FLAGS: u64 = 0b11 << 30;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that fit beside a record's length.
const SHIFT: u32 = 27;

/// Calls `found` with the time and the bytes of every record of a page. A damaged page ends early.
pub(crate) fn for_each_ring_record<'a>(page: &'a [u8], mut found: impl FnMut(u64, &'a [u8])) {
    let Some((mut time, filled)) = read_u64_at(page, 0).zip(read_u64_at(page, 8)) else { return };
    let filled = usize::try_from(filled & !FLAGS & 0xffff_ffff).unwrap_or(0);
    let Some(data) = page.get(HEAD..(HEAD + filled).min(page.len())) else { return };
    let mut at = 0;
    while let Some(head) = read_u32_at(data, at) {
        let (kind, delta) = (head & 0x1f, u64::from(head >> 5));
        let next = read_u32_at(data, at + 4);
        let (start, length) = match kind {
            TIME_EXTEND | TIME_STAMP => {
                let high = u64::from(next.unwrap_or(0)) << SHIFT;
                // A stamp has 59 bits of the whole time; its first five are those of the page.
                time = if kind == TIME_EXTEND {
                    time.wrapping_add(high + delta)
                } else {
                    (time >> 59 << 59) | high | delta
                };
                at += 8;
                continue;
            }
            PADDING if delta == 0 => return,
            0 | PADDING => (at + 8, (next.unwrap_or(0) as usize).saturating_sub(4)),
            words => (at + 4, words as usize * 4),
        };
        time = time.wrapping_add(delta);
        let Some(record) = data.get(start..start + length) else { return };
        if kind != PADDING {
            found(time, record);
        }
        at = start + length;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn build_ring_page(time: u64, records: &[u8]) -> Vec<u8> {
        let filled = records.len() as u64 | 1 << 31;
        [&time.to_le_bytes()[..], &filled.to_le_bytes(), records].concat()
    }

    fn build_event_header(kind: u32, delta: u32) -> [u8; 4] {
        (delta << 5 | kind).to_le_bytes()
    }

    #[test]
    fn times_add_up_over_every_kind_of_record() {
        let records_of_page = [
            &build_event_header(2, 5)[..],
            b"12345678",
            &build_event_header(TIME_EXTEND, 1),
            &1_u32.to_le_bytes(),
            &build_event_header(PADDING, 2),
            &8_u32.to_le_bytes(),
            b"skip",
            &build_event_header(0, 3),
            &8_u32.to_le_bytes(),
            b"long",
            &build_event_header(TIME_STAMP, 9),
            &4_u32.to_le_bytes(),
            &build_event_header(1, 0),
            b"last",
            &build_event_header(PADDING, 0),
            b"never read",
        ];
        let bytes = build_ring_page(100, &records_of_page.concat());
        let mut seen = Vec::new();
        for_each_ring_record(&bytes, |time, record| seen.push((time, record)));
        let expected: [(u64, &[u8]); 3] =
            [(105, b"12345678"), (105 + (1 << 27) + 6, b"long"), ((4 << 27) + 9, b"last")];
        assert_eq!(seen, expected);
    }

    proptest! {
        #[test]
        fn no_page_is_read_beyond_its_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut sum = 0;
            for_each_ring_record(&bytes, |_, record| sum += record.len());
            prop_assert!(sum <= bytes.len());
        }
    }
}
