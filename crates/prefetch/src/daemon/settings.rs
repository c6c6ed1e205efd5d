//! What may be set, and why a daemon cannot be.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::lists::{ProgramListError, ProgramLists};
use super::worth::LearnThreshold;
use crate::{CombinePolicy, ReadOrder, ReplayMode, TraceStore};

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
    /// programs that are wanted, and those that are not
    pub lists: ProgramLists,
    /// a file with more of them, read again when it changes
    pub list: Option<PathBuf>,
    /// what makes a program worth learning
    pub worth: LearnThreshold,
    /// how long a start is watched or traced
    pub window: Duration,
    /// how long an exec may wait until a new program was looked at
    pub decide: Duration,
    /// how long an exec may wait until its tracing has begun, or while its files are read ahead
    pub bound: Duration,
    /// what is read before a program starts, and what beside it
    pub mode: ReplayMode,
    /// in which order, unless the mode decides
    pub order: Option<ReadOrder>,
    /// how several starts become one
    pub policy: CombinePolicy,
    /// bytes at most; half of what is free where left out
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
        /// what the system call said
        source: io::Error,
    },
    /// Nobody could let execs through in the daemon's place.
    #[error(
        "no process can be started that guards execs while the daemon does not answer: {source}; nothing is watched"
    )]
    Guard {
        /// what the system said
        source: io::Error,
    },
    /// A place whose file system is to be watched is none.
    #[error("{} is no mount point; `findmnt` lists them", .0.display())]
    NoMount(PathBuf),
    /// Nothing can be learnt.
    #[error(transparent)]
    Tracing(#[from] perflab_observe::io::IoTraceError),
    /// Nobody says what programs wait for, and no list says which are wanted.
    #[error("{0}; without it, name the programs that are worth learning (--only)")]
    Blind(#[from] perflab_observe::taskstats::TaskstatsError),
    /// The socket cannot be had.
    #[error("cannot listen on {}: {source}", path.display())]
    Socket {
        /// where
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// Somebody is there already.
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
        /// what the system said
        source: io::Error,
    },
}

impl DaemonError {
    pub(crate) fn system_error(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| DaemonError::System { what, source }
    }
}
