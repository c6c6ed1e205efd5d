//! What is known of each program, as each user starts it, and what its next start is for. Decided from memory alone: no file is
//! touched here.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::program::{ProgramRecord, ProgramState};
use super::scout::ExecutableId;

/// Programs of users that are remembered. Of more, those of the user who has most of them go: that were not started for longest, and
/// are not worth it.
const MOST: usize = 20_000;

/// A program as one user starts it: what its starts read says nothing about those of others, and decides nothing of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramKey {
    /// the program
    pub path: PathBuf,
    /// the user, as files are opened
    pub user: u32,
}

/// What a start is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupPurpose {
    /// nothing
    Nothing,
    /// being watched
    Watch,
    /// being traced; what was known before is forgotten or added to
    Learn {
        /// forgotten: the executable is another one now
        anew: bool,
    },
    /// being read ahead
    ReadAhead {
        /// and traced, for what the trace lacks
        learn: bool,
    },
}

/// All of them.
#[derive(Debug, Default)]
pub struct KnownPrograms {
    all: HashMap<ProgramKey, ProgramRecord>,
    /// Whether a start tells what it waited for; where none does, each program that is met is wanted.
    judges: bool,
    /// Programs that a thread is learning or reading ahead now.
    busy: HashSet<ProgramKey>,
    /// Those that had to go: what was learnt of them is to be forgotten, too.
    gone: Vec<ProgramKey>,
    /// Whether something is not saved yet.
    pub changed: bool,
}

impl KnownPrograms {
    /// From what was saved; `judges` says whether starts tell what they waited for.
    pub fn new(all: HashMap<ProgramKey, ProgramRecord>, judges: bool) -> Self {
        KnownPrograms { all, judges, ..KnownPrograms::default() }
    }

    /// All of them.
    pub fn all(&self) -> &HashMap<ProgramKey, ProgramRecord> {
        &self.all
    }

    /// One of them.
    pub fn get(&self, key: &ProgramKey) -> Option<&ProgramRecord> {
        self.all.get(key)
    }

    /// Those that had to go since this was asked last.
    pub fn take_removed(&mut self) -> Vec<ProgramKey> {
        std::mem::take(&mut self.gone)
    }

    /// Whether the next start of some program is to be traced.
    pub fn wants_to_learn(&self) -> bool {
        self.all.values().any(|one| matches!(one.standing, ProgramState::Worth | ProgramState::Incomplete))
    }

    /// A program that has no entry yet: where a trace of it lies, it is known.
    pub fn add_if_new(&mut self, key: &ProgramKey, file: ExecutableId, has_trace: bool) {
        if let Some(known) = self.all.get_mut(key) {
            if has_trace && known.standing == ProgramState::Watched && known.file == file {
                (known.standing, known.why) = (ProgramState::Known, "a trace of it was there".into());
            }
            return;
        }
        if self.all.len() >= MOST {
            self.make_room();
        }
        let (standing, why) = match (has_trace, self.judges) {
            (true, _) => (ProgramState::Known, "a trace of it was there"),
            (false, false) => {
                (ProgramState::Worth, "it is named as wanted, and nothing tells what it waits for")
            }
            (false, true) => (ProgramState::Watched, "it was not seen to its end yet"),
        };
        self.all.insert(
            key.clone(),
            ProgramRecord { file, standing, why: why.into(), ..ProgramRecord::default() },
        );
        self.changed = true;
    }

    /// Nobody's programs push out those of who has fewer.
    fn make_room(&mut self) {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        self.all.keys().for_each(|key| *counts.entry(key.user).or_default() += 1);
        let Some(user) = counts.into_iter().max_by_key(|(_, count)| *count).map(|(user, _)| user) else {
            return;
        };
        let watched = |one: &ProgramRecord| one.standing == ProgramState::Watched;
        let some_watched = self.all.iter().any(|(key, one)| key.user == user && watched(one));
        let may_go =
            |key: &ProgramKey, one: &ProgramRecord| key.user == user && (watched(one) || !some_watched);
        let candidates = self.all.iter().filter(|(key, one)| may_go(key, one));
        let mut times: Vec<u64> = candidates.map(|(_, one)| one.last).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or(u64::MAX);
        let gone = self.all.extract_if(|key, one| may_go(key, one) && one.last <= middle);
        self.gone.extend(gone.filter(|(_, one)| !watched(one)).map(|(key, _)| key));
    }

    /// A program starts: for what, where it is not refused.
    pub fn begin_startup(
        &mut self,
        key: &ProgramKey,
        file: ExecutableId,
        when: u64,
        refused: Option<&str>,
    ) -> StartupPurpose {
        self.add_if_new(key, file, false);
        let Some(program) = self.all.get_mut(key) else { return StartupPurpose::Nothing };
        program.starts += 1;
        program.last = when;
        self.changed = true;
        if let Some(reason) = refused {
            program.why = reason.into();
            return StartupPurpose::Nothing;
        }
        if program.file != file {
            program.reset_replaced(file);
        }
        let purpose = program.next_purpose();
        let works = matches!(purpose, StartupPurpose::Learn { .. } | StartupPurpose::ReadAhead { .. });
        if works && !self.busy.insert(key.clone()) {
            return StartupPurpose::Watch;
        }
        purpose
    }

    /// The thread that worked for a program has ended.
    pub fn release(&mut self, key: &ProgramKey) {
        self.busy.remove(key);
        self.changed = true;
    }

    /// Does something with a program, which is saved.
    pub fn update(&mut self, key: &ProgramKey, change: impl FnOnce(&mut ProgramRecord)) {
        if let Some(program) = self.all.get_mut(key) {
            change(program);
            self.changed = true;
        }
    }
}

#[cfg(test)]
mod tests;
