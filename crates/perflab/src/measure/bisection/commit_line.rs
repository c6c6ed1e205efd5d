//! The commits from a good one to a bad one, in first-parent order, as git knows them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use perflab_guest::git_command;
use perflab_model::error_class::{Classify, ErrorClass};
use serde::{Deserialize, Serialize};

/// What git is asked of each commit, between NULs.
const FORMAT: &str = "--format=%H%x00%h%x00%an <%ae>%x00%aI%x00%s";

/// Letters of a subject.
const LONGEST_SUBJECT: usize = 200;

/// What is checked out.
pub const HEAD: &str = "HEAD";

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// All digits of its hash.
    pub id: String,
    /// As many as tell it apart.
    pub short: String,
    /// `Name <address>`
    pub author: String,
    /// When it was written, ISO 8601.
    pub date: String,
    /// The first line of its message, cut where it is long.
    pub subject: String,
}

/// Commits in their order, the good one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLine {
    /// The repository, or a folder in it.
    pub tree: PathBuf,
    /// At least two.
    pub commits: Vec<Commit>,
    /// The good revision, where it is not on the line itself: its commits were merged.
    pub good_beside: Option<String>,
    /// Whether files of the tree differ from its commit.
    pub is_dirty: bool,
}

/// Why there is no line of commits.
#[derive(Debug, thiserror::Error)]
pub enum CommitLineError {
    /// git cannot be started.
    #[error("cannot run git: {0}; install it")]
    NoGit(std::io::Error),
    /// It failed.
    #[error("git {command}: {message}")]
    Git { command: String, message: String },
    /// There is no repository.
    #[error("{} is in no git repository ({message}); name a folder that is in one", tree.display())]
    NoRepository { tree: PathBuf, message: String },
    /// No such commit.
    #[error("{} has no commit `{revision}`; name a commit, tag or branch", tree.display())]
    UnknownRevision { tree: PathBuf, revision: String },
    /// Both are one.
    #[error("good and bad are the same commit, {0}")]
    SameCommit(String),
    /// The order is the other one.
    #[error(
        "`{bad}` comes before `{good}`: what is bad must come later; swap them, and if the old one is the slow one, say what is worse by --worse"
    )]
    Swapped { good: String, bad: String },
    /// They are on different branches.
    #[error("`{good}` is no ancestor of `{bad}`: {hint}")]
    NoAncestor { good: String, bad: String, hint: String },
}

impl Classify for CommitLineError {
    fn class(&self) -> ErrorClass {
        match self {
            CommitLineError::NoGit(_) => ErrorClass::Environment,
            _ => ErrorClass::Usage,
        }
    }
}

/// What git prints.
///
/// # Errors
/// It cannot be started, or fails.
pub fn run_git<S: AsRef<OsStr>>(tree: &Path, arguments: &[S]) -> Result<String, CommitLineError> {
    let output = git_command(tree).args(arguments).output().map_err(CommitLineError::NoGit)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let command: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
    let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(CommitLineError::Git { command: command.join(" "), message })
}

impl CommitLine {
    /// The first-parent line from `good` to `bad`.
    ///
    /// # Errors
    /// No repository, no such commits, or no line between them.
    pub fn read(tree: &Path, good: &str, bad: &str) -> Result<Self, CommitLineError> {
        check_repository(tree)?;
        let (first, last) = (resolve_commit(tree, good)?, resolve_commit(tree, bad)?);
        if first == last {
            return Err(CommitLineError::SameCommit(first));
        }
        if !is_ancestor(tree, &first, &last) {
            let (good, bad) = (good.to_owned(), bad.to_owned());
            if is_ancestor(tree, &last, &first) {
                return Err(CommitLineError::Swapped { good, bad });
            }
            let hint = match find_merge_base(tree, &first, &last) {
                Some(base) => format!(
                    "they part at {base}, which may be good: --good {}",
                    base.get(..12).unwrap_or(&base)
                ),
                None => {
                    "they have no commit in common; in a shallow clone, `git fetch --unshallow` first".into()
                }
            };
            return Err(CommitLineError::NoAncestor { good, bad, hint });
        }
        let range = format!("{first}..{last}");
        let listed = run_git(tree, &["log", "--first-parent", "--reverse", FORMAT, &range, "--"])?;
        let behind: Vec<Commit> = listed.lines().filter_map(parse_commit).collect();
        let start = behind.first().map_or(first.clone(), |commit| format!("{}^", commit.id));
        let before = run_git(tree, &["log", "-1", FORMAT, &start, "--"])?;
        let before = parse_commit(&before);
        let good_beside = before.as_ref().filter(|commit| commit.id != first).map(|_| good.to_owned());
        let commits: Vec<Commit> = before.into_iter().chain(behind).collect();
        let changed = run_git(tree, &["status", "--porcelain", "--untracked-files=no"]);
        Ok(CommitLine {
            tree: tree.into(),
            commits,
            good_beside,
            is_dirty: changed.is_ok_and(|changed| !changed.is_empty()),
        })
    }

    /// The index of the bad commit.
    pub fn bad(&self) -> usize {
        self.commits.len().saturating_sub(1)
    }

    /// A commit by its index.
    pub fn get(&self, index: usize) -> Option<&Commit> {
        self.commits.get(index)
    }

    /// Its name for people; its number where it is none of them.
    pub fn name(&self, index: usize) -> String {
        self.get(index).map_or_else(|| index.to_string(), |commit| commit.short.clone())
    }

    /// Several names, in a row.
    pub fn names(&self, indexes: &[usize]) -> String {
        indexes.iter().map(|index| self.name(*index)).collect::<Vec<_>>().join(", ")
    }
}

fn check_repository(tree: &Path) -> Result<(), CommitLineError> {
    match run_git(tree, &["rev-parse", "--git-dir"]) {
        Ok(_) => Ok(()),
        // What git refuses for another reason, its own words tell.
        Err(CommitLineError::Git { message, .. }) if message.contains("not a git repository") => {
            Err(CommitLineError::NoRepository { tree: tree.into(), message })
        }
        Err(other) => Err(other),
    }
}

/// The commit that a revision names.
///
/// # Errors
/// No repository, no such commit.
pub fn read_commit(tree: &Path, revision: &str) -> Result<Commit, CommitLineError> {
    check_repository(tree)?;
    let id = resolve_commit(tree, revision)?;
    let listed = run_git(tree, &["log", "-1", FORMAT, &id, "--"])?;
    let unknown = || CommitLineError::UnknownRevision { tree: tree.into(), revision: revision.into() };
    parse_commit(&listed).ok_or_else(unknown)
}

/// The newest commit of a branch, own or remote, though a tag has its name; else the commit that the revision names.
///
/// # Errors
/// No repository, no such commit.
pub fn read_branch_head(tree: &Path, name: &str) -> Result<Commit, CommitLineError> {
    check_repository(tree)?;
    let full = ["refs/heads/", "refs/remotes/"].map(|place| format!("{place}{name}"));
    // What is checked out is no branch's name.
    let branch = full.iter().find(|full| name != HEAD && resolve_commit(tree, full).is_ok());
    read_commit(tree, branch.map_or(name, String::as_str))
}

/// Whether `one` is `other`, or comes before it; one that is gone does not.
pub fn is_ancestor(tree: &Path, one: &str, other: &str) -> bool {
    run_git(tree, &["merge-base", "--is-ancestor", one, other]).is_ok()
}

/// Where the lines of two commits part.
pub fn find_merge_base(tree: &Path, one: &str, other: &str) -> Option<String> {
    run_git(tree, &["merge-base", one, other]).ok()
}

fn resolve_commit(tree: &Path, revision: &str) -> Result<String, CommitLineError> {
    let found = run_git(
        tree,
        &["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")],
    );
    found.map_err(|error| match error {
        CommitLineError::Git { .. } => {
            CommitLineError::UnknownRevision { tree: tree.into(), revision: revision.into() }
        }
        other => other,
    })
}

fn cut_subject(subject: String) -> String {
    match subject.char_indices().nth(LONGEST_SUBJECT) {
        Some((end, _)) => format!("{}…", subject.get(..end).unwrap_or_default()),
        None => subject,
    }
}

fn parse_commit(line: &str) -> Option<Commit> {
    let mut parts = line.splitn(5, '\0').map(str::to_owned);
    Some(Commit {
        id: parts.next()?,
        short: parts.next()?,
        author: parts.next()?,
        date: parts.next()?,
        subject: cut_subject(parts.next()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_subject_is_cut() {
        let line = ["0123", "01", "Jane", "today", &"ä".repeat(1_000_000)].join("\0");
        let commit = parse_commit(&line).unwrap();
        assert_eq!((commit.id.as_str(), commit.subject.chars().count()), ("0123", LONGEST_SUBJECT + 1));
        assert_eq!(cut_subject("short".into()), "short");
    }
}
