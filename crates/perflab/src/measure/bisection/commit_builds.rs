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

/// Bytes of a reason.
const LONGEST_REASON: usize = 400;

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
#[derive(Debug)]
pub enum CommitBuild {
    /// It is built, which took so many seconds.
    Built { seconds: f64 },
    /// It does not build.
    Failed { reason: String },
    /// It filled the disk.
    Full(CommitBuildError),
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
                if !self.has_room() {
                    return Ok(self.full(commit));
                }
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
            return if self.has_room() { Err(error) } else { Ok(self.full(commit)) };
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
        let logged = self.write_log(commit, &printed);
        let failure = execution.failure();
        if (failure.is_some() && printed.contains("No space left on device"))
            || ((failure.is_some() || logged.is_err()) && !self.has_room())
        {
            return Ok(self.full(commit));
        }
        logged?;
        let Some(failure) = failure else {
            return Ok(CommitBuild::Built { seconds: began.elapsed().as_secs_f64() });
        };
        let reason = describe_failure(&failure, &printed);
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
        // What a build pushes has nowhere to go.
        run_git(&source, &["config", "--remove-section", "remote.origin"])?;
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

    fn full(&self, commit: &Commit) -> CommitBuild {
        let commit = commit.short.clone();
        CommitBuild::Full(CommitBuildError::NoRoom { folder: self.folder.into(), commit })
    }

    /// Whether the disk has room for another build's first files.
    pub fn has_room(&self) -> bool {
        let room = rustix::fs::statvfs(self.folder).map(|found| found.f_bavail * found.f_frsize);
        room.is_ok_and(|room| room >= LEAST_ROOM)
    }

    /// What is to be known of submodules, where a commit has some: nobody asked for their repositories.
    pub fn describe_submodules(&self, commit: &Commit) -> Option<String> {
        let file = format!("{}:.gitmodules", commit.id);
        let has_some = matches!(self.builder, CommitBuilder::Command(_))
            && run_git(self.tree, &["cat-file", "-e", &file]).is_ok();
        has_some.then(|| {
            format!(
                "{} has submodules, whose folders are empty: a build may fill them (`git submodule update --init`, where their addresses are absolute)",
                commit.short
            )
        })
    }
}

/// Why a build failed, in a line: how it ended, the first line that names an error, and the last lines.
fn describe_failure(failure: &str, printed: &str) -> String {
    let mut reason = failure.lines().take(LAST_LINES).collect::<Vec<_>>().join("; ");
    reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
    let first =
        printed.lines().map(str::trim).find(|line| line.contains("error:") || line.starts_with("error"));
    match first.filter(|first| !reason.contains(first)) {
        Some(first) => {
            let end = first.floor_char_boundary(LONGEST_REASON);
            format!("{reason}; its first error: {}", first.get(..end).unwrap_or_default())
        }
        None => reason,
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
    fn the_first_error_is_named_beside_the_last_lines() {
        let printed =
            "cc -c a.c\na.c:7:3: error: no such member\na.c:9:1: error: another\nmake: *** [a.o] Error 1\n";
        let described = describe_failure("exited with code 2: make: *** [a.o] Error 1", printed);
        insta::assert_snapshot!(described, @"exited with code 2: make: *** [a.o] Error 1; its first error: a.c:7:3: error: no such member");
        assert_eq!(
            describe_failure("exited with code 2: error: one", "error: one\n"),
            "exited with code 2: error: one"
        );
    }

    #[test]
    fn a_commit_with_submodules_is_told_and_a_copy_has_no_remote() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let git = |arguments: &[&str]| run_git(&tree, arguments);
        if git(&["init", "-q"]).is_err() {
            println!("SKIP a_commit_with_submodules_is_told_and_a_copy_has_no_remote: needs git");
            return;
        }
        let commit = |file: &str| {
            std::fs::write(tree.join(file), "").unwrap();
            git(&["add", "-A"]).unwrap();
            let who =
                ["-c", "user.name=Jane", "-c", "user.email=jane@example.org", "commit", "-q", "-m", file];
            git(&who).unwrap();
            crate::measure::bisection::commit_line::read_commit(&tree, "HEAD").unwrap()
        };
        let (plain, nested) = (commit("file"), commit(".gitmodules"));
        let builds = CommitBuilds {
            folder: folder.path(),
            tree: &tree,
            builder: CommitBuilder::Command(None),
            limit: Nanos::from_secs(1),
        };
        assert_eq!(builds.describe_submodules(&plain), None);
        assert!(builds.describe_submodules(&nested).is_some());
        let source = builds.prepare_source().unwrap();
        assert_eq!(run_git(&source, &["remote"]).unwrap(), "");
    }

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
