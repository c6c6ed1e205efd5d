//! What went wrong with which file of which run.
//!
//! Every message names the path, id or selector it is about and, where there is something to do, says it.

use std::io;
use std::path::{Path, PathBuf};

use perflab_model::error_class::{Classify, ErrorClass};

/// An error of the archive; a lower-case fragment that names its subject.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file or directory could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// what was tried: `read`, `write`, `create`
        what: &'static str,
        /// on which file
        path: PathBuf,
        /// the system's reason
        source: io::Error,
    },
    /// The archive's place is taken by something else.
    #[error("the archive {} is not a directory; give --archive DIR", path.display())]
    NoDirectory {
        /// what the user passed
        path: PathBuf,
    },
    /// Nothing can be recorded into the archive.
    #[error("cannot write to the archive {}: {source}; give --archive DIR, or set PERFLAB_ARCHIVE", path.display())]
    NotWritable {
        /// the archive
        path: PathBuf,
        /// the system's reason
        source: io::Error,
    },
    /// Root would write where another user says.
    #[error(
        "{} (user {owner}, mode {mode:04o}) can be changed by another user, who could have root write over any file: \
         the archive {} is left alone; give root one of its own with --archive DIR",
        folder.display(), archive.display()
    )]
    OthersArchive {
        /// the archive
        archive: PathBuf,
        /// which folder of it
        folder: PathBuf,
        /// whose that is
        owner: u32,
        /// its permissions
        mode: u32,
    },
    /// The journal could not be appended to, mostly because the disk is full.
    #[error("cannot write {}: {source}; the first {kept} bytes are kept and readable", path.display())]
    JournalWrite {
        /// the journal
        path: PathBuf,
        /// bytes of the journal that are on the disk
        kept: u64,
        /// the system's reason
        source: io::Error,
    },
    /// The journal could not be turned into tables; everything is still in the journal.
    #[error("cannot close the run {}: {reason}; its {kept} bytes of journal are kept and readable", path.display())]
    Close {
        /// the run's directory
        path: PathBuf,
        /// what went wrong, in words
        reason: String,
        /// bytes of the journal
        kept: u64,
        /// what went wrong
        source: Box<ArchiveError>,
    },
    /// Nothing traced the run, or not this iteration.
    #[error("run {id} holds no operations of {what}; `perflab trace run -- PROGRAM` records them")]
    NoTrace {
        /// the run
        id: String,
        /// the tracer, and the slot where one was asked for
        what: String,
    },
    /// Nothing traced the run's I/O.
    #[error("run {id} holds no I/O; `perflab io record -- COMMAND` traces it")]
    NoIo {
        /// the run
        id: String,
    },
    /// What a tracer wrote cannot be read.
    #[error(transparent)]
    Trace(optrace::OptraceError),
    /// A file is not what it should be.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// the file
        path: PathBuf,
        /// what is wrong with it
        reason: String,
    },
    /// The run was written by a newer perflab.
    #[error(
        "{} is in archive format {found}, written by {writer}; this perflab {} reads formats up to {known}: \
         update perflab to read it",
        path.display(), env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// the file that says so
        path: PathBuf,
        /// its format version
        found: u32,
        /// the highest version that this program reads
        known: u32,
        /// the program that wrote it
        writer: String,
    },
    /// Nothing matches a selector.
    #[error("no run matches `{selector}` in {}: {hint}", archive.display())]
    NotFound {
        /// what was asked for
        selector: String,
        /// where was looked
        archive: PathBuf,
        /// what to do
        hint: String,
    },
    /// A prefix stands for several runs.
    #[error("`{selector}` is the beginning of {} run ids ({}): add a letter", candidates.len(), candidates.join(", "))]
    Ambiguous {
        /// what was asked for
        selector: String,
        /// their shortest prefixes
        candidates: Vec<String>,
    },
    /// A file of a closed run is not what was written when it ended.
    #[error(
        "{} is not as it was written: its hash is not the one in {}; take the run from a copy, or repeat it",
        path.display(),
        list.display()
    )]
    Altered {
        /// the file
        path: PathBuf,
        /// where the hash is that it had
        list: PathBuf,
    },
    /// The run is being recorded by a live process.
    #[error("run {id} is still being recorded: stop it or wait for its end")]
    Live {
        /// the run
        id: String,
    },
    /// Something is there already and is not overwritten.
    #[error("{} exists already and is not overwritten", path.display())]
    Exists {
        /// what is there
        path: PathBuf,
    },
    /// The index of runs could not be made.
    #[error("cannot make the index {}: {reason}; the runs are read without it", path.display())]
    Index {
        /// its file
        path: PathBuf,
        /// what is in the way
        reason: String,
    },
    /// A portable file holds something that does not belong into one.
    #[error("{} is refused: {reason}", path.display())]
    Refused {
        /// the portable file
        path: PathBuf,
        /// what was found in it
        reason: String,
    },
    /// A run that leads out of its archive.
    #[error("run {id} has a link in it, {}, and is read on the command line only", path.display())]
    Linked {
        /// the run
        id: String,
        /// the link
        path: PathBuf,
    },
    /// A case without samples of call stacks.
    #[error(
        "case {case} of run {id} has no call stacks: record some with `perflab flame record` or a study's [profile]"
    )]
    NoStacks {
        /// the run
        id: String,
        /// the case's index
        case: u32,
    },
    /// A series that this run does not have.
    #[error("run {id} has no series `{monitor}`: {hint}")]
    NoSeries {
        /// the run
        id: String,
        /// what was asked for
        monitor: String,
        /// the names it has
        hint: String,
    },
}

impl Classify for ArchiveError {
    fn class(&self) -> ErrorClass {
        match self {
            ArchiveError::NotFound { .. }
            | ArchiveError::Ambiguous { .. }
            | ArchiveError::Live { .. }
            | ArchiveError::Exists { .. }
            | ArchiveError::NoDirectory { .. }
            | ArchiveError::Refused { .. }
            | ArchiveError::NoSeries { .. }
            | ArchiveError::NoStacks { .. }
            | ArchiveError::NoTrace { .. }
            | ArchiveError::NoIo { .. }
            | ArchiveError::Trace(_) => ErrorClass::Usage,
            ArchiveError::NotWritable { .. }
            | ArchiveError::OthersArchive { .. }
            | ArchiveError::Linked { .. }
            | ArchiveError::Index { .. } => ErrorClass::Environment,
            // A loop of links is refused, as a missing right is.
            ArchiveError::Io { source, .. } | ArchiveError::JournalWrite { source, .. }
                if is_link_loop(source) =>
            {
                ErrorClass::Environment
            }
            ArchiveError::Io { source, .. } | ArchiveError::JournalWrite { source, .. } => source.class(),
            ArchiveError::Close { source, .. } => source.class(),
            ArchiveError::Damaged { .. } | ArchiveError::Newer { .. } | ArchiveError::Altered { .. } => {
                ErrorClass::Unexpected
            }
        }
    }
}

fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

impl ArchiveError {
    /// Whether there was no room for what was to be written: the disk is full, or the user's share of it.
    pub fn is_disk_full(&self) -> bool {
        match self {
            ArchiveError::Io { source, .. } | ArchiveError::JournalWrite { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            ArchiveError::Close { source, .. } => source.is_disk_full(),
            _ => false,
        }
    }

    /// For `map_err`: an I/O error about `path`.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| ArchiveError::Io { what, path: path.into(), source }
    }

    /// For `map_err`: `path` is not what it should be.
    pub(crate) fn damaged<E: ToString>(path: &Path) -> impl FnOnce(E) -> Self {
        move |reason| ArchiveError::Damaged { path: path.into(), reason: reason.to_string() }
    }
}
