//! What can be set, lists of programs, and why the daemon cannot run.
//!
//! A list names programs, or folders with everything below. Where no program is listed to be included, all are; an
//! excluded one stays excluded.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use perflab_model::error_class::{Classify, ErrorClass};

use crate::daemon::programs::LearnThreshold;
use crate::replay_plan::{ReadOrder, ReplayMode};
use crate::startup_trace::CombinePolicy;
use crate::trace_store::TraceStore;

/// How the daemon works.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// perflab, which is started once more to guard execs from the daemon
    pub perflab: PathBuf,
    /// where traces lie
    pub store: TraceStore,
    /// where it can be asked
    pub socket: PathBuf,
    /// the mount points whose file systems are watched; every disk's where empty
    pub on: Vec<PathBuf>,
    /// programs that are included, and those that are excluded
    pub lists: ProgramLists,
    /// a file with more of them, read again when it changes
    pub list: Option<PathBuf>,
    /// what makes a program worth learning
    pub worth: LearnThreshold,
    /// how long a startup is watched or traced
    pub window: Duration,
    /// how long an exec may wait until a new program was looked at
    pub decide: Duration,
    /// how long an exec may wait until its tracing has begun, or while its files are read ahead
    pub bound: Duration,
    /// what is read before a program starts, and what beside it
    pub mode: ReplayMode,
    /// in which order, unless the mode decides
    pub order: Option<ReadOrder>,
    /// how several startups become one
    pub policy: CombinePolicy,
    /// bytes at most (default: half of what is free)
    pub memory: Option<u64>,
    /// bytes a second at most
    pub rate: Option<u64>,
}

/// Why the daemon cannot be.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Execs cannot be watched.
    #[error(
        "execs cannot be watched (fanotify): {source}; it needs CAP_SYS_ADMIN and CONFIG_FANOTIFY_ACCESS_PERMISSIONS"
    )]
    Door {
        /// the system's error
        source: io::Error,
    },
    /// There would be no guard to let execs through instead of the daemon.
    #[error(
        "no process can be started that guards execs while the daemon does not answer: {source}; nothing is watched"
    )]
    Guard {
        /// the system's error
        source: io::Error,
    },
    /// A path to be watched is not a mount point.
    #[error("{} is no mount point; `findmnt` lists them", .0.display())]
    NoMount(PathBuf),
    /// Nothing can be learnt.
    #[error(transparent)]
    Tracing(#[from] perflab_observe::io::IoTraceError),
    /// The kernel does not report what programs wait for, and no list names programs.
    #[error("{0}; without it, name the programs that are worth learning (--only)")]
    Blind(#[from] perflab_observe::taskstats::TaskstatsError),
    /// The socket cannot be had.
    #[error("cannot listen on {}: {source}", path.display())]
    Socket {
        /// where
        path: PathBuf,
        /// the system's error
        source: io::Error,
    },
    /// A daemon is running already.
    #[error("a daemon listens on {} already", .0.display())]
    Already(PathBuf),
    /// A list that is not one.
    #[error(transparent)]
    List(#[from] ProgramListError),
    /// A thread or a poll that the system refused.
    #[error("cannot {what}: {source}")]
    System {
        /// what was tried
        what: &'static str,
        /// the system's error
        source: io::Error,
    },
}

impl Classify for DaemonError {
    fn class(&self) -> ErrorClass {
        match self {
            DaemonError::Door { .. }
            | DaemonError::Guard { .. }
            | DaemonError::Socket { .. }
            | DaemonError::Already(_)
            | DaemonError::System { .. } => ErrorClass::Environment,
            DaemonError::NoMount(_) => ErrorClass::Usage,
            DaemonError::Tracing(error) => error.class(),
            DaemonError::Blind(error) => error.class(),
            DaemonError::List(error) => error.class(),
        }
    }
}

impl DaemonError {
    pub(crate) fn system_error(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| DaemonError::System { what, source }
    }
}

/// Both lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramLists {
    /// programs and folders that alone are included
    pub only: Vec<PathBuf>,
    /// programs and folders that are not
    pub never: Vec<PathBuf>,
}

/// What is wrong with a list.
#[derive(Debug, thiserror::Error)]
pub enum ProgramListError {
    /// It cannot be read.
    #[error("cannot read the list {}: {source}", path.display())]
    Read {
        /// the file
        path: PathBuf,
        /// the system's error
        source: io::Error,
    },
    /// A line that is not understood.
    #[error("{}, line {line}: `{text}` is neither `only PATH` nor `never PATH`, with a whole path", path.display())]
    Line {
        /// the file
        path: PathBuf,
        /// from 1
        line: usize,
        /// what is there
        text: String,
    },
}

impl Classify for ProgramListError {
    fn class(&self) -> ErrorClass {
        match self {
            ProgramListError::Read { .. } | ProgramListError::Line { .. } => ErrorClass::Usage,
        }
    }
}

impl ProgramLists {
    /// These, and those of a file: a line each, `only PATH` or `never PATH`; `#` begins a comment.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is not understood.
    pub fn with_file(&self, path: &Path) -> Result<Self, ProgramListError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ProgramListError::Read { path: path.into(), source })?;
        let mut all = self.clone();
        for (line, text) in (1..).zip(text.lines()) {
            let plain = text.split('#').next().unwrap_or_default().trim();
            let named = plain.split_once(char::is_whitespace).map(|(word, rest)| (word, rest.trim()));
            match named.filter(|(_, rest)| rest.starts_with('/')) {
                Some(("only", rest)) => all.only.push(rest.into()),
                Some(("never", rest)) => all.never.push(rest.into()),
                None if plain.is_empty() => {}
                _ => return Err(ProgramListError::Line { path: path.into(), line, text: text.into() }),
            }
        }
        Ok(all)
    }

    /// Why a program is left alone; none where it is not.
    pub fn reason_refused(&self, program: &Path) -> Option<&'static str> {
        let below = |all: &[PathBuf]| all.iter().any(|one| program.starts_with(one));
        match () {
            () if below(&self.never) => Some("a `never` line or option names it"),
            () if !self.only.is_empty() && !below(&self.only) => Some("no `only` line names it"),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_wanted_wins() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# programs\nonly /usr/bin\n\nnever /usr/bin/cc # compilers\n").unwrap();
        let lists = ProgramLists { never: vec!["/usr/bin/ld".into()], ..ProgramLists::default() };
        assert_eq!(lists.reason_refused(Path::new("/opt/x")), None);
        let lists = lists.with_file(file.path()).unwrap();
        assert_eq!(lists.reason_refused(Path::new("/usr/bin/vi")), None);
        let reason = |program: &str| lists.reason_refused(Path::new(program)).unwrap();
        assert_eq!(reason("/opt/x"), "no `only` line names it");
        assert_eq!(reason("/usr/bin/cc"), "a `never` line or option names it");
        assert!(lists.reason_refused(Path::new("/usr/bin/ld")).is_some());
        assert_eq!(lists.reason_refused(Path::new("/usr/bin/cc1")), None, "a path ends at a slash");
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for wrong in ["only relative", "always /x", "never"] {
            std::fs::write(file.path(), format!("\n{wrong}\n")).unwrap();
            let error = ProgramLists::default().with_file(file.path()).unwrap_err();
            let ProgramListError::Line { path, line, text } = &error else { panic!("{error}") };
            assert_eq!((path.as_path(), *line, text.as_str()), (file.path(), 2, wrong));
        }
    }
}
