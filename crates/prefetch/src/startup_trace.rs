//! What one startup read, in order; the traces remembered of a program, combined and aged.
//!
//! A trace older than a month says little about the next startup, unless it is the last one known.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perflab_model::PageSet;
use perflab_model::io_trace::{DeviceNumber, PAGE};
use perflab_model::named::Named;
use serde::{Deserialize, Serialize};

/// How it is known what a startup read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceSource {
    /// every page was seen when it came
    Traced,
    /// what was in memory afterwards: pages that others brought count too, metadata are unknown
    Residency,
}

/// A file system that files of a trace lie on. Its identity is its UUID: numbers of devices change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedFileSystem {
    /// its UUID as 32 hexadecimal digits; none where it has none
    pub uuid: Option<String>,
    /// `ext4`
    pub kind: String,
    /// its device when it was learnt
    pub device: DeviceNumber,
    /// where it was mounted then
    pub place: String,
    /// its own blocks that were read, in pages of its device
    pub metadata: PageSet,
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedFile {
    /// index into the start's file systems
    pub system: usize,
    /// its number there
    pub inode: u64,
    /// changes when the number is given to another file
    pub generation: Option<u32>,
    /// bytes
    pub size: u64,
    /// when it was changed last, ns since 1970
    pub changed: i64,
    /// its name
    pub path: String,
    /// pages that were read
    pub pages: PageSet,
    /// how many reads of the startup came before that of its first page: another number for each file
    pub turn: u32,
    /// where its first page lies on the disk, in bytes; none where unknown
    pub place: Option<u64>,
    /// where later pages lie elsewhere, or were read at another time, in the order of pages
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<TracedExtent>,
}

/// From this page of a file on, something else holds than before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedExtent {
    /// the page
    pub page: u64,
    /// how many reads of the startup came before that of this page
    pub turn: u32,
    /// where it lies on the disk, in bytes; none where unknown
    pub place: Option<u64>,
}

impl TracedFile {
    /// The order number of what was read of it last.
    fn last_turn(&self) -> u32 {
        self.marks.iter().map(|mark| mark.turn).fold(self.turn, u32::max)
    }

    /// The same, read that much later in the order.
    fn delay_turns(mut self, turns: u32) -> Self {
        let marks = self.marks.iter_mut().map(|mark| &mut mark.turn);
        marks.chain([&mut self.turn]).for_each(|turn| *turn = turn.saturating_add(turns));
        self
    }

    /// Where a page lies on the disk, in bytes; none where unknown.
    fn physical_offset(&self, page: u64) -> Option<u64> {
        self.extent_at(self.marks.partition_point(|mark| mark.page <= page)).at_page(page).place
    }

    /// Whether the disk has what lies between two pages of the file between them, too, and nothing else.
    pub(crate) fn is_contiguous(&self, page: u64, later: u64) -> bool {
        let there = self.physical_offset(page).and_then(|place| place.checked_add((later - page) * PAGE));
        there == self.physical_offset(later)
    }

    /// The mark that holds once so many have begun: the last of them, or before the first the file's own.
    fn extent_at(&self, at: usize) -> TracedExtent {
        let page = self.pages.iter().next().map_or(0, |(first, _)| first);
        let beginning = TracedExtent { page, turn: self.turn, place: self.place };
        at.checked_sub(1).and_then(|at| self.marks.get(at)).copied().unwrap_or(beginning)
    }

    /// Pages of the file by extent, each contiguous and read at one time: its mark, and how many pages.
    pub fn extents_of(&self, pages: &PageSet) -> Vec<(TracedExtent, u64)> {
        let mut extents = Vec::new();
        for (mut first, count) in pages.iter() {
            let end = first + count;
            let mut at = self.marks.partition_point(|mark| mark.page <= first);
            while first < end {
                // Marks of a trace that somebody changed may lie in any order.
                let until = self.marks.get(at).map_or(end, |next| next.page.clamp(first, end));
                if until > first {
                    extents.push((self.extent_at(at).at_page(first), until - first));
                }
                (first, at) = (until, at + 1);
            }
        }
        extents
    }
}

impl TracedExtent {
    /// What it says of a page that is not its own: of a hole before the first one, too.
    pub(crate) fn at_page(self, page: u64) -> TracedExtent {
        let offset = |page: u64| page.checked_mul(PAGE);
        let place =
            self.place.and_then(|place| place.checked_add(offset(page)?)?.checked_sub(offset(self.page)?));
        TracedExtent { page, place, ..self }
    }
}

/// One startup of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartupTrace {
    /// when, in seconds since 1970
    pub when: u64,
    /// how it is known
    pub source: TraceSource,
    /// file systems that it read from
    pub systems: Vec<TracedFileSystem>,
    /// files, in the order in which they were first read
    pub files: Vec<TracedFile>,
}

impl StartupTrace {
    /// Pages of files.
    pub fn page_count(&self) -> u64 {
        self.files.iter().map(|file| file.pages.page_count()).fold(0, u64::saturating_add)
    }

    /// Pages of file systems' own blocks.
    pub fn metadata_page_count(&self) -> u64 {
        self.systems.iter().map(|system| system.metadata.page_count()).fold(0, u64::saturating_add)
    }
}

/// Everything that is remembered of a program, as one user starts it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramTraces {
    /// its path
    pub program: String,
    /// the user whose startups these are; none where a perflab wrote it that did not distinguish users
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// its latest starts, the oldest first
    pub starts: Vec<StartupTrace>,
    /// whether what it reads was brought together on the disk
    #[serde(default, alias = "arranged")]
    pub relaid: bool,
    /// files that the latest starts did not open though they were read ahead, and how many starts in a row
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unopened: BTreeMap<String, u8>,
}

/// Starts in a row that leave a file unopened, after which it is read ahead no more.
const UNOPENED: u8 = 3;

impl ProgramTraces {
    /// Nothing yet.
    pub fn new(program: String, user: u32) -> Self {
        ProgramTraces { program, user: Some(user), ..ProgramTraces::default() }
    }

    /// Notes which files a startup opened of those that were read ahead for it, and which it did not; what three in a row did not
    /// is forgotten. Whether anything changed.
    pub fn note_use(&mut self, opened: &BTreeSet<String>, unopened: &BTreeSet<String>) -> bool {
        let before = self.unopened.len();
        self.unopened.retain(|path, _| !opened.contains(path));
        let mut useless = BTreeSet::new();
        for path in unopened {
            let count = self.unopened.entry(path.clone()).or_default();
            *count += 1;
            if *count >= UNOPENED {
                useless.insert(path.as_str());
            }
        }
        for start in &mut self.starts {
            start.files.retain(|file| !useless.contains(file.path.as_str()));
        }
        self.unopened.retain(|_, count| *count < UNOPENED);
        self.unopened.len() != before || !unopened.is_empty()
    }
}

/// Starts that are remembered.
pub const MAX_KEPT_STARTUPS: usize = 3;

/// Seconds after which a startup counts no more beside newer ones.
const MAX_STARTUP_AGE: u64 = 30 * 24 * 3600;

/// How several startups become one.
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

impl Named for CombinePolicy {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (CombinePolicy::Last, "last", "the latest alone"),
        (CombinePolicy::Intersection, "intersection", "what all of them read"),
        (CombinePolicy::Union, "union", "what any of them read"),
    ];
}

impl ProgramTraces {
    /// Remembers a startup, and forgets those that are too many or too old.
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
    let mut combined = last.clone();
    if policy == CombinePolicy::Last {
        return Some(combined);
    }
    for start in before {
        match policy {
            CombinePolicy::Intersection => combined = intersect_traces(combined, start),
            _ => unite_traces(&mut combined, start),
        }
    }
    Some(combined)
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

fn intersect_traces(mut combined: StartupTrace, other: &StartupTrace) -> StartupTrace {
    let theirs = pages_by_file(other);
    for file in &mut combined.files {
        let both = theirs.get(&file_key(file)).map(|pages| file.pages.intersection(pages));
        file.pages = both.unwrap_or_default();
    }
    combined.files.retain(|file| !file.pages.is_empty());
    let theirs = metadata_by_system(other);
    for system in &mut combined.systems {
        let both = theirs.get(&(system.uuid.as_deref(), system.device));
        system.metadata = both.map(|pages| system.metadata.intersection(pages)).unwrap_or_default();
    }
    combined
}

fn unite_traces(combined: &mut StartupTrace, other: &StartupTrace) {
    let mut place = Vec::new();
    // What only another start read comes after everything else.
    let after =
        combined.files.iter().map(TracedFile::last_turn).max().map_or(0, |last| last.saturating_add(1));
    for system in &other.systems {
        let same = |own: &TracedFileSystem| own.uuid == system.uuid && own.device == system.device;
        match combined.systems.iter().position(same) {
            Some(at) => {
                if let Some(own) = combined.systems.get_mut(at) {
                    own.metadata = own.metadata.union(&system.metadata);
                }
                place.push(at);
            }
            None => {
                combined.systems.push(system.clone());
                place.push(combined.systems.len() - 1);
            }
        }
    }
    // A name belongs to the newest file of it.
    let known: HashMap<String, usize> =
        combined.files.iter().enumerate().map(|(at, file)| (file.path.clone(), at)).collect();
    for file in &other.files {
        match known.get(&file.path).and_then(|at| combined.files.get_mut(*at)) {
            Some(own) if file_key(own) == file_key(file) => own.pages = own.pages.union(&file.pages),
            Some(_) => {}
            None => {
                let system = place.get(file.system).copied().unwrap_or(0);
                combined.files.push(TracedFile { system, ..file.clone() }.delay_turns(after));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use super::{TraceSource, TracedExtent};

    fn example_file(path: &str) -> TracedFile {
        TracedFile {
            system: 0,
            inode: 1,
            generation: None,
            size: PAGE,
            changed: 0,
            path: path.into(),
            pages: [(0, 1)].into_iter().collect(),
            turn: 0,
            place: None,
            marks: Vec::new(),
        }
    }

    #[test]
    fn a_file_that_three_starts_in_a_row_did_not_open_is_forgotten() {
        let files = ["/a", "/b", "/c"].map(example_file).to_vec();
        let start = StartupTrace { when: 1, source: TraceSource::Traced, systems: Vec::new(), files };
        let mut known = ProgramTraces { starts: vec![start], ..ProgramTraces::new("/p".into(), 7) };
        let set = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
        let left = |known: &ProgramTraces| {
            known.starts[0].files.iter().map(|one| one.path.clone()).collect::<Vec<_>>()
        };
        assert!(known.note_use(&set(&["/a"]), &set(&["/b", "/c"])));
        assert!(known.note_use(&set(&["/a"]), &set(&["/b", "/c"])));
        assert!(known.note_use(&set(&["/a", "/b"]), &set(&["/c"])), "the third in a row");
        assert_eq!(left(&known), ["/a", "/b"]);
        assert!(known.unopened.is_empty(), "one that is opened counts anew: {known:?}");
        assert!(!known.note_use(&set(&["/a", "/b"]), &set(&[])), "nothing to write");
        for _ in 0..3 {
            assert_eq!(left(&known), ["/a", "/b"]);
            known.note_use(&set(&[]), &set(&["/a", "/b"]));
        }
        assert!(left(&known).is_empty());
    }

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
        let combined = combine_traces(&known, CombinePolicy::Union).unwrap();
        let told: Vec<_> =
            combined.files.iter().map(|file| (file.inode, file.turn, file.last_turn())).collect();
        assert_eq!(told, [(1, 5, 40), (3, 41, 50), (4, 43, 43)]);
    }
}
