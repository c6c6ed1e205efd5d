//! The undo journal: one file a run, outside the archive, so that the next start finds it wherever
//! that run's archive was.
//!
//! A line per change, flushed to disk before the change is made; a line when it is undone. The file
//! is locked while its run lives: an unlocked journal belongs to a run that was killed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use perflab_observe::own_directories::{self, OwnFileAccess};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::shared::{self, HeldSetting, SettingsLock};
use super::undo::UndoEntry;
use crate::ConductError;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum UndoJournalLine {
    Boot(String),
    Change { number: u32, undo: UndoEntry },
    Undone { number: u32 },
}

/// The journal of a living run. Its file is made with the first change: a run that changes nothing
/// needs no place for it.
#[derive(Debug)]
pub struct UndoJournal {
    path: PathBuf,
    boot_id: String,
    file: Option<File>,
    pending: Vec<(u32, UndoEntry)>,
    /// What is undone, and could not be noted: a full disk.
    unnoted: Vec<u32>,
    next: u32,
}

impl UndoJournal {
    /// The journal of run `id` under `directory`.
    pub fn new(directory: &Path, id: &str, boot_id: &str) -> Self {
        let path = directory.join(format!("undo-{id}.jsonl"));
        UndoJournal {
            path,
            boot_id: boot_id.into(),
            file: None,
            pending: Vec::new(),
            unnoted: Vec::new(),
            next: 0,
        }
    }

    /// The journal of a run that was killed, with what is still to be undone; `None` while its run lives.
    ///
    /// # Errors
    /// Another user could have written it: what it tells is not to be done.
    pub(super) fn open_abandoned(path: &Path, boot_id: &str) -> io::Result<Option<Self>> {
        let Some(file) = open_own_journal(path, OwnFileAccess::Append)? else { return Ok(None) };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let (boot, mut pending) = read_journal(&file);
        if boot.as_deref() != Some(boot_id) {
            pending.retain(|(_, undo)| !undo.is_undone_by_reboot());
        }
        let next = pending.iter().map(|(number, _)| number + 1).max().unwrap_or_default();
        let (path, boot_id, unnoted) = (path.into(), boot_id.into(), Vec::new());
        Ok(Some(UndoJournal { path, boot_id, file: Some(file), pending, unnoted, next }))
    }

    fn open_if_closed(&mut self) -> Result<(), ConductError> {
        if self.file.is_some() {
            return Ok(());
        }
        let file = create_locked_journal(&self.path)
            .map_err(|source| ConductError::Journal { path: self.path.clone(), source })?;
        self.file = Some(file);
        self.write_line(&UndoJournalLine::Boot(self.boot_id.clone()))
    }

    /// Notes how to undo what is about to be done. Done only once this has returned.
    pub fn promise(&mut self, undo: UndoEntry) -> Result<u32, ConductError> {
        self.open_if_closed()?;
        let number = self.next;
        self.write_line(&UndoJournalLine::Change { number, undo: undo.clone() })?;
        self.next += 1;
        self.pending.push((number, undo));
        Ok(number)
    }

    /// Notes that change `number` is undone, or was never made.
    pub fn mark_undone(&mut self, number: u32) -> Result<(), ConductError> {
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

    /// Undoes what was promised since `mark`, the latest first.
    pub fn undo_since(&mut self, mark: u32) -> Result<(), ConductError> {
        let numbers: Vec<u32> =
            self.pending().map(|(number, _)| number).filter(|number| *number >= mark).collect();
        numbers.into_iter().try_for_each(|number| self.undo(number))
    }

    /// Undoes one change, and notes it. A change that cannot be undone stays in the journal; a setting that another run still
    /// holds is left to that one.
    pub fn undo(&mut self, number: u32) -> Result<(), ConductError> {
        let undo = self.pending.iter().find(|(pending, _)| *pending == number).map(|(_, undo)| undo.clone());
        let setting = undo.as_ref().and_then(UndoEntry::setting_path);
        let _turn = setting.map(|_| self.lock_settings()).transpose()?;
        let another = |path: &Path| self.held_by_others(path).is_some_and(|held| held.lives);
        if let Some(undo) = undo.as_ref().filter(|_| !setting.is_some_and(another)) {
            undo.perform()?;
        }
        if self.mark_undone(number).is_err() {
            // It is done nevertheless. Where all is, the journal goes, which a full disk does not prevent.
            self.pending.retain(|(pending, _)| *pending != number);
            self.unnoted.push(number);
        }
        Ok(())
    }

    /// Until it is dropped, no other run makes promises about settings, or keeps them.
    pub(super) fn lock_settings(&self) -> Result<SettingsLock, ConductError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        SettingsLock::acquire(folder).map_err(|source| ConductError::Journal { path: folder.into(), source })
    }

    /// Who else has promised to put a setting back.
    pub(super) fn held_by_others(&self, path: &Path) -> Option<HeldSetting> {
        shared::find_other_holder(&self.path, &self.boot_id, path)
    }

    /// Removes the journal when nothing is pending; otherwise it stays for the next start.
    ///
    /// # Errors
    /// It stays, and tells of something that is undone already.
    pub fn close(mut self) -> Result<(), ConductError> {
        // Left over, it would be found empty at the next start and removed then.
        let gone = self.pending.is_empty() && self.file.is_some() && fs::remove_file(&self.path).is_ok();
        let unnoted = if gone { Vec::new() } else { std::mem::take(&mut self.unnoted) };
        // What was removed meanwhile may have made room.
        unnoted
            .into_iter()
            .try_for_each(|number| self.write_line(&UndoJournalLine::Undone { number }))
            .map_err(|error| match error {
                ConductError::Journal { path, source } => ConductError::JournalBehind { path, source },
                other => other,
            })
    }

    fn write_line(&mut self, line: &UndoJournalLine) -> Result<(), ConductError> {
        let failed = |source| ConductError::Journal { path: self.path.clone(), source };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        let Some(file) = &mut self.file else { return Ok(()) };
        let length = file.metadata().map_err(failed)?.len();
        file.write_all(&text).and_then(|()| file.sync_data()).map_err(|source| {
            // Half a line would swallow the next one. To cut it off needs no room.
            let _ = file.set_len(length);
            failed(source)
        })
    }
}

/// A fresh file, with the lock that says its run lives.
fn create_locked_journal(path: &Path) -> std::io::Result<File> {
    let folder = own_directories::create_own_directory(journal_folder(path))?;
    let file =
        own_directories::open_own_file(&folder, path.file_name().unwrap_or_default(), OwnFileAccess::New)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// A journal that is there, if it is this user's own; `None` where it has just gone.
pub(super) fn open_own_journal(path: &Path, access: OwnFileAccess) -> io::Result<Option<File>> {
    let Some(folder) = own_directories::open_own_directory(journal_folder(path))? else { return Ok(None) };
    match own_directories::open_own_file(&folder, path.file_name().unwrap_or_default(), access) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn journal_folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

pub(super) fn is_journal_path(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("undo-") && name.ends_with(".jsonl")
}

/// The boot of the journal and what is pending in it. A torn last line is a change that was not made.
pub(super) fn read_journal(file: &File) -> (Option<String>, Vec<(u32, UndoEntry)>) {
    let (mut boot, mut pending) = (None, Vec::new());
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(UndoJournalLine::Boot(id)) => boot = Some(id),
            Ok(UndoJournalLine::Change { number, undo }) => pending.push((number, undo)),
            Ok(UndoJournalLine::Undone { number }) => pending.retain(|(other, _)| *other != number),
            Err(_) => break,
        }
    }
    (boot, pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal with two changes, whose disk is full from here on.
    fn journal_on_full_disk(home: &Path, setting: &Path) -> UndoJournal {
        let mut journal = UndoJournal::new(&home.join("state"), "R1", "boot");
        for path in [setting, Path::new("/proc/version")] {
            journal.promise(UndoEntry::Write { path: path.into(), value: "60".into() }).unwrap();
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
        // One change is still pending, so the journal stays, and still tells of the other.
        assert!(matches!(journal.close(), Err(ConductError::JournalBehind { .. })));
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
        let told = read_journal(&File::open(&journal.path).unwrap());
        drop(journal);
        mount(&["umount"]);
        assert!(promised.iter().all(Result::is_ok) && refused.is_err() && settled.is_ok(), "{settled:?}");
        assert_eq!(told, (Some("boot".into()), vec![(1, undo("/no/2"))]));
    }
}
