//! Where the parts of a perf.data lie: its head, its records and its description; and where a cut one ends.

/// Bytes of the head: of a file, and of what went through a pipe.
const FILE_HEAD: usize = 104;

const PIPE_HEAD: u64 = 16;

/// Where numbers stand in the head of a file.
const HEAD_SIZE: usize = 8;

const ATTRIBUTE_SIZE: usize = 16;

const ATTRIBUTES: usize = 24;

const DATA_OFFSET: usize = 40;

const DATA_SIZE: usize = 48;

const FEATURES: std::ops::Range<usize> = 72..104;

/// The head of a record: type, flags and size.
const RECORD_HEAD: u64 = 8;

/// Records that more data follows than their size says.
const TRACING_DATA: u32 = 66;

const AUXTRACE: u32 = 71;

/// How a file should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PerfDataLayout {
    /// Whether it went through a pipe.
    pub(crate) is_pipe: bool,
    pub(crate) is_big: bool,
    data: (u64, u64),
    /// Where the list of the description's parts begins; none where the file was cut before it.
    description: Option<u64>,
}

/// Where a file was cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PerfDataCut {
    pub(crate) offset: u64,
    pub(crate) reason: String,
    /// How much of the records' bytes is there.
    pub(crate) share: f64,
}

/// A file made whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RepairedPerfData {
    pub(crate) cut: Option<PerfDataCut>,
}

impl PerfDataLayout {
    /// Reads the head; an error is an offset and a reason.
    pub(crate) fn parse(bytes: &[u8]) -> Result<PerfDataLayout, (u64, String)> {
        let short = || (bytes.len() as u64, "it ends within its head".to_owned());
        let is_big = bytes.starts_with(b"2ELIFREP");
        let number = |at| read_u64_at(bytes, at, is_big).ok_or_else(short);
        if number(HEAD_SIZE)? == PIPE_HEAD {
            let data = (PIPE_HEAD, bytes.len() as u64 - PIPE_HEAD);
            return Ok(PerfDataLayout { is_pipe: true, is_big, data, description: None });
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
        Ok(PerfDataLayout { is_pipe: false, is_big, data, description: data.0.checked_add(data.1) })
    }

    /// Looks for the end of a cut file, and leaves out the record that is not whole, and the description after the
    /// records where that is not there either.
    pub(crate) fn repair_cut(&mut self, bytes: &[u8]) -> RepairedPerfData {
        let there = bytes.len() as u64;
        let (begin, requested) = self.data;
        let should_end = begin.saturating_add(requested);
        let end = self.last_whole_record_end(bytes, should_end.min(there));
        let reason = match () {
            () if !self.is_pipe && requested == 0 => {
                "its recorder did not end: the head was never filled in".to_owned()
            }
            () if should_end > there => format!("{} bytes of records are missing", should_end - there),
            () if end < should_end => {
                "a record there is longer than the file, or shorter than its own head".to_owned()
            }
            () => return RepairedPerfData::default(),
        };
        let end = if requested == 0 { self.last_whole_record_end(bytes, there) } else { end };
        let known = if requested == 0 { there } else { should_end };
        let share = (end - begin) as f64 / (known.saturating_sub(begin)).max(1) as f64;
        self.data.1 = end - begin;
        self.description = self.description.filter(|at| requested > 0 && *at <= there);
        RepairedPerfData { cut: Some(PerfDataCut { offset: end, reason, share }) }
    }

    /// The records, and where they begin.
    pub(crate) fn record_bytes<'a>(&self, bytes: &'a [u8]) -> (u64, &'a [u8]) {
        let begin = usize::try_from(self.data.0).unwrap_or(usize::MAX);
        let end = self.records_end().unwrap_or(bytes.len()).min(bytes.len());
        (self.data.0, bytes.get(begin..end).unwrap_or_default())
    }

    /// Where the description's list of parts is.
    pub(crate) fn description_bytes<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(usize::try_from(self.description?).ok()?..)
    }

    /// Where the records end.
    fn records_end(&self) -> Option<usize> {
        usize::try_from(self.data.0.checked_add(self.data.1)?).ok()
    }

    /// All records with their places in the file and their types, up to one that is not whole.
    pub(crate) fn walk_records<'a>(
        &self,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = (u64, u32, &'a [u8])> + use<'a> {
        let (layout, end) = (*self, self.records_end().unwrap_or(bytes.len()).min(bytes.len()) as u64);
        let mut next = self.data.0;
        std::iter::from_fn(move || {
            let at = next;
            let (kind, size, more) = layout.record_head_at(bytes, at)?;
            next = at.checked_add(size)?.checked_add(more)?;
            let begin = usize::try_from(at).ok().filter(|_| size >= RECORD_HEAD && next <= end)?;
            Some((at, kind, bytes.get(begin..begin + usize::try_from(size).ok()?)?))
        })
    }

    /// Bytes of an entry of the list of events, and where the list lies: offset and size.
    pub(crate) fn attributes_location(&self, bytes: &[u8]) -> (u64, (u64, u64)) {
        let number = |at| read_u64_at(bytes, at, self.is_big).unwrap_or(0);
        (number(ATTRIBUTE_SIZE), (number(ATTRIBUTES), number(ATTRIBUTES + 8)))
    }

    /// Whether the description has a part of this number.
    pub(crate) fn has_feature(&self, bytes: &[u8], feature: u64) -> bool {
        let at = FEATURES.start + (feature as usize / 64) * 8;
        let word = read_u64_at(bytes, at, self.is_big).unwrap_or(0);
        feature < 256 && word >> (feature % 64) & 1 == 1
    }

    /// Where the last whole record ends.
    fn last_whole_record_end(&self, bytes: &[u8], end: u64) -> u64 {
        let mut at = self.data.0;
        while at < end {
            match self.record_head_at(bytes, at) {
                Some((_, size, more))
                    if size >= RECORD_HEAD && size.checked_add(more).is_some_and(|all| all <= end - at) =>
                {
                    at += size + more;
                }
                _ => break,
            }
        }
        at
    }

    /// The type of the record at `at`, its bytes, and how many follow it that are its too.
    fn record_head_at(&self, bytes: &[u8], at: u64) -> Option<(u32, u64, u64)> {
        let at = usize::try_from(at).ok()?;
        let raw = bytes.get(at..at.checked_add(8)?)?;
        let (kind, size) = (raw.get(..4)?.try_into().ok()?, raw.get(6..)?.try_into().ok()?);
        let (kind, size) = match self.is_big {
            true => (u32::from_be_bytes(kind), u16::from_be_bytes(size)),
            false => (u32::from_le_bytes(kind), u16::from_le_bytes(size)),
        };
        let body = read_u64_at(bytes, at + 8, self.is_big);
        let more = match kind {
            AUXTRACE => body?,
            TRACING_DATA if self.is_pipe && self.is_big => (body? >> 32).next_multiple_of(8),
            TRACING_DATA if self.is_pipe => (body? & u64::from(u32::MAX)).next_multiple_of(8),
            _ => 0,
        };
        Some((kind, u64::from(size), more))
    }
}

fn read_u64_at(bytes: &[u8], at: usize, is_big: bool) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(if is_big { u64::from_be_bytes(raw) } else { u64::from_le_bytes(raw) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_begin_within_the_file_or_at_its_end() {
        let parse = |begin: u64| {
            let mut bytes = vec![0; FILE_HEAD];
            bytes[..8].copy_from_slice(b"PERFILE2");
            bytes[DATA_OFFSET..DATA_OFFSET + 8].copy_from_slice(&begin.to_le_bytes());
            PerfDataLayout::parse(&bytes)
        };
        assert_eq!(parse(FILE_HEAD as u64).map(|layout| layout.data), Ok((FILE_HEAD as u64, 0)));
        assert!(parse(FILE_HEAD as u64 + 1).is_err());
    }
}
