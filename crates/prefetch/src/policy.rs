//! From several starts to what is read ahead. Starts age: one that is older than a month says little about the next, unless
//! it is the last that is known.

use std::collections::HashMap;

use perflab_model::io::{Device, Runs};

use crate::trace::{Known, Start, TracedFile};

/// Starts that are remembered.
pub const KEPT: usize = 3;
/// Seconds after which a start counts no more beside newer ones.
const OLD: u64 = 30 * 24 * 3600;

/// How several starts become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// the latest alone
    #[default]
    Last,
    /// what every one of the last read: noise falls out
    Intersection,
    /// what any of the last read
    Union,
}

impl Known {
    /// Remembers a start, and forgets those that are too many or too old.
    pub fn remember(&mut self, start: Start) {
        let fresh = |old: &Start| start.when.saturating_sub(old.when) <= OLD;
        self.starts.retain(fresh);
        self.starts.push(start);
        let surplus = self.starts.len().saturating_sub(KEPT);
        self.starts.drain(..surplus);
    }
}

/// What is to be read ahead; none where no start is known.
pub fn combine(known: &Known, policy: Policy) -> Option<Start> {
    let (last, before) = known.starts.split_last()?;
    let mut whole = last.clone();
    if policy == Policy::Last {
        return Some(whole);
    }
    for start in before {
        match policy {
            Policy::Intersection => whole = intersection(whole, start),
            _ => unite(&mut whole, start),
        }
    }
    Some(whole)
}

/// Files are the same where name, number and contents are: a file that was replaced is another one.
type Key<'a> = (&'a str, u64, Option<u32>, u64, i64);

fn key(file: &TracedFile) -> Key<'_> {
    (&file.path, file.inode, file.generation, file.size, file.changed)
}

fn pages(start: &Start) -> HashMap<Key<'_>, &Runs> {
    start.files.iter().map(|file| (key(file), &file.pages)).collect()
}

fn metadata(start: &Start) -> HashMap<(Option<&str>, Device), &Runs> {
    start.systems.iter().map(|system| ((system.uuid.as_deref(), system.device), &system.metadata)).collect()
}

fn intersection(mut whole: Start, other: &Start) -> Start {
    let theirs = pages(other);
    for file in &mut whole.files {
        let both = theirs.get(&key(file)).map(|pages| file.pages.intersection(pages));
        file.pages = both.unwrap_or_default();
    }
    whole.files.retain(|file| !file.pages.is_empty());
    let theirs = metadata(other);
    for system in &mut whole.systems {
        let both = theirs.get(&(system.uuid.as_deref(), system.device));
        system.metadata = both.map(|pages| system.metadata.intersection(pages)).unwrap_or_default();
    }
    whole
}

fn unite(whole: &mut Start, other: &Start) {
    let mut place = Vec::new();
    // What only another start read comes after everything else.
    let after = whole.files.iter().map(TracedFile::last_turn).max().map_or(0, |last| last.saturating_add(1));
    for system in &other.systems {
        let same = |own: &crate::FileSystem| own.uuid == system.uuid && own.device == system.device;
        match whole.systems.iter().position(same) {
            Some(at) => {
                if let Some(own) = whole.systems.get_mut(at) {
                    own.metadata = own.metadata.union(&system.metadata);
                }
                place.push(at);
            }
            None => {
                whole.systems.push(system.clone());
                place.push(whole.systems.len() - 1);
            }
        }
    }
    // A name belongs to the newest file of it.
    let known: HashMap<String, usize> =
        whole.files.iter().enumerate().map(|(at, file)| (file.path.clone(), at)).collect();
    for file in &other.files {
        match known.get(&file.path).and_then(|at| whole.files.get_mut(*at)) {
            Some(own) if key(own) == key(file) => own.pages = own.pages.union(&file.pages),
            Some(_) => {}
            None => {
                let system = place.get(file.system).copied().unwrap_or(0);
                whole.files.push(TracedFile { system, ..file.clone() }.later(after));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Mark, Source};

    fn file(inode: u64, turn: u32, later: &[u32]) -> TracedFile {
        let mark = |(page, turn): (u64, &u32)| Mark { page, turn: *turn, place: None };
        TracedFile {
            system: 0,
            inode,
            generation: None,
            size: 1 << 20,
            changed: 0,
            path: format!("/lib/{inode}"),
            pages: [(0, 10)].into_iter().collect(),
            turn,
            place: None,
            marks: (1..).zip(later).map(mark).collect(),
        }
    }

    fn start(files: Vec<TracedFile>) -> Start {
        Start { when: 0, source: Source::Traced, systems: Vec::new(), files }
    }

    #[test]
    fn what_only_an_older_start_read_comes_last_in_its_own_order() {
        let (old, new) =
            (vec![file(3, 0, &[9]), file(1, 1, &[]), file(4, 2, &[])], vec![file(1, 5, &[40, 7])]);
        let known =
            Known { program: "/bin/one".into(), starts: vec![start(old), start(new)], ..Known::default() };
        let whole = combine(&known, Policy::Union).unwrap();
        let told: Vec<_> = whole.files.iter().map(|file| (file.inode, file.turn, file.last_turn())).collect();
        assert_eq!(told, [(1, 5, 40), (3, 41, 50), (4, 43, 43)]);
    }
}
