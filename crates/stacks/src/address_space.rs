//! What each process has mapped where, and its threads' names, as the records tell of them.
//!
//! A forked process shares its parent's address space until either maps something, so that the stacks of hundreds of
//! workers are looked up once.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use perflab_model::CommId;

/// A file, or something else, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddressMapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where in the file its beginning is.
    pub(crate) offset: u64,
    pub(crate) path: Rc<str>,
}

impl AddressMapping {
    /// Whether a file of this name can be opened; `//anon` and `[vdso]` are none.
    pub(crate) fn is_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.starts_with("//")
    }
}

/// What a process sees: never changed, replaced by a new one with another number.
#[derive(Debug, Default)]
pub(crate) struct AddressSpace {
    pub(crate) id: u32,
    /// Sorted by start, without overlaps.
    mappings: Vec<AddressMapping>,
}

impl AddressSpace {
    pub(crate) fn find_mapping(&self, address: u64) -> Option<&AddressMapping> {
        let last = self.mappings.partition_point(|mapping| mapping.start <= address).checked_sub(1)?;
        self.mappings.get(last).filter(|mapping| address < mapping.end)
    }

    /// What comes from files.
    pub(crate) fn file_mappings(&self) -> impl Iterator<Item = &AddressMapping> {
        self.mappings.iter().filter(|mapping| mapping.is_file())
    }

    /// This space with one more mapping, which takes the place of what it overlaps.
    fn with_mapping(&self, id: u32, new: AddressMapping) -> AddressSpace {
        let mut mappings: Vec<AddressMapping> =
            self.mappings.iter().flat_map(|old| remove_overlap(old, &new)).flatten().collect();
        let at = mappings.partition_point(|mapping| mapping.start < new.start);
        mappings.insert(at, new);
        AddressSpace { id, mappings }
    }
}

/// What is left of `old` below and above `new`.
fn remove_overlap(old: &AddressMapping, new: &AddressMapping) -> [Option<AddressMapping>; 2] {
    if old.end <= new.start || new.end <= old.start {
        return [Some(old.clone()), None];
    }
    let below = (old.start < new.start).then(|| AddressMapping { end: new.start, ..old.clone() });
    let above = (old.end > new.end).then(|| {
        let offset = old.offset.wrapping_add(new.end - old.start);
        AddressMapping { start: new.end, offset, ..old.clone() }
    });
    [below, above]
}

/// All processes and threads.
#[derive(Debug, Default)]
pub(crate) struct ProcessTable {
    spaces: HashMap<i32, Rc<AddressSpace>>,
    names: HashMap<i32, CommId>,
    nothing: Rc<AddressSpace>,
    made: u32,
    /// processes that are not looked at
    left_out: HashSet<i32>,
}

impl ProcessTable {
    /// Forgets all of them; numbers of address spaces are not used again.
    pub(crate) fn forget(&mut self) {
        self.spaces.clear();
        self.names.clear();
        self.left_out.clear();
    }

    /// A process is not looked at, nor are its children until they exec.
    pub(crate) fn exclude_process(&mut self, pid: i32) {
        self.left_out.insert(pid);
    }

    pub(crate) fn is_excluded(&self, pid: i32) -> bool {
        self.left_out.contains(&pid)
    }

    /// What a process sees; nothing where no record says.
    pub(crate) fn address_space(&self, pid: i32) -> Rc<AddressSpace> {
        Rc::clone(self.spaces.get(&pid).unwrap_or(&self.nothing))
    }

    /// What a thread calls itself, where a record says.
    pub(crate) fn thread_name(&self, tid: i32) -> Option<CommId> {
        self.names.get(&tid).copied()
    }

    pub(crate) fn on_map(&mut self, pid: i32, mapping: AddressMapping) {
        if mapping.start >= mapping.end {
            return;
        }
        self.made += 1;
        let space = self.address_space(pid).with_mapping(self.made, mapping);
        self.spaces.insert(pid, Rc::new(space));
    }

    /// A thread took a name; on exec its process begins anew.
    pub(crate) fn on_name(&mut self, pid: i32, tid: i32, name: CommId, is_exec: bool) {
        self.names.insert(tid, name);
        if is_exec {
            self.left_out.remove(&pid);
            self.spaces.remove(&pid);
        }
    }

    pub(crate) fn on_fork(&mut self, (parent, pid): (i32, i32), (parent_thread, tid): (i32, i32)) {
        if parent != pid {
            let space = self.address_space(parent);
            self.spaces.insert(pid, space);
            if self.is_excluded(parent) {
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

    fn make_mapping(start: u64, end: u64, path: &str) -> AddressMapping {
        AddressMapping { start, end, offset: 0, path: path.into() }
    }

    #[test]
    fn a_new_mapping_takes_the_place_of_what_it_covers() {
        let mut tasks = ProcessTable::default();
        tasks.on_map(7, make_mapping(100, 200, "a"));
        tasks.on_map(7, make_mapping(120, 140, "b"));
        let space = tasks.address_space(7);
        let at = |address| space.find_mapping(address).map(|m| (&*m.path, m.offset));
        assert_eq!([at(99), at(110), at(130)], [None, Some(("a", 0)), Some(("b", 0))]);
        assert_eq!([at(150), at(200)], [Some(("a", 40)), None]);
    }

    #[test]
    fn a_fork_shares_until_one_of_both_maps() {
        let mut tasks = ProcessTable::default();
        tasks.on_map(1, make_mapping(0, 10, "a"));
        tasks.on_name(1, 1, CommId(5), false);
        tasks.on_fork((1, 2), (1, 2));
        assert_eq!(tasks.address_space(1).id, tasks.address_space(2).id);
        assert_eq!(tasks.thread_name(2), Some(CommId(5)));
        tasks.on_map(2, make_mapping(20, 30, "b"));
        assert_ne!(tasks.address_space(1).id, tasks.address_space(2).id);
        assert!(tasks.address_space(1).find_mapping(25).is_none());
        tasks.on_name(2, 2, CommId(6), true);
        assert!(tasks.address_space(2).find_mapping(5).is_none(), "exec begins anew");
    }
}
