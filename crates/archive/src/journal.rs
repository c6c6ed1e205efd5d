//! The log of events: appended, and read back line by line; what commands printed.
//!
//! Appending is whole lines into a buffer, and the buffer to the disk before a second is over. There is no sync, as
//! that would disturb what is measured: a killed process loses nothing that was written, a power cut may. Reading takes
//! bounded memory and skips what is not asked for without parsing it; a torn or damaged line is left out and counted.
//!
//! `logs/outputs.jsonl.zst` holds everything that commands printed, as the journal's own lines, compressed. It is one
//! file, because thirty thousand iterations would be sixty thousand small ones.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perflab_model::{Nanos, RunEvent, RunEventKind};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::ArchiveError;
use crate::checksums::open_verified;
use crate::fresh_file::create_fresh_file;
use crate::run_layout::{LOGS, OUTPUTS};
use perflab_files::open_finite_file;

/// Rows of fast monitors wait this long for company: the next tick comes within as long again.
const PATIENCE: Duration = Duration::from_millis(500);

/// Monitors that tick less often are written at once, as nothing may follow that would push them out.
const FAST: Nanos = Nanos(500_000_000);

/// A buffer that has grown this far is written whatever it holds.
const FULL: usize = 256 * 1024;

/// What may pile up while the disk is full; more is refused, so that memory stays bounded.
const PILE: usize = 16 * 1024 * 1024;

/// The journal of a run that is being recorded.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    path: PathBuf,
    file: File,
    pending: Vec<u8>,
    written: u64,
    flushed: Instant,
    slow: BTreeSet<String>,
    /// Whether something is held that does not wait for company.
    is_due: bool,
}

impl JournalWriter {
    /// Creates an empty journal, which must not be there yet.
    pub(crate) fn create(path: &Path) -> Result<Self, ArchiveError> {
        let file = File::create_new(path).map_err(ArchiveError::io("create", path))?;
        let (pending, slow) = (Vec::with_capacity(2 * FULL), BTreeSet::new());
        let flushed = Instant::now();
        Ok(JournalWriter { path: path.into(), file, pending, written: 0, flushed, slow, is_due: false })
    }

    /// Tells where the journal lies after its directory was renamed.
    pub(crate) fn set_path(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Bytes that are on the disk.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.written
    }

    /// Appends an event. After an error the event is kept and tried again with the next one, unless too
    /// much has piled up already.
    pub(crate) fn append(&mut self, event: &RunEvent) -> Result<(), ArchiveError> {
        self.hold(event)?;
        self.flush_if_due()
    }

    /// Takes an event that others follow at once: [`JournalWriter::flush_if_due`] writes them together.
    pub(crate) fn hold(&mut self, event: &RunEvent) -> Result<(), ArchiveError> {
        if self.pending.len() > PILE {
            self.flush()?;
        }
        serde_json::to_writer(&mut self.pending, event).map_err(ArchiveError::damaged(&self.path))?;
        self.pending.push(b'\n');
        self.note_pace(event);
        self.is_due |= !self.can_wait(event);
        Ok(())
    }

    /// Writes everything that is held, if some of it does not wait.
    pub(crate) fn flush_if_due(&mut self) -> Result<(), ArchiveError> {
        if self.is_due { self.flush() } else { Ok(()) }
    }

    /// Writes everything that is held.
    pub(crate) fn flush(&mut self) -> Result<(), ArchiveError> {
        self.flushed = Instant::now();
        self.is_due = false;
        let (done, outcome) = write_counted(&mut self.file, &self.pending);
        self.pending.drain(..done);
        self.written += done as u64;
        outcome.map_err(|source| ArchiveError::JournalWrite {
            path: self.path.clone(),
            kept: self.written,
            source,
        })
    }

    fn note_pace(&mut self, event: &RunEvent) {
        if let RunEventKind::SeriesOpened(schema) = &event.what
            && schema.interval > FAST
        {
            self.slow.insert(schema.monitor.clone());
        }
    }

    fn can_wait(&self, event: &RunEvent) -> bool {
        let is_slow = match &event.what {
            RunEventKind::Rows { monitor, .. } | RunEventKind::Changed { monitor, .. } => {
                self.slow.contains(monitor)
            }
            // The iteration's end follows at the latest.
            RunEventKind::Edge(_) => false,
            _ => return false,
        };
        !is_slow && self.pending.len() < FULL && self.flushed.elapsed() < PATIENCE
    }
}

/// A recorder that is dropped on the way out of an error still leaves its last rows.
impl Drop for JournalWriter {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Like `Write::write_all`, but says how far it came.
fn write_counted(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match file.write(rest) {
            Ok(0) => return (done, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

/// Room for a line of rows without growing; journals are read from front to back.
const BUFFER: usize = 256 * 1024;

/// The longest line that is held; behind a longer one nothing is read, as behind one that was torn.
const LONGEST: u64 = 512 << 20;

/// The names of events as they stand in a line.
pub(crate) mod kind {

    pub(crate) const FACTS: &str = "facts";

    pub(crate) const DOCUMENT: &str = "document";

    pub(crate) const SAMPLE: &str = "sample";

    pub(crate) const ITERATION_ENDED: &str = "iteration-ended";

    pub(crate) const SERIES_OPENED: &str = "series-opened";

    pub(crate) const ROWS: &str = "rows";

    pub(crate) const STACKS: &str = "stacks";

    pub(crate) const PROFILED: &str = "profiled";

    pub(crate) const CHANGED: &str = "changed";

    pub(crate) const EDGE: &str = "edge";

    pub(crate) const CLOCK: &str = "clock";

    pub(crate) const GAP: &str = "gap";

    pub(crate) const OUTPUT: &str = "output";

    pub(crate) const WARNING: &str = "warning";
    pub(crate) const SETTING_OVERWRITTEN: &str = "setting-overwritten";
    pub(crate) const TRIGGERED: &str = "triggered";
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
    /// What the head of a selected line has in it.
    only_with: Option<Vec<u8>>,
    damaged: u64,
}

impl JournalReader {
    pub(crate) fn open(path: &Path) -> Result<Self, crate::error::ArchiveError> {
        let file = open_finite_file(path).map_err(crate::error::ArchiveError::io("read", path))?;
        Ok(JournalReader::from_reader(path, Box::new(BufReader::with_capacity(BUFFER, file))))
    }

    /// Reads lines from anywhere; `path` is for messages.
    pub fn from_reader(path: &Path, reader: Box<dyn BufRead + Send>) -> Self {
        JournalReader { path: path.into(), reader, line: Vec::new(), only: None, only_with: None, damaged: 0 }
    }

    /// Leaves out all events but those of these kinds, without parsing them.
    pub(crate) fn select_kinds(self, kinds: &'static [&'static str]) -> Self {
        JournalReader { only: Some(kinds), ..self }
    }

    /// Leaves out all outputs but those of one name, most of them without parsing them. Names that JSON escapes are looked for by
    /// whoever reads.
    fn select_outputs_of(self, name: &str) -> Self {
        let is_plain = name.bytes().all(|c| c.is_ascii_alphanumeric() || b" -_.".contains(&c));
        let only_with = is_plain.then(|| format!("\"name\":\"{name}\"").into_bytes());
        JournalReader { only_with, ..self.select_kinds(&[kind::OUTPUT]) }
    }

    /// Lines so far that were left out because they are torn or damaged.
    pub fn damaged_lines(&self) -> u64 {
        self.damaged
    }

    /// Goes to the next whole line; `false` at the end.
    pub(crate) fn next_line(&mut self) -> Result<bool, crate::error::ArchiveError> {
        self.line.clear();
        let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut self.line);
        match read.map_err(crate::error::ArchiveError::io("read", &self.path))? {
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

    fn next_event(&mut self) -> Result<Option<RunEvent>, crate::error::ArchiveError> {
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
        let has = |text: &Vec<u8>| {
            let head = self.line.get(..self.line.len().min(NAMED_WITHIN)).unwrap_or_default();
            head.windows(text.len()).any(|window| window == text.as_slice())
        };
        event_kind(&self.line).is_none_or(|kind| kinds.contains(&kind))
            && self.only_with.as_ref().is_none_or(has)
    }
}

impl Iterator for JournalReader {
    type Item = Result<RunEvent, crate::error::ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_event().transpose();
        if matches!(next, Some(Err(_))) {
            self.reader = Box::new(io::empty());
        }
        next
    }
}

/// The name of an output is among so many bytes of its line: only its text behind that is long.
const NAMED_WITHIN: usize = 512;

/// The kind of event in a line that this crate wrote; `None` where only parsing can tell.
pub(crate) fn event_kind(line: &[u8]) -> Option<&str> {
    const BEFORE: &[u8] = b"\"what\":{\"";
    let head = line.get(..line.len().min(96))?;
    let begin = head.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    let name = head.get(begin..)?;
    let end = name.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(name.get(..end)?).ok()
}

const LEVEL: i32 = 3;

/// The file being written.
pub(crate) struct OutputLogWriter<'a> {
    path: std::path::PathBuf,
    encoder: Encoder<'a, File>,
}

impl OutputLogWriter<'_> {
    pub(crate) fn create(directory: &Path) -> Result<Self, crate::error::ArchiveError> {
        let path = directory.join(OUTPUTS);
        fs::create_dir_all(directory.join(LOGS)).map_err(crate::error::ArchiveError::io("create", &path))?;
        let encoder = create_fresh_file(&path).and_then(|file| Encoder::new(file, LEVEL));
        let encoder = encoder.map_err(crate::error::ArchiveError::io("create", &path))?;
        Ok(OutputLogWriter { path, encoder })
    }

    /// Takes one line of the journal as it stands, without its end.
    pub(crate) fn push(&mut self, line: &[u8]) -> Result<(), crate::error::ArchiveError> {
        let written = self.encoder.write_all(line).and_then(|()| self.encoder.write_all(b"\n"));
        written.map_err(crate::error::ArchiveError::io("write", &self.path))
    }

    pub(crate) fn close(self) -> Result<(), crate::error::ArchiveError> {
        let finished = self.encoder.finish().and_then(|file| file.sync_all());
        finished.map_err(crate::error::ArchiveError::io("write", &self.path))
    }
}

/// The stored lines of a finished run.
pub(crate) fn open_output_log(run: &Path) -> Result<JournalReader, crate::error::ArchiveError> {
    let path = run.join(OUTPUTS);
    let file = open_verified(run, Path::new(OUTPUTS))?;
    let decoder = Decoder::new(file).map_err(crate::error::ArchiveError::io("read", &path))?;
    Ok(JournalReader::from_reader(&path, Box::new(BufReader::new(decoder))))
}

/// All that `name` printed in `slot`, from a journal or from the stored lines; `None` where nothing was.
pub(crate) fn find_output(
    events: JournalReader,
    slot: Option<u32>,
    name: &str,
) -> Result<Option<String>, crate::error::ArchiveError> {
    let all = list_outputs(events, name)?.into_iter().filter(|one| one.slot == slot);
    Ok(all.map(|one| one.text).reduce(|before, after| before + &after))
}

/// Each part of what `name` printed, in order.
pub(crate) fn list_outputs(
    events: JournalReader,
    name: &str,
) -> Result<Vec<StoredOutput>, crate::error::ArchiveError> {
    let mut found = Vec::new();
    for event in events.select_outputs_of(name) {
        let RunEvent { target, what, .. } = event?;
        if let RunEventKind::Output { slot, name: by, text } = what
            && by == name
        {
            found.push(StoredOutput { slot, target, text });
        }
    }
    Ok(found)
}

/// Something that was printed during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutput {
    /// The iteration in which it was; none where it was outside of any.
    pub slot: Option<u32>,
    /// The target on which it was; none for the machine that records.
    pub target: Option<u32>,
    /// The text.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use perflab_model::{Nanos, RunEventKind, SeriesSchema};

    use super::*;

    fn sample_event(what: RunEventKind) -> RunEvent {
        RunEvent::new(Nanos(1), what)
    }

    #[test]
    fn only_rows_of_fast_monitors_wait_and_a_drop_writes_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        let mut journal = JournalWriter::create(&path).unwrap();
        let on_disk = || std::fs::read_to_string(&path).unwrap().lines().count();
        for (monitor, interval) in [("slow", Nanos(2_000_000_000)), ("fast", Nanos(100_000_000))] {
            let (monitor, source) = (monitor.to_owned(), String::new());
            let schema = SeriesSchema {
                stored: perflab_model::series::StoredRows::Every,
                monitor,
                source,
                interval,
                columns: Vec::new(),
            };
            journal.append(&sample_event(RunEventKind::SeriesOpened(schema))).unwrap();
        }
        assert_eq!(on_disk(), 2, "what is not a row is written at once");
        journal
            .append(&sample_event(RunEventKind::Rows {
                monitor: "slow".into(),
                rows: Vec::new(),
                took: Nanos(0),
            }))
            .unwrap();
        assert_eq!(on_disk(), 3, "nothing may follow for long");
        journal
            .append(&sample_event(RunEventKind::Rows {
                monitor: "fast".into(),
                rows: Vec::new(),
                took: Nanos(0),
            }))
            .unwrap();
        drop(journal);
        assert_eq!(on_disk(), 4);
    }

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
        let rows = RunEventKind::Rows { monitor: "m".into(), rows: Vec::new(), took: Nanos(0) };
        let line = serde_json::to_vec(&RunEvent::new(Nanos(u64::MAX), rows)).unwrap();
        assert_eq!(event_kind(&line), Some(kind::ROWS));
        assert_eq!(event_kind(b"{}"), None);
    }
}
