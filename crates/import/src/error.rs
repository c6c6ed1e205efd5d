//! What went wrong with which of the files that are imported, and at which line.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use perflab_model::error_class::{Classify, ErrorClass};

/// An error of an import; a lower-case fragment that names its subject.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file or directory could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// what was tried: `read`, `write`, `copy`
        what: &'static str,
        /// on which file
        path: PathBuf,
        /// the system's reason
        source: io::Error,
    },
    /// What another tool wrote cannot be imported.
    #[error("{}{}: {reason}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Foreign {
        /// the file or folder
        path: PathBuf,
        /// the line in the unpacked file, from 1
        line: Option<u64>,
        /// what is wrong, and what to do
        reason: String,
    },
    /// What is declared of other tools' logs is wrong: a defect of perflab.
    #[error("{file}, which is part of perflab: {reason}")]
    Declaration {
        /// the declaring file
        file: &'static str,
        /// what is wrong with it
        reason: String,
    },
    /// What a tracer wrote cannot be read.
    #[error(transparent)]
    Trace(optrace::OptraceError),
    /// A profile cannot be read.
    #[error(transparent)]
    Profile(#[from] perflab_stacks::StacksError),
}

impl Classify for ImportError {
    fn class(&self) -> ErrorClass {
        match self {
            ImportError::Foreign { .. } | ImportError::Trace(_) => ErrorClass::Usage,
            ImportError::Declaration { .. } => ErrorClass::Unexpected,
            ImportError::Profile(error) => error.class(),
            ImportError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => ErrorClass::Usage,
            // A loop of links is refused, as a missing right is.
            ImportError::Io { source, .. } if is_link_loop(source) => ErrorClass::Environment,
            ImportError::Io { source, .. } => source.class(),
        }
    }
}

fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Characters of somebody else's text that a message quotes.
const LONGEST_QUOTE: usize = 200;

/// Characters of a message, of which the longest of ours has half.
const LONGEST_MESSAGE: usize = 3000;

/// A message whose quotes (in back-quotes) are cut, and which as a whole is.
pub(crate) fn shorten_quotes(message: &str) -> String {
    let parts = message.split('`').enumerate().map(|(at, part)| match at % 2 {
        1 => truncate_text(part, LONGEST_QUOTE),
        _ => Cow::Borrowed(part),
    });
    truncate_text(&parts.collect::<Vec<_>>().join("`"), LONGEST_MESSAGE).into_owned()
}

fn truncate_text(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

impl ImportError {
    /// For `map_err`: an I/O error about `path`.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| ImportError::Io { what, path: path.into(), source }
    }

    /// What another tool wrote at `path` cannot be imported.
    pub(crate) fn not_importable(path: &Path, line: Option<u64>, reason: impl Into<String>) -> Self {
        ImportError::Foreign { path: path.into(), line, reason: shorten_quotes(&reason.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_cut() {
        let long = "é".repeat(500);
        let shortened = shorten_quotes(&format!("`{long}` is no `kind`"));
        assert_eq!(shortened, format!("`{}…` is no `kind`", "é".repeat(200)));
        assert!(shorten_quotes(&long.repeat(10)).chars().count() <= LONGEST_MESSAGE + 1);
    }
}
