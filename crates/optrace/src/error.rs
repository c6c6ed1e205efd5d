//! What can go wrong with a trace, naming the path.

use std::path::{Path, PathBuf};

/// Why there is no trace, or not all of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptraceError {
    /// Names that cannot be used.
    #[error("words of the trace: {0}")]
    Words(String),
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// `create`, `write`, `read`
        action: &'static str,
        /// the trace file
        path: PathBuf,
        /// the system's reason
        source: std::io::Error,
    },
    /// It is not a trace file.
    #[error("{path}: not a trace of optrace: {reason}")]
    NotATrace {
        /// the file
        path: PathBuf,
        /// what is wrong at its beginning
        reason: String,
    },
    /// Another version of the format.
    #[error(
        "{path}: written by version {found} of the format, and this program reads version {known}: read it with the perflab of that time, or record it again"
    )]
    Version {
        /// the file
        path: PathBuf,
        /// in the file
        found: u32,
        /// here
        known: u32,
    },
}

impl OptraceError {
    pub(crate) fn from_io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.into(), source }
    }
}
