//! What the format of one kind of dump says, and what gives ticks, of whatever format.

use perflab_model::{CellRow, ColumnSpec, Nanos};

use super::lines::LogLine;
use super::took::{FileReport, LineOutcome};
use crate::ArchiveError;

/// What a line of a dump is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogLineRole {
    /// the first of a dump
    Head,
    /// the first of a dump, and a row
    HeadRow,
    /// of no meaning
    Comment,
    /// a row
    Row,
}

impl LogLineRole {
    pub(crate) fn is_head(self) -> bool {
        matches!(self, LogLineRole::Head | LogLineRole::HeadRow)
    }
}

/// The format of one kind of dump.
pub(crate) trait ReadingParser {
    /// The series that it becomes.
    const SERIES: &'static str;
    /// Where the numbers came from on the recorded machine.
    const SOURCE: &'static str;

    /// Whether dumps without rows are nothing to remark on.
    const MAY_BE_EMPTY: bool = false;

    /// Whether dumps begin with lines that name version or columns.
    const HEADED: bool = true;

    /// The time that a line carries in front of what it says, and what it says.
    fn split_line_time<'a>(&self, text: &'a str) -> (Option<Nanos>, &'a str) {
        (None, text)
    }

    /// What `text` is; an error ends the import, as what follows would be misread.
    fn line_role(&self, text: &str) -> Result<LogLineRole, String>;

    /// Reads a row into `rows`.
    fn parse_row(&mut self, line: LogLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome;

    /// Ends a tick; an error ends the import.
    fn end_reading(&mut self, rows: &mut Vec<CellRow>) -> Result<(), String> {
        let _ = rows;
        Ok(())
    }

    /// The columns, asked for after the first tick.
    fn columns(&self) -> Vec<ColumnSpec>;

    /// What a reader of the whole log should know.
    fn closing_note(&self) -> Option<String> {
        None
    }

    /// The page size that the rows fit, in bytes, where they say so; asked for after the first tick.
    fn page_size(&self) -> Option<u64> {
        None
    }
}

/// One dump.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoggedReading {
    /// Nanoseconds since 1970, where the log says.
    pub(crate) time: Option<Nanos>,
    /// Its rows.
    pub(crate) rows: Vec<CellRow>,
}

/// Something that gives ticks in order.
pub(crate) trait ReadingSource {
    fn series_name(&self) -> &'static str;
    fn source(&self) -> &'static str;
    fn columns(&self) -> Vec<ColumnSpec>;
    fn page_size(&self) -> Option<u64>;
    fn next_reading(&mut self) -> Result<Option<LoggedReading>, ArchiveError>;
    fn report_mut(&mut self) -> &mut FileReport;
    fn file_report(&self) -> &FileReport;
}
