//! What a watch of a tree knows: which commits it has tested, and what it is at. On the disk before each step, so that whatever ends
//! perflab or the machine, it goes on from there.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{AcceptedStep, Nanos};
use perflab_observe::own_directories::{self, OwnFileAccess, create_own_directory, open_own_file};
use serde::{Deserialize, Serialize};

use crate::durable_file::replace_own_file;
use crate::laboratory::tree_watch::stepped_metric::{EarlierCommit, RepairedMetric, SteppedMetric};
use crate::laboratory::tree_watch::watched_tree::WatchSubject;
use crate::measure::bisection::commit_line::Commit;

/// The folder of all watches below the state directory.
const FOLDER: &str = "watch";

const STATE: &str = "state.json";

/// Held by who watches.
const LOCK: &str = "watch.lock";

/// The version of the file.
const VERSION: u32 = 1;

/// Tested commits that are kept.
const KEPT: usize = 1_000;

/// Each is some hundreds of bytes.
const LARGEST: u64 = 64 << 20;

/// What a watch is at with a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitTestStep {
    /// it is built
    Build,
    /// the study is run with it
    Run,
    /// its runs are judged, what stepped is bisected, and the report is written
    Judge,
}

/// A commit that is being tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommitInTest {
    /// The commit.
    pub commit: Commit,
    /// The digest of the study that it is tested with.
    pub study: String,
    /// What is done with it.
    pub step: CommitTestStep,
    /// How often this step was begun without coming to an end.
    pub attempts: u32,
    /// What it last failed with.
    pub problem: Option<String>,
    /// The run that is being made, and those that go on with it.
    pub parts: Vec<String>,
    /// The runs that are complete.
    pub runs: Vec<String>,
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitOutcome {
    /// it was judged, and nothing stepped
    Good,
    /// a metric got worse, or iterations fail more often
    Worse,
    /// it was measured, and the history is too short to judge it by
    Unjudged,
    /// it does not build
    Unbuildable,
    /// it gave no value
    Unrunnable,
}

impl CommitOutcome {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            CommitOutcome::Good => "nothing stepped",
            CommitOutcome::Worse => "it is worse",
            CommitOutcome::Unjudged => "its history is too short to judge it by",
            CommitOutcome::Unbuildable => "it does not build",
            CommitOutcome::Unrunnable => "it does not run",
        }
    }

    /// Whether it was measured.
    pub fn is_measured(self) -> bool {
        !matches!(self, CommitOutcome::Unbuildable | CommitOutcome::Unrunnable)
    }
}

/// A commit that was tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestedCommit {
    /// The commit.
    pub commit: Commit,
    /// The digest of the study that it was tested with.
    pub study: String,
    /// What became of it.
    pub outcome: CommitOutcome,
    /// Why it could not be measured, or that more iterations fail.
    pub reason: Option<String>,
    /// Its runs.
    pub runs: Vec<String>,
    /// What got worse, as far as the guard tells.
    pub steps: Vec<SteppedMetric>,
    /// What was worse with the commit before, and is not any more.
    pub repaired: Vec<RepairedMetric>,
    /// When that was known, nanoseconds since 1970.
    pub at: Nanos,
}

impl TestedCommit {
    /// As far as it tells what is new with a later one: without what somebody has accepted since.
    pub fn as_earlier(&self, accepted: &[AcceptedStep]) -> EarlierCommit<'_> {
        let is_accepted = |step: &SteppedMetric| {
            accepted.iter().any(|one| {
                one.accepted > self.at
                    && one.subject == step.case
                    && one.metric == step.metric
                    && one.unit.0 == step.unit.as_str()
            })
        };
        EarlierCommit {
            commit: &self.commit,
            runs: &self.runs,
            steps: self.steps.iter().filter(|step| !is_accepted(step)).collect(),
        }
    }
}

/// What a watch knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchState {
    /// [`VERSION`]
    pub version: u32,
    /// What is watched.
    pub subject: WatchSubject,
    /// The label of its runs.
    pub label: String,
    /// The last commit that the branch was seen at.
    pub head: Option<String>,
    /// What it is at.
    pub current: Option<CommitInTest>,
    /// What it has tested, the oldest first.
    pub tested: Vec<TestedCommit>,
}

impl WatchState {
    /// What became of a commit with this study, where it was tested.
    pub fn find_tested(&self, commit: &str, study: &str) -> Option<&TestedCommit> {
        self.tested.iter().rev().find(|tested| tested.commit.id == commit && tested.study == study)
    }

    /// Notes what became of a commit; nothing is in test then.
    pub fn finish(&mut self, tested: TestedCommit) {
        self.current = None;
        self.tested.push(tested);
        let surplus = self.tested.len().saturating_sub(KEPT);
        self.tested.drain(..surplus);
    }
}

/// Why what a watch knows cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum WatchStateError {
    /// A file cannot be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// read, write, lock
        doing: &'static str,
        /// the file
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// The file is none.
    #[error("{} is not what this version of perflab knows of a watch: {reason}; remove it to begin anew", path.display())]
    Damaged {
        /// the file
        path: PathBuf,
        /// what is wrong
        reason: String,
    },
    /// Somebody watches already.
    #[error("another perflab watches {} with this study (state: {})", tree.display(), folder.display())]
    InUse {
        /// the tree
        tree: PathBuf,
        /// the folder
        folder: PathBuf,
    },
    /// Two histories would be one.
    #[error(
        "the runs of {} of {} in this archive have the label `{label}`, too; name another by --label (or remove {}, where that one is given up)",
        subject.branch, subject.tree.display(), folder.display()
    )]
    LabelInUse {
        /// the other watch
        subject: Box<WatchSubject>,
        /// the label
        label: String,
        /// the other watch's folder
        folder: PathBuf,
    },
}

impl Classify for WatchStateError {
    fn class(&self) -> ErrorClass {
        match self {
            WatchStateError::Io { source, .. } => source.class(),
            WatchStateError::Damaged { .. } | WatchStateError::InUse { .. } => ErrorClass::Environment,
            WatchStateError::LabelInUse { .. } => ErrorClass::Usage,
        }
    }
}

/// The folder of a watch, which nobody else has.
#[derive(Debug)]
pub struct WatchFolder {
    path: PathBuf,
    folder: OwnedFd,
    #[expect(dead_code, reason = "it is held")]
    lock: File,
    /// What is known.
    pub state: WatchState,
}

impl WatchFolder {
    /// Opens the folder of a watch, made where there is none.
    ///
    /// # Errors
    /// Another perflab has it; it cannot be read; another watch has the label.
    pub fn open(subject: &WatchSubject, label: &str) -> Result<Self, WatchStateError> {
        let watches = own_directories::state_directory().join(FOLDER);
        check_label_is_own(&watches, subject, label)?;
        let path = watches.join(subject.digest());
        let error = |doing, name: &str| {
            let path = path.join(name);
            move |source| WatchStateError::Io { doing, path, source }
        };
        let folder = create_own_directory(&path).map_err(error("open", ""))?;
        let open = |access| open_own_file(&folder, OsStr::new(LOCK), access);
        let opened = match open(OwnFileAccess::New) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(OwnFileAccess::Append),
            opened => opened,
        };
        let lock = opened.map_err(error("open", LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(WatchStateError::InUse { tree: subject.tree.clone(), folder: path });
            }
            Err(TryLockError::Error(source)) => return Err(error("lock", LOCK)(source)),
        }
        let mut state = match open_own_file(&folder, OsStr::new(STATE), OwnFileAccess::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => WatchState {
                version: VERSION,
                subject: subject.clone(),
                label: label.to_owned(),
                head: None,
                current: None,
                tested: Vec::new(),
            },
            opened => {
                let mut text = Vec::new();
                let read = opened.and_then(|file| file.take(LARGEST).read_to_end(&mut text));
                read.map_err(error("read", STATE))?;
                parse_state(&text)
                    .map_err(|reason| WatchStateError::Damaged { path: path.join(STATE), reason })?
            }
        };
        label.clone_into(&mut state.label);
        Ok(WatchFolder { path, folder, lock, state })
    }

    /// Letters that tell it from others.
    pub fn short_name(&self) -> &str {
        let name = self.path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.get(..8).unwrap_or(name)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is known; it is on the disk when this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self) -> Result<(), WatchStateError> {
        let text = serde_json::to_vec_pretty(&self.state).map_err(io::Error::other);
        let written = text.and_then(|text| replace_own_file(&self.folder, STATE, &text));
        written.map_err(|source| WatchStateError::Io { doing: "write", path: self.path.join(STATE), source })
    }

    /// Changes what is known of the commit in test, and writes it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn edit_current(&mut self, change: impl FnOnce(&mut CommitInTest)) -> Result<(), WatchStateError> {
        self.state.current.as_mut().map(change);
        self.save()
    }
}

/// Refuses a label under which another branch, or tree, has its history in the same archive. One whose tree is gone has none any more.
fn check_label_is_own(watches: &Path, subject: &WatchSubject, label: &str) -> Result<(), WatchStateError> {
    for entry in std::fs::read_dir(watches).into_iter().flatten().flatten() {
        let folder = entry.path();
        let Ok(text) = perflab_files::read_finite_file(&folder.join(STATE), LARGEST) else { continue };
        let Ok(other) = parse_state(&text) else { continue };
        let is_same = (&other.subject.tree, &other.subject.branch) == (&subject.tree, &subject.branch);
        let shares = other.label == label
            && (&other.subject.archive, &other.subject.study) == (&subject.archive, &subject.study);
        if shares && !is_same && other.subject.tree.exists() {
            let (subject, label) = (Box::new(other.subject), other.label);
            return Err(WatchStateError::LabelInUse { subject, label, folder });
        }
    }
    Ok(())
}

fn parse_state(text: &[u8]) -> Result<WatchState, String> {
    let state: WatchState = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match state.version {
        VERSION => Ok(state),
        other => Err(format!("its version is {other}, and this one knows {VERSION}")),
    }
}
