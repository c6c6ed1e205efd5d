//! What killed runs left behind, undone.

use std::fs;
use std::path::Path;

use perflab_observe::own_directories;

use super::journal::{UndoJournal, is_journal};
use super::undo::Undo;
use crate::ConductError;

/// What was found of a killed run, and what became of it.
#[derive(Debug)]
pub struct Recovered {
    /// The run.
    pub run: String,
    /// What was put back.
    pub undone: Vec<String>,
    /// What could not be, and why.
    pub failed: Vec<String>,
}

/// Undoes what killed runs left behind. Journals of living runs are left alone.
pub fn recover(directory: &Path, boot_id: &str) -> Vec<Recovered> {
    match own_directories::open(directory) {
        Ok(Some(_)) => {}
        Ok(None) => return Vec::new(),
        Err(error) => return vec![Recovered::left(directory, &error)],
    }
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let journals = entries.flatten().map(|entry| entry.path()).filter(|path| is_journal(path));
    journals.filter_map(|path| recover_one(&path, boot_id)).collect()
}

fn recover_one(path: &Path, boot_id: &str) -> Option<Recovered> {
    let mut journal = match UndoJournal::abandoned(path, boot_id) {
        Ok(journal) => journal?,
        Err(error) => return Some(Recovered::left(path, &error)),
    };
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let mut found = Recovered::of(name.trim_start_matches("undo-"));
    let left: Vec<(u32, Undo)> = journal.pending().map(|(number, undo)| (number, undo.clone())).collect();
    for (number, undo) in left {
        found.attempt(&undo, || journal.undo(number));
    }
    found.failed.extend(journal.close().err().map(|error| error.with_causes()));
    (!found.undone.is_empty() || !found.failed.is_empty()).then_some(found)
}

impl Recovered {
    /// Nothing yet of this run.
    pub(crate) fn of(run: &str) -> Self {
        Recovered { run: run.into(), undone: Vec::new(), failed: Vec::new() }
    }

    /// What somebody else may have written, and is not carried out.
    fn left(path: &Path, error: &std::io::Error) -> Self {
        Recovered { failed: vec![format!("{}: {error}", path.display())], ..Recovered::of("unknown") }
    }

    /// Notes what became of one change.
    pub(crate) fn attempt(&mut self, undo: &Undo, done: impl FnOnce() -> Result<(), ConductError>) {
        match done() {
            Ok(()) => self.undone.push(undo.name()),
            Err(error) => self.failed.push(format!("{}: {}", undo.name(), error.with_causes())),
        }
    }
}
