//! What is watched: a branch of a tree, the study that measures its commits, and how they are built.

use std::path::{Path, PathBuf};

use perflab_model::{Nanos, normalize_path};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::failure::{Failure, FailureContext as _, UsageError};
use crate::measure::bisection::commit_builds::{CommitBuilder, CommitBuilds};
use crate::measure::bisection::commit_line::{Commit, CommitLineError, HEAD, read_branch_head, run_git};

/// The recipe of a tree of Linux, where none is named.
const KERNEL_RECIPE: &str = "linux-guest";

/// A file that each tree of Linux has.
const KERNEL_MARK: &str = "Kbuild";

/// What builds the commits of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeBuilder {
    /// A command; none where its files are run as they are.
    Command(Option<String>),
    /// A recipe of kernels.
    Kernel(String),
}

impl TreeBuilder {
    /// As builds of commits take it.
    pub fn commit_builder(&self) -> CommitBuilder<'_> {
        match self {
            TreeBuilder::Command(command) => CommitBuilder::Command(command.as_deref()),
            TreeBuilder::Kernel(recipe) => CommitBuilder::Kernel(recipe),
        }
    }
}

/// What tells one watch from another: what one has tested, the other has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSubject {
    /// The tree.
    pub tree: PathBuf,
    /// The branch, or another revision.
    pub branch: String,
    /// The study: its path, or its name where it ships.
    pub study: String,
    /// What was chosen of it: `--set`, `--only`.
    pub choices: Vec<String>,
    /// What builds a commit.
    pub builder: TreeBuilder,
    /// The archive that its runs go to.
    pub archive: String,
}

impl WatchSubject {
    /// A name for its folder.
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let digest = perflab_files::sha256_hex(&mut text.as_slice()).unwrap_or_default();
        digest.chars().take(16).collect()
    }
}

/// A tree that is watched.
#[derive(Debug)]
pub struct WatchedTree {
    /// What tells it from others.
    pub subject: WatchSubject,
    /// The label of its runs.
    pub label: String,
    /// The levels of factors that the study is run with.
    pub set: Vec<String>,
    /// The only workload of the study that is run.
    pub only: Option<String>,
    /// The only metrics that are judged; all where none is named.
    pub metric: Vec<String>,
    /// How long a build by a command may take.
    pub build_limit: Nanos,
    /// Runs of each commit.
    pub runs: usize,
    /// Whether what stepped is bisected.
    pub bisects: bool,
    /// Starts, or boots, of a bisection at most.
    pub at_most: usize,
}

impl WatchedTree {
    /// The newest commit of the branch.
    ///
    /// # Errors
    /// There is no such branch.
    pub fn head(&self) -> Result<Commit, CommitLineError> {
        read_branch_head(&self.subject.tree, &self.subject.branch)
    }

    /// Where and how its commits are built.
    pub fn builds<'a>(&'a self, folder: &'a Path) -> CommitBuilds<'a> {
        CommitBuilds {
            folder,
            tree: &self.subject.tree,
            builder: self.subject.builder.commit_builder(),
            limit: self.build_limit,
        }
    }
}

/// The branch that a tree has checked out; where that is none, its commit.
///
/// # Errors
/// git cannot be started.
pub fn find_branch(tree: &Path) -> Result<String, CommitLineError> {
    match run_git(tree, &["symbolic-ref", "--quiet", HEAD]) {
        Ok(branch) => Ok(branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned()),
        Err(CommitLineError::Git { .. }) => Ok(HEAD.into()),
        Err(other) => Err(other),
    }
}

/// What builds the commits of a tree of which nothing is said: kernels where it is Linux.
pub fn find_builder(tree: &Path, head: &Commit) -> TreeBuilder {
    match run_git(tree, &["cat-file", "-e", &format!("{}:{KERNEL_MARK}", head.id)]) {
        Ok(_) => TreeBuilder::Kernel(KERNEL_RECIPE.into()),
        Err(_) => TreeBuilder::Command(None),
    }
}

/// A study by what names it wherever perflab is started; a shipped one by its name.
///
/// # Errors
/// Its path cannot be found.
pub fn find_study_path(study: &str) -> Result<String, Failure> {
    let path = Path::new(study);
    if !path.is_file() {
        return Ok(study.to_owned());
    }
    let found = std::fs::canonicalize(path).with_context(|| format!("cannot find {study}"))?;
    Ok(found.display().to_string())
}

/// An archive by what names it wherever perflab is started.
///
/// # Errors
/// The current folder is gone; the archive is not there, and would be made in the tree.
pub fn find_archive_path(context: &App, tree: &Path) -> Result<String, Failure> {
    if let Some(remote) = &context.remote {
        return Ok(remote.to_string());
    }
    let path = normalize_path(&std::path::absolute(context.archive_path())?);
    let top = run_git(tree, &["rev-parse", "--show-toplevel"]).map_or_else(|_| tree.into(), PathBuf::from);
    // Where it lies, or the nearest folder in which it would be made.
    let folder = path.ancestors().find_map(|folder| std::fs::canonicalize(folder).ok());
    if !path.join("runs").is_dir() && folder.is_some_and(|folder| folder.starts_with(&top)) {
        let message = format!("the archive {} would be made in the tree, which is only read", path.display());
        return Err(UsageError::new(message, "name another place by --archive").into());
    }
    Ok(path.display().to_string())
}
