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
                let (system, turn) = (place.get(file.system).copied().unwrap_or(0), whole.files.len() as u32);
                whole.files.push(TracedFile { system, turn, ..file.clone() });
            }
        }
    }
}
