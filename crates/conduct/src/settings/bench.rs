//! The bench: which settings are in force, and the way from one case's to the next one's.

use std::fs;
use std::path::Path;

use indexmap::IndexMap;

use super::{Knob, Undo, UndoJournal, process};
use crate::ConductError;

/// A setting that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub setting: String,
    /// What it was.
    pub from: String,
    /// What it is.
    pub to: String,
}

/// The settings in force. Only differences are applied, each promised to the journal first.
#[derive(Debug)]
pub struct Bench {
    journal: UndoJournal,
    /// By name: what is in force, and the promise that undoes it.
    inforce: IndexMap<String, InForce>,
}

#[derive(Debug)]
struct InForce {
    value: String,
    promise: u32,
}

impl Bench {
    /// A bench on which nothing is changed yet.
    pub fn new(journal: UndoJournal) -> Self {
        Bench { journal, inforce: IndexMap::new() }
    }

    /// The journal, for promises of others (mounts, scratch folders).
    pub fn journal(&mut self) -> &mut UndoJournal {
        &mut self.journal
    }

    /// Brings the settings to what `knobs` want; returns what changed.
    pub fn set(&mut self, knobs: &[Knob]) -> Result<Vec<Change>, ConductError> {
        let mut changes = Vec::new();
        for knob in knobs {
            match knob {
                Knob::File { name, path, value } => changes.extend(self.write(name, path, value)?),
                Knob::Commands { factor, level, apply, undo } => {
                    changes.extend(self.switch(factor, level, apply, undo)?);
                }
                Knob::DropCaches(_) => {}
            }
        }
        Ok(changes)
    }

    fn write(&mut self, name: &str, path: &Path, value: &str) -> Result<Option<Change>, ConductError> {
        if !self.inforce.contains_key(name) {
            self.hold(name, path, value)?;
        }
        let from = self.inforce.get(name).map(|held| held.value.clone());
        let Some(from) = from.filter(|from| !same(from, value)) else { return Ok(None) };
        if let Err(source) = fs::write(path, value) {
            self.keep_as_it_was(name, path);
            return Err(ConductError::Setting { action: "write", path: path.into(), source });
        }
        if let Some(held) = self.inforce.get_mut(name) {
            held.value = value.into();
        }
        Ok(Some(Change { setting: name.into(), from, to: value.into() }))
    }

    /// Promises to put a setting back; not one that is as it is wanted, and that nobody else will put back.
    fn hold(&mut self, name: &str, path: &Path, wanted: &str) -> Result<(), ConductError> {
        let now = current(path)?;
        if same(&now, wanted) && !self.journal.held(path).is_some_and(|held| held.lives) {
            return Ok(());
        }
        let _turn = self.journal.turn()?;
        let before = self.journal.held(path).map_or_else(|| now.clone(), |held| held.value);
        let promise = self.journal.promise(Undo::Write { path: path.into(), value: before })?;
        self.inforce.insert(name.into(), InForce { value: now, promise });
        Ok(())
    }

    /// What could not be changed, and is what it was, needs no undoing.
    fn keep_as_it_was(&mut self, name: &str, path: &Path) {
        let unchanged = |held: &&InForce| current(path).is_ok_and(|now| same(&now, &held.value));
        if let Some(promise) = self.inforce.get(name).filter(unchanged).map(|held| held.promise)
            && self.journal.settle(promise).is_ok()
        {
            self.inforce.shift_remove(name);
        }
    }

    fn switch(
        &mut self,
        factor: &str,
        level: &str,
        apply: &[String],
        undo: &[String],
    ) -> Result<Option<Change>, ConductError> {
        let held = self.inforce.get(factor).map(|held| (held.value.clone(), held.promise));
        let from = held.as_ref().map_or("unchanged", |(value, _)| value).to_owned();
        if from == level || (held.is_none() && apply.is_empty()) {
            return Ok(None);
        }
        if let Some((_, promise)) = held {
            self.journal.undo(promise)?;
            self.inforce.shift_remove(factor);
        }
        if !apply.is_empty() {
            let promise = self.journal.promise(Undo::Run { factor: factor.into(), argv: undo.to_vec() })?;
            self.inforce.insert(factor.into(), InForce { value: level.into(), promise });
            process::command(apply)?;
        }
        Ok(Some(Change { setting: factor.into(), from, to: level.into() }))
    }

    /// Undoes everything in reverse. What fails is said, and stays in the journal for the next start.
    pub fn undo(mut self) -> (Vec<String>, Vec<ConductError>) {
        let (mut undone, mut failed) = (Vec::new(), Vec::new());
        let pending: Vec<(u32, String)> =
            self.journal.pending().map(|(number, undo)| (number, undo.name())).collect();
        for (number, name) in pending {
            match self.journal.undo(number) {
                Ok(()) => undone.push(name),
                Err(error) => failed.push(error),
            }
        }
        self.journal.close();
        (undone, failed)
    }
}

/// A setting's value. Of `always [madvise] never`, the one in brackets.
fn current(path: &Path) -> Result<String, ConductError> {
    let failed = |source| ConductError::Setting { action: "read", path: path.into(), source };
    let text = fs::read_to_string(path).map_err(failed)?;
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    Ok(chosen.unwrap_or(text.trim()).to_owned())
}

/// Whether two spellings are one value: the kernel separates with tabs what people separate with blanks.
fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}
