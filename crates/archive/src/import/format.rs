//! What the format of one kind of dump says, and what gives ticks, of whatever format.

use perflab_model::{Column, Nanos, Row};

use super::lines::Line;
use super::took::{Read, Took};
use crate::ArchiveError;

/// What a line of a dump is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// the first of a dump
    Head,
    /// the first of a dump, and a row
    HeadRow,
    /// of no meaning
    Comment,
    /// a row
    Row,
}

impl Role {
    pub(crate) fn heads(self) -> bool {
        matches!(self, Role::Head | Role::HeadRow)
    }
}

/// The format of one kind of dump.
pub(crate) trait Format {
    /// The series that it becomes.
    const SERIES: &'static str;
    /// Where the numbers came from on the recorded machine.
    const SOURCE: &'static str;

    /// Whether dumps without rows are nothing to remark on.
    const MAY_BE_EMPTY: bool = false;

    /// Whether dumps begin with lines that name version or columns.
    const HEADED: bool = true;

    /// The time that a line carries in front of what it says, and what it says.
    fn stamped<'a>(&self, text: &'a str) -> (Option<Nanos>, &'a str) {
        (None, text)
    }

    /// What `text` is; an error ends the import, as what follows would be misread.
    fn role(&self, text: &str) -> Result<Role, String>;

    /// Reads a row into `rows`.
    fn row(&mut self, line: Line<'_>, rows: &mut Vec<Row>) -> Read;

    /// Ends a tick; an error ends the import.
    fn end(&mut self, rows: &mut Vec<Row>) -> Result<(), String> {
        let _ = rows;
        Ok(())
    }

    /// The columns, asked for after the first tick.
    fn columns(&self) -> Vec<Column>;

    /// What a reader of the whole log should know.
    fn remark(&self) -> Option<String> {
        None
    }

    /// The page size that the rows fit, in bytes, where they say so; asked for after the first tick.
    fn page_size(&self) -> Option<u64> {
        None
    }
}

/// One dump.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Nanoseconds since 1970, where the log says.
    pub(crate) time: Option<Nanos>,
    /// Its rows.
    pub(crate) rows: Vec<Row>,
}

/// Something that gives ticks in order.
pub(crate) trait Ticks {
    fn series(&self) -> &'static str;
    fn source(&self) -> &'static str;
    fn columns(&self) -> Vec<Column>;
    fn page_size(&self) -> Option<u64>;
    fn next_tick(&mut self) -> Result<Option<Tick>, ArchiveError>;
    fn took(&mut self) -> &mut Took;
    fn took_so_far(&self) -> &Took;
}
