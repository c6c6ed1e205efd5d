//! What is in force for a slot, and the way from one case's settings to the next one's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use perflab_model::{PresetLevel, Refusal, Setting, SettingMechanism, ValueTolerance};
use perflab_observe::{NetworkOffload, Root};

use crate::child_command::run_level_command;
use crate::error::SettingError;
use crate::group_limit::{AppliedLimit, RunGroups};
use crate::kernel_device::KernelDevice;
use crate::offload_level::{self, check_offload, plan_offload, read_offload, set_offload};
use crate::preset_files::{SettingSite, plan_file_writes};
use crate::queue_discipline::{self, QueueDiscipline};
use crate::setting::{
    FileIdentity, SettingContent, counterpart_file, dependent_files, is_same_value, write_value,
};
use crate::setting_file::FileWrite;
use crate::setting_place::written_paths;
use crate::study_disk::StudyDisk;
use crate::swap_areas;
use crate::swap_level::{self, SwapInForce};
use crate::undo_entry::UndoEntry;
use crate::undo_journal::{HeldSetting, UndoJournal};
use crate::wakeup_latency::{self, LatencyRequest};

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

/// A setting that is not what it was set to: somebody else has changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverwrittenSetting {
    /// Which: the file's name in events, or the preset's.
    pub setting: String,
    /// The file.
    pub path: PathBuf,
    /// What it held when it was set, as it was read back.
    pub set: String,
    /// What it holds now, or why that cannot be read.
    pub found: String,
    /// Who did it, as far as that is known.
    pub cause: OverwritingCause,
}

/// Why a setting is not what it was set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverwritingCause {
    /// Somebody has changed it.
    Somebody,
    /// Another run of perflab has set it, too.
    Run(String),
    /// What it was of is gone: a device, or one of its name is another one.
    Gone,
}

/// What undoing everything came to.
#[derive(Debug, Default)]
pub struct UndoneSettings {
    /// What is back.
    pub undone: Vec<String>,
    /// What somebody else has set since, and was left: each with what it holds.
    pub left: Vec<String>,
    /// What is not back.
    pub failed: Vec<SettingError>,
}

/// The settings in force. Only differences are applied, each written to the undo journal first, and each is read back.
#[derive(Debug)]
pub struct AppliedSettings {
    journal: UndoJournal,
    /// Where presets find their files.
    root: Root,
    /// The study's own disk, while it is there.
    disk: Option<StudyDisk>,
    /// What was read back of every file that is to hold something, by the same names.
    watched: IndexMap<String, WatchedValue>,
    /// What is swapped to, where that was set.
    swap: SwapInForce,
    /// Queue disciplines of devices that were set, by setting: the device, and what was read back.
    disciplines: IndexMap<String, (String, String)>,
    /// Switches of network devices that were set, by setting.
    offloads: IndexMap<String, HeldOffload>,
    /// The control groups of the workload.
    groups: RunGroups,
    /// Requests that are in force while they are held.
    requests: IndexMap<String, HeldRequest>,
    /// By name: what is in force, and the undo entry that puts it back.
    in_force: IndexMap<String, SettingInForce>,
    /// Files that were changed: looked at once more when all is undone.
    originals: Vec<OriginalValue>,
    /// What the files of other settings held before something of the present one was written.
    before: Option<Vec<(u32, PathBuf, Option<String>)>>,
    /// Ends a level's command.
    stop: Option<Arc<AtomicBool>>,
}

/// What a file held before anything was written to it.
#[derive(Debug)]
struct OriginalValue {
    identity: FileIdentity,
    device: Option<KernelDevice>,
    path: PathBuf,
    value: String,
    entry: u32,
}

/// What a file held when it was set.
#[derive(Debug)]
struct WatchedValue {
    setting: String,
    path: PathBuf,
    value: String,
    device: Option<KernelDevice>,
}

impl WatchedValue {
    /// Whether what it was of is gone.
    fn is_gone(&self) -> bool {
        let is_other = |device: &KernelDevice| device.find_file(&self.path).as_ref() != Some(&self.path);
        self.device.as_ref().map_or_else(|| !self.path.exists(), is_other)
    }
}

/// A switch of a network device, as it was set.
#[derive(Debug)]
struct HeldOffload {
    offload: NetworkOffload,
    device: String,
    is_on: bool,
    /// The undo entry, where it was another one.
    entry: Option<u32>,
}

#[derive(Debug)]
struct HeldRequest {
    level: String,
    /// What was read back, in microseconds.
    value: Option<i32>,
    request: Option<LatencyRequest>,
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
        AppliedSettings {
            journal,
            root: Root::host(),
            disk: None,
            watched: IndexMap::new(),
            swap: SwapInForce::default(),
            disciplines: IndexMap::new(),
            offloads: IndexMap::new(),
            groups: RunGroups::default(),
            requests: IndexMap::new(),
            in_force: IndexMap::new(),
            originals: Vec::new(),
            before: None,
            stop: None,
        }
    }

    /// Has presets find their files below `root`.
    pub fn with_root(self, root: Root) -> Self {
        AppliedSettings { root, ..self }
    }

    /// Says which disk is the study's own from now on.
    pub fn set_study_disk(&mut self, disk: Option<StudyDisk>) {
        self.disk = disk;
    }

    /// What an earlier process has set and left in force, with its journal.
    pub fn resume(journal: UndoJournal) -> Self {
        let original = |(entry, undo): (u32, &UndoEntry)| match undo {
            UndoEntry::Write { path, value, device } => Some(OriginalValue {
                identity: FileIdentity::of_path(path),
                device: device.clone(),
                path: path.clone(),
                value: value.clone(),
                entry,
            }),
            _ => None,
        };
        let originals = journal.pending().filter_map(original).collect();
        AppliedSettings { originals, ..AppliedSettings::new(journal) }
    }

    /// Leaves everything as it is, for a later process; a journal without entries goes.
    ///
    /// # Errors
    /// The journal cannot be removed.
    pub fn keep(self) -> Result<(), SettingError> {
        if self.journal.pending().next().is_none() { self.journal.close() } else { Ok(()) }
    }

    /// Files of settings that a run has set that goes on.
    pub fn find_held_by_runs(&self, settings: &[Setting]) -> Vec<PathBuf> {
        let paths = settings.iter().flat_map(|setting| written_paths(setting, &self.root));
        paths.filter(|path| self.journal.is_held_by_a_run(path)).collect()
    }

    /// Files that are to be put back and that a run has set that goes on.
    pub fn find_pending_held_by_runs(&self) -> Vec<PathBuf> {
        let paths = self.journal.pending().filter_map(|(_, undo)| undo.setting_path());
        paths.filter(|path| self.journal.is_held_by_a_run(path)).map(Path::to_owned).collect()
    }

    /// The files that the workload writes itself to before it is executed: the run's control groups.
    pub fn workload_groups(&self) -> Vec<PathBuf> {
        self.groups.member_files()
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
    pub fn apply(&mut self, settings: &[Setting]) -> Result<Vec<SettingChange>, SettingError> {
        let mut changes = Vec::new();
        for setting in settings {
            match setting {
                Setting::File { name, path, value } => {
                    let write = FileWrite {
                        path: path.clone(),
                        value: value.clone(),
                        tolerance: ValueTolerance::Rounded,
                    };
                    let change = self.write_file(name, name, &write)?;
                    changes.extend(change.map(|(from, to)| change_of(name, value, from, to)));
                }
                Setting::Commands { factor, level, apply, undo } => {
                    changes.extend(self.run_level(factor, level, apply, undo)?);
                }
                Setting::Preset(level) if level.trigger => {}
                Setting::Preset(level) => changes.extend(self.apply_preset(level)?),
                Setting::DropCaches(_) => {}
            }
            self.note_moves();
        }
        Ok(changes)
    }

    /// Reads what the files of other settings hold, before something is done that may move them: a limit, another limit; an I/O
    /// scheduler, the depth of its queue; commands, anything.
    fn watch_moves(&mut self) {
        if self.before.is_none() {
            let read = |path: &Path| SettingContent::read(path).ok().map(|content| content.value);
            let files = self.journal.written_files();
            self.before = Some(files.map(|(number, path)| (number, path.to_owned(), read(path))).collect());
        }
    }

    /// What was moved by what we did is ours.
    fn note_moves(&mut self) {
        for (number, path, before) in self.before.take().unwrap_or_default() {
            let Ok(now) = SettingContent::read(&path) else { continue };
            let is_known = self.journal.written_files().any(|(known, _)| known == number);
            if is_known && before.as_ref() != Some(&now.value) {
                self.journal.note_written(number, &now.value);
            }
        }
    }

    /// Brings a preset to a level: all its files, in whichever order the kernel takes them.
    fn apply_preset(&mut self, level: &PresetLevel) -> Result<Option<SettingChange>, SettingError> {
        if level.mechanism == Some(SettingMechanism::WakeupLatency) {
            return self.hold_request(level);
        }
        if level.mechanism == Some(SettingMechanism::Swap) {
            return self.apply_swap(level);
        }
        if level.mechanism == Some(SettingMechanism::QueueDiscipline) {
            return self.apply_discipline(level);
        }
        if level.mechanism == Some(SettingMechanism::Offload) {
            return self.apply_offload(level);
        }
        if level.mechanism == Some(SettingMechanism::ControlGroup) {
            return self.apply_group_limit(level);
        }
        let site = SettingSite { root: &self.root, disk: self.disk.as_ref() };
        let writes = plan_file_writes(level, site)?;
        self.forget_other_files(&level.name, &writes);
        let mut done: Vec<(String, String, &FileWrite)> = Vec::new();
        let mut left: Vec<&FileWrite> = writes.iter().collect();
        // Of a lower and an upper limit one has to be moved first: which, depends on where they are.
        while !left.is_empty() {
            let mut refused: Vec<(&FileWrite, SettingError)> = Vec::new();
            let before = left.len();
            for write in left {
                match self.write_file(&write.path.display().to_string(), &level.name, write) {
                    Ok(change) => done.extend(change.map(|(from, to)| (from, to, write))),
                    Err(error) => refused.push((write, error)),
                }
            }
            if refused.len() == before {
                let is_some = refused.iter().all(|(write, _)| write.tolerance == ValueTolerance::Some);
                match refused.into_iter().next() {
                    // Some of the files are enough, but one has to take it.
                    Some((_, error)) if !is_some || before == writes.len() => return Err(error),
                    _ => break,
                }
            }
            left = refused.into_iter().map(|(write, _)| write).collect();
        }
        Ok(merge_changes(&level.name, &done))
    }

    /// Another level may have written to other files (a size, and not a share), which this one may change.
    fn forget_other_files(&mut self, setting: &str, writes: &[FileWrite]) {
        let is_other = |watched: &WatchedValue| {
            watched.setting == setting && !writes.iter().any(|write| write.path == watched.path)
        };
        let others = self.watched.iter().filter(|(_, watched)| is_other(watched));
        let others: Vec<String> = others.map(|(key, _)| key.clone()).collect();
        for key in others {
            self.watched.shift_remove(&key);
            if let Some(held) = self.in_force.get_mut(&key) {
                held.value.clear();
            }
        }
    }

    fn apply_swap(&mut self, level: &PresetLevel) -> Result<Option<SettingChange>, SettingError> {
        let is_untouched = self.swap.level.is_empty() && level.level == swap_level::UNCHANGED;
        if self.swap.level == level.level || is_untouched {
            return Ok(None);
        }
        if !self.root.is_host() {
            let what = format!("{}: only this machine's swap can be set", level.name);
            return Err(SettingError::Refused(Refusal { what, hint: "leave it out".into() }));
        }
        let from = swap_areas::describe_areas(&swap_areas::read_areas(&self.root));
        swap_level::apply_swap_level(&level.level, &mut self.swap, &mut self.journal, &self.root)?;
        let (setting, to) = (level.name.clone(), self.swap.listed.clone());
        Ok((from != to).then_some(SettingChange { setting, from, to, asked: None }))
    }

    fn apply_discipline(&mut self, level: &PresetLevel) -> Result<Option<SettingChange>, SettingError> {
        let device = level.part.clone().unwrap_or_default();
        let held = self.in_force.get(&level.name).map(|held| (held.value.clone(), held.entry));
        if held.as_ref().map_or(queue_discipline::DEFAULT, |(value, _)| value) == level.level {
            if held.is_none() {
                // What it has may be somebody else's, and is not what is asked for.
                queue_discipline::check_discipline(&level.name, &device, &level.level, &self.root)?;
            }
            return Ok(None);
        }
        let from = QueueDiscipline::of_device(&device)?.words;
        if let Some((_, entry)) = held {
            self.journal.undo(entry)?;
            self.in_force.shift_remove(&level.name);
            self.disciplines.shift_remove(&level.name);
        }
        queue_discipline::check_discipline(&level.name, &device, &level.level, &self.root)?;
        let to = if level.level == queue_discipline::DEFAULT {
            QueueDiscipline::of_device(&device)?.words
        } else {
            let entry = self.journal.promise(UndoEntry::remove_queue_discipline(&device))?;
            let added = queue_discipline::add_discipline(&level.name, &device, &level.level);
            let to = added.or_else(|error| self.journal.undo(entry).and(Err(error)))?.words;
            let in_force = SettingInForce { value: level.level.clone(), entry };
            self.in_force.insert(level.name.clone(), in_force);
            self.disciplines.insert(level.name.clone(), (device, to.clone()));
            to
        };
        Ok((from != to).then(|| SettingChange { setting: level.name.clone(), from, to, asked: None }))
    }

    fn apply_offload(&mut self, level: &PresetLevel) -> Result<Option<SettingChange>, SettingError> {
        let (offload, device, is_on) = plan_offload(level)?;
        check_offload(level, &self.root)?;
        let before = read_offload(offload, &device)?;
        let undo = UndoEntry::restore_offload(&device, offload, before);
        // Of a device that has got the name since, nothing is noted yet.
        let is_of_device = |entry: &u32| {
            let pending = self.journal.pending().find(|(number, _)| number == entry);
            pending.is_some_and(|(_, pending)| pending.is_of_same_switch(&undo))
        };
        let held = self.offloads.get(&level.name);
        let mut entry = held.and_then(|held| held.entry).filter(is_of_device);
        if before != is_on {
            if entry.is_none() {
                let _turn = self.journal.lock_settings()?;
                if let Some(run) = self.journal.find_living_holder(|other| other.is_of_same_switch(&undo)) {
                    let what = format!("{}: run {run} of another perflab has set it", level.name);
                    return Err(SettingError::Refused(Refusal {
                        what,
                        hint: "wait until it has ended".into(),
                    }));
                }
                entry = Some(self.journal.promise(undo)?);
            }
            set_offload(offload, &device, is_on)?;
        }
        self.offloads.insert(level.name.clone(), HeldOffload { offload, device, is_on, entry });
        let (from, to) = (offload_level::word(before).to_owned(), level.level.clone());
        Ok((before != is_on).then(|| SettingChange { setting: level.name.clone(), from, to, asked: None }))
    }

    fn apply_group_limit(&mut self, level: &PresetLevel) -> Result<Option<SettingChange>, SettingError> {
        let site = (&self.root, self.disk.as_ref());
        let Some(applied) = self.groups.apply(level, site, &mut self.journal)? else { return Ok(None) };
        let AppliedLimit { from, file } = applied;
        if let Some((path, value)) = file {
            let watched = WatchedValue { setting: level.name.clone(), path, value, device: None };
            self.watched.insert(level.name.clone(), watched);
        }
        let to = level.level.clone();
        Ok((from != to).then(|| SettingChange { setting: level.name.clone(), from, to, asked: None }))
    }

    fn hold_request(&mut self, level: &PresetLevel) -> Result<Option<SettingChange>, SettingError> {
        let held = self.requests.get(&level.name).map(|held| held.level.clone());
        let from = held.unwrap_or_else(|| wakeup_latency::ANY.into());
        if from == level.level {
            return Ok(None);
        }
        let mut held = self.requests.shift_remove(&level.name).and_then(|held| held.request);
        let request = match &mut held {
            Some(request) if level.level != wakeup_latency::ANY => {
                request.change(&level.level)?;
                held
            }
            _ => LatencyRequest::open(&level.level, &self.root)?,
        };
        let now = request.as_ref().map(LatencyRequest::in_force).transpose()?;
        let to = now.map_or_else(|| wakeup_latency::ANY.into(), wakeup_latency::level_of_micros);
        let held = HeldRequest { level: level.level.clone(), value: now, request };
        self.requests.insert(level.name.clone(), held);
        let asked = (to != level.level).then(|| level.level.clone());
        Ok(Some(SettingChange { setting: level.name.clone(), from, to, asked }))
    }

    /// Brings one file to a value, if it is not there yet; gives what it held and what it holds. `key` names the file among all
    /// settings, `setting` is what it is called in events.
    fn write_file(
        &mut self,
        key: &str,
        setting: &str,
        write: &FileWrite,
    ) -> Result<Option<(String, String)>, SettingError> {
        let FileWrite { path, value, tolerance } = write;
        self.forget_gone_device(key, path)?;
        if self.in_force.get(key).is_some_and(|held| is_same_value(&held.value, value)) {
            return Ok(None);
        }
        if !self.in_force.contains_key(key) {
            self.promise_restore(key, path, value)?;
        }
        let from = SettingContent::read(path)?.value;
        if is_same_value(&from, value) {
            self.note_value(key, setting, write, from);
            return Ok(None);
        }
        self.watch_moves();
        if let Some(held) = self.in_force.get(key) {
            self.journal.note_writing(held.entry)?;
        }
        match write_and_read_back(path, &from, value, *tolerance) {
            Ok(to) => {
                self.note_value(key, setting, write, to.clone());
                Ok(Some((from, to)))
            }
            Err(error) => {
                self.withdraw_if_original(key, path);
                Err(error)
            }
        }
    }

    fn note_value(&mut self, key: &str, setting: &str, write: &FileWrite, found: String) {
        let FileWrite { path, value, tolerance } = write;
        if let Some(held) = self.in_force.get_mut(key) {
            held.value.clone_from(value);
            // A pool that the kernel fills holds another number later, which is ours all the same.
            if *tolerance != ValueTolerance::Less {
                self.journal.note_written(held.entry, &found);
            }
        }
        let device = KernelDevice::of_file(path);
        let watched = WatchedValue { setting: setting.into(), path: path.clone(), value: found, device };
        self.watched.insert(key.into(), watched);
    }

    /// Where a device has gone, and another one has its name, nothing of that one was set: what it holds is to be noted first.
    fn forget_gone_device(&mut self, key: &str, path: &Path) -> Result<(), SettingError> {
        let Some(entry) = self.in_force.get(key).map(|held| held.entry) else { return Ok(()) };
        let undo = self.journal.pending().find(|(number, _)| *number == entry);
        let Some(now) = undo.map(|(_, undo)| undo.locate()) else { return Ok(()) };
        match now {
            Some(now) if now.setting_path() == Some(path) => return Ok(()),
            // Renamed, it is put back under its name.
            Some(_) => {}
            None => self.journal.mark_undone(entry)?,
        }
        self.in_force.shift_remove(key);
        self.watched.shift_remove(key);
        Ok(())
    }

    /// Reads every file once more; gives those that are not what they were set to. Each change is told once, and the next
    /// application of its setting writes it again.
    pub fn find_overwritten(&mut self) -> Vec<OverwrittenSetting> {
        let mut found = Vec::new();
        for (key, watched) in &mut self.watched {
            let is_gone = watched.is_gone();
            let now = match SettingContent::read(&watched.path) {
                Ok(content) if !is_gone && is_same_value(&content.value, &watched.value) => continue,
                Ok(content) => content.value,
                Err(error) => format!("? ({})", perflab_model::describe_error_chain(&error)),
            };
            let holders = if is_gone { Vec::new() } else { self.journal.find_other_holders(&watched.path) };
            let is_theirs = |held: &HeldSetting| {
                held.lives && held.written.as_ref().is_none_or(|written| is_same_value(written, &now))
            };
            let cause = match holders.into_iter().find(is_theirs) {
                Some(held) => OverwritingCause::Run(held.run),
                None if is_gone => OverwritingCause::Gone,
                None => OverwritingCause::Somebody,
            };
            let (setting, path, set) = (
                watched.setting.clone(),
                watched.path.clone(),
                std::mem::replace(&mut watched.value, now.clone()),
            );
            if let Some(held) = self.in_force.get_mut(key) {
                held.value.clone_from(&now);
            }
            self.groups.forget_level(key);
            // One that said so already, and still cannot be read, has nothing new to say.
            if set != now {
                found.push(OverwrittenSetting { setting, path, set, found: now, cause });
            }
        }
        if !self.swap.level.is_empty() {
            let now = swap_areas::describe_areas(&swap_areas::read_areas(&self.root));
            if now != self.swap.listed {
                self.swap.level.clear();
                found.push(OverwrittenSetting {
                    setting: "swap".into(),
                    path: self.root.path(swap_areas::FILE),
                    set: std::mem::replace(&mut self.swap.listed, now.clone()),
                    found: now,
                    cause: OverwritingCause::Somebody,
                });
            }
        }
        for (setting, (device, listed)) in &mut self.disciplines {
            let now = match QueueDiscipline::of_device(device) {
                Ok(now) => now.words,
                Err(error) => format!("? ({})", perflab_model::describe_error_chain(&error)),
            };
            if now != *listed {
                if let Some(held) = self.in_force.get_mut(setting) {
                    held.value.clear();
                }
                found.push(OverwrittenSetting {
                    setting: setting.clone(),
                    path: queue_discipline::device_folder(device),
                    set: std::mem::replace(listed, now.clone()),
                    found: now,
                    cause: match queue_discipline::device_folder(device).exists() {
                        true => OverwritingCause::Somebody,
                        false => OverwritingCause::Gone,
                    },
                });
            }
        }
        for (setting, HeldOffload { offload, device, is_on, .. }) in &mut self.offloads {
            let now = offload.read(device).ok();
            if now == Some(*is_on) {
                continue;
            }
            let cause = if now.is_none() { OverwritingCause::Gone } else { OverwritingCause::Somebody };
            let set = offload_level::word(*is_on).to_owned();
            // What is told is told once; it is read again before it is set again.
            *is_on = now.unwrap_or(*is_on);
            found.push(OverwrittenSetting {
                setting: setting.clone(),
                path: queue_discipline::device_folder(device),
                set,
                found: now.map_or("?", offload_level::word).into(),
                cause,
            });
        }
        for (setting, held) in &mut self.requests {
            let Some((request, set)) = held.request.as_ref().zip(held.value) else { continue };
            // Somebody else asks for less.
            let Ok(now) = request.in_force() else { continue };
            if now != set {
                held.value = Some(now);
                found.push(OverwrittenSetting {
                    setting: setting.clone(),
                    path: self.root.path(wakeup_latency::FILE),
                    set: wakeup_latency::level_of_micros(set),
                    found: wakeup_latency::level_of_micros(now),
                    cause: OverwritingCause::Somebody,
                });
            }
        }
        found
    }

    /// Undoes the entries written since `mark`, the latest first, and forgets what they were for.
    ///
    /// # Errors
    /// One of them is not undone.
    pub fn undo_since(&mut self, mark: u32) -> Result<(), SettingError> {
        let gone: Vec<String> =
            self.in_force.iter().filter(|(_, held)| held.entry >= mark).map(|(key, _)| key.clone()).collect();
        let undone = self.journal.undo_since(mark);
        for key in &gone {
            self.in_force.shift_remove(key);
            self.watched.shift_remove(key);
            self.disciplines.shift_remove(key);
        }
        self.groups.forget_gone();
        // Those that need no undoing are as they were before.
        self.offloads.retain(|_, held| held.entry.is_none_or(|entry| entry < mark));
        self.originals.retain(|original| original.entry < mark);
        // Those that were so already have no entry, and may be gone with their disk.
        self.watched.retain(|_, watched| watched.path.exists());
        undone
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
        let (identity, device) = (FileIdentity::of_path(path), KernelDevice::of_file(path));
        let is_known =
            |original: &OriginalValue| (&original.identity, &original.device) == (&identity, &device);
        let known = self.originals.iter().position(is_known);
        let before = match known.and_then(|known| self.originals.get(known)) {
            Some(original) if self.journal.pending().any(|(number, _)| number == original.entry) => {
                return Ok(original.entry);
            }
            Some(original) => original.value.clone(),
            None => self.journal.held_by_others(path).map_or_else(|| now.to_owned(), |held| held.value),
        };
        let entry = self.journal.promise(UndoEntry::write(path, &before))?;
        match known.and_then(|known| self.originals.get_mut(known)) {
            Some(original) => original.entry = entry,
            None => {
                let path = path.into();
                self.originals.push(OriginalValue { identity, device, path, value: before, entry });
            }
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
        self.watch_moves();
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
    /// the next start, unless it is tried only once.
    pub fn undo_all(mut self) -> UndoneSettings {
        self.requests.clear();
        let mut found = UndoneSettings::default();
        let mut back = Vec::new();
        for (undo, ended) in self.journal.undo_pending() {
            match ended {
                Ok(true) if undo.is_tried_once() => {}
                Ok(true) => {
                    back.extend(undo.setting_path().map(Path::to_owned));
                    found.undone.push(undo.name());
                }
                Ok(false) => {}
                Err(error) => found.failed.push(error),
            }
        }
        // The first last: one value may have two names, and was another one when the second was looked at.
        for original in std::mem::take(&mut self.originals).into_iter().rev() {
            let OriginalValue { path, value, device, .. } = original;
            if back.contains(&path) && device == KernelDevice::of_file(&path) {
                found.failed.extend(self.restore_original(&path, &value).err());
            }
        }
        found.left = self.journal.take_left();
        found.failed.extend(self.journal.close().err());
        found
    }

    /// Another level's commands, or a file that moves with this one, may have changed what was put back before them: once more.
    fn restore_original(&mut self, path: &Path, original: &str) -> Result<(), SettingError> {
        let undo = UndoEntry::write(path, original);
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

fn change_of(setting: &str, asked: &str, from: String, to: String) -> SettingChange {
    let asked = (!is_same_value(&to, asked)).then(|| asked.to_owned());
    SettingChange { setting: setting.into(), from, to, asked }
}

/// One change of all files of a preset: each value once.
fn merge_changes(setting: &str, done: &[(String, String, &FileWrite)]) -> Option<SettingChange> {
    let join = |values: &mut dyn Iterator<Item = &str>| {
        let mut unique: Vec<&str> = Vec::new();
        values.for_each(|value| {
            if !unique.contains(&value) {
                unique.push(value)
            }
        });
        unique.join(", ")
    };
    let is_other = |(_, to, write): &&(String, String, &FileWrite)| !is_same_value(to, &write.value);
    let asked = done.iter().find(is_other).map(|(_, _, write)| write.value.clone());
    (!done.is_empty()).then(|| SettingChange {
        setting: setting.into(),
        from: join(&mut done.iter().map(|(from, _, _)| from.as_str())),
        to: join(&mut done.iter().map(|(_, to, _)| to.as_str())),
        asked,
    })
}

/// Writes a value; gives what the file holds then, as far as the tolerance allows it to be another.
fn write_and_read_back(
    path: &Path,
    before: &str,
    value: &str,
    tolerance: ValueTolerance,
) -> Result<String, SettingError> {
    write_value(path, value).map_err(|source| SettingError::ValueRefused {
        path: path.into(),
        asked: value.into(),
        source,
    })?;
    let now = SettingContent::read(path)?.value;
    if is_same_value(&now, value) {
        return Ok(now);
    }
    if is_same_value(&now, before) {
        return Err(SettingError::ValueIgnored { path: path.into(), asked: value.into(), now });
    }
    match tolerance {
        ValueTolerance::Exact => {
            Err(SettingError::ValueAltered { path: path.into(), asked: value.into(), now })
        }
        ValueTolerance::Rounded | ValueTolerance::Less | ValueTolerance::Some => Ok(now),
    }
}

/// The other file of a pair and what it holds, where it, and not `path`, is in force.
fn counterpart_in_force(path: &Path, now: &str) -> Result<Option<(PathBuf, String)>, SettingError> {
    let Some(other) = counterpart_file(path).filter(|other| is_same_value(now, "0") && other.exists()) else {
        return Ok(None);
    };
    let value = SettingContent::read(&other)?.value;
    Ok((!is_same_value(&value, "0")).then_some((other, value)))
}
