//! What is known of each program, and what its next start is for. Decided from memory alone: no file is touched here.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::program::{Program, Standing};
use super::scout::Identity;

/// Programs that are remembered; of more, those that nobody has started for longest, and that are not worth it, go.
const MOST: usize = 20_000;

/// What a start is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
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
pub struct Programs {
    all: HashMap<PathBuf, Program>,
    /// Programs that a thread is learning or reading ahead now.
    busy: HashSet<PathBuf>,
    /// Whether something is not saved yet.
    pub changed: bool,
}

impl Programs {
    /// From what was saved.
    pub fn new(all: HashMap<PathBuf, Program>) -> Self {
        Programs { all, ..Programs::default() }
    }

    /// All of them.
    pub fn all(&self) -> &HashMap<PathBuf, Program> {
        &self.all
    }

    /// A program by its path.
    pub fn get(&self, path: &Path) -> Option<&Program> {
        self.all.get(path)
    }

    /// Whether the next start of some program is to be traced.
    pub fn wants_to_learn(&self) -> bool {
        self.all.values().any(|one| matches!(one.standing, Standing::Worth | Standing::Incomplete))
    }

    /// A program that has no entry yet: where a trace of it lies, it is known.
    pub fn meet(&mut self, path: &Path, file: Identity, has_trace: bool, is_wanted: bool) {
        if let Some(known) = self.all.get_mut(path) {
            if has_trace && known.standing == Standing::Watched && known.file == file {
                (known.standing, known.why) = (Standing::Known, "a trace of it was there".into());
            }
            return;
        }
        if self.all.len() >= MOST {
            self.make_room();
        }
        let (standing, why) = match (has_trace, is_wanted) {
            (true, _) => (Standing::Known, "a trace of it was there"),
            (false, true) => (Standing::Worth, "it is named as wanted, and nothing tells what it waits for"),
            (false, false) => (Standing::Watched, "it was not seen to its end yet"),
        };
        self.all.insert(path.into(), Program { file, standing, why: why.into(), ..Program::default() });
        self.changed = true;
    }

    fn make_room(&mut self) {
        let watched = |one: &Program| one.standing == Standing::Watched;
        let mut times: Vec<u64> = self.all.values().filter(|one| watched(one)).map(|one| one.last).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or(u64::MAX);
        self.all.retain(|_, one| !watched(one) || one.last > middle);
    }

    /// A program starts: for what, where it is not refused.
    pub fn start(&mut self, path: &Path, file: Identity, when: u64, refused: Option<&str>) -> Purpose {
        self.meet(path, file, false, false);
        let Some(program) = self.all.get_mut(path) else { return Purpose::Nothing };
        program.starts += 1;
        program.last = when;
        self.changed = true;
        if let Some(reason) = refused {
            program.why = reason.into();
            return Purpose::Nothing;
        }
        if program.file != file {
            program.replaced(file);
        }
        let purpose = program.purpose();
        let works = matches!(purpose, Purpose::Learn { .. } | Purpose::ReadAhead { .. });
        if works && !self.busy.insert(path.into()) {
            return Purpose::Watch;
        }
        purpose
    }

    /// The thread that worked for a program has ended.
    pub fn rests(&mut self, path: &Path) {
        self.busy.remove(path);
        self.changed = true;
    }

    /// Does something with a program, which is saved.
    pub fn with(&mut self, path: &Path, change: impl FnOnce(&mut Program)) {
        if let Some(program) = self.all.get_mut(path) {
            change(program);
            self.changed = true;
        }
    }
}

#[cfg(test)]
mod tests;
