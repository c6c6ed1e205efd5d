//! The first file system of a guest: a cpio archive with perflab itself as its first program.
//!
//! Owns what is packed: programs with the libraries that they load, modules, and the note that tells
//! [`crate::init`] what to do. Refuses compression: a guest under TCG unpacks slower than QEMU hands it over.
//!
//! An installed perflab is linked dynamically, and so are the programs that people measure. So a program is
//! packed as a *closure*: its interpreter and its libraries, as that very interpreter finds them. It needs no
//! second, static build of perflab, and what runs in the guest is byte for byte what runs here.

mod closure;
mod cpio;
mod pack;
mod trim;

pub use closure::{ProgramClosure, find_closure};
pub use cpio::CpioWriter;
pub(crate) use pack::pack_portable_perflab;
pub use pack::{GUEST_HOME, Initramfs};

use std::path::PathBuf;

/// Why an initramfs cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitramfsError {
    /// A program is not there.
    #[error("there is no program `{program}` on this host's PATH")]
    NoProgram {
        /// as it was asked for
        program: String,
    },
    /// It is no program that Linux runs.
    #[error("{path} is neither an ELF program nor a script: {reason}")]
    NotAProgram {
        /// the file
        path: PathBuf,
        /// the parser's words
        reason: String,
    },
    /// Its libraries are not all there.
    #[error("{path} cannot be packed: {reason}")]
    Libraries {
        /// the program
        path: PathBuf,
        /// what its interpreter said
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// which
        path: PathBuf,
        /// the system's reason
        source: std::io::Error,
    },
}

impl InitramfsError {
    fn file_error(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> InitramfsError {
        let path = path.into();
        move |source| InitramfsError::File { path, source }
    }
}

#[cfg(test)]
mod tests;
