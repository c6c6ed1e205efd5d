//! Where the records of a perf.data lie, and where a cut file ends.
//!
//! Owns the few numbers of the file's head that say how long it should be. A cut file lacks its end, where the
//! machine is described, and its last record; this makes a whole file of what is there.

/// Bytes of the head: of a file, and of what went through a pipe.
const FILE_HEAD: usize = 104;
const PIPE_HEAD: u64 = 16;
/// Where numbers stand in the head of a file.
const HEAD_SIZE: usize = 8;
const DATA_OFFSET: usize = 40;
const DATA_SIZE: usize = 48;
const FEATURES: std::ops::Range<usize> = 72..104;
/// The head of a record: type, flags and size.
const RECORD_HEAD: u64 = 8;
/// Records that more data follows than their size says.
const TRACING_DATA: u32 = 66;
const AUXTRACE: u32 = 71;
/// Records that hold others.
const COMPRESSED: [u32; 2] = [81, 83];

/// How a file should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Whether it went through a pipe.
    pub(crate) is_pipe: bool,
    is_big: bool,
    data: (u64, u64),
    has_features: bool,
}

/// Where a file was cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cut {
    pub(crate) offset: u64,
    pub(crate) reason: String,
    /// How much of the records' bytes is there.
    pub(crate) share: f64,
}

/// A file made whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Whole {
    pub(crate) cut: Option<Cut>,
}

impl Layout {
    /// Reads the head; an error is an offset and a reason.
    pub(crate) fn of(bytes: &[u8]) -> Result<Layout, (u64, String)> {
        let short = || (bytes.len() as u64, "it ends within its head".to_owned());
        let is_big = bytes.starts_with(b"2ELIFREP");
        let number = |at| number(bytes, at, is_big).ok_or_else(short);
        if number(HEAD_SIZE)? == PIPE_HEAD {
            let data = (PIPE_HEAD, bytes.len() as u64 - PIPE_HEAD);
            return Ok(Layout { is_pipe: true, is_big, data, has_features: false });
        }
        if bytes.len() < FILE_HEAD {
            return Err(short());
        }
        let data = (number(DATA_OFFSET)?, number(DATA_SIZE)?);
        if data.0 > bytes.len() as u64 {
            return Err((
                bytes.len() as u64,
                format!("its records should begin at byte {}, after its end", data.0),
            ));
        }
        let features = bytes.get(FEATURES).unwrap_or_default();
        Ok(Layout { is_pipe: false, is_big, data, has_features: features.iter().any(|byte| *byte != 0) })
    }

    /// Makes a whole file of a cut one: without the record that is not whole, nor the description after the records.
    pub(crate) fn cut(&self, bytes: &mut Vec<u8>) -> Whole {
        let there = bytes.len() as u64;
        let (begin, wanted) = self.data;
        let should_end = begin.saturating_add(wanted);
        let end = self.last_whole(bytes, should_end.min(there));
        let reason = match () {
            () if !self.is_pipe && wanted == 0 => {
                "its recorder did not end: the head was never filled in".to_owned()
            }
            () if should_end > there => format!("{} bytes of records are missing", should_end - there),
            () if end < should_end => {
                "a record there is longer than the file, or shorter than its own head".to_owned()
            }
            () => return Whole::default(),
        };
        let end = if wanted == 0 { self.last_whole(bytes, there) } else { end };
        let known = if wanted == 0 { there } else { should_end };
        let share = (end - begin) as f64 / (known.saturating_sub(begin)).max(1) as f64;
        bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
        if !self.is_pipe {
            self.put(bytes, DATA_SIZE, end - begin);
            if let Some(features) = bytes.get_mut(FEATURES).filter(|_| self.has_features) {
                features.fill(0);
            }
        }
        Whole { cut: Some(Cut { offset: end, reason, share }) }
    }

    /// The records and where they begin, where they lie in a file as they are.
    pub(crate) fn records<'a>(&self, bytes: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let mut at = self.data.0;
        let known = self.data.1;
        let end =
            if known == 0 { bytes.len() as u64 } else { at.saturating_add(known).min(bytes.len() as u64) };
        let (begin, last) = (usize::try_from(at).ok()?, usize::try_from(end).ok()?);
        while at < end {
            let (kind, size) = self.record(bytes, at)?;
            if self.is_pipe || COMPRESSED.contains(&kind) || size < RECORD_HEAD {
                return None;
            }
            at += size;
        }
        bytes.get(begin..last).map(|records| (self.data.0, records))
    }

    /// Where the last whole record ends.
    fn last_whole(&self, bytes: &[u8], end: u64) -> u64 {
        let mut at = self.data.0;
        while at < end {
            match self.record(bytes, at) {
                Some((_, size)) if size >= RECORD_HEAD && size <= end - at => at += size,
                _ => break,
            }
        }
        at
    }

    /// The type of the record at `at`, and its bytes with what follows it.
    fn record(&self, bytes: &[u8], at: u64) -> Option<(u32, u64)> {
        let at = usize::try_from(at).ok()?;
        let raw = bytes.get(at..at.checked_add(8)?)?;
        let (kind, size) = (raw.get(..4)?.try_into().ok()?, raw.get(6..)?.try_into().ok()?);
        let (kind, size) = match self.is_big {
            true => (u32::from_be_bytes(kind), u16::from_be_bytes(size)),
            false => (u32::from_le_bytes(kind), u16::from_le_bytes(size)),
        };
        let body = number(bytes, at + 8, self.is_big);
        let more = match kind {
            AUXTRACE => body?,
            TRACING_DATA if self.is_big => (body? >> 32).next_multiple_of(8),
            TRACING_DATA => (body? & u64::from(u32::MAX)).next_multiple_of(8),
            _ => 0,
        };
        Some((kind, u64::from(size).checked_add(more)?))
    }

    fn put(&self, bytes: &mut [u8], at: usize, value: u64) {
        let value = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        if let Some(place) = bytes.get_mut(at..at + 8) {
            place.copy_from_slice(&value);
        }
    }
}

fn number(bytes: &[u8], at: usize, is_big: bool) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(if is_big { u64::from_be_bytes(raw) } else { u64::from_le_bytes(raw) })
}
