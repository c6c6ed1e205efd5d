//! Why a trace cannot be used or made: always with the file, and what to do.

use std::io;
use std::path::PathBuf;

use perflab_model::error_class::{Classify, ErrorClass};

/// Why a trace cannot be used or made.
#[derive(Debug, thiserror::Error)]
pub enum PrefetchError {
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, `create`, `remove`, `get room on`, `look at`
        what: &'static str,
        /// the file
        path: PathBuf,
        /// the system's error
        source: io::Error,
    },
    /// The file is not a trace of ours.
    #[error("{} is no prefetch trace of perflab: it does not begin with {magic}", path.display())]
    Foreign {
        /// the file
        path: PathBuf,
        /// how it should begin
        magic: &'static str,
    },
    /// The file is a trace, and was changed or cut since it was written.
    #[error("{} is damaged: {reason}; `perflab prefetch learn` makes it anew", path.display())]
    Damaged {
        /// the file
        path: PathBuf,
        /// what is wrong
        reason: String,
    },
    /// The file is a list of pages of the prefetch module of 2007, and cannot be read.
    #[error("{} is no dump of the prefetch module of 2007 that can be read: {reason}", path.display())]
    Dump {
        /// the file
        path: PathBuf,
        /// what is wrong
        reason: String,
    },
    /// A newer perflab wrote it.
    #[error("{} is of format {found}, and this perflab reads up to {known}: update perflab, or learn anew", path.display())]
    Newer {
        /// the file
        path: PathBuf,
        /// its version
        found: u32,
        /// ours
        known: u32,
    },
    /// It may have been learnt from another user's startups.
    #[error(
        "{} does not say that it was learnt from this user's starts, as traces did not before they belonged to users; `perflab prefetch learn` makes it anew",
        path.display()
    )]
    OfAnother {
        /// the file
        path: PathBuf,
    },
    /// Nothing was learnt for the program.
    #[error("nothing has been learnt for {program} yet: run `perflab prefetch learn` first (there is no {})", path.display())]
    Unknown {
        /// the program
        program: String,
        /// the file that would hold it
        path: PathBuf,
    },
    /// A recording that saw next to nothing: a good trace is not replaced by it.
    #[error("the start read nothing that could be read ahead; {advice}")]
    Empty {
        /// what to do
        advice: &'static str,
    },
    /// The program lies where nothing is read ahead.
    #[error(
        "{program} is on {kind}: what is in memory, on another machine or served by another program is not read ahead"
    )]
    LeftAlone {
        /// the program
        program: String,
        /// the file system: `tmpfs`
        kind: String,
    },
    /// The program is not there.
    #[error(
        "there is no program `{program}`, neither here nor in PATH: give its full path, or install it{hint}"
    )]
    NoProgram {
        /// as it was asked for
        program: String,
        /// `; did you mean …?`, or nothing
        hint: String,
    },
}

impl Classify for PrefetchError {
    fn class(&self) -> ErrorClass {
        match self {
            PrefetchError::Io { .. }
            | PrefetchError::Foreign { .. }
            | PrefetchError::Damaged { .. }
            | PrefetchError::Dump { .. }
            | PrefetchError::Newer { .. }
            | PrefetchError::OfAnother { .. }
            | PrefetchError::Unknown { .. }
            | PrefetchError::Empty { .. }
            | PrefetchError::LeftAlone { .. }
            | PrefetchError::NoProgram { .. } => ErrorClass::Usage,
        }
    }
}

impl PrefetchError {
    pub(crate) fn io_error(what: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| PrefetchError::Io { what, path, source }
    }
}
