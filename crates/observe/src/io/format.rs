//! Events as the kernel describes them (`events/SYSTEM/NAME/format`): where in a record each field lies. Fields move
//! between versions, so nothing is assumed about them.

use super::IoTraceError;
use crate::words::read_uint_at;

/// Where a field lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TraceField {
    offset: usize,
    size: usize,
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

    fn find_field(&self, name: &str) -> Option<TraceField> {
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
    Some((name, TraceField { offset: number("offset:")?, size: number("size:")? }))
}

#[cfg(test)]
mod tests {
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
        assert_eq!(format.read_text("filename", &record[..20]), None, "a record that is cut short");
    }

    #[test]
    fn what_is_no_description_is_an_error() {
        assert!(TraceEventFormat::parse("x", "").is_err());
        assert!(TraceEventFormat::parse("x", "ID: 5\n").is_err());
    }
}
