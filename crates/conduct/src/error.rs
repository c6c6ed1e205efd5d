//! Why a run ended early or never began (wraps the errors of the crates below).

use std::io;
use std::path::PathBuf;

use perflab_model::Refusal;

/// Why a run ended before its time, or never began.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConductError {
    /// The environment lacks something; nothing was changed.
    #[error("{}", list_refusals(.0))]
    Refused(Vec<Refusal>),
    /// Call stacks could not be sampled.
    #[error(transparent)]
    Profile(#[from] perflab_observe::profiler::ProfileError),
    /// I/O could not be traced.
    #[error(transparent)]
    Io(#[from] perflab_observe::io::IoTraceError),
    /// A setting could not be read or written.
    #[error("cannot {action} {path}")]
    Setting {
        /// "read", "write"
        action: &'static str,
        /// the file
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// The kernel refused a value.
    #[error("{path} refuses `{asked}`")]
    SettingRefused {
        /// the file
        path: PathBuf,
        /// what was to be written
        asked: String,
        /// why
        source: io::Error,
    },
    /// The kernel took a value, and nothing changed.
    #[error("{path} still holds `{now}` after `{asked}` was written to it")]
    SettingIgnored {
        /// the file
        path: PathBuf,
        /// what was written
        asked: String,
        /// what it holds
        now: String,
    },
    /// A level could not be brought into force.
    #[error("factor `{factor}`, level `{level}`")]
    Level {
        /// the factor's name
        factor: String,
        /// the level's name
        level: String,
        /// why
        source: Box<ConductError>,
    },
    /// A setting is not what it was.
    #[error("{path} was `{before}` and holds `{now}`")]
    NotPutBack {
        /// the file
        path: PathBuf,
        /// what it held
        before: String,
        /// what it holds
        now: String,
        /// why, where writing failed
        source: Option<io::Error>,
    },
    /// A run ended, and things are not what they were before it.
    #[error("not put back: {}; `perflab undo` tries again", .0.join("; "))]
    LeftChanged(
        /// What is not, and what it is now; last, why the run ended, where it failed.
        Vec<String>,
    ),
    /// The journal of settings could not be written; nothing was changed.
    #[error("cannot write the journal of settings {path}; nothing was changed")]
    Journal {
        /// the file
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// What the journal holds is undone already.
    #[error("{path} cannot note what is put back already: the next start does it once more")]
    JournalBehind {
        /// the file
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// A level's command was ended: the run is to stop.
    #[error("`{command}` was ended: the run was stopped")]
    Stopped {
        /// the command line
        command: String,
    },
    /// A command that perflab runs for itself (mkfs, mount, a level's apply) failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// the command line
        command: String,
        /// exit status and the end of its stderr
        reason: String,
    },
    /// Another user's file or folder is in the way.
    #[error("cannot prepare the scratch directory {path}")]
    Scratch {
        /// the path
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// A disk could not be emulated.
    #[error("cannot emulate the disk {}: {reason}", model.name())]
    Emulated {
        /// which one
        model: perflab_model::study::DiskModel,
        /// its server's message
        reason: String,
    },
    /// A target could not be started, or was lost before the run began.
    #[error("target {target}: {reason}")]
    Target {
        /// its name
        target: String,
        /// why
        reason: String,
    },
    /// Agents cannot be waited for.
    #[error("cannot speak to the targets")]
    Speak {
        /// why
        source: io::Error,
    },
    /// The consumer of events is gone (a full disk, for example); settings were undone.
    #[error("nobody takes the run's events any more")]
    NobodyListens,
    /// Observing could not begin.
    #[error(transparent)]
    Observe(#[from] perflab_observe::ObserveError),
    /// A workload could not be started.
    #[error(transparent)]
    Workload(#[from] perflab_workload::WorkloadError),
    /// A workload could not be installed.
    #[error(transparent)]
    Install(#[from] perflab_workload::install::InstallError),
}

impl ConductError {
    /// Whether nothing failed but was cut short, as was asked.
    pub fn is_stop(&self) -> bool {
        match self {
            ConductError::Stopped { .. } => true,
            ConductError::Level { source, .. } => source.is_stop(),
            _ => false,
        }
    }

    /// The error with its causes, in one line.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(inner) = cause {
            text.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        text
    }
}

fn list_refusals(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n")
}
