//! Why the server does not start, or ends early.

use std::io;
use std::path::PathBuf;

use perflab_model::error_class::{Classify, ErrorClass};

/// An error of the server itself; what a request is refused with goes to its client.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {place}: {source}; --listen PORT names another")]
    Listen {
        /// the address
        place: String,
        /// the system's reason
        source: io::Error,
    },
    /// There is something else where the socket would be.
    #[error("{} exists and is no socket that nobody serves: remove it, or name another with --socket", path.display())]
    SocketTaken {
        /// the socket's path
        path: PathBuf,
    },
    /// An address that others can reach has no name.
    #[error(
        "{place} can be reached by other machines, and perflab speaks no TLS: name the host of the proxy before it with --host"
    )]
    Unnamed {
        /// the address
        place: String,
    },
    /// The file of the token.
    #[error("the token file {}: {reason}", path.display())]
    TokenFile {
        /// its path
        path: PathBuf,
        /// what is wrong with it, and what to do
        reason: String,
    },
    /// The runtime, the token's random bytes or a template.
    #[error("cannot {what}: {reason}")]
    Start {
        /// what was tried
        what: &'static str,
        /// what went wrong
        reason: String,
    },
}

impl Classify for ServeError {
    fn class(&self) -> ErrorClass {
        match self {
            ServeError::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => ErrorClass::Environment,
                _ => source.class(),
            },
            ServeError::SocketTaken { .. } | ServeError::Unnamed { .. } | ServeError::TokenFile { .. } => {
                ErrorClass::Usage
            }
            ServeError::Start { .. } => ErrorClass::Unexpected,
        }
    }
}
