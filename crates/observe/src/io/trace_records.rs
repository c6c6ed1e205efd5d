//! An event as tracefs describes it, and the records in a page of its ring buffer.
//!
//! Where in a record each field lies is read from `events/SYSTEM/NAME/format`: fields move between versions, so
//! nothing is assumed about them. A page, as `trace_pipe_raw` gives it, is a head (time, filled bytes) and records,
//! each with the time since the one before. Layout: `Documentation/trace/ring-buffer-design.rst` and
//! `events/header_page`.

use crate::io::error::IoTraceError;
use crate::little_endian::{read_u32_at, read_u64_at, read_uint_at};

/// Where a field lies, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceField {
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) kind: TraceFieldKind,
}

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceFieldKind {
    Unsigned,
    Signed,
    /// the kernel's number of a disk (`dev_t`)
    Device,
    /// a text in place
    Text,
    /// a text elsewhere in the record: where is in place, length << 16 | offset (`__data_loc`)
    LocatedText,
    /// an array or a structure
    Other,
}

/// One event's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceEventFormat {
    /// The number by which records name it.
    pub(crate) id: u16,
    fields: Vec<(String, TraceField)>,
}

impl TraceEventFormat {
    /// Reads a description; `path` is for the error.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, IoTraceError> {
        let wrong = |what: &str| IoTraceError::Format { path: path.into(), what: what.into() };
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        let fields: Vec<_> = text.lines().filter_map(parse_field_line).collect();
        if fields.is_empty() {
            return Err(wrong("it describes no field"));
        }
        Ok(TraceEventFormat { id: id.ok_or_else(|| wrong("it has no line `ID:`"))?, fields })
    }

    /// Whether it has this field.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.find_field(name).is_some()
    }

    /// The names of its own fields: without those that all events have.
    pub(crate) fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str()).filter(|name| !name.starts_with("common_"))
    }

    /// Where a field lies.
    pub(crate) fn find_field(&self, name: &str) -> Option<TraceField> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, place)| *place)
    }

    /// An unsigned number of a record.
    pub(crate) fn read_number(&self, name: &str, record: &[u8]) -> Option<u64> {
        let place = self.find_field(name)?;
        read_uint_at(record, place.offset, place.size)
    }

    /// A text of a record: in place, or where `__data_loc` says (length << 16 | offset).
    pub(crate) fn read_text(&self, name: &str, record: &[u8]) -> Option<String> {
        let place = self.find_field(name)?;
        let bytes = match self.read_number(name, record).filter(|_| place.size == 4) {
            Some(at) => {
                let (offset, length) = ((at & 0xffff) as usize, (at >> 16) as usize);
                record.get(offset..offset + length)?
            }
            None => record.get(place.offset..place.offset + place.size)?,
        };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(bytes.get(..end)?).into_owned())
    }
}

/// `field:unsigned long i_ino; offset:16; size:8; signed:0;`
fn parse_field_line(line: &str) -> Option<(String, TraceField)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let declared = parts.next()?;
    let name = declared.rsplit([' ', '*']).next()?.split('[').next()?.to_owned();
    let mut number = |key: &str| parts.next()?.trim().strip_prefix(key)?.parse().ok();
    let (offset, size): (usize, usize) = (number("offset:")?, number("size:")?);
    let is_signed = number("signed:") == Some(1);
    let is_array = declared.contains('[');
    let kind = match declared {
        _ if declared.starts_with("__data_loc char[]") => TraceFieldKind::LocatedText,
        _ if declared.starts_with("__data_loc") || declared.starts_with("__rel_loc") => TraceFieldKind::Other,
        _ if is_array && declared.starts_with("char ") => TraceFieldKind::Text,
        _ if is_array || ![1, 2, 4, 8].contains(&size) => TraceFieldKind::Other,
        _ if declared.starts_with("dev_t ") => TraceFieldKind::Device,
        _ if is_signed => TraceFieldKind::Signed,
        _ => TraceFieldKind::Unsigned,
    };
    Some((name, TraceField { offset, size, kind }))
}

/// Bytes of time and fill count before the records.
const HEAD: usize = 16;

/// Bits of the fill count that say that events before this page were lost, and are not part of the count.
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

    const EXEC: &str = "name: sched_process_exec\nID: 365\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\nprint fmt: \"x\"\n";

    #[test]
    fn numbers_and_both_kinds_of_text_are_found() {
        let format = TraceEventFormat::parse("x", EXEC).unwrap();
        let mut record = vec![0; 28];
        record[4..8].copy_from_slice(&77_u32.to_le_bytes());
        record[8..12].copy_from_slice(&(4_u32 << 16 | 28).to_le_bytes());
        record[12..15].copy_from_slice(b"zsh");
        record.extend(b"/sh\0");
        assert_eq!(format.id, 365);
        assert_eq!(format.read_number("common_pid", &record), Some(77));
        assert_eq!(format.read_text("filename", &record).as_deref(), Some("/sh"));
        assert_eq!(format.read_text("comm", &record).as_deref(), Some("zsh"));
        assert_eq!(format.read_number("nothing", &record), None);
        let kind = |name: &str| format.find_field(name).unwrap().kind;
        assert_eq!(kind("common_pid"), TraceFieldKind::Signed);
        assert_eq!((kind("filename"), kind("comm")), (TraceFieldKind::LocatedText, TraceFieldKind::Text));
        assert_eq!(format.field_names().collect::<Vec<_>>(), ["filename", "comm"]);
        assert_eq!(format.read_text("filename", &record[..20]), None, "a record that is cut short");
    }

    #[test]
    fn what_is_no_description_is_an_error() {
        assert!(TraceEventFormat::parse("x", "").is_err());
        assert!(TraceEventFormat::parse("x", "ID: 5\n").is_err());
    }

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
