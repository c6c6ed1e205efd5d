//! What a bisection has done so far, on disk line by line: after a kill, the same command goes on from there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use perflab_analyze::bisection::BisectionPurpose;
use perflab_model::error_class::{Classify, ErrorClass};
use serde::{Deserialize, Serialize};

use crate::measure::bisection::commit_runs::BisectedMetric;

const JOURNAL: &str = "journal.jsonl";

/// Version of the journal.
const VERSION: u32 = 1;

/// What a journal belongs to: nothing of it may differ when it goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BisectionSubject {
    /// [`VERSION`]
    pub version: u32,
    /// The tree.
    pub tree: PathBuf,
    /// The commits of the line, the good one first.
    pub commits: Vec<String>,
    /// The study, as text.
    pub study: String,
    /// What was chosen of it: `--set`, `--only`.
    pub choices: Vec<String>,
    /// The metric, where one was named.
    pub metric: Option<String>,
    /// What builds a commit.
    pub build: Option<String>,
    /// The error of the whole walk.
    pub error: f64,
    /// The smallest change of the ends that matters.
    pub margin: f64,
}

impl BisectionSubject {
    /// The version that is written.
    pub const VERSION: u32 = VERSION;

    /// A name for its folder.
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let digest = perflab_files::sha256_hex(&mut text.as_slice()).unwrap_or_default();
        digest.chars().take(16).collect()
    }

    /// The first thing that another has otherwise.
    fn difference(&self, other: &BisectionSubject) -> Option<&'static str> {
        let differs = [
            (self.version != other.version, "version of perflab"),
            (self.tree != other.tree, "tree"),
            (self.commits != other.commits, "line of commits"),
            (self.study != other.study, "study"),
            (self.choices != other.choices, "--set or --only"),
            (self.metric != other.metric, "--metric"),
            (self.build != other.build, "--build"),
            (self.error != other.error, "--error"),
            (self.margin != other.margin, "--margin"),
        ];
        differs.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum BisectionEntry {
    /// The first line.
    Began(BisectionSubject),
    /// A commit is built.
    Built {
        /// Its index.
        commit: usize,
        /// How long that took.
        seconds: f64,
    },
    /// A commit cannot be measured.
    Skipped {
        /// Its index.
        commit: usize,
        /// Why.
        reason: String,
    },
    /// A run of a step.
    Measured {
        /// Its id.
        run: String,
        /// Why it was made.
        purpose: BisectionPurpose,
        /// What was measured.
        metric: BisectedMetric,
        /// Indexes of its commits, ascending.
        commits: Vec<usize>,
        /// A row a block, a value a commit, in the metric's unit.
        blocks: Vec<Vec<f64>>,
        /// How long a boot, or start, took.
        boot_seconds: f64,
        /// How long the run took besides.
        other_seconds: f64,
    },
}

/// A journal that nobody else writes.
#[derive(Debug)]
pub struct BisectionJournal {
    path: PathBuf,
    file: File,
    entries: Vec<BisectionEntry>,
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BisectionJournalError {
    /// It cannot be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// Another perflab has it.
    #[error("another perflab bisects with {}: wait for it, or name another folder by --state", .0.display())]
    InUse(PathBuf),
    /// It belongs to another bisection.
    #[error("{} belongs to another bisection: its {difference} is another; name another folder by --state, or begin anew by --restart", path.display())]
    OfAnother { path: PathBuf, difference: &'static str },
    /// A line that is none.
    #[error("{} line {line} is damaged ({message}); begin anew by --restart", path.display())]
    Damaged { path: PathBuf, line: usize, message: String },
}

impl Classify for BisectionJournalError {
    fn class(&self) -> ErrorClass {
        match self {
            BisectionJournalError::Io { source, .. } => source.class(),
            BisectionJournalError::InUse(_) => ErrorClass::Environment,
            BisectionJournalError::OfAnother { .. } => ErrorClass::Usage,
            BisectionJournalError::Damaged { .. } => ErrorClass::Environment,
        }
    }
}

impl BisectionJournal {
    /// Opens the journal of a folder, and begins it where it is empty; with `restart`, what it held is forgotten.
    ///
    /// # Errors
    /// It is another's, damaged, or cannot be written.
    pub fn open(
        folder: &Path,
        subject: &BisectionSubject,
        restart: bool,
    ) -> Result<Self, BisectionJournalError> {
        let path = folder.join(JOURNAL);
        let io_error = |doing| {
            let path = path.clone();
            move |source| BisectionJournalError::Io { doing, path, source }
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io_error("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BisectionJournalError::InUse(folder.into())),
            Err(TryLockError::Error(error)) => return Err(io_error("lock")(error)),
        }
        if restart {
            file.set_len(0).map_err(io_error("empty"))?;
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io_error("read"))?;
        // A line that was being written when a kill or a full disk came.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        text.truncate(whole);
        file.set_len(whole as u64).map_err(io_error("shorten"))?;
        file.seek(io::SeekFrom::End(0)).map_err(io_error("read"))?;
        let parse = |(at, line): (usize, &[u8])| {
            serde_json::from_slice(line).map_err(|error| BisectionJournalError::Damaged {
                path: path.clone(),
                line: at + 1,
                message: error.to_string(),
            })
        };
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let entries: Vec<BisectionEntry> = lines.enumerate().map(parse).collect::<Result<_, _>>()?;
        let mut journal = BisectionJournal { path, file, entries };
        match journal.entries.first() {
            None => journal.append(BisectionEntry::Began(subject.clone()))?,
            Some(BisectionEntry::Began(known)) => {
                if let Some(difference) = known.difference(subject) {
                    return Err(BisectionJournalError::OfAnother { path: folder.into(), difference });
                }
            }
            Some(_) => {
                let message = "it does not begin with what is bisected".into();
                return Err(BisectionJournalError::Damaged { path: journal.path, line: 1, message });
            }
        }
        Ok(journal)
    }

    /// All lines so far.
    pub fn entries(&self) -> &[BisectionEntry] {
        &self.entries
    }

    /// Adds a line, which is on the disk when this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&mut self, entry: BisectionEntry) -> Result<(), BisectionJournalError> {
        let io_error =
            |source: io::Error| BisectionJournalError::Io { doing: "write", path: self.path.clone(), source };
        let mut line = serde_json::to_vec(&entry).map_err(|error| io_error(error.into()))?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(io_error)?;
        self.entries.push(entry);
        Ok(())
    }

    /// What building a commit took so far, the mean; absent where nothing was built.
    pub fn build_seconds(&self) -> Option<f64> {
        self.mean(|entry| match entry {
            BisectionEntry::Built { seconds, .. } => Some(*seconds),
            _ => None,
        })
    }

    /// What a start, or boot, of a commit took so far.
    pub fn boot_seconds(&self) -> Option<f64> {
        self.mean(|entry| match entry {
            BisectionEntry::Measured { boot_seconds, .. } => Some(*boot_seconds),
            _ => None,
        })
    }

    /// What a run took besides.
    pub fn step_seconds(&self) -> Option<f64> {
        self.mean(|entry| match entry {
            BisectionEntry::Measured { other_seconds, .. } => Some(*other_seconds),
            _ => None,
        })
    }

    fn mean(&self, seconds: impl Fn(&BisectionEntry) -> Option<f64>) -> Option<f64> {
        perflab_stats::mean(&self.entries.iter().filter_map(seconds).collect::<Vec<_>>()).ok()
    }

    /// Minutes of all builds and runs.
    pub fn minutes(&self) -> f64 {
        let seconds = self.entries.iter().map(|entry| match entry {
            BisectionEntry::Built { seconds, .. } => *seconds,
            BisectionEntry::Measured { commits, blocks, boot_seconds, other_seconds, .. } => {
                boot_seconds * (commits.len() * blocks.len()) as f64 + other_seconds
            }
            BisectionEntry::Began(_) | BisectionEntry::Skipped { .. } => 0.0,
        });
        seconds.sum::<f64>() / 60.0
    }
}
