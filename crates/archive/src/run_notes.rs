//! Notes on a run: `notes.jsonl` beside its tables, a line a note, only ever appended to.
//!
//! They are what people said, and no part of what was measured: a run that is closed may get some, and its hashes leave them out. A
//! portable file takes them along.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use perflab_files::read_finite_file;
use perflab_model::{Nanos, RunNote};
use rustix::fs::OFlags;

use crate::archive_dir::Archive;
use crate::error::ArchiveError;
use crate::fresh_file::check_folder_owners;
use crate::index::index_refresh::note_changed_run;
use crate::run_dir::RunDir;
use crate::run_layout::NOTES;

/// Letters of a note.
pub const LONGEST_NOTE: usize = 10_000;

/// The longest file that is read, and that is appended to.
const LONGEST: u64 = 16 << 20;

impl RunDir {
    /// Its notes, the oldest first. Lines that are damaged are left out: they say nothing of what was measured.
    ///
    /// # Errors
    /// A file that cannot be read, or is no file.
    pub fn read_notes(&self) -> Result<Vec<RunNote>, ArchiveError> {
        let path = self.path().join(NOTES);
        let text = match read_finite_file(&path, LONGEST) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(ArchiveError::io("read", &path))?,
        };
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

impl Archive {
    /// Appends a note to a run, of the time that it is now, whatever it says of that itself.
    ///
    /// # Errors
    /// A note that is empty or longer than [`LONGEST_NOTE`]; a file that cannot be written.
    pub fn add_note(&self, run: &RunDir, note: RunNote) -> Result<RunNote, ArchiveError> {
        let path = run.path().join(NOTES);
        let refuse = |reason: String| ArchiveError::Refused { path: path.clone(), reason };
        if note.text.trim().is_empty() || note.text.chars().count() > LONGEST_NOTE {
            return Err(refuse(format!("a note has one letter at least and {LONGEST_NOTE} at most")));
        }
        check_folder_owners(&self.runs_directory(), Some(run.path()))?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        let note = RunNote { at, ..note };
        let mut line = serde_json::to_vec(&note).map_err(ArchiveError::damaged(&path))?;
        // A line that a full disk tore apart ends here.
        line.insert(0, b'\n');
        line.push(b'\n');
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .custom_flags(flags)
            .open(&path)
            .map_err(ArchiveError::io("open", &path))?;
        let about = file.metadata().map_err(ArchiveError::io("read", &path))?;
        if !about.is_file() || about.len() + line.len() as u64 > LONGEST {
            return Err(refuse("it is no file, or has no room for another note".into()));
        }
        // One call: lines of two writers do not mix.
        file.write_all(&line).and_then(|()| file.sync_all()).map_err(ArchiveError::io("write", &path))?;
        // A list says how much a run takes on the disk.
        note_changed_run(run.path());
        Ok(note)
    }
}
