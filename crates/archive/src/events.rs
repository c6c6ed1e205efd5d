//! Reading a journal line by line in bounded memory, skipping what is not wanted without parsing it.
//! Owns what a torn or damaged line means: it is left out and counted. Refuses to interpret events.

use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use perflab_model::RunEvent;

use crate::ArchiveError;
use crate::finite_file::open_finite_file;

/// Room for a line of rows without growing; journals are read from front to back.
const BUFFER: usize = 256 * 1024;
/// The longest line that is held; behind a longer one nothing is read, as behind one that was torn.
const LONGEST: u64 = 512 << 20;

/// The names of events as they stand in a line.
pub(crate) mod kind {
    pub(crate) const FACTS: &str = "facts";
    pub(crate) const SAMPLE: &str = "sample";
    pub(crate) const ITERATION_ENDED: &str = "iteration-ended";
    pub(crate) const SERIES_OPENED: &str = "series-opened";
    pub(crate) const ROWS: &str = "rows";
    pub(crate) const STACKS: &str = "stacks";
    pub(crate) const PROFILED: &str = "profiled";
    pub(crate) const CHANGED: &str = "changed";
    pub(crate) const CLOCK: &str = "clock";
    pub(crate) const GAP: &str = "gap";
    pub(crate) const OUTPUT: &str = "output";
    pub(crate) const WARNING: &str = "warning";
}

/// The events of a journal in order, an iterator over `Result<Event, ArchiveError>`.
///
/// Lines that are torn (the last one of a run whose process died) or damaged are left out and counted.
/// An error is a failing disk and ends the iteration.
pub struct JournalReader {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    only: Option<&'static [&'static str]>,
    damaged: u64,
}

impl JournalReader {
    pub(crate) fn open(path: &Path) -> Result<Self, ArchiveError> {
        let file = open_finite_file(path).map_err(ArchiveError::io("read", path))?;
        Ok(JournalReader::from_reader(path, Box::new(BufReader::with_capacity(BUFFER, file))))
    }

    /// Reads lines from anywhere; `path` is for messages.
    pub(crate) fn from_reader(path: &Path, reader: Box<dyn BufRead + Send>) -> Self {
        JournalReader { path: path.into(), reader, line: Vec::new(), only: None, damaged: 0 }
    }

    /// Leaves out all events but those of these kinds, without parsing them.
    pub(crate) fn select_kinds(self, kinds: &'static [&'static str]) -> Self {
        JournalReader { only: Some(kinds), ..self }
    }

    /// Lines so far that were left out because they are torn or damaged.
    pub fn damaged_lines(&self) -> u64 {
        self.damaged
    }

    /// Goes to the next whole line; `false` at the end.
    pub(crate) fn next_line(&mut self) -> Result<bool, ArchiveError> {
        self.line.clear();
        let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut self.line);
        match read.map_err(ArchiveError::io("read", &self.path))? {
            0 => Ok(false),
            _ if self.line.pop_if(|last| *last == b'\n').is_some() => Ok(true),
            _ => {
                self.damaged += 1;
                Ok(false)
            }
        }
    }

    /// The line gone to, without its end.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Counts the line gone to among those that are left out: it is an event of which nothing can be made.
    pub(crate) fn count_damaged(&mut self) {
        self.damaged += 1;
    }

    /// The line gone to, as an event; counted where it is none.
    pub(crate) fn parse_event(&mut self) -> Option<RunEvent> {
        let event = serde_json::from_slice(&self.line).ok();
        self.damaged += u64::from(event.is_none());
        event
    }

    fn next_event(&mut self) -> Result<Option<RunEvent>, ArchiveError> {
        while self.next_line()? {
            if self.is_selected()
                && let Some(event) = self.parse_event()
            {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn is_selected(&self) -> bool {
        let Some(kinds) = self.only else { return true };
        event_kind(&self.line).is_none_or(|kind| kinds.contains(&kind))
    }
}

impl Iterator for JournalReader {
    type Item = Result<RunEvent, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_event().transpose();
        if matches!(next, Some(Err(_))) {
            self.reader = Box::new(io::empty());
        }
        next
    }
}

/// The kind of event in a line that this crate wrote; `None` where only parsing can tell.
pub(crate) fn event_kind(line: &[u8]) -> Option<&str> {
    const BEFORE: &[u8] = b"\"what\":{\"";
    let head = line.get(..line.len().min(96))?;
    let begin = head.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    let name = head.get(begin..)?;
    let end = name.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(name.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use perflab_model::{Nanos, RunEventKind};

    use super::*;

    fn read_journal_text(text: &'static str) -> JournalReader {
        JournalReader::from_reader(Path::new("j"), Box::new(text.as_bytes()))
    }

    const TEXT: &str = concat!(
        "{\"at\":1,\"what\":{\"phase\":\"check\"}}\n",
        "{\"at\":2,\"what\":{\"warning\":{\"message\":\"m\",\"advice\":\"a\"}}}\n",
        "{\"at\":3,\"wh~~~}\n",
        "{\"at\":4,\"what\":{\"phase\":\"iterate\"}}\n",
        "{\"at\":5,\"what\":{\"phase\":\"undo\"}}",
    );

    #[test]
    fn torn_and_damaged_lines_are_left_out_and_counted() {
        let mut events = read_journal_text(TEXT);
        let at: Vec<Nanos> = events.by_ref().map(|event| event.unwrap().at).collect();
        assert_eq!(at, [Nanos(1), Nanos(2), Nanos(4)]);
        assert_eq!(events.damaged_lines(), 2);
    }

    #[test]
    fn unwanted_kinds_are_skipped() {
        let mut events = read_journal_text(TEXT).select_kinds(&[kind::WARNING]);
        assert!(matches!(events.next(), Some(Ok(RunEvent { what: RunEventKind::Warning { .. }, .. }))));
        assert!(events.next().is_none());
    }

    #[test]
    fn kinds_are_found_as_serde_writes_them() {
        let rows = RunEventKind::Rows { monitor: "m".into(), rows: Vec::new() };
        let line = serde_json::to_vec(&RunEvent::new(Nanos(u64::MAX), rows)).unwrap();
        assert_eq!(event_kind(&line), Some(kind::ROWS));
        assert_eq!(event_kind(b"{}"), None);
    }
}
