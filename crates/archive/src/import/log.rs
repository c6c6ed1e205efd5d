//! A log of dumps: each begins with `time: EPOCH`, or, where nobody wrote times, with its own head. Owns
//! where a tick begins and ends; what a line within it means is its [`Format`]'s.

use std::path::Path;

use perflab_model::{Column, Nanos, Row};

use super::format::{Format, Role, Tick, Ticks};
use super::lines::{Line, Lines};
use super::took::{Read, Took};
use crate::ArchiveError;

/// Lines of one tick at most: it is held in memory.
const LONGEST_TICK: u64 = 200_000;
/// Bytes of one tick at most.
const LARGEST_TICK: u64 = 64 << 20;
/// Bytes of a row at most: lines of any format are far shorter, and texts wait in memory for their table.
const LONGEST_ROW: usize = 2048;
const SECOND: f64 = 1e9;

/// A dump that is being read.
struct Open {
    line: u64,
    time: Result<Option<Nanos>, String>,
    headed: bool,
    bytes: u64,
    rows: Vec<Row>,
}

/// A log in one format.
pub(crate) struct Log<F> {
    lines: Lines,
    format: F,
    took: Took,
    open: Option<Open>,
    over: bool,
    headless: bool,
    begun: Option<Nanos>,
}

impl<F: Format> Log<F> {
    pub(crate) fn open(path: &Path, format: F) -> Result<Self, ArchiveError> {
        Ok(Log::of(Lines::open(path)?, format))
    }

    /// A log among other files, which cannot stop them from being read.
    pub(crate) fn among(path: &Path, format: F) -> Self {
        Log::of(Lines::among(path), format)
    }

    pub(crate) fn of(lines: Lines, format: F) -> Self {
        let took = Took::of(lines.path(), F::SERIES);
        Log { lines, format, took, open: None, over: false, headless: false, begun: None }
    }

    /// The same, of a log that begins then, should its dumps not say when they were made.
    pub(crate) fn begun(self, begun: Option<Nanos>) -> Self {
        Log { begun, ..self }
    }

    /// Reads lines until a dump is complete.
    fn read(&mut self) -> Result<Option<Tick>, ArchiveError> {
        while !self.over {
            let done = self.line()?;
            if let Some(tick) = done.map(|open| self.close(open)).transpose()?.flatten() {
                return Ok(Some(tick));
            }
        }
        Ok(None)
    }

    /// Takes one line; gives the dump that it ends.
    fn line(&mut self) -> Result<Option<Open>, ArchiveError> {
        let Some(line) = self.lines.next()? else {
            self.over = true;
            return Ok(self.open.take());
        };
        if let Some(time) = line.text.strip_prefix("time:") {
            return Ok(self.open.replace(Open::at(line.number, stamp(time))));
        }
        let (stamp, text) = self.format.stamped(line.text);
        let line = Line { text, ..line };
        if line.text.trim_ascii().is_empty() {
            return Ok(None);
        }
        let number = line.number;
        let role = match self.format.role(line.text) {
            Ok(role) => role,
            Err(reason) => return Err(self.refused(number, reason)),
        };
        let begins = role.heads() && self.open.as_ref().is_none_or(|open| open.headed);
        let ended = if begins { self.open.replace(Open::at(number, Ok(stamp))) } else { None };
        let open = self.open.get_or_insert_with(|| Open::at(number, Ok(stamp)));
        open.headed |= role.heads();
        open.bytes += line.text.len() as u64;
        if matches!(role, Role::Row | Role::HeadRow) {
            self.headless |= F::HEADED && !open.headed;
            let read = row(open, line, &mut self.format);
            self.took.count(number, read);
        }
        self.bounded(number)?;
        Ok(ended)
    }

    /// A dump is held in memory, so it may not go on for ever.
    fn bounded(&self, number: u64) -> Result<(), ArchiveError> {
        let Some(open) = &self.open else { return Ok(()) };
        if number - open.line > LONGEST_TICK {
            return Err(self.refused(number, format!("no dump ends within {LONGEST_TICK} lines")));
        }
        if open.bytes > LARGEST_TICK {
            return Err(self.refused(number, format!("no dump ends within {LARGEST_TICK} bytes")));
        }
        Ok(())
    }

    fn close(&mut self, mut open: Open) -> Result<Option<Tick>, ArchiveError> {
        self.format.end(&mut open.rows).map_err(|reason| self.refused(open.line, reason))?;
        if let Err(reason) = open.time {
            self.took.note(format!("line {}: {reason}: the rows of this dump are unusable", open.line));
            return Ok(None);
        }
        if open.rows.is_empty() && F::MAY_BE_EMPTY {
            return Ok(None);
        }
        if open.rows.is_empty() {
            self.took.note(format!("line {}: this dump has no rows", open.line));
        }
        self.took.ticks += 1;
        let time = open.time.unwrap_or_default().or_else(|| self.assumed());
        Ok(Some(Tick { time, rows: open.rows }))
    }

    /// A second after the other, from when the log is known to have begun.
    fn assumed(&mut self) -> Option<Nanos> {
        let begun = self.begun?;
        let passed = self.took.ticks.saturating_mul(1_000_000_000);
        if self.took.ticks == 1 {
            self.took
                .note("its lines carry no time: taken as one a second from the beginning of its benchmark");
        }
        Some(Nanos(begun.0.saturating_add(passed)))
    }

    fn refused(&self, line: u64, reason: String) -> ArchiveError {
        ArchiveError::foreign(self.lines.path(), Some(line), reason)
    }

    /// Notes that can only be made at the end.
    fn end(&mut self) {
        self.took.ended(&self.lines);
        self.format.remark().into_iter().for_each(|remark| self.took.note(remark));
        if std::mem::take(&mut self.headless) {
            self.took
                .note("some dumps lack the lines that name version and columns: taken as the usual ones");
        }
    }
}

impl<F: Format> Ticks for Log<F> {
    fn series(&self) -> &'static str {
        F::SERIES
    }

    fn source(&self) -> &'static str {
        F::SOURCE
    }

    fn columns(&self) -> Vec<Column> {
        self.format.columns()
    }

    fn page_size(&self) -> Option<u64> {
        self.format.page_size()
    }

    fn next_tick(&mut self) -> Result<Option<Tick>, ArchiveError> {
        let before = self.over;
        let tick = self.read()?;
        if self.over && !before {
            self.end();
        }
        Ok(tick)
    }

    fn took(&mut self) -> &mut Took {
        &mut self.took
    }

    fn took_so_far(&self) -> &Took {
        &self.took
    }
}

impl Open {
    fn at(line: u64, time: Result<Option<Nanos>, String>) -> Self {
        Open { line, time, headed: false, bytes: 0, rows: Vec::new() }
    }
}

fn row<F: Format>(open: &mut Open, line: Line<'_>, format: &mut F) -> Read {
    match &open.time {
        _ if line.text.len() > LONGEST_ROW => {
            Read::Unusable(format!("it is longer than {LONGEST_ROW} bytes"))
        }
        Ok(_) => format.row(line, &mut open.rows),
        Err(reason) => Read::Unusable(reason.clone()),
    }
}

/// `1570815211`, or with a fraction.
fn stamp(text: &str) -> Result<Option<Nanos>, String> {
    let text = text.trim_ascii();
    let whole = text.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
    let fraction =
        || text.parse::<f64>().ok().filter(|time| (0.0..9e9).contains(time)).map(|t| (t * SECOND) as u64);
    let time = whole.filter(|time| *time < 9_000_000_000 * 1_000_000_000).or_else(fraction);
    time.map(|time| Some(Nanos(time)))
        .ok_or_else(|| format!("`time: {text}` is no time in seconds since 1970"))
}
