//! What killed runs left behind, undone.

use std::fs;
use std::path::Path;

use perflab_observe::own_directories;

use super::journal::{UndoJournal, is_journal_path};
use super::undo::UndoEntry;
use crate::ConductError;

/// What was found of a killed run, and what became of it.
#[derive(Debug)]
pub struct RecoveredRun {
    /// The run.
    pub run: String,
    /// What was put back.
    pub undone: Vec<String>,
    /// What could not be, and why.
    pub failed: Vec<String>,
}

/// Undoes what killed runs left behind. Journals of living runs are left alone.
pub fn recover_killed_runs(directory: &Path, boot_id: &str) -> Vec<RecoveredRun> {
    match own_directories::open_own_directory(directory) {
        Ok(Some(_)) => {}
        Ok(None) => return Vec::new(),
        Err(error) => return vec![RecoveredRun::refused_journal(directory, &error)],
    }
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let journals = entries.flatten().map(|entry| entry.path()).filter(|path| is_journal_path(path));
    journals.filter_map(|path| recover_run(&path, boot_id)).collect()
}

fn recover_run(path: &Path, boot_id: &str) -> Option<RecoveredRun> {
    let mut journal = match UndoJournal::open_abandoned(path, boot_id) {
        Ok(journal) => journal?,
        Err(error) => return Some(RecoveredRun::refused_journal(path, &error)),
    };
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let mut found = RecoveredRun::new(name.trim_start_matches("undo-"));
    let left: Vec<(u32, UndoEntry)> =
        journal.pending().map(|(number, undo)| (number, undo.clone())).collect();
    for (number, undo) in left {
        found.record_undo(&undo, || journal.undo(number));
    }
    found.failed.extend(journal.close().err().map(|error| error.with_causes()));
    (!found.undone.is_empty() || !found.failed.is_empty()).then_some(found)
}

impl RecoveredRun {
    /// Nothing yet of this run.
    pub(crate) fn new(run: &str) -> Self {
        RecoveredRun { run: run.into(), undone: Vec::new(), failed: Vec::new() }
    }

    /// What somebody else may have written, and is not carried out.
    fn refused_journal(path: &Path, error: &std::io::Error) -> Self {
        RecoveredRun { failed: vec![format!("{}: {error}", path.display())], ..RecoveredRun::new("unknown") }
    }

    /// Notes what became of one change.
    pub(crate) fn record_undo(&mut self, undo: &UndoEntry, done: impl FnOnce() -> Result<(), ConductError>) {
        match done() {
            Ok(()) => self.undone.push(undo.name()),
            Err(error) => self.failed.push(format!("{}: {}", undo.name(), error.with_causes())),
        }
    }
}
