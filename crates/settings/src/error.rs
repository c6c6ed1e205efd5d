//! Why a setting is not in force, or was not put back.

use std::io;
use std::path::PathBuf;

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Problems, Refusal};

/// Why a setting is not in force, was not put back, or something that perflab makes for a while was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// The environment refuses something; nothing was changed.
    #[error("{0}")]
    Refused(Refusal),
    /// A setting's file could not be read or written.
    #[error("cannot {action} {path}")]
    File {
        /// "read", "write"
        action: &'static str,
        /// the file
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// The kernel refused a value.
    #[error("{path} refuses `{asked}`")]
    ValueRefused {
        /// the file
        path: PathBuf,
        /// what was to be written
        asked: String,
        /// why
        source: io::Error,
    },
    /// The kernel took a value, and nothing changed.
    #[error("{path} still holds `{now}` after `{asked}` was written to it")]
    ValueIgnored {
        /// the file
        path: PathBuf,
        /// what was written
        asked: String,
        /// what it holds
        now: String,
    },
    /// The kernel made another value of one that is to be exactly so.
    #[error("{path} holds `{now}` after `{asked}` was written to it")]
    ValueAltered {
        /// the file
        path: PathBuf,
        /// what was written
        asked: String,
        /// what it holds
        now: String,
    },
    /// A preset in a file of the user's is none.
    #[error("{0}")]
    Preset(Problems),
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
    /// What was to come after something of a run failed; it is not tried again.
    #[error("{name} failed: {reason}")]
    CleanUp {
        /// what it is
        name: String,
        /// how it ended, with the last line of its stderr
        reason: String,
    },
    /// A folder or file that existed only for a while could not be removed.
    #[error("cannot remove {path}")]
    NotRemoved {
        /// the path
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// A folder or file that exists only for a while could not be made.
    #[error("cannot prepare the scratch directory {path}")]
    Folder {
        /// the path
        path: PathBuf,
        /// why
        source: io::Error,
    },
}

impl Classify for SettingError {
    fn class(&self) -> ErrorClass {
        match self {
            SettingError::Refused(_)
            | SettingError::ValueRefused { .. }
            | SettingError::ValueAltered { .. }
            | SettingError::ValueIgnored { .. } => ErrorClass::Environment,
            SettingError::Preset(_) => ErrorClass::Usage,
            SettingError::Stopped { .. } | SettingError::CleanUp { .. } => ErrorClass::WorkloadFailed,
            SettingError::File { source, .. }
            | SettingError::Journal { source, .. }
            | SettingError::JournalBehind { source, .. }
            | SettingError::NotRemoved { source, .. }
            | SettingError::Folder { source, .. } => source.class(),
            SettingError::NotPutBack { .. } | SettingError::Command { .. } => ErrorClass::Unexpected,
        }
    }
}
