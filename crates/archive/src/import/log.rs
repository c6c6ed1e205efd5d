//! A log of dumps: each begins with `time: EPOCH`, or, where nobody wrote times, with its own head. Owns
//! where a tick begins and ends; what a line within it means is its [`ReadingParser`]'s.

use std::path::Path;

use perflab_model::{CellRow, ColumnSpec, Nanos};

use super::format::{LogLineRole, LoggedReading, ReadingParser, ReadingSource};
use super::lines::{InputLines, LogLine};
use super::took::{FileReport, LineOutcome};
use crate::ArchiveError;

/// Lines of one tick at most: it is held in memory.
const LONGEST_TICK: u64 = 200_000;
/// Bytes of one tick at most.
const LARGEST_TICK: u64 = 64 << 20;
/// Bytes of a row at most: lines of any format are far shorter, and texts wait in memory for their table.
const LONGEST_ROW: usize = 2048;
const SECOND: f64 = 1e9;

/// A dump that is being read.
struct OpenDump {
    line: u64,
    time: Result<Option<Nanos>, String>,
    headed: bool,
    bytes: u64,
    rows: Vec<CellRow>,
}

/// A log in one format.
pub(crate) struct DumpLog<F> {
    lines: InputLines,
    format: F,
    took: FileReport,
    open: Option<OpenDump>,
    over: bool,
    headless: bool,
    begun: Option<Nanos>,
}

impl<F: ReadingParser> DumpLog<F> {
    pub(crate) fn open(path: &Path, format: F) -> Result<Self, ArchiveError> {
        Ok(DumpLog::from_lines(InputLines::open(path)?, format))
    }

    /// A log among other files, which cannot stop them from being read.
    pub(crate) fn open_optional(path: &Path, format: F) -> Self {
        DumpLog::from_lines(InputLines::open_optional(path), format)
    }

    pub(crate) fn from_lines(lines: InputLines, format: F) -> Self {
        let took = FileReport::new(lines.path(), F::SERIES);
        DumpLog { lines, format, took, open: None, over: false, headless: false, begun: None }
    }

    /// The same, of a log that begins then, should its dumps not say when they were made.
    pub(crate) fn with_start(self, begun: Option<Nanos>) -> Self {
        DumpLog { begun, ..self }
    }

    /// Reads lines until a dump is complete.
    fn read_dump(&mut self) -> Result<Option<LoggedReading>, ArchiveError> {
        while !self.over {
            let done = self.take_line()?;
            if let Some(tick) = done.map(|open| self.close_dump(open)).transpose()?.flatten() {
                return Ok(Some(tick));
            }
        }
        Ok(None)
    }

    /// Takes one line; gives the dump that it ends.
    fn take_line(&mut self) -> Result<Option<OpenDump>, ArchiveError> {
        let Some(line) = self.lines.next_line()? else {
            self.over = true;
            return Ok(self.open.take());
        };
        if let Some(time) = line.text.strip_prefix("time:") {
            return Ok(self.open.replace(OpenDump::begin_at(line.number, parse_time_line(time))));
        }
        let (stamp, text) = self.format.split_line_time(line.text);
        let line = LogLine { text, ..line };
        if line.text.trim_ascii().is_empty() {
            return Ok(None);
        }
        let number = line.number;
        let role = match self.format.line_role(line.text) {
            Ok(role) => role,
            Err(reason) => return Err(self.line_error(number, reason)),
        };
        let begins = role.is_head() && self.open.as_ref().is_none_or(|open| open.headed);
        let ended = if begins { self.open.replace(OpenDump::begin_at(number, Ok(stamp))) } else { None };
        let open = self.open.get_or_insert_with(|| OpenDump::begin_at(number, Ok(stamp)));
        open.headed |= role.is_head();
        open.bytes += line.text.len() as u64;
        if matches!(role, LogLineRole::Row | LogLineRole::HeadRow) {
            self.headless |= F::HEADED && !open.headed;
            let read = parse_dump_row(open, line, &mut self.format);
            self.took.count_row(number, read);
        }
        self.check_dump_size(number)?;
        Ok(ended)
    }

    /// A dump is held in memory, so it may not go on for ever.
    fn check_dump_size(&self, number: u64) -> Result<(), ArchiveError> {
        let Some(open) = &self.open else { return Ok(()) };
        if number - open.line > LONGEST_TICK {
            return Err(self.line_error(number, format!("no dump ends within {LONGEST_TICK} lines")));
        }
        if open.bytes > LARGEST_TICK {
            return Err(self.line_error(number, format!("no dump ends within {LARGEST_TICK} bytes")));
        }
        Ok(())
    }

    fn close_dump(&mut self, mut open: OpenDump) -> Result<Option<LoggedReading>, ArchiveError> {
        self.format.end_reading(&mut open.rows).map_err(|reason| self.line_error(open.line, reason))?;
        if let Err(reason) = open.time {
            self.took.add_note(format!("line {}: {reason}: the rows of this dump are unusable", open.line));
            return Ok(None);
        }
        if open.rows.is_empty() && F::MAY_BE_EMPTY {
            return Ok(None);
        }
        if open.rows.is_empty() {
            self.took.add_note(format!("line {}: this dump has no rows", open.line));
        }
        self.took.ticks += 1;
        let time = open.time.unwrap_or_default().or_else(|| self.assumed_time());
        Ok(Some(LoggedReading { time, rows: open.rows }))
    }

    /// A second after the other, from when the log is known to have begun.
    fn assumed_time(&mut self) -> Option<Nanos> {
        let begun = self.begun?;
        let passed = self.took.ticks.saturating_mul(1_000_000_000);
        if self.took.ticks == 1 {
            self.took.add_note(
                "its lines carry no time: taken as one a second from the beginning of its benchmark",
            );
        }
        Some(Nanos(begun.0.saturating_add(passed)))
    }

    fn line_error(&self, line: u64, reason: String) -> ArchiveError {
        ArchiveError::not_importable(self.lines.path(), Some(line), reason)
    }

    /// Notes that can only be made at the end.
    fn add_closing_notes(&mut self) {
        self.took.note_early_end(&self.lines);
        self.format.closing_note().into_iter().for_each(|remark| self.took.add_note(remark));
        if std::mem::take(&mut self.headless) {
            self.took
                .add_note("some dumps lack the lines that name version and columns: taken as the usual ones");
        }
    }
}

impl<F: ReadingParser> ReadingSource for DumpLog<F> {
    fn series_name(&self) -> &'static str {
        F::SERIES
    }

    fn source(&self) -> &'static str {
        F::SOURCE
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        self.format.columns()
    }

    fn page_size(&self) -> Option<u64> {
        self.format.page_size()
    }

    fn next_reading(&mut self) -> Result<Option<LoggedReading>, ArchiveError> {
        let before = self.over;
        let tick = self.read_dump()?;
        if self.over && !before {
            self.add_closing_notes();
        }
        Ok(tick)
    }

    fn report_mut(&mut self) -> &mut FileReport {
        &mut self.took
    }

    fn file_report(&self) -> &FileReport {
        &self.took
    }
}

impl OpenDump {
    fn begin_at(line: u64, time: Result<Option<Nanos>, String>) -> Self {
        OpenDump { line, time, headed: false, bytes: 0, rows: Vec::new() }
    }
}

fn parse_dump_row<F: ReadingParser>(open: &mut OpenDump, line: LogLine<'_>, format: &mut F) -> LineOutcome {
    match &open.time {
        _ if line.text.len() > LONGEST_ROW => {
            LineOutcome::Unusable(format!("it is longer than {LONGEST_ROW} bytes"))
        }
        Ok(_) => format.parse_row(line, &mut open.rows),
        Err(reason) => LineOutcome::Unusable(reason.clone()),
    }
}

/// `1570815211`, or with a fraction.
fn parse_time_line(text: &str) -> Result<Option<Nanos>, String> {
    let text = text.trim_ascii();
    let whole = text.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
    let fraction =
        || text.parse::<f64>().ok().filter(|time| (0.0..9e9).contains(time)).map(|t| (t * SECOND) as u64);
    let time = whole.filter(|time| *time < 9_000_000_000 * 1_000_000_000).or_else(fraction);
    time.map(|time| Some(Nanos(time)))
        .ok_or_else(|| format!("`time: {text}` is no time in seconds since 1970"))
}
