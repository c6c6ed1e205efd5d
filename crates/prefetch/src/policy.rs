//! From several starts to what is read ahead. Starts age: one that is older than a month says little about the next, unless
//! it is the last that is known.

use std::collections::HashMap;

use perflab_model::io::{DeviceNumber, PageSet};

use crate::trace::{ProgramTraces, StartupTrace, TracedFile};

/// Starts that are remembered.
pub const MAX_KEPT_STARTUPS: usize = 3;
/// Seconds after which a start counts no more beside newer ones.
const MAX_STARTUP_AGE: u64 = 30 * 24 * 3600;

/// How several starts become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CombinePolicy {
    /// the latest alone
    #[default]
    Last,
    /// what every one of the last read: noise falls out
    Intersection,
    /// what any of the last read
    Union,
}

impl ProgramTraces {
    /// Remembers a start, and forgets those that are too many or too old.
    pub fn remember(&mut self, start: StartupTrace) {
        let fresh = |old: &StartupTrace| start.when.saturating_sub(old.when) <= MAX_STARTUP_AGE;
        self.starts.retain(fresh);
        self.starts.push(start);
        let surplus = self.starts.len().saturating_sub(MAX_KEPT_STARTUPS);
        self.starts.drain(..surplus);
    }
}

/// What is to be read ahead; none where no start is known.
pub fn combine_traces(known: &ProgramTraces, policy: CombinePolicy) -> Option<StartupTrace> {
    let (last, before) = known.starts.split_last()?;
    let mut whole = last.clone();
    if policy == CombinePolicy::Last {
        return Some(whole);
    }
    for start in before {
        match policy {
            CombinePolicy::Intersection => whole = intersect_traces(whole, start),
            _ => unite_traces(&mut whole, start),
        }
    }
    Some(whole)
}

/// Files are the same where name, number and contents are: a file that was replaced is another one.
type TracedFileKey<'a> = (&'a str, u64, Option<u32>, u64, i64);

fn file_key(file: &TracedFile) -> TracedFileKey<'_> {
    (&file.path, file.inode, file.generation, file.size, file.changed)
}

fn pages_by_file(start: &StartupTrace) -> HashMap<TracedFileKey<'_>, &PageSet> {
    start.files.iter().map(|file| (file_key(file), &file.pages)).collect()
}

fn metadata_by_system(start: &StartupTrace) -> HashMap<(Option<&str>, DeviceNumber), &PageSet> {
    start.systems.iter().map(|system| ((system.uuid.as_deref(), system.device), &system.metadata)).collect()
}

fn intersect_traces(mut whole: StartupTrace, other: &StartupTrace) -> StartupTrace {
    let theirs = pages_by_file(other);
    for file in &mut whole.files {
        let both = theirs.get(&file_key(file)).map(|pages| file.pages.intersection(pages));
        file.pages = both.unwrap_or_default();
    }
    whole.files.retain(|file| !file.pages.is_empty());
    let theirs = metadata_by_system(other);
    for system in &mut whole.systems {
        let both = theirs.get(&(system.uuid.as_deref(), system.device));
        system.metadata = both.map(|pages| system.metadata.intersection(pages)).unwrap_or_default();
    }
    whole
}

fn unite_traces(whole: &mut StartupTrace, other: &StartupTrace) {
    let mut place = Vec::new();
    // What only another start read comes after everything else.
    let after = whole.files.iter().map(TracedFile::last_turn).max().map_or(0, |last| last.saturating_add(1));
    for system in &other.systems {
        let same = |own: &crate::TracedFileSystem| own.uuid == system.uuid && own.device == system.device;
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
            Some(own) if file_key(own) == file_key(file) => own.pages = own.pages.union(&file.pages),
            Some(_) => {}
            None => {
                let system = place.get(file.system).copied().unwrap_or(0);
                whole.files.push(TracedFile { system, ..file.clone() }.delay_turns(after));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{TraceSource, TracedExtent};

    fn one_page_file(inode: u64, turn: u32, later: &[u32]) -> TracedFile {
        let mark = |(page, turn): (u64, &u32)| TracedExtent { page, turn: *turn, place: None };
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

    fn trace_of_files(files: Vec<TracedFile>) -> StartupTrace {
        StartupTrace { when: 0, source: TraceSource::Traced, systems: Vec::new(), files }
    }

    #[test]
    fn what_only_an_older_start_read_comes_last_in_its_own_order() {
        let (old, new) = (
            vec![one_page_file(3, 0, &[9]), one_page_file(1, 1, &[]), one_page_file(4, 2, &[])],
            vec![one_page_file(1, 5, &[40, 7])],
        );
        let known = ProgramTraces {
            program: "/bin/one".into(),
            starts: vec![trace_of_files(old), trace_of_files(new)],
            ..ProgramTraces::default()
        };
        let whole = combine_traces(&known, CombinePolicy::Union).unwrap();
        let told: Vec<_> = whole.files.iter().map(|file| (file.inode, file.turn, file.last_turn())).collect();
        assert_eq!(told, [(1, 5, 40), (3, 41, 50), (4, 43, 43)]);
    }
}
