//! The undo entries of a run on disk, the lock between runs, recovery after a kill.
//!
//! One file a run, outside the archive, so that the next start finds it wherever that run's archive was. A line for
//! each change, flushed to disk before the change is made; a line when it is undone. The file is locked while its
//! run lives: an unlocked journal belongs to a run that was killed.
//!
//! Where several runs hold a setting at a time, a later one notes what it was before the first of them, and the
//! last to end puts it back.
//!
//! What was written last is noted, too. A setting that holds neither that nor what it was before is somebody else's now, and is left;
//! so is a device of the same name that is another one ([`KernelDevice`](crate::kernel_device::KernelDevice)).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use perflab_model::{Refusal, describe_error_chain};
use perflab_observe::own_directories::{self, OwnFileAccess};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::SettingError;
use crate::queue_discipline::QueueDiscipline;
use crate::setting::{FileIdentity, SettingContent, is_same_value, write_value};
use crate::undo_entry::{CONTAINER_STATE, UndoEntry};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum UndoJournalLine {
    Boot(String),
    Change {
        number: u32,
        undo: UndoEntry,
    },
    /// Another value is about to be written: what is there from now on is ours, whatever it is.
    Writing {
        number: u32,
    },
    /// What was read back after it.
    Written {
        number: u32,
        value: String,
    },
    Undone {
        number: u32,
    },
}

/// What a journal holds.
#[derive(Debug, Default, PartialEq)]
struct JournalContent {
    boot: Option<String>,
    pending: Vec<(u32, UndoEntry)>,
    /// What was written last, where that is known.
    written: BTreeMap<u32, String>,
}

/// The journal of a living run. Its file is made with the first change: a run that changes nothing
/// needs no place for it.
#[derive(Debug)]
pub struct UndoJournal {
    path: PathBuf,
    boot_id: String,
    file: Option<File>,
    pending: Vec<(u32, UndoEntry)>,
    /// What was written last; of what is not here, whatever is there is taken for ours.
    written: BTreeMap<u32, String>,
    /// What is undone, and could not be noted: a full disk.
    unnoted: Vec<u32>,
    next: u32,
    /// Settings that were left as somebody else has set them, for people.
    left: Vec<String>,
}

/// What is to become of a change that is to be undone.
enum UndoFate {
    /// it is put back, under the name that its device has now
    PutBack(UndoEntry),
    /// the device is gone, and what was set with it
    Gone,
    /// a run that goes on holds it, too
    OfAnotherRun(HeldSetting),
    /// somebody else has set it since
    Left(String),
}

impl UndoJournal {
    /// The journal of run `id` under `directory`.
    pub fn new(directory: &Path, id: &str, boot_id: &str) -> Self {
        Self::at(directory.join(format!("undo-{id}.jsonl")), boot_id)
    }

    fn at(path: PathBuf, boot_id: &str) -> Self {
        UndoJournal {
            path,
            boot_id: boot_id.into(),
            file: None,
            pending: Vec::new(),
            written: BTreeMap::new(),
            unnoted: Vec::new(),
            next: 0,
            left: Vec::new(),
        }
    }

    fn with_content(mut self, file: File, content: JournalContent) -> Self {
        self.next = content.pending.iter().map(|(number, _)| number + 1).max().unwrap_or_default();
        self.file = Some(file);
        (self.pending, self.written) = (content.pending, content.written);
        self
    }

    /// The journal of a run that was killed, with what is still to be undone; `None` while its run lives.
    ///
    /// # Errors
    /// Another user could have written it: its entries are not to be carried out.
    fn open_abandoned(path: &Path, boot_id: &str) -> io::Result<Option<Self>> {
        let Some(file) = open_own_journal(path, OwnFileAccess::Append)? else { return Ok(None) };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let mut content = read_journal(&file);
        if content.boot.as_deref() != Some(boot_id) {
            content.pending.retain(|(_, undo)| !undo.is_undone_by_reboot());
        }
        Ok(Some(UndoJournal::at(path.into(), boot_id).with_content(file, content)))
    }

    /// The journal of what stays until somebody undoes it: no start of perflab carries it out. It is locked while it is open.
    ///
    /// # Errors
    /// Another perflab has it open, or another user could have written it.
    pub fn open_kept(directory: &Path, boot_id: &str) -> Result<Self, SettingError> {
        let path = directory.join(KEPT);
        let failed = |source| SettingError::Journal { path: path.clone(), source };
        let journal = UndoJournal::at(path.clone(), boot_id);
        let Some(file) = open_own_journal(&path, OwnFileAccess::Append).map_err(failed)? else {
            return Ok(journal);
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let what = format!("another perflab has {} open", path.display());
            return Err(SettingError::Refused(Refusal { what, hint: "wait until it has ended".into() }));
        }
        let content = read_journal(&file);
        if content.boot.as_deref() != Some(boot_id) {
            // All of it went with the boot.
            fs::remove_file(&path).map_err(failed)?;
            return Ok(journal);
        }
        Ok(journal.with_content(file, content))
    }

    /// Whether a run that goes on has set a file.
    pub(crate) fn is_held_by_a_run(&self, path: &Path) -> bool {
        self.held_by_others(path).is_some_and(|held| held.lives)
    }

    /// The run's id.
    pub(crate) fn run(&self) -> String {
        run_of_journal(&self.path)
    }

    /// The path of a file of the run's own beside the journal.
    pub(crate) fn own_file_path(&self, what: &str) -> PathBuf {
        let stem = self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        self.path.with_file_name(format!("{what}-{stem}"))
    }

    fn open_if_closed(&mut self) -> Result<(), SettingError> {
        if self.file.is_some() {
            return Ok(());
        }
        let file = create_locked_journal(&self.path)
            .map_err(|source| SettingError::Journal { path: self.path.clone(), source })?;
        self.file = Some(file);
        self.write_line(&UndoJournalLine::Boot(self.boot_id.clone()))
    }

    /// Notes how to undo what is about to be done. Done only once this has returned.
    pub fn promise(&mut self, undo: UndoEntry) -> Result<u32, SettingError> {
        self.open_if_closed()?;
        let number = self.next;
        self.write_line(&UndoJournalLine::Change { number, undo: undo.clone() })?;
        self.next += 1;
        self.pending.push((number, undo));
        Ok(number)
    }

    /// Notes that the setting of change `number` is about to get another value: if perflab is killed now, whatever is there is ours.
    pub(crate) fn note_writing(&mut self, number: u32) -> Result<(), SettingError> {
        // Nothing to say twice.
        if self.written.remove(&number).is_some() {
            self.append_line(&UndoJournalLine::Writing { number })?;
        }
        Ok(())
    }

    /// Notes what the setting of change `number` holds after we wrote to it.
    pub(crate) fn note_written(&mut self, number: u32, value: &str) {
        // Without it, whatever is there is taken for ours.
        let line = UndoJournalLine::Written { number, value: value.into() };
        if self.written.get(&number).is_none_or(|known| known != value) && self.append_line(&line).is_ok() {
            self.written.insert(number, value.into());
        }
    }

    /// The settings of which it is known what we wrote last.
    pub(crate) fn written_files(&self) -> impl Iterator<Item = (u32, &Path)> {
        let known = self.pending.iter().filter(|(number, _)| self.written.contains_key(number));
        known.filter_map(|(number, undo)| Some((*number, undo.setting_path()?)))
    }

    /// Settings that were left as somebody else has set them, so far, for people.
    pub(crate) fn take_left(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left)
    }

    /// Notes that change `number` is undone, or was never made.
    pub fn mark_undone(&mut self, number: u32) -> Result<(), SettingError> {
        self.write_line(&UndoJournalLine::Undone { number })?;
        self.pending.retain(|(pending, _)| *pending != number);
        Ok(())
    }

    /// What is still to be undone, the latest first.
    pub fn pending(&self) -> impl Iterator<Item = (u32, &UndoEntry)> {
        self.pending.iter().rev().map(|(number, undo)| (*number, undo))
    }

    /// The number of the next change, for [`UndoJournal::undo_since`].
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// Undoes the entries written since `mark`, the latest first; what somebody else seems to have set after the others.
    pub fn undo_since(&mut self, mark: u32) -> Result<(), SettingError> {
        let pending = self.pending().map(|(number, _)| number);
        let numbers: Vec<u32> = pending.filter(|number| *number >= mark).collect();
        let (foreign, ours) = self.split_foreign(numbers);
        ours.into_iter().try_for_each(|number| self.undo_checked(number, true).map(drop))?;
        foreign.into_iter().try_for_each(|number| self.undo(number))
    }

    /// Undoes one change, and notes it. A change that cannot be undone stays in the journal, unless it is tried only once; a
    /// setting that another run still holds is left to that one, and one that somebody else has set is left.
    pub fn undo(&mut self, number: u32) -> Result<(), SettingError> {
        self.undo_checked(number, false).map(drop)
    }

    /// Undoes all that is pending, the latest first; gives each with whether it is put back now.
    ///
    /// What is ours is known before anything is put back: that may move something else, such as one limit the other. What seems to be
    /// somebody else's, and settings that cannot be put back, are looked at once more after the others for the same reason.
    pub(crate) fn undo_pending(&mut self) -> Vec<(UndoEntry, Result<bool, SettingError>)> {
        let pending: Vec<(u32, UndoEntry)> =
            self.pending().map(|(number, undo)| (number, undo.clone())).collect();
        let (foreign, _) = self.split_foreign(pending.iter().map(|(number, _)| *number).collect());
        let (mut found, mut again) = (Vec::new(), Vec::new());
        for (number, undo) in pending {
            if foreign.contains(&number) {
                again.push((number, undo, false));
                continue;
            }
            match self.undo_checked(number, true) {
                Err(_) if undo.setting_path().is_some() => again.push((number, undo, true)),
                ended => found.push((undo, ended)),
            }
        }
        for (number, undo, is_ours) in again {
            let ended = self.undo_checked(number, is_ours);
            found.push((undo, ended));
        }
        found
    }

    /// Changes that somebody else's values have taken the place of, and the others.
    fn split_foreign(&self, numbers: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
        let is_foreign = |number: &u32| {
            let undo = self.pending.iter().find(|(pending, _)| pending == number);
            undo.is_some_and(|(_, undo)| matches!(self.decide_fate(*number, undo), UndoFate::Left(_)))
        };
        numbers.into_iter().partition(is_foreign)
    }

    /// Undoes one change; gives whether it is put back. Of one that `is_ours`, nobody has to look whether it still is.
    fn undo_checked(&mut self, number: u32, is_ours: bool) -> Result<bool, SettingError> {
        let Some((_, undo)) = self.pending.iter().find(|(pending, _)| *pending == number).cloned() else {
            return Ok(false);
        };
        let _turn = undo.setting_path().map(|_| self.lock_settings()).transpose()?;
        let performed = match self.decide_fate(number, &undo) {
            UndoFate::PutBack(undo) => self.put_back(&undo).map(|()| true),
            UndoFate::Left(_) if is_ours => self.put_back(&undo).map(|()| true),
            UndoFate::Left(what) => {
                self.left.push(what);
                Ok(false)
            }
            UndoFate::OfAnotherRun(held) => {
                self.hand_over(number, &undo, &held);
                Ok(false)
            }
            UndoFate::Gone => Ok(false),
        };
        if performed.is_err() && !undo.is_tried_once() {
            return performed;
        }
        if self.mark_undone(number).is_err() {
            // It is done nevertheless. Where all is, the journal goes, which a full disk does not prevent.
            self.pending.retain(|(pending, _)| *pending != number);
            self.unnoted.push(number);
        }
        performed
    }

    fn put_back(&self, undo: &UndoEntry) -> Result<(), SettingError> {
        if let UndoEntry::EndContainer { folder } = undo {
            recover_container_settings(&folder.join(CONTAINER_STATE), &self.boot_id)?;
        }
        undo.perform()
    }

    /// One rule for all settings: what holds what we wrote is put back, what holds anything else is somebody's and stays.
    fn decide_fate(&self, number: u32, undo: &UndoEntry) -> UndoFate {
        let Some(located) = undo.locate() else { return UndoFate::Gone };
        let stays = |now: &str| UndoFate::Left(format!("{}: it holds `{now}`", located.name()));
        match &located {
            UndoEntry::Write { path, value, .. } => {
                let others = self.find_other_holders(path);
                if let Some(held) = others.iter().find(|held| held.lives) {
                    return UndoFate::OfAnotherRun(held.clone());
                }
                let Ok(SettingContent { value: now, .. }) = SettingContent::read(path) else {
                    return UndoFate::PutBack(located);
                };
                let own = self.written.get(&number).cloned();
                let mut written = others.into_iter().map(|held| held.written).chain([own]);
                let is_ours =
                    |written: Option<String>| written.is_none_or(|known| is_same_value(&known, &now));
                if is_same_value(&now, value) || written.any(is_ours) {
                    return UndoFate::PutBack(located);
                }
                stays(&now)
            }
            UndoEntry::RemoveQueueDiscipline { device, .. } => match QueueDiscipline::of_device(device) {
                Ok(now) if now.is_foreign() => stays(&now.words),
                _ => UndoFate::PutBack(located),
            },
            _ => UndoFate::PutBack(located),
        }
    }

    /// A run that goes on gets what it has set itself, where ours is in force.
    fn hand_over(&self, number: u32, undo: &UndoEntry, held: &HeldSetting) {
        let Some((path, wanted)) = undo.setting_path().zip(held.written.as_ref()) else { return };
        let Ok(now) = SettingContent::read(path) else { return };
        let is_ours = self.written.get(&number).is_some_and(|written| is_same_value(written, &now.value));
        if is_ours && !is_same_value(&now.value, wanted) {
            // It looks at its settings itself, and says what it finds.
            let _ = write_value(path, wanted);
        }
    }

    /// Until it is dropped, no other run writes undo entries for settings, or carries them out.
    pub(crate) fn lock_settings(&self) -> Result<SettingsLock, SettingError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        SettingsLock::acquire(folder).map_err(|source| SettingError::Journal { path: folder.into(), source })
    }

    /// Which other run has an undo entry for a setting: one that goes on, if there is one.
    pub(crate) fn held_by_others(&self, path: &Path) -> Option<HeldSetting> {
        self.find_other_holders(path).into_iter().reduce(|one, other| if one.lives { one } else { other })
    }

    /// A run that goes on and has such an entry.
    pub(crate) fn find_living_holder(&self, is_such: impl Fn(&UndoEntry) -> bool) -> Option<String> {
        let holds = |journal: &PathBuf| {
            let file = open_own_journal(journal, OwnFileAccess::Read).ok()??;
            let content = read_journal(&file);
            let is_held = content.pending.iter().any(|(_, undo)| is_such(undo));
            let lives = is_held && flock(&file, FlockOperation::NonBlockingLockShared).is_err();
            lives.then(|| run_of_journal(journal))
        };
        self.other_journals().iter().find_map(holds)
    }

    fn other_journals(&self) -> Vec<PathBuf> {
        let entries = self.path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
        let journals = entries.flatten().map(|entry| entry.path());
        journals.filter(|journal| *journal != self.path && is_journal_path(journal)).collect()
    }

    /// The runs of this boot that have an undo entry for a file, by the journals beside one's own.
    pub(crate) fn find_other_holders(&self, path: &Path) -> Vec<HeldSetting> {
        let identity = FileIdentity::of_path(path);
        let holds = |journal: PathBuf| find_promise_in_journal(&journal, &self.boot_id, path, &identity);
        self.other_journals().into_iter().filter_map(holds).collect()
    }

    /// Removes the journal when nothing is pending; otherwise it stays for the next start.
    ///
    /// # Errors
    /// It stays, and holds an entry that is undone already.
    pub fn close(mut self) -> Result<(), SettingError> {
        // Left over, it would be found empty at the next start and removed then.
        let gone = self.pending.is_empty() && self.file.is_some() && fs::remove_file(&self.path).is_ok();
        let unnoted = if gone { Vec::new() } else { std::mem::take(&mut self.unnoted) };
        // What was removed since may have made room.
        unnoted
            .into_iter()
            .try_for_each(|number| self.write_line(&UndoJournalLine::Undone { number }))
            .map_err(|error| match error {
                SettingError::Journal { path, source } => SettingError::JournalBehind { path, source },
                other => other,
            })
    }

    /// A line that a machine that loses power may lose as well.
    fn append_line(&mut self, line: &UndoJournalLine) -> Result<(), SettingError> {
        self.write_text(line, |_| Ok(()))
    }

    fn write_line(&mut self, line: &UndoJournalLine) -> Result<(), SettingError> {
        self.write_text(line, File::sync_data)
    }

    fn write_text(
        &mut self,
        line: &UndoJournalLine,
        sync: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<(), SettingError> {
        let failed = |source| SettingError::Journal { path: self.path.clone(), source };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        let Some(file) = &mut self.file else { return Ok(()) };
        let length = file.metadata().map_err(failed)?.len();
        file.write_all(&text).and_then(|()| sync(file)).map_err(|source| {
            // Half a line would swallow the next one. To cut it off needs no room.
            let _ = file.set_len(length);
            failed(source)
        })
    }
}

/// The journal of what `perflab tune` has set.
const KEPT: &str = "tuned.jsonl";

/// A fresh file, with the lock that says its run lives.
fn create_locked_journal(path: &Path) -> std::io::Result<File> {
    let folder = own_directories::create_own_directory(journal_folder(path))?;
    let file =
        own_directories::open_own_file(&folder, path.file_name().unwrap_or_default(), OwnFileAccess::New)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// A journal that is there, if it is this user's own; `None` where it has just gone.
fn open_own_journal(path: &Path, access: OwnFileAccess) -> io::Result<Option<File>> {
    let Some(folder) = own_directories::open_own_directory(journal_folder(path))? else { return Ok(None) };
    match own_directories::open_own_file(&folder, path.file_name().unwrap_or_default(), access) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn journal_folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn is_journal_path(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("undo-") && name.ends_with(".jsonl")
}

/// What is in a journal. A torn last line is a change that was not made.
fn read_journal(file: &File) -> JournalContent {
    let mut found = JournalContent::default();
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(UndoJournalLine::Boot(id)) => found.boot = Some(id),
            Ok(UndoJournalLine::Change { number, undo }) => found.pending.push((number, undo)),
            Ok(UndoJournalLine::Writing { number }) => drop(found.written.remove(&number)),
            Ok(UndoJournalLine::Written { number, value }) => drop(found.written.insert(number, value)),
            Ok(UndoJournalLine::Undone { number }) => found.pending.retain(|(other, _)| *other != number),
            Err(_) => break,
        }
    }
    found
}

/// While this is held, no other perflab decides what a setting was, or whether to put it back.
#[derive(Debug)]
pub(crate) struct SettingsLock {
    _folder: OwnedFd,
}

impl SettingsLock {
    /// Waits for it; `folder` is where journals lie.
    pub fn acquire(folder: &Path) -> io::Result<Self> {
        let folder = own_directories::create_own_directory(folder)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok(SettingsLock { _folder: folder })
    }
}

/// What another run will put a file back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldSetting {
    /// which run
    pub run: String,
    /// what it held before it
    pub value: String,
    /// what it wrote last, where that is known
    pub written: Option<String>,
    /// whether it goes on
    pub lives: bool,
}

fn find_promise_in_journal(
    journal: &Path,
    boot_id: &str,
    path: &Path,
    identity: &FileIdentity,
) -> Option<HeldSetting> {
    let file = open_own_journal(journal, OwnFileAccess::Read).ok()??;
    let JournalContent { boot, pending, mut written } = read_journal(&file);
    let (number, value) = pending.into_iter().find_map(|(number, undo)| match undo {
        UndoEntry::Write { path: file, value, .. } if identity.is_same_file(path, &file) => {
            Some((number, value))
        }
        _ => None,
    })?;
    let (run, written) = (run_of_journal(journal), written.remove(&number));
    let lives = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
    (boot.as_deref() == Some(boot_id)).then_some(HeldSetting { run, value, written, lives })
}

/// The run that a journal is of.
fn run_of_journal(path: &Path) -> String {
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    name.trim_start_matches("undo-").to_owned()
}

/// What was found of a killed run, and what became of it.
#[derive(Debug)]
pub struct RecoveredRun {
    /// The run.
    pub run: String,
    /// What was put back.
    pub undone: Vec<String>,
    /// What somebody else has set since, and was left.
    pub left: Vec<String>,
    /// What could not be, and why.
    pub failed: Vec<String>,
}

/// Killed runs with the names of what they left changed; nothing is put back.
pub fn list_killed_runs(directory: &Path, boot_id: &str) -> Vec<(String, Vec<String>)> {
    if !matches!(own_directories::open_own_directory(directory), Ok(Some(_))) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let journals = entries.flatten().map(|entry| entry.path()).filter(|path| is_journal_path(path));
    let left = journals.filter_map(|path| {
        let journal = UndoJournal::open_abandoned(&path, boot_id).ok()??;
        let names: Vec<String> = journal.pending().map(|(_, undo)| undo.name()).collect();
        (!names.is_empty()).then(|| (run_of_journal(&path), names))
    });
    left.collect()
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
    let mut found = RecoveredRun::new(&run_of_journal(path));
    for (undo, ended) in journal.undo_pending() {
        found.record_undo(&undo, || ended);
    }
    found.left = journal.take_left();
    found.failed.extend(journal.close().err().map(|error| describe_error_chain(&error)));
    let is_empty = found.undone.is_empty() && found.failed.is_empty() && found.left.is_empty();
    (!is_empty).then_some(found)
}

/// Puts back what the journals of an agent in a container say of the kernel that it shared, once the agent has ended. What they say of the
/// container's own root went with that, and is not carried out: here, a command or a path means something else.
///
/// # Errors
/// The agent goes on, or a setting cannot be put back: then the journals stay.
pub(crate) fn recover_container_settings(state: &Path, boot_id: &str) -> Result<(), SettingError> {
    let failed = |path: &Path, source| SettingError::Journal { path: path.into(), source };
    let entries = match fs::read_dir(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|source| failed(state, source))?,
    };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_journal_path(path)) {
        let opened = UndoJournal::open_abandoned(&path, boot_id).map_err(|source| failed(&path, source))?;
        let Some(mut journal) = opened else {
            let what = format!("a container with the state {} goes on", state.display());
            return Err(SettingError::Refused(Refusal { what, hint: "`perflab undo` tries again".into() }));
        };
        journal.pending.retain(|(_, undo)| undo.is_of_shared_kernel());
        journal.undo_pending().into_iter().try_for_each(|(_, ended)| ended.map(drop))?;
    }
    Ok(())
}

impl RecoveredRun {
    /// Nothing yet of this run.
    pub fn new(run: &str) -> Self {
        RecoveredRun { run: run.into(), undone: Vec::new(), left: Vec::new(), failed: Vec::new() }
    }

    /// What another user may have written, and is not carried out.
    fn refused_journal(path: &Path, error: &std::io::Error) -> Self {
        RecoveredRun { failed: vec![format!("{}: {error}", path.display())], ..RecoveredRun::new("unknown") }
    }

    /// Notes what became of one change, of which `done` says whether it is put back now.
    pub fn record_undo(&mut self, undo: &UndoEntry, done: impl FnOnce() -> Result<bool, SettingError>) {
        match done() {
            Ok(true) => self.undone.push(undo.name()),
            Ok(false) => {}
            Err(error) => self.failed.push(format!("{}: {}", undo.name(), describe_error_chain(&error))),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use perflab_model::Setting;

    use super::*;
    use crate::error::SettingError;
    use crate::*;

    /// A journal with two changes, whose disk is full from here on.
    fn journal_on_full_disk(home: &Path, setting: &Path) -> UndoJournal {
        let mut journal = UndoJournal::new(&home.join("state"), "R1", "boot");
        for path in [setting, Path::new("/proc/version")] {
            journal.promise(UndoEntry::write(path, "60")).unwrap();
        }
        journal.file = Some(File::options().write(true).open("/dev/full").unwrap());
        journal
    }

    #[test]
    fn what_is_put_back_is_said_to_be_though_the_journal_cannot_note_it() {
        let home = tempfile::tempdir().unwrap();
        let setting = home.path().join("setting");
        fs::write(&setting, "10").unwrap();
        let mut journal = journal_on_full_disk(home.path(), &setting);
        journal.undo(0).unwrap();
        assert_eq!(fs::read_to_string(&setting).unwrap(), "60");
        assert!(journal.undo(1).is_err());
        let path = journal.path.clone();
        // One change is still pending, so the journal stays, and still holds the other.
        assert!(matches!(journal.close(), Err(SettingError::JournalBehind { .. })));
        fs::remove_file(&path).unwrap();

        let mut journal = journal_on_full_disk(home.path(), &setting);
        journal.pending.pop();
        journal.undo(0).unwrap();
        journal.close().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn half_a_line_of_a_full_disk_swallows_no_other_root() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP half_a_line_of_a_full_disk_swallows_no_other_root: mounting needs root");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let mount = |argv: &[&str]| {
            let mut command = std::process::Command::new(argv[0]);
            assert!(command.args(&argv[1..]).arg(home.path()).status().unwrap().success());
        };
        mount(&["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs"]);
        let mut journal = UndoJournal::new(home.path(), "R1", "boot");
        let undo = |path: &str| UndoEntry::Remove { path: path.into() };
        let promised = [journal.promise(undo("/no/1")), journal.promise(undo("/no/2"))];
        let refused = journal.promise(undo(&"long".repeat(2000)));
        let settled = journal.mark_undone(0);
        let entries = read_journal(&File::open(&journal.path).unwrap());
        drop(journal);
        mount(&["umount"]);
        assert!(promised.iter().all(Result::is_ok) && refused.is_err() && settled.is_ok(), "{settled:?}");
        assert_eq!((entries.boot, entries.pending), (Some("boot".into()), vec![(1, undo("/no/2"))]));
    }

    fn make_file(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn file_setting(path: &Path, value: &str) -> Setting {
        Setting::File { name: path.display().to_string(), path: path.into(), value: value.into() }
    }

    /// Recovers, with patience: a process that another test is just starting holds our lock until its exec.
    pub(crate) fn recover_patiently(state: &Path, boot: &str) -> Vec<RecoveredRun> {
        let attempt = |_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            Some(recover_killed_runs(state, boot)).filter(|found| !found.is_empty())
        };
        (0..50).find_map(attempt).unwrap_or_default()
    }

    fn new_applied_settings(directory: &Path) -> AppliedSettings {
        AppliedSettings::new(UndoJournal::new(&directory.join("state"), "R1", "boot"))
    }

    #[test]
    fn settings_come_back_in_reverse_and_the_journal_goes() {
        let home = tempfile::tempdir().unwrap();
        let swappiness = make_file(home.path(), "swappiness", "60\n");
        let thp = make_file(home.path(), "enabled", "always [madvise] never\n");
        let mut applied = new_applied_settings(home.path());
        let changes = applied.apply(&[file_setting(&swappiness, "10"), file_setting(&thp, "never")]).unwrap();
        assert_eq!((changes[0].from.as_str(), changes[1].from.as_str()), ("60", "madvise"));
        applied.apply(&[file_setting(&swappiness, "20"), file_setting(&thp, "never")]).unwrap();
        assert_eq!(fs::read_to_string(&swappiness).unwrap(), "20");
        let UndoneSettings { undone, failed, .. } = applied.undo_all();
        assert_eq!((undone.len(), failed.len()), (2, 0));
        assert!(undone[0].ends_with("enabled = madvise"), "{undone:?}");
        assert_eq!(fs::read_to_string(&swappiness).unwrap(), "60");
        assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 0);
    }

    #[test]
    fn a_setting_that_is_already_so_is_not_touched() {
        let home = tempfile::tempdir().unwrap();
        let range = make_file(home.path(), "range", "32768\t60999\n");
        let mut applied = new_applied_settings(home.path());
        assert_eq!(applied.apply(&[file_setting(&range, "32768 60999")]).unwrap(), []);
        assert_eq!(applied.undo_all().undone.len(), 0);
    }

    #[test]
    fn a_setting_of_several_runs_is_put_back_by_the_last_of_them() {
        let home = tempfile::tempdir().unwrap();
        let swappiness = make_file(home.path(), "swappiness", "60\n");
        let now = || fs::read_to_string(&swappiness).unwrap();
        let run = |id: &str, value: &str| {
            let mut applied = AppliedSettings::new(UndoJournal::new(&home.path().join("state"), id, "boot"));
            applied.apply(&[file_setting(&swappiness, value)]).unwrap();
            applied
        };
        let (first, same, other) = (run("R1", "10"), run("R2", "10"), run("R3", "20"));
        assert_eq!((first.undo_all().failed.len(), &*now()), (0, "20"), "two others hold it");
        assert_eq!((other.undo_all().failed.len(), &*now()), (0, "10"), "another holds it, and gets its own");
        assert_eq!((same.undo_all().failed.len(), &*now()), (0, "60"));
        drop(run("killed", "10"));
        let last = run("R4", "20");
        assert_eq!(
            (last.undo_all().failed.len(), &*now()),
            (0, "60"),
            "what it was before the run that was killed"
        );
        assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_two_names_comes_back_to_what_it_was_before_both() {
        let home = tempfile::tempdir().unwrap();
        let setting = make_file(home.path(), "setting", "60\n");
        fs::create_dir(home.path().join("x")).unwrap();
        let detour = home.path().join("x/../setting");
        let mut one = new_applied_settings(home.path());
        one.apply(&[file_setting(&setting, "10"), file_setting(&detour, "20"), file_setting(&setting, "30")])
            .unwrap();
        let failed = one.undo_all().failed;
        assert_eq!((&*fs::read_to_string(&setting).unwrap(), failed.len()), ("60", 0), "{failed:?}");

        let run = |id: &str, path: &Path, value: &str| {
            let mut applied = AppliedSettings::new(UndoJournal::new(&home.path().join("state"), id, "boot"));
            applied.apply(&[file_setting(path, value)]).unwrap();
            applied
        };
        let (first, second) = (run("R1", &setting, "10"), run("R2", &detour, "20"));
        assert_eq!(first.undo_all().failed.len() + second.undo_all().failed.len(), 0);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "60", "of two runs, too");
    }

    #[test]
    fn what_cannot_be_set_needs_no_undoing() {
        let home = tempfile::tempdir().unwrap();
        let swappiness = make_file(home.path(), "swappiness", "60");
        let mut applied = new_applied_settings(home.path());
        let refused =
            applied.apply(&[file_setting(&swappiness, "10"), file_setting(Path::new("/proc/version"), "7")]);
        let error = refused.unwrap_err();
        let SettingError::ValueRefused { path, asked, .. } = &error else { panic!("{error}") };
        assert_eq!((path.as_path(), asked.as_str()), (Path::new("/proc/version"), "7"));
        let UndoneSettings { undone, failed, .. } = applied.undo_all();
        assert_eq!((undone.len(), failed.len()), (1, 0), "{failed:?}");
        assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 0);
    }

    #[test]
    fn commands_undo_the_old_level_before_the_new_one() {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("log");
        let say = |word: &str| vec!["sh".into(), "-c".into(), format!("echo {word} >> {}", log.display())];
        let level = |name: &str| Setting::Commands {
            factor: "daemon".into(),
            level: name.into(),
            apply: say(&format!("+{name}")),
            undo: say(&format!("-{name}")),
        };
        let off =
            Setting::Commands { factor: "daemon".into(), level: "off".into(), apply: vec![], undo: vec![] };
        let mut applied = new_applied_settings(home.path());
        for setting in [off.clone(), level("a"), level("a"), level("b"), off, level("b")] {
            applied.apply(&[setting]).unwrap();
        }
        applied.undo_all();
        assert_eq!(
            fs::read_to_string(&log).unwrap().split_whitespace().collect::<Vec<_>>(),
            ["+a", "-a", "+b", "-b", "+b", "-b"]
        );
    }

    #[test]
    fn a_killed_run_is_undone_at_the_next_start_and_a_living_one_is_not() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        let setting = make_file(home.path(), "swappiness", "60\n");
        let mut applied = new_applied_settings(home.path());
        applied.apply(&[file_setting(&setting, "10")]).unwrap();
        assert!(recover_killed_runs(&state, "boot").is_empty(), "its run lives: the journal is locked");
        // Killed: the lock goes with the process, the journal stays.
        drop(applied);
        let found = recover_patiently(&state, "boot");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].run, "R1");
        assert_eq!(fs::read_to_string(&setting).unwrap(), "60");
        assert!(recover_killed_runs(&state, "boot").is_empty());
    }

    /// Commands and paths of a container's own root are nobody's here; they may well be somebody's.
    #[test]
    fn what_a_killed_container_was_to_do_in_its_own_root_is_not_done_here() {
        let home = tempfile::tempdir().unwrap();
        let (state, precious) = (home.path().join("state"), home.path().join("precious"));
        fs::write(&precious, "").unwrap();
        let folder = home.path().join("container");
        fs::create_dir_all(folder.join(CONTAINER_STATE)).unwrap();
        let mut host = UndoJournal::new(&state, "folder-1", "boot");
        host.promise(UndoEntry::EndContainer { folder: folder.clone() }).unwrap();
        let mut agent = UndoJournal::new(&folder.join(CONTAINER_STATE), "R1-box", "boot");
        let argv = vec!["rm".to_owned(), precious.display().to_string()];
        agent.promise(UndoEntry::Run { factor: "daemon".into(), argv }).unwrap();
        agent.promise(UndoEntry::Remove { path: precious.clone() }).unwrap();
        drop(host);
        let found = recover_killed_runs(&state, "boot");
        assert_eq!((found[0].undone.len(), found[0].failed.len()), (0, 1), "its agent lives: {found:?}");
        assert!(folder.exists());
        drop(agent);
        let found = recover_patiently(&state, "boot");
        assert_eq!((found[0].undone.len(), found[0].failed.len()), (1, 0), "{found:?}");
        assert!(precious.exists() && !folder.exists());
    }

    #[test]
    fn a_reboot_has_undone_files_already() {
        let home = tempfile::tempdir().unwrap();
        let setting = make_file(home.path(), "swappiness", "60\n");
        let mut applied = new_applied_settings(home.path());
        applied.apply(&[file_setting(&setting, "10")]).unwrap();
        drop(applied);
        fs::write(&setting, "the new boot's own").unwrap();
        assert!(recover_killed_runs(&home.path().join("state"), "another boot").is_empty());
        assert_eq!(fs::read_to_string(&setting).unwrap(), "the new boot's own");
    }

    #[test]
    fn what_cannot_be_undone_is_said_and_kept() {
        let home = tempfile::tempdir().unwrap();
        let mut applied = new_applied_settings(home.path());
        let level = Setting::Commands {
            factor: "daemon".into(),
            level: "on".into(),
            apply: vec!["true".into()],
            undo: vec!["false".into()],
        };
        applied.apply(&[level]).unwrap();
        let UndoneSettings { undone, failed, .. } = applied.undo_all();
        assert_eq!((undone.len(), failed.len()), (0, 1));
        let again = recover_patiently(&home.path().join("state"), "boot");
        assert_eq!(again[0].failed.len(), 1);
    }

    #[test]
    fn a_failing_apply_is_undone_too() {
        let home = tempfile::tempdir().unwrap();
        let trace = home.path().join("undone");
        let mut applied = new_applied_settings(home.path());
        let level = Setting::Commands {
            factor: "daemon".into(),
            level: "on".into(),
            apply: vec!["sh".into(), "-c".into(), "echo no such daemon >&2; exit 3".into()],
            undo: vec!["touch".into(), trace.display().to_string()],
        };
        let error = applied.apply(&[level]).unwrap_err();
        let SettingError::Command { reason, .. } = error else { panic!("{error}") };
        insta::assert_snapshot!(reason, @"exit status: 3: no such daemon");
        applied.undo_all();
        assert!(trace.exists());
    }

    /// Files that refuse and round need a kernel: this machine's own, where it may be changed.
    fn kernel_setting_file(name: &str) -> Option<(PathBuf, String)> {
        let path = Path::new("/proc/sys").join(name);
        let text = fs::read_to_string(&path).unwrap();
        if rustix::process::geteuid().is_root() {
            return Some((path, text));
        }
        println!("SKIP {name}: needs root");
        None
    }

    #[test]
    fn a_level_refused_after_one_that_took_leaves_nothing_changed() {
        let Some((burst, before)) = kernel_setting_file("kernel/printk_ratelimit_burst") else { return };
        let home = tempfile::tempdir().unwrap();
        let mut applied = new_applied_settings(home.path());
        assert_eq!(applied.apply(&[file_setting(&burst, "17")]).unwrap().len(), 1);
        let refused = applied.apply(&[file_setting(&burst, "99999999999")]).unwrap_err();
        assert!(matches!(refused, SettingError::ValueRefused { .. }), "{refused:?}");
        let UndoneSettings { undone, failed, .. } = applied.undo_all();
        assert_eq!((undone.len(), failed.len()), (1, 0), "{failed:?}");
        assert_eq!(fs::read_to_string(&burst).unwrap(), before);
    }

    #[test]
    fn a_value_that_the_kernel_rounds_is_recorded_as_it_is() {
        let Some((largest, before)) = kernel_setting_file("fs/pipe-max-size") else { return };
        let home = tempfile::tempdir().unwrap();
        let mut applied = new_applied_settings(home.path());
        let changes = applied.apply(&[file_setting(&largest, "262143")]).unwrap();
        let SettingChange { from, to, asked, .. } = &changes[0];
        assert_eq!((from.as_str(), to.as_str(), asked.as_deref()), (before.trim(), "262144", Some("262143")));
        assert_eq!(applied.apply(&[file_setting(&largest, "262143")]).unwrap(), [], "it is in force");
        let kept = applied.apply(&[file_setting(&largest, "262142")]).unwrap_err();
        assert!(matches!(kept, SettingError::ValueIgnored { .. }), "{kept:?}");
        assert_eq!(applied.undo_all().failed.len(), 0);
        assert_eq!(fs::read_to_string(&largest).unwrap(), before);
    }

    #[test]
    fn a_pair_of_which_one_zeroes_the_other_comes_back_whole() {
        let (Some((bytes, _)), Some((ratio, _))) =
            (kernel_setting_file("vm/dirty_bytes"), kernel_setting_file("vm/dirty_ratio"))
        else {
            return;
        };
        let now = || (fs::read_to_string(&bytes).unwrap(), fs::read_to_string(&ratio).unwrap());
        let before = now();
        let home = tempfile::tempdir().unwrap();
        let mut applied = new_applied_settings(home.path());
        applied.apply(&[file_setting(&bytes, "268435456")]).unwrap();
        assert_eq!(now(), ("268435456\n".into(), "0\n".into()));
        let failed = applied.undo_all().failed;
        assert_eq!((now(), failed.len()), (before, 0), "{failed:?}");
    }

    #[test]
    fn each_of_a_pair_comes_back_whichever_was_in_force_and_with_both_changed() {
        let pair = [
            kernel_setting_file("vm/dirty_background_bytes"),
            kernel_setting_file("vm/dirty_background_ratio"),
        ];
        let [Some((bytes, _)), Some((ratio, before))] = pair else { return };
        let now = || (fs::read_to_string(&bytes).unwrap(), fs::read_to_string(&ratio).unwrap());
        let home = tempfile::tempdir().unwrap();
        let neither = ("0\n".to_owned(), "0\n".to_owned());
        for original in [&ratio, &bytes] {
            fs::write(original, if *original == ratio { "10" } else { "100000000" }).unwrap();
            let was = now();
            for knobs in [
                vec![file_setting(&bytes, "200000000"), file_setting(&ratio, "9")],
                vec![file_setting(&ratio, "9"), file_setting(&bytes, "200000000")],
                vec![file_setting(&ratio, "9")],
                vec![file_setting(&bytes, "200000000")],
            ] {
                let mut applied = new_applied_settings(home.path());
                applied.apply(&knobs).unwrap();
                let failed = applied.undo_all().failed;
                assert_eq!((now(), failed.len()), (was.clone(), 0), "{knobs:?}: {failed:?}");
            }
        }
        fs::write(&ratio, "0").unwrap();
        assert_eq!(now(), neither);
        let mut applied = new_applied_settings(home.path());
        applied.apply(&[file_setting(&bytes, "200000000")]).unwrap();
        let failed = applied.undo_all().failed;
        let came_back = now();
        fs::write(&ratio, before.trim()).unwrap();
        assert_eq!((came_back, failed.len()), (neither, 0), "the kernel takes no 0 for bytes: {failed:?}");
    }

    #[test]
    fn what_does_not_come_back_is_said_with_what_it_holds_and_kept() {
        let home = tempfile::tempdir().unwrap();
        let mut applied = new_applied_settings(home.path());
        applied.journal().promise(UndoEntry::write(Path::new("/proc/version"), "60")).unwrap();
        let UndoneSettings { undone, failed, .. } = applied.undo_all();
        assert_eq!((undone.len(), failed.len()), (0, 1));
        let SettingError::NotPutBack { before, now, .. } = &failed[0] else { panic!("{failed:?}") };
        assert!(before == "60" && now.starts_with("Linux"), "{failed:?}");
        assert_eq!(
            recover_patiently(&home.path().join("state"), "boot")[0].failed.len(),
            1,
            "the journal stays"
        );
    }
}
