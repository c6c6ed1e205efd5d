//! Appending to a journal: whole lines into a buffer, the buffer to the disk before a second is over.
//! Owns what a full disk means while recording; refuses to sync, as that would disturb what is measured
//! (a killed process loses nothing that was written; a power cut may).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perflab_model::{Nanos, RunEvent, RunEventKind};

use crate::ArchiveError;

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
}

impl JournalWriter {
    /// Creates an empty journal, which must not be there yet.
    pub(crate) fn create(path: &Path) -> Result<Self, ArchiveError> {
        let file = File::create_new(path).map_err(ArchiveError::io("create", path))?;
        let (pending, slow) = (Vec::with_capacity(2 * FULL), BTreeSet::new());
        Ok(JournalWriter { path: path.into(), file, pending, written: 0, flushed: Instant::now(), slow })
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
        if self.pending.len() > PILE {
            self.flush()?;
        }
        serde_json::to_writer(&mut self.pending, event).map_err(ArchiveError::damaged(&self.path))?;
        self.pending.push(b'\n');
        self.note_pace(event);
        if self.can_wait(event) { Ok(()) } else { self.flush() }
    }

    /// Writes everything that is held.
    pub(crate) fn flush(&mut self) -> Result<(), ArchiveError> {
        self.flushed = Instant::now();
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
        let (RunEventKind::Rows { monitor, .. } | RunEventKind::Changed { monitor, .. }) = &event.what else {
            return false;
        };
        !self.slow.contains(monitor) && self.pending.len() < FULL && self.flushed.elapsed() < PATIENCE
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

#[cfg(test)]
mod tests {
    use perflab_model::SeriesSchema;

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
            let schema = SeriesSchema { monitor, source, interval, columns: Vec::new() };
            journal.append(&sample_event(RunEventKind::SeriesOpened(schema))).unwrap();
        }
        assert_eq!(on_disk(), 2, "what is not a row is written at once");
        journal
            .append(&sample_event(RunEventKind::Rows { monitor: "slow".into(), rows: Vec::new() }))
            .unwrap();
        assert_eq!(on_disk(), 3, "nothing may follow for long");
        journal
            .append(&sample_event(RunEventKind::Rows { monitor: "fast".into(), rows: Vec::new() }))
            .unwrap();
        drop(journal);
        assert_eq!(on_disk(), 4);
    }
}
