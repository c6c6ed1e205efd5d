//! Where one reading begins in a text, and what became of each of its lines: one parser for a file that is read as it
//! is now, and for a log of such readings.
//!
//! A monitor has a whole text and wants rows or an error ([`parse_whole_text`]). A log has dumps, damaged lines and cut
//! ends, and accounts for every line: its reader asks for the role of each line, hands it over, and counts the outcome.

use perflab_model::{CellRow, ColumnSpec};

use crate::column::describe_mismatch;

/// One line.
#[derive(Debug, Clone, Copy)]
pub struct TextLine<'a> {
    /// From 1.
    pub number: u64,
    /// Without its end.
    pub text: &'a str,
    /// Whether it ends with a line end, and was not cut: the last word of another may be half of one.
    pub whole: bool,
}

/// What a line of a reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRole {
    /// the first of a reading
    Head,
    /// the first of a reading, and a row
    HeadRow,
    /// of no meaning
    Comment,
    /// a row
    Row,
}

impl LineRole {
    /// Whether a reading begins here.
    pub fn is_head(self) -> bool {
        matches!(self, LineRole::Head | LineRole::HeadRow)
    }

    /// Whether it is to be parsed.
    pub fn is_row(self) -> bool {
        matches!(self, LineRole::Row | LineRole::HeadRow)
    }
}

/// What became of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineOutcome {
    /// it is no row after all: it names columns, or is of another time
    Nothing,
    /// as it stands
    Used,
    /// used, with this flag on it
    Flagged(String),
    /// understood, and not used: a name that came after the columns were settled
    LeftOut(String),
    /// nothing of it
    Unusable(String),
}

/// From lines to rows, reading by reading.
pub trait ReadingParser: Send {
    /// The series that it becomes.
    fn series(&self) -> &'static str;

    /// Where the numbers came from on the recorded machine.
    fn source(&self) -> &'static str;

    /// Whether readings without rows need no remark.
    fn may_be_empty(&self) -> bool {
        false
    }

    /// Whether readings begin with lines that name version or columns.
    fn is_headed(&self) -> bool {
        true
    }

    /// What `text` is.
    ///
    /// # Errors
    /// What follows would be misread: an import ends here.
    fn line_role(&self, text: &str) -> Result<LineRole, String>;

    /// Reads a row into `rows`, those of the reading so far.
    fn parse_row(&mut self, line: TextLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome;

    /// Ends a reading, before the first line of the next one.
    ///
    /// # Errors
    /// What follows would be misread: an import ends here.
    fn end_reading(&mut self, rows: &mut Vec<CellRow>) -> Result<(), String> {
        let _ = rows;
        Ok(())
    }

    /// The columns, asked for after the first reading.
    fn columns(&self) -> Vec<ColumnSpec>;

    /// What a reader of the whole log should know.
    fn closing_note(&self) -> Option<String> {
        None
    }

    /// Bytes of a row at most: texts wait in memory for their table.
    fn longest_row(&self) -> usize {
        2048
    }

    /// The page size that the rows fit, in bytes, where they say so; asked for after the first reading.
    fn page_size(&self) -> Option<u64> {
        None
    }
}

/// A line that a parser does not understand; its file's name is added by whoever read the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedLine {
    /// From 1.
    pub line: usize,
    /// What was expected and what was there.
    pub description: String,
}

impl MalformedLine {
    /// `expected` for `subject`, and `found` in its place (shown shortened).
    pub fn new(line: usize, expected: &str, subject: &str, found: &str) -> Self {
        MalformedLine { line, description: describe_mismatch(expected, subject, found) }
    }
}

/// The lines of `text` that hold something.
pub fn text_lines(text: &str) -> impl Iterator<Item = TextLine<'_>> {
    let lines = text.split_inclusive('\n').enumerate().map(|(index, line)| {
        let (text, whole) = line.strip_suffix('\n').map_or((line, false), |text| (text, true));
        TextLine { number: index as u64 + 1, text: text.strip_suffix('\r').unwrap_or(text), whole }
    });
    lines.filter(|line| !line.text.trim_ascii().is_empty())
}

/// Parses a text that is one reading.
///
/// # Errors
/// The first line that is not understood; `rows` may then hold some of them.
pub fn parse_whole_text(
    parser: &mut dyn ReadingParser,
    text: &str,
    rows: &mut Vec<CellRow>,
) -> Result<(), MalformedLine> {
    for line in text_lines(text) {
        let malformed = |description| MalformedLine { line: line.number as usize, description };
        if !parser.line_role(line.text).map_err(malformed)?.is_row() {
            continue;
        }
        if let LineOutcome::Unusable(reason) = parser.parse_row(line, rows) {
            return Err(malformed(reason));
        }
    }
    parser.end_reading(rows).map_err(|description| MalformedLine { line: 1, description })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_their_number_and_whether_they_were_cut() {
        let lines: Vec<(u64, &str, bool)> =
            text_lines("a\n \n\tb\r\nc").map(|line| (line.number, line.text, line.whole)).collect();
        assert_eq!(lines, [(1, "a", true), (3, "\tb", true), (4, "c", false)]);
        assert_eq!(text_lines("").count(), 0);
    }
}
