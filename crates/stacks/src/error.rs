//! What can go wrong, naming the file, and the line or offset.

use std::io;
use std::path::{Path, PathBuf};

use crate::ProfilePosition;

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StacksError {
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// the file
        path: PathBuf,
        /// the system's reason
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{}{}: {reason}", path.display(), place.map(|place| format!(":{place}")).unwrap_or_default())]
    Format {
        /// the file
        path: PathBuf,
        /// where in it
        place: Option<ProfilePosition>,
        /// what is wrong, and what to do
        reason: String,
    },
}

impl StacksError {
    /// For `map_err`: an I/O error about `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| StacksError::Io { path: path.into(), source }
    }

    /// The file at `path` is not what it should be.
    pub(crate) fn bad_format(path: &Path, place: Option<ProfilePosition>, reason: impl Into<String>) -> Self {
        StacksError::Format { path: path.into(), place, reason: reason.into() }
    }
}
