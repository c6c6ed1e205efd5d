//! Why a start cannot be measured at all.

use std::io;

/// Why a start cannot be measured at all; a program that never starts is no error, but a result.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// There is no window to be waited for.
    #[error(
        "no window can be waited for: the X server `{display}` that DISPLAY names does not answer ({reason}); start one \
         (`Xvfb :7 &`) and name it (`DISPLAY=:7`)"
    )]
    Display {
        /// what DISPLAY says
        display: String,
        /// what went wrong
        reason: String,
    },
    /// The command cannot be started.
    #[error("cannot start {program}: {source}")]
    Command {
        /// its first word
        program: String,
        /// what the system said
        source: io::Error,
    },
    /// The sign of a start cannot be watched for, or the process not be ended.
    #[error("{what}: {source}")]
    Watch {
        /// what was tried
        what: String,
        /// what the system said
        source: io::Error,
    },
}

impl StartupError {
    pub(super) fn watch_error(what: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| StartupError::Watch { what: what.into(), source }
    }
}
