//! Why there is no disk.

use std::io;
use std::path::PathBuf;

use perflab_model::Refusal;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::study::DiskModel;
use perflab_settings::SettingError;

/// Why a scratch directory or an emulated disk is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The study asks for what cannot be.
    #[error("{0}")]
    Refused(Refusal),
    /// Its undoing could not be promised, or a command failed.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Another user's file or folder is in the way.
    #[error("cannot prepare the scratch directory {path}")]
    Scratch {
        /// the path
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// A property of a loop device's queue could not be read or written.
    #[error("cannot {action} {path}")]
    Queue {
        /// "read", "write"
        action: &'static str,
        /// the file
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// A disk could not be emulated.
    #[error("cannot emulate the disk {}: {reason}", model.name())]
    Emulated {
        /// which one
        model: DiskModel,
        /// its server's message
        reason: String,
    },
}

impl Classify for DiskError {
    fn class(&self) -> ErrorClass {
        match self {
            DiskError::Refused(_) => ErrorClass::Environment,
            DiskError::Setting(error) => error.class(),
            DiskError::Scratch { source, .. } | DiskError::Queue { source, .. } => source.class(),
            DiskError::Emulated { .. } => ErrorClass::Unexpected,
        }
    }
}
