//! Commits built: checked out each into a folder of its own, or as kernels of a recipe. The user's tree and repository are only read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use perflab_guest::KernelRequest;
use perflab_model::Nanos;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_settings::remove_tree;
use perflab_workload::{Invocation, WorkloadError, execute_invocation};

use crate::app::App;
use crate::failure::{Failure, FailureContext as _};
use crate::laboratory::kernel::get_kernel;
use crate::measure::bisection::commit_line::{Commit, run_git};

/// The variable by which a build and a study find the commit's folder.
pub const TREE_VARIABLE: &str = "PERFLAB_TREE";

/// The variable with the commit's hash.
pub const COMMIT_VARIABLE: &str = "PERFLAB_COMMIT";

/// A copy of the repository that shares its objects: folders of commits are noted there.
const SOURCE: &str = "source.git";

/// The folders of the commits.
const TREES: &str = "trees";

/// What builds printed.
const LOGS: &str = "logs";

/// Lines of a failed build that are part of the reason.
const LAST_LINES: usize = 3;

/// A build that fails with less room than this has failed for that.
const LEAST_ROOM: u64 = 16 << 20;

/// What builds commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitBuilder<'a> {
    /// A command for the shell, in the commit's folder; none where its files are run as they are.
    Command(Option<&'a str>),
    /// A recipe of kernels that takes a tree and a revision.
    Kernel(&'a str),
}

/// What became of a commit.
#[derive(Debug, PartialEq)]
pub enum CommitBuild {
    /// It is built, which took so many seconds.
    Built { seconds: f64 },
    /// It does not build.
    Failed { reason: String },
    /// ^C.
    Stopped,
}

/// A build that tells nothing of its commit.
#[derive(Debug, thiserror::Error)]
pub enum CommitBuildError {
    /// The disk is full.
    #[error("{} has no room left: commit {commit} could not be built; free some, and run the same command again", folder.display())]
    NoRoom { folder: PathBuf, commit: String },
    /// What a build left cannot be removed.
    #[error("cannot remove {}, which a build left: {reason}", path.display())]
    Leftover { path: PathBuf, reason: String },
    /// The command cannot be started at all.
    #[error(transparent)]
    Start(WorkloadError),
}

impl Classify for CommitBuildError {
    fn class(&self) -> ErrorClass {
        match self {
            CommitBuildError::NoRoom { .. } | CommitBuildError::Leftover { .. } => ErrorClass::Environment,
            CommitBuildError::Start(error) => error.class(),
        }
    }
}

/// Where and how commits are built.
#[derive(Debug)]
pub struct CommitBuilds<'a> {
    /// The folder of the bisection's state.
    pub folder: &'a Path,
    /// The repository, or a folder in it.
    pub tree: &'a Path,
    /// What builds one.
    pub builder: CommitBuilder<'a>,
    /// How long a command may take.
    pub limit: Nanos,
}

impl CommitBuilds<'_> {
    /// The folder of a commit.
    pub fn tree_of(&self, commit: &Commit) -> PathBuf {
        self.folder.join(TREES).join(&commit.id)
    }

    /// What a study is run with at this commit: its folder, or its kernel.
    pub fn level_value(&self, commit: &Commit) -> String {
        match self.builder {
            CommitBuilder::Command(_) => self.tree_of(commit).display().to_string(),
            CommitBuilder::Kernel(recipe) => {
                let tree = std::fs::canonicalize(self.tree).unwrap_or_else(|_| self.tree.into());
                format!("{recipe}:{}@{}", tree.display(), commit.id)
            }
        }
    }

    /// Whether what was built of a commit is still there; the cache of kernels keeps its own.
    pub fn is_there(&self, commit: &Commit) -> bool {
        matches!(self.builder, CommitBuilder::Kernel(_)) || self.tree_of(commit).exists()
    }

    /// Builds a commit.
    ///
    /// # Errors
    /// git fails, the disk is full, a program is missing.
    pub fn build(&self, context: &App, commit: &Commit, stop: &AtomicBool) -> Result<CommitBuild, Failure> {
        match self.builder {
            CommitBuilder::Command(command) => self.build_tree(command, commit, stop),
            CommitBuilder::Kernel(_) => self.build_kernel(context, commit, stop),
        }
    }

    fn build_kernel(
        &self,
        context: &App,
        commit: &Commit,
        stop: &AtomicBool,
    ) -> Result<CommitBuild, Failure> {
        let began = Instant::now();
        let request = KernelRequest::parse(&self.level_value(commit))?;
        match get_kernel(context, &request) {
            Ok(_) => Ok(CommitBuild::Built { seconds: began.elapsed().as_secs_f64() }),
            Err(_) if stop.load(Ordering::Relaxed) => Ok(CommitBuild::Stopped),
            Err(error) if error.is_of_sources() => {
                self.check_room(commit)?;
                Ok(CommitBuild::Failed { reason: format!("does not build: {error}") })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks a commit out and builds it. What an earlier build of it left half done is removed first.
    fn build_tree(
        &self,
        command: Option<&str>,
        commit: &Commit,
        stop: &AtomicBool,
    ) -> Result<CommitBuild, Failure> {
        let began = Instant::now();
        let source = self.prepare_source()?;
        let tree = self.tree_of(commit);
        self.remove_tree(&source, &tree)?;
        if let Err(error) = self.check_out(&source, &tree, commit) {
            self.check_room(commit)?;
            return Err(error);
        }
        let Some(command) = command else {
            return Ok(CommitBuild::Built { seconds: began.elapsed().as_secs_f64() });
        };
        let invocation = Invocation {
            argv: ["/bin/sh", "-c", command].map(str::to_owned).to_vec(),
            environment: vec![
                (TREE_VARIABLE.into(), tree.display().to_string()),
                (COMMIT_VARIABLE.into(), commit.id.clone()),
            ],
            directory: Some(tree),
            inherits_stdin: false,
            groups: Vec::new(),
            delays: Vec::new(),
        };
        let execution =
            execute_invocation(&invocation, &[], self.limit, stop).map_err(CommitBuildError::Start)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(CommitBuild::Stopped);
        }
        let printed = format!("{}{}", execution.stdout.text(), execution.stderr.text());
        self.write_log(commit, &printed)?;
        let Some(failure) = execution.failure() else {
            return Ok(CommitBuild::Built { seconds: began.elapsed().as_secs_f64() });
        };
        if printed.contains("No space left on device") {
            return Err(self.no_room(commit).into());
        }
        self.check_room(commit)?;
        let mut reason = failure.lines().take(LAST_LINES).collect::<Vec<_>>().join("; ");
        reason.truncate(reason.floor_char_boundary(400));
        let log = self.log_of(commit);
        Ok(CommitBuild::Failed {
            reason: format!("does not build: the command {reason} (all of it: {})", log.display()),
        })
    }

    /// Removes all folders of commits; the journal and the logs stay.
    ///
    /// # Errors
    /// They cannot be removed.
    pub fn remove_trees(&self) -> Result<(), Failure> {
        for name in [TREES, SOURCE] {
            remove_folder(&self.folder.join(name))?;
        }
        Ok(())
    }

    /// What a commit's build printed.
    pub fn log_of(&self, commit: &Commit) -> PathBuf {
        self.folder.join(LOGS).join(format!("{}.log", commit.id))
    }

    fn prepare_source(&self) -> Result<PathBuf, Failure> {
        let source = self.folder.join(SOURCE);
        // Its last file: a clone that was killed has none.
        let done = self.folder.join(SOURCE).join("perflab-cloned");
        if done.exists() {
            return Ok(source);
        }
        remove_folder(&source)?;
        let tree = std::fs::canonicalize(self.tree)
            .with_context(|| format!("cannot find {}", self.tree.display()))?;
        let top = run_git(&tree, &["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
        let clone = ["clone", "--quiet", "--bare", "--shared", &top, &source.display().to_string()];
        run_git(self.folder, &clone)?;
        std::fs::write(&done, "").with_context(|| format!("cannot write {}", done.display()))?;
        Ok(source)
    }

    fn remove_tree(&self, source: &Path, tree: &Path) -> Result<(), Failure> {
        if tree.exists() {
            remove_folder(tree)?;
        }
        run_git(source, &["worktree", "prune"])?;
        Ok(())
    }

    fn check_out(&self, source: &Path, tree: &Path, commit: &Commit) -> Result<(), Failure> {
        let folder = tree.display().to_string();
        run_git(source, &["worktree", "add", "--quiet", "--detach", "--force", &folder, &commit.id])?;
        Ok(())
    }

    fn write_log(&self, commit: &Commit, text: &str) -> Result<(), Failure> {
        let path = self.log_of(commit);
        let folder = self.folder.join(LOGS);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn no_room(&self, commit: &Commit) -> CommitBuildError {
        CommitBuildError::NoRoom { folder: self.folder.into(), commit: commit.short.clone() }
    }

    fn check_room(&self, commit: &Commit) -> Result<(), Failure> {
        let room = rustix::fs::statvfs(self.folder).map(|found| found.f_bavail * found.f_frsize);
        if room.is_ok_and(|room| room < LEAST_ROOM) { Err(self.no_room(commit).into()) } else { Ok(()) }
    }
}

/// Removes a folder with what a build left in it, but for file systems that it mounted there.
fn remove_folder(folder: &Path) -> Result<(), CommitBuildError> {
    remove_tree(folder).map_err(|source| CommitBuildError::Leftover {
        path: if source.kind() == io::ErrorKind::Other { folder.into() } else { find_first_left(folder) },
        // What no system call unlinks is looked at as if it were a folder.
        reason: match source.kind() {
            io::ErrorKind::NotADirectory => "it cannot be unlinked, see `lsattr`".into(),
            _ => source.to_string(),
        },
    })
}

/// What a removal met first and left: all before it is gone.
fn find_first_left(folder: &Path) -> PathBuf {
    let mut path = folder.to_owned();
    while let Some(Ok(first)) = std::fs::read_dir(&path).ok().and_then(|mut entries| entries.next()) {
        path = first.path();
        if !first.file_type().is_ok_and(|kind| kind.is_dir()) {
            break;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_removed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("trees/0123/deep");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), "").unwrap();
        assert_eq!(find_first_left(folder.path()), deep.join("file"));
        remove_folder(folder.path()).unwrap();
        assert!(!folder.path().exists());
        remove_folder(folder.path()).unwrap();
    }
}
