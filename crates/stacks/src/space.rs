//! Processes as the records tell of them: what is mapped where, and what threads call themselves.
//!
//! A forked process shares its parent's address space until either maps something, so that the stacks of
//! hundreds of workers are looked up once.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use perflab_model::profile::CommId;

/// A file, or something else, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where in the file its beginning is.
    pub(crate) offset: u64,
    pub(crate) path: Rc<str>,
}

impl Mapping {
    /// Whether a file of this name can be opened; `//anon` and `[vdso]` are none.
    pub(crate) fn is_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.starts_with("//")
    }
}

/// What a process sees: never changed, replaced by a new one with another number.
#[derive(Debug, Default)]
pub(crate) struct Space {
    pub(crate) id: u32,
    /// Sorted by start, without overlaps.
    mappings: Vec<Mapping>,
}

impl Space {
    pub(crate) fn find(&self, address: u64) -> Option<&Mapping> {
        let last = self.mappings.partition_point(|mapping| mapping.start <= address).checked_sub(1)?;
        self.mappings.get(last).filter(|mapping| address < mapping.end)
    }

    /// What comes from files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter().filter(|mapping| mapping.is_file())
    }

    /// This space with one more mapping, which takes the place of what it overlaps.
    fn with(&self, id: u32, new: Mapping) -> Space {
        let mut mappings: Vec<Mapping> =
            self.mappings.iter().flat_map(|old| apart(old, &new)).flatten().collect();
        let at = mappings.partition_point(|mapping| mapping.start < new.start);
        mappings.insert(at, new);
        Space { id, mappings }
    }
}

/// What is left of `old` below and above `new`.
fn apart(old: &Mapping, new: &Mapping) -> [Option<Mapping>; 2] {
    if old.end <= new.start || new.end <= old.start {
        return [Some(old.clone()), None];
    }
    let below = (old.start < new.start).then(|| Mapping { end: new.start, ..old.clone() });
    let above = (old.end > new.end).then(|| {
        let offset = old.offset.wrapping_add(new.end - old.start);
        Mapping { start: new.end, offset, ..old.clone() }
    });
    [below, above]
}

/// All processes and threads.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    spaces: HashMap<i32, Rc<Space>>,
    names: HashMap<i32, CommId>,
    nothing: Rc<Space>,
    made: u32,
    /// processes that are not looked at
    left_out: HashSet<i32>,
}

impl Tasks {
    /// Forgets all of them; numbers of address spaces are not used again.
    pub(crate) fn forget(&mut self) {
        self.spaces.clear();
        self.names.clear();
        self.left_out.clear();
    }

    /// A process is not looked at, nor are its children until they exec.
    pub(crate) fn leave_out(&mut self, pid: i32) {
        self.left_out.insert(pid);
    }

    pub(crate) fn is_left_out(&self, pid: i32) -> bool {
        self.left_out.contains(&pid)
    }

    /// What a process sees; nothing where no record told.
    pub(crate) fn space(&self, pid: i32) -> Rc<Space> {
        Rc::clone(self.spaces.get(&pid).unwrap_or(&self.nothing))
    }

    /// What a thread calls itself, where a record told.
    pub(crate) fn name(&self, tid: i32) -> Option<CommId> {
        self.names.get(&tid).copied()
    }

    pub(crate) fn mapped(&mut self, pid: i32, mapping: Mapping) {
        if mapping.start >= mapping.end {
            return;
        }
        self.made += 1;
        let space = self.space(pid).with(self.made, mapping);
        self.spaces.insert(pid, Rc::new(space));
    }

    /// A thread took a name; on exec its process begins anew.
    pub(crate) fn named(&mut self, pid: i32, tid: i32, name: CommId, is_exec: bool) {
        self.names.insert(tid, name);
        if is_exec {
            self.left_out.remove(&pid);
            self.spaces.remove(&pid);
        }
    }

    pub(crate) fn forked(&mut self, (parent, pid): (i32, i32), (parent_thread, tid): (i32, i32)) {
        if parent != pid {
            let space = self.space(parent);
            self.spaces.insert(pid, space);
            if self.is_left_out(parent) {
                self.left_out.insert(pid);
            } else {
                // The number may have been another's.
                self.left_out.remove(&pid);
            }
        }
        let name = self.names.get(&parent_thread).or_else(|| self.names.get(&parent)).copied();
        self.names.extend(name.map(|name| (tid, name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, path: &str) -> Mapping {
        Mapping { start, end, offset: 0, path: path.into() }
    }

    #[test]
    fn a_new_mapping_takes_the_place_of_what_it_covers() {
        let mut tasks = Tasks::default();
        tasks.mapped(7, mapping(100, 200, "a"));
        tasks.mapped(7, mapping(120, 140, "b"));
        let space = tasks.space(7);
        let at = |address| space.find(address).map(|m| (&*m.path, m.offset));
        assert_eq!([at(99), at(110), at(130)], [None, Some(("a", 0)), Some(("b", 0))]);
        assert_eq!([at(150), at(200)], [Some(("a", 40)), None]);
    }

    #[test]
    fn a_fork_shares_until_one_of_both_maps() {
        let mut tasks = Tasks::default();
        tasks.mapped(1, mapping(0, 10, "a"));
        tasks.named(1, 1, CommId(5), false);
        tasks.forked((1, 2), (1, 2));
        assert_eq!(tasks.space(1).id, tasks.space(2).id);
        assert_eq!(tasks.name(2), Some(CommId(5)));
        tasks.mapped(2, mapping(20, 30, "b"));
        assert_ne!(tasks.space(1).id, tasks.space(2).id);
        assert!(tasks.space(1).find(25).is_none());
        tasks.named(2, 2, CommId(6), true);
        assert!(tasks.space(2).find(5).is_none(), "exec begins anew");
    }
}
