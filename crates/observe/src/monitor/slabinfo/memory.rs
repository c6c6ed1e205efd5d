//! Rows of the last reading, by line: at short intervals most lines say what they said before, and comparing is
//! cheaper than parsing.

use perflab_model::{CellRow, TableCell};

use super::parse::{SlabinfoLine, parse_slabinfo};
use crate::monitor::line::MalformedLine;

/// Lines above the first cache.
const HEADER: usize = 2;

/// The last text, and the row of each of its lines below the header.
#[derive(Debug, Default)]
pub(super) struct UnchangedLines {
    text: String,
    /// Bytes of each line, its end with it.
    lengths: Vec<usize>,
    rows: Vec<CellRow>,
    changed: Vec<usize>,
}

/// How a text compares with the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheListChange {
    /// The same, line by line; [`UnchangedLines::changed`] are the rows that are not as they were.
    Same,
    /// Others, or in another order: all rows are new.
    Others,
}

impl UnchangedLines {
    /// Takes the next text.
    ///
    /// # Errors
    /// As [`parse`]; nothing is remembered then.
    pub(super) fn update(&mut self, text: &str) -> Result<CacheListChange, MalformedLine> {
        self.changed.clear();
        let caches = match self.update_same_caches(text) {
            Some(()) => CacheListChange::Same,
            None => {
                let mut rows = Vec::with_capacity(self.rows.len());
                let parsed = parse_slabinfo(text, &mut rows);
                parsed.inspect_err(|_| *self = UnchangedLines::default())?;
                self.rows = rows;
                self.lengths = text.split_inclusive('\n').map(str::len).collect();
                CacheListChange::Others
            }
        };
        self.text.clear();
        self.text.push_str(text);
        Ok(caches)
    }

    /// The rows of the last text, as [`parse`] makes them.
    pub(super) fn rows(&self) -> &[CellRow] {
        &self.rows
    }

    /// The places of the rows that the last text changed; of no meaning where it brought other caches.
    pub(super) fn changed_rows(&self) -> &[usize] {
        &self.changed
    }

    /// Makes the rows those of `text`; nothing where its names are not those of the last one, line by line, for then
    /// ordinals may be others.
    fn update_same_caches(&mut self, text: &str) -> Option<()> {
        let (mut new, mut old) = (text, self.text.as_str());
        let (header, lengths) = self.lengths.split_at_mut_checked(HEADER)?;
        for length in header {
            next_changed_line(&mut new, &mut old, length)?.is_err().then_some(())?;
        }
        for (place, length) in lengths.iter_mut().enumerate() {
            let known = self.rows.get_mut(place)?;
            if let Ok(line) = next_changed_line(&mut new, &mut old, length)? {
                *known = parse_changed_line(line, known)?;
                self.changed.push(place);
            }
        }
        (new.is_empty() && self.rows.len() == lengths.len()).then_some(())
    }
}

/// The next line is as it was.
struct SameLineMarker;

/// Takes a line off both texts, off the old one as long as it was: the new one, where it differs.
fn next_changed_line<'a>(
    new: &mut &'a str,
    old: &mut &str,
    length: &mut usize,
) -> Option<Result<&'a str, SameLineMarker>> {
    let (before, left) = old.split_at_checked(*length)?;
    *old = left;
    if let Some(left) = new.strip_prefix(before) {
        *new = left;
        return Some(Err(SameLineMarker));
    }
    *length = new.find('\n').map_or(new.len(), |end| end + 1);
    let (line, left) = new.split_at_checked(*length)?;
    *new = left;
    Some(Ok(line))
}

/// The row of a line of the same cache.
fn parse_changed_line(line: &str, known: &CellRow) -> Option<CellRow> {
    let line = SlabinfoLine::parse(line);
    match known.as_slice() {
        [TableCell::Text(name), TableCell::Int(ordinal), ..] if name == line.name => {
            Some(line.to_row(*ordinal))
        }
        _ => None,
    }
}
