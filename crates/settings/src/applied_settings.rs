//! What is in force for a slot, and the way from one case's settings to the next one's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use perflab_model::Setting;

use crate::child_command::run_level_command;
use crate::error::SettingError;
use crate::setting::{FileIdentity, SettingContent, counterpart_file, dependent_files, is_same_value};
use crate::undo_entry::UndoEntry;
use crate::undo_journal::UndoJournal;

/// A setting that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// Which.
    pub setting: String,
    /// What it was.
    pub from: String,
    /// What it is, as it was read back.
    pub to: String,
    /// What was asked for, where the kernel made another value of it.
    pub asked: Option<String>,
}

/// The settings in force. Only differences are applied, each written to the undo journal first, and each is read back.
#[derive(Debug)]
pub struct AppliedSettings {
    journal: UndoJournal,
    /// By name: what is in force, and the undo entry that puts it back.
    in_force: IndexMap<String, SettingInForce>,
    /// Files that were changed: looked at once more when all is undone.
    originals: Vec<OriginalValue>,
    /// Ends a level's command.
    stop: Option<Arc<AtomicBool>>,
}

/// What a file held before anything was written to it.
#[derive(Debug)]
struct OriginalValue {
    identity: FileIdentity,
    path: PathBuf,
    value: String,
    entry: u32,
}

#[derive(Debug)]
struct SettingInForce {
    /// What was asked for.
    value: String,
    entry: u32,
}

impl AppliedSettings {
    /// No setting is changed yet.
    pub fn new(journal: UndoJournal) -> Self {
        AppliedSettings { journal, in_force: IndexMap::new(), originals: Vec::new(), stop: None }
    }

    /// Has a level's command that brings it into force ended by `stop`.
    pub fn with_stop_flag(self, stop: Arc<AtomicBool>) -> Self {
        AppliedSettings { stop: Some(stop), ..self }
    }

    /// The journal, for other undo entries (mounts, scratch folders).
    pub fn journal(&mut self) -> &mut UndoJournal {
        &mut self.journal
    }

    /// Brings the settings to what `settings` want; returns what changed.
    pub fn apply(&mut self, knobs: &[Setting]) -> Result<Vec<SettingChange>, SettingError> {
        let mut changes = Vec::new();
        for knob in knobs {
            match knob {
                Setting::File { name, path, value } => changes.extend(self.write_setting(name, path, value)?),
                Setting::Commands { factor, level, apply, undo } => {
                    changes.extend(self.run_level(factor, level, apply, undo)?);
                }
                Setting::DropCaches(_) => {}
            }
        }
        Ok(changes)
    }

    fn write_setting(
        &mut self,
        name: &str,
        path: &Path,
        value: &str,
    ) -> Result<Option<SettingChange>, SettingError> {
        if self.in_force.get(name).is_some_and(|held| is_same_value(&held.value, value)) {
            return Ok(None);
        }
        if !self.in_force.contains_key(name) {
            self.promise_restore(name, path, value)?;
        }
        let from = SettingContent::read(path)?.value;
        if is_same_value(&from, value) {
            self.note_value(name, value);
            return Ok(None);
        }
        match write_and_read_back(path, &from, value) {
            Ok(to) => {
                self.note_value(name, value);
                let asked = (!is_same_value(&to, value)).then(|| value.to_owned());
                Ok(Some(SettingChange { setting: name.into(), from, to, asked }))
            }
            Err(error) => {
                self.withdraw_if_original(name, path);
                Err(error)
            }
        }
    }

    fn note_value(&mut self, name: &str, value: &str) {
        if let Some(held) = self.in_force.get_mut(name) {
            held.value = value.into();
        }
    }

    /// Writes an undo entry for a setting; not for one that has the value already, and that no other run will put back.
    fn promise_restore(&mut self, name: &str, path: &Path, wanted: &str) -> Result<(), SettingError> {
        let now = SettingContent::read(path)?.value;
        if is_same_value(&now, wanted) && !self.journal.held_by_others(path).is_some_and(|held| held.lives) {
            return Ok(());
        }
        let _turn = self.journal.lock_settings()?;
        // Whoever held it until now may have put it back since it was read.
        let now = SettingContent::read(path)?.value;
        // Before it, so that they are put back after it.
        for dependent in dependent_files(path) {
            let value = SettingContent::read(&dependent)?.value;
            self.promise_original(&dependent, &value)?;
        }
        let entry = self.promise_original(path, &now)?;
        if let Some((counterpart, value)) = counterpart_in_force(path, &now)? {
            self.promise_original(&counterpart, &value)?;
        }
        self.in_force.insert(name.into(), SettingInForce { value: now, entry });
        Ok(())
    }

    /// What a file held before the first of all changes is what the entry holds: what it holds now may be another factor's value.
    fn promise_original(&mut self, path: &Path, now: &str) -> Result<u32, SettingError> {
        let identity = FileIdentity::of_path(path);
        let known = self.originals.iter().position(|original| original.identity == identity);
        let before = match known.and_then(|known| self.originals.get(known)) {
            Some(original) if self.journal.pending().any(|(number, _)| number == original.entry) => {
                return Ok(original.entry);
            }
            Some(original) => original.value.clone(),
            None => self.journal.held_by_others(path).map_or_else(|| now.to_owned(), |held| held.value),
        };
        let entry = self.journal.promise(UndoEntry::Write { path: path.into(), value: before.clone() })?;
        match known.and_then(|known| self.originals.get_mut(known)) {
            Some(original) => original.entry = entry,
            None => self.originals.push(OriginalValue { identity, path: path.into(), value: before, entry }),
        }
        Ok(entry)
    }

    /// What could not be changed, and is what it was before *any* of our changes, needs no undoing.
    fn withdraw_if_original(&mut self, name: &str, path: &Path) {
        let Some(entry) = self.in_force.get(name).map(|held| held.entry) else { return };
        let original = self.journal.pending().find_map(|(number, undo)| match undo {
            UndoEntry::Write { value, .. } if number == entry => Some(value.clone()),
            _ => None,
        });
        let is_original = |original: &String| {
            SettingContent::read(path).is_ok_and(|now| is_same_value(&now.value, original))
        };
        if original.as_ref().is_some_and(is_original) && self.journal.mark_undone(entry).is_ok() {
            self.in_force.retain(|_, held| held.entry != entry);
        }
    }

    fn run_level(
        &mut self,
        factor: &str,
        level: &str,
        apply: &[String],
        undo: &[String],
    ) -> Result<Option<SettingChange>, SettingError> {
        let held = self.in_force.get(factor).map(|held| (held.value.clone(), held.entry));
        let from = held.as_ref().map_or("unchanged", |(value, _)| value).to_owned();
        if from == level || (held.is_none() && apply.is_empty()) {
            return Ok(None);
        }
        if let Some((_, entry)) = held {
            self.journal.undo(entry)?;
            self.in_force.shift_remove(factor);
        }
        if !apply.is_empty() {
            let entry =
                self.journal.promise(UndoEntry::Run { factor: factor.into(), argv: undo.to_vec() })?;
            self.in_force.insert(factor.into(), SettingInForce { value: level.into(), entry });
            run_level_command(apply, self.stop.as_deref())?;
        }
        Ok(Some(SettingChange { setting: factor.into(), from, to: level.into(), asked: None }))
    }

    /// Undoes everything in reverse, and looks at the end whether it is so. What fails is reported, and stays in the journal for
    /// the next start, unless it is tried only once. Gives the settings that are back, and what failed.
    pub fn undo_all(mut self) -> (Vec<String>, Vec<SettingError>) {
        let (mut undone, mut failed) = (Vec::new(), Vec::new());
        let pending: Vec<(u32, UndoEntry)> =
            self.journal.pending().map(|(number, undo)| (number, undo.clone())).collect();
        for (number, undo) in pending {
            match self.journal.undo(number) {
                Ok(()) if undo.is_tried_once() => {}
                Ok(()) => undone.push(undo.name()),
                Err(error) => failed.push(error),
            }
        }
        for OriginalValue { path, value, .. } in std::mem::take(&mut self.originals) {
            failed.extend(self.restore_original(&path, value).err());
        }
        failed.extend(self.journal.close().err());
        (undone, failed)
    }

    /// Another level's commands, or a file that moves with this one, may have changed what was put back before them: once more.
    fn restore_original(&mut self, path: &Path, original: String) -> Result<(), SettingError> {
        let undo = UndoEntry::Write { path: path.into(), value: original };
        if self.journal.pending().any(|(_, pending)| *pending == undo) || undo.is_done() {
            return Ok(());
        }
        let lock = self.journal.lock_settings()?;
        if self.journal.held_by_others(path).is_some() {
            return Ok(());
        }
        let number = self.journal.promise(undo)?;
        drop(lock);
        self.journal.undo(number)
    }
}

/// Writes a value; gives what the file holds then.
fn write_and_read_back(path: &Path, before: &str, value: &str) -> Result<String, SettingError> {
    fs::write(path, value).map_err(|source| SettingError::ValueRefused {
        path: path.into(),
        asked: value.into(),
        source,
    })?;
    let now = SettingContent::read(path)?.value;
    if is_same_value(&now, before) && !is_same_value(&now, value) {
        return Err(SettingError::ValueIgnored { path: path.into(), asked: value.into(), now });
    }
    Ok(now)
}

/// The other file of a pair and what it holds, where it, and not `path`, is in force.
fn counterpart_in_force(path: &Path, now: &str) -> Result<Option<(PathBuf, String)>, SettingError> {
    let Some(other) = counterpart_file(path).filter(|other| is_same_value(now, "0") && other.exists()) else {
        return Ok(None);
    };
    let value = SettingContent::read(&other)?.value;
    Ok((!is_same_value(&value, "0")).then_some((other, value)))
}
