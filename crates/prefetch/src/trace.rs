//! What one start of a program read, and the starts that are remembered of it.

use std::collections::{BTreeMap, BTreeSet};

use perflab_model::io::{Device, PAGE, Runs};
use serde::{Deserialize, Serialize};

/// How it is known what a start read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// every page was seen when it came
    Traced,
    /// what was in memory afterwards: pages that others brought count too, metadata are unknown
    Residency,
}

/// A file system that files of a trace lie on. Its identity is its UUID: numbers of devices change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// its UUID as 32 hexadecimal digits; none where it tells none
    pub uuid: Option<String>,
    /// `ext4`
    pub kind: String,
    /// its device when it was learnt
    pub device: Device,
    /// where it was mounted then
    pub place: String,
    /// its own blocks that were read, in pages of its device
    pub metadata: Runs,
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
    pub pages: Runs,
    /// how many reads of the start came before that of its first page: another number for each file
    pub turn: u32,
    /// where its first page lies on the disk, in bytes; none where unknown
    pub place: Option<u64>,
    /// where later pages lie elsewhere, or were read at another time, in the order of pages
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

/// From this page of a file on, something else holds than before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// the page
    pub page: u64,
    /// how many reads of the start came before that of this page
    pub turn: u32,
    /// where it lies on the disk, in bytes; none where unknown
    pub place: Option<u64>,
}

impl TracedFile {
    /// The turn of what was read of it last.
    pub(crate) fn last_turn(&self) -> u32 {
        self.marks.iter().map(|mark| mark.turn).fold(self.turn, u32::max)
    }

    /// The same, read so many turns later.
    pub(crate) fn later(mut self, turns: u32) -> Self {
        let marks = self.marks.iter_mut().map(|mark| &mut mark.turn);
        marks.chain([&mut self.turn]).for_each(|turn| *turn = turn.saturating_add(turns));
        self
    }

    /// Where a page lies on the disk, in bytes; none where unknown.
    fn place(&self, page: u64) -> Option<u64> {
        self.mark(self.marks.partition_point(|mark| mark.page <= page)).at(page).place
    }

    /// Whether the disk has what lies between two pages of the file between them, too, and nothing else.
    pub(crate) fn lies_in_one(&self, page: u64, later: u64) -> bool {
        let there = self.place(page).and_then(|place| place.checked_add((later - page) * PAGE));
        there == self.place(later)
    }

    /// The mark that holds once so many have begun: the last of them, or before the first the file's own.
    fn mark(&self, at: usize) -> Mark {
        let page = self.pages.iter().next().map_or(0, |(first, _)| first);
        let beginning = Mark { page, turn: self.turn, place: self.place };
        at.checked_sub(1).and_then(|at| self.marks.get(at)).copied().unwrap_or(beginning)
    }

    /// Pages of the file in pieces, each of which lies in one and was read at one time: its mark, and how many pages.
    pub fn pieces(&self, pages: &Runs) -> Vec<(Mark, u64)> {
        let mut pieces = Vec::new();
        for (mut first, count) in pages.iter() {
            let end = first + count;
            let mut at = self.marks.partition_point(|mark| mark.page <= first);
            while first < end {
                let until = self.marks.get(at).map_or(end, |next| next.page.min(end));
                pieces.push((self.mark(at).at(first), until - first));
                (first, at) = (until, at + 1);
            }
        }
        pieces
    }
}

impl Mark {
    /// What it says of a page that is not its own: of a hole before the first one, too.
    pub(crate) fn at(self, page: u64) -> Mark {
        let place = self.place.and_then(|place| (place + page * PAGE).checked_sub(self.page * PAGE));
        Mark { page, place, ..self }
    }
}

/// One start of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// when, in seconds since 1970
    pub when: u64,
    /// how it is known
    pub source: Source,
    /// file systems that it read from
    pub systems: Vec<FileSystem>,
    /// files, in the order in which they were first read
    pub files: Vec<TracedFile>,
}

impl Start {
    /// Pages of files.
    pub fn pages(&self) -> u64 {
        self.files.iter().map(|file| file.pages.pages()).sum()
    }

    /// Pages of file systems' own blocks.
    pub fn metadata(&self) -> u64 {
        self.systems.iter().map(|system| system.metadata.pages()).sum()
    }
}

/// Everything that is remembered of a program, as one user starts it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// its path
    pub program: String,
    /// the user whose starts these are; none where a perflab wrote it that did not tell users apart
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// its latest starts, the oldest first
    pub starts: Vec<Start>,
    /// whether what it reads was brought together on the disk
    #[serde(default, alias = "arranged")]
    pub relaid: bool,
    /// files that the latest starts did not open though they were read ahead, and how many starts in a row
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unopened: BTreeMap<String, u8>,
}

/// Starts in a row that leave a file unopened, after which it is read ahead no more.
const UNOPENED: u8 = 3;

impl Known {
    /// Nothing yet.
    pub fn new(program: String, user: u32) -> Self {
        Known { program, user: Some(user), ..Known::default() }
    }

    /// Notes which files a start opened of those that were read ahead for it, and which it did not; what three in a row did not
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> TracedFile {
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
        let files = ["/a", "/b", "/c"].map(file).to_vec();
        let start = Start { when: 1, source: Source::Traced, systems: Vec::new(), files };
        let mut known = Known { starts: vec![start], ..Known::new("/p".into(), 7) };
        let set = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
        let left =
            |known: &Known| known.starts[0].files.iter().map(|one| one.path.clone()).collect::<Vec<_>>();
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
}
