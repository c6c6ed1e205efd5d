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
    rows: Vec<Row>,
}

impl Memory {
    /// The same as [`parse`], sooner where little changed.
    pub(super) fn parse(&mut self, text: &str, rows: &mut Vec<Row>) -> Result<(), Malformed> {
        let before = rows.len();
        if self.reuse(text, rows).is_none() {
            rows.truncate(before);
            parse(text, rows)?;
            self.rows.clear();
            self.rows.extend_from_slice(rows.get(before..).unwrap_or_default());
        }
        self.text.clear();
        self.text.push_str(text);
        Ok(())
    }

    /// Appends the rows of `text`; nothing where its names are not those of the last one, line by line, for then
    /// ordinals may be others.
    fn reuse(&mut self, text: &str, rows: &mut Vec<Row>) -> Option<()> {
        let (mut new, mut old) = (text.lines(), self.text.lines());
        for _ in 0..HEADER {
            (new.next()? == old.next()?).then_some(())?;
        }
        for known in &mut self.rows {
            let (new, old) = (new.next()?, old.next()?);
            if new != old {
                *known = changed(new, known)?;
            }
            rows.push(known.clone());
        }
        (new.next().is_none() && old.next().is_none()).then_some(())
    }
}

/// The row of a line of the same cache.
fn changed(line: &str, known: &Row) -> Option<Row> {
    let line = Line::of(line);
    match known.as_slice() {
        [Cell::Text(name), Cell::Int(ordinal), ..] if name == line.name => Some(line.row(*ordinal)),
        _ => None,
    }
}
