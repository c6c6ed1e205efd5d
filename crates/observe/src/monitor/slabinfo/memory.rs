//! Rows of the last reading, by line: at short intervals most lines say what they said before, and comparing is
//! cheaper than parsing.

use perflab_model::{Cell, Row};

use super::parse::{Line, parse};
use crate::monitor::line::Malformed;

/// Lines above the first cache.
const HEADER: usize = 2;

/// The last text, and the row of each of its lines below the header.
#[derive(Debug, Default)]
pub(super) struct Memory {
    text: String,
    /// Bytes of each line, its end with it.
    lengths: Vec<usize>,
    rows: Vec<Row>,
    changed: Vec<usize>,
}

/// How a text compares with the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caches {
    /// The same, line by line; [`Memory::changed`] are the rows that are not as they were.
    Same,
    /// Others, or in another order: all rows are new.
    Others,
}

impl Memory {
    /// Takes the next text.
    ///
    /// # Errors
    /// As [`parse`]; nothing is remembered then.
    pub(super) fn take(&mut self, text: &str) -> Result<Caches, Malformed> {
        self.changed.clear();
        let caches = match self.compare(text) {
            Some(()) => Caches::Same,
            None => {
                let mut rows = Vec::with_capacity(self.rows.len());
                let parsed = parse(text, &mut rows);
                parsed.inspect_err(|_| *self = Memory::default())?;
                self.rows = rows;
                self.lengths = text.split_inclusive('\n').map(str::len).collect();
                Caches::Others
            }
        };
        self.text.clear();
        self.text.push_str(text);
        Ok(caches)
    }

    /// The rows of the last text, as [`parse`] makes them.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The places of the rows that the last text changed; of no meaning where it brought other caches.
    pub(super) fn changed(&self) -> &[usize] {
        &self.changed
    }

    /// Makes the rows those of `text`; nothing where its names are not those of the last one, line by line, for then
    /// ordinals may be others.
    fn compare(&mut self, text: &str) -> Option<()> {
        let (mut new, mut old) = (text, self.text.as_str());
        let (header, lengths) = self.lengths.split_at_mut_checked(HEADER)?;
        for length in header {
            next(&mut new, &mut old, length)?.is_err().then_some(())?;
        }
        for (place, length) in lengths.iter_mut().enumerate() {
            let known = self.rows.get_mut(place)?;
            if let Ok(line) = next(&mut new, &mut old, length)? {
                *known = changed(line, known)?;
                self.changed.push(place);
            }
        }
        (new.is_empty() && self.rows.len() == lengths.len()).then_some(())
    }
}

/// The next line is as it was.
struct AsBefore;

/// Takes a line off both texts, off the old one as long as it was: the new one, where it differs.
fn next<'a>(new: &mut &'a str, old: &mut &str, length: &mut usize) -> Option<Result<&'a str, AsBefore>> {
    let (before, left) = old.split_at_checked(*length)?;
    *old = left;
    if let Some(left) = new.strip_prefix(before) {
        *new = left;
        return Some(Err(AsBefore));
    }
    *length = new.find('\n').map_or(new.len(), |end| end + 1);
    let (line, left) = new.split_at_checked(*length)?;
    *new = left;
    Some(Ok(line))
}

/// The row of a line of the same cache.
fn changed(line: &str, known: &Row) -> Option<Row> {
    let line = Line::of(line);
    match known.as_slice() {
        [Cell::Text(name), Cell::Int(ordinal), ..] if name == line.name => Some(line.row(*ordinal)),
        _ => None,
    }
}
