//! Why a run ended early or never began (wraps the errors of the crates below).

use std::io;
use std::path::PathBuf;

use perflab_disk::DiskError;
use perflab_model::Refusal;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_settings::SettingError;

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
    /// A setting is not in force, or was not put back.
    #[error(transparent)]
    Setting(SettingError),
    /// There is no disk.
    #[error(transparent)]
    Disk(DiskError),
    /// A level could not be brought into force.
    #[error("{owner}")]
    Level {
        /// whose level it is: a factor's, or a line's of `[settings]`
        owner: String,
        /// why
        source: Box<SettingError>,
    },
    /// A run ended, and things are not what they were before it.
    #[error("not put back: {}; `perflab undo` tries again", .0.join("; "))]
    LeftChanged(
        /// What is not, and what it is now; last, why the run ended, where it failed.
        Vec<String>,
    ),
    /// Another user's file or folder is in the way.
    #[error("cannot prepare the scratch directory {path}")]
    Scratch {
        /// the path
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// A workload did not run where it should have.
    #[error("the workload could not be placed")]
    Unplaced {
        /// why
        source: io::Error,
    },
    /// A stop was asked for before the first iteration.
    #[error("stopped before the first iteration; nothing was measured")]
    StoppedEarly,
    /// A hook failed.
    #[error("`hooks.{key}` failed: {reason}")]
    Hook {
        /// which
        key: &'static str,
        /// how, with the end of its output
        reason: String,
    },
    /// What comes before all iterations of a case failed, and was reported.
    #[error("{reason}")]
    Early {
        /// what, and how
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
    /// A target cannot be as a level says.
    #[error("{levels}")]
    Variant {
        /// factors and levels
        levels: String,
        /// why
        source: Box<ConductError>,
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
    /// The guests could not be connected with each other.
    #[error(transparent)]
    Guest(#[from] perflab_guest::GuestError),
    /// A workload could not be started.
    #[error(transparent)]
    Workload(#[from] perflab_workload::WorkloadError),
    /// A workload could not be installed.
    #[error(transparent)]
    Install(#[from] perflab_workload::install::InstallError),
}

impl Classify for ConductError {
    fn class(&self) -> ErrorClass {
        match self {
            ConductError::Refused(_)
            | ConductError::Level { .. }
            | ConductError::Hook { .. }
            | ConductError::Early { .. } => ErrorClass::Environment,
            ConductError::StoppedEarly => ErrorClass::WorkloadFailed,
            ConductError::Variant { source, .. } => source.class(),
            ConductError::LeftChanged(_) => ErrorClass::SettingsLeft,
            ConductError::Scratch { source, .. }
            | ConductError::Speak { source }
            | ConductError::Unplaced { source } => source.class(),
            ConductError::Target { .. } | ConductError::NobodyListens => ErrorClass::Unexpected,
            ConductError::Setting(error) => error.class(),
            ConductError::Disk(error) => error.class(),
            ConductError::Profile(error) => error.class(),
            ConductError::Io(error) => error.class(),
            ConductError::Observe(error) => error.class(),
            ConductError::Guest(error) => error.class(),
            ConductError::Workload(error) => error.class(),
            ConductError::Install(error) => error.class(),
        }
    }
}

impl ConductError {
    /// Whether nothing failed but was cut short, as was asked.
    pub fn is_stop(&self) -> bool {
        match self {
            ConductError::Setting(error) => matches!(error, SettingError::Stopped { .. }),
            ConductError::Level { source, .. } => matches!(**source, SettingError::Stopped { .. }),
            _ => false,
        }
    }
}

impl From<SettingError> for ConductError {
    fn from(error: SettingError) -> Self {
        match error {
            SettingError::Refused(refusal) => ConductError::Refused(vec![refusal]),
            error => ConductError::Setting(error),
        }
    }
}

impl From<DiskError> for ConductError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Refused(refusal) => ConductError::Refused(vec![refusal]),
            DiskError::Setting(error) => error.into(),
            error => ConductError::Disk(error),
        }
    }
}

fn list_refusals(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n")
}
