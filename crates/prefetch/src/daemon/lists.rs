//! Programs that are wanted, and those that are not: paths of programs, or of folders with everything below. Where nothing is
//! wanted by name, everything is. What is not wanted wins.

use std::io;
use std::path::{Path, PathBuf};

/// Both lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramLists {
    /// programs and folders that alone are wanted
    pub only: Vec<PathBuf>,
    /// programs and folders that are not
    pub never: Vec<PathBuf>,
}

/// What is wrong with a list.
#[derive(Debug, thiserror::Error)]
pub enum ProgramListError {
    /// It cannot be read.
    #[error("cannot read the list {}: {source}", path.display())]
    Read {
        /// the file
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// A line that is not understood.
    #[error("{}, line {line}: `{text}` is neither `only PATH` nor `never PATH`, with a whole path", path.display())]
    Line {
        /// the file
        path: PathBuf,
        /// from 1
        line: usize,
        /// what stands there
        text: String,
    },
}

impl ProgramLists {
    /// These, and those of a file: a line each, `only PATH` or `never PATH`; `#` begins a comment.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is not understood.
    pub fn with_file(&self, path: &Path) -> Result<Self, ProgramListError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ProgramListError::Read { path: path.into(), source })?;
        let mut all = self.clone();
        for (line, text) in (1..).zip(text.lines()) {
            let plain = text.split('#').next().unwrap_or_default().trim();
            let named = plain.split_once(char::is_whitespace).map(|(word, rest)| (word, rest.trim()));
            match named.filter(|(_, rest)| rest.starts_with('/')) {
                Some(("only", rest)) => all.only.push(rest.into()),
                Some(("never", rest)) => all.never.push(rest.into()),
                None if plain.is_empty() => {}
                _ => return Err(ProgramListError::Line { path: path.into(), line, text: text.into() }),
            }
        }
        Ok(all)
    }

    /// Why a program is left alone; none where it is not.
    pub fn reason_refused(&self, program: &Path) -> Option<&'static str> {
        let below = |all: &[PathBuf]| all.iter().any(|one| program.starts_with(one));
        match () {
            () if below(&self.never) => Some("it is on the list of those that are never wanted"),
            () if !self.only.is_empty() && !below(&self.only) => {
                Some("it is not on the list of those that alone are wanted")
            }
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_wanted_wins() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# programs\nonly /usr/bin\n\nnever /usr/bin/cc # compilers\n").unwrap();
        let lists = ProgramLists { never: vec!["/usr/bin/ld".into()], ..ProgramLists::default() };
        assert_eq!(lists.reason_refused(Path::new("/opt/x")), None);
        let lists = lists.with_file(file.path()).unwrap();
        assert_eq!(lists.reason_refused(Path::new("/usr/bin/vi")), None);
        assert!(lists.reason_refused(Path::new("/opt/x")).unwrap().contains("alone"));
        assert!(lists.reason_refused(Path::new("/usr/bin/cc")).unwrap().contains("never"));
        assert!(lists.reason_refused(Path::new("/usr/bin/ld")).is_some());
        assert_eq!(lists.reason_refused(Path::new("/usr/bin/cc1")), None, "a path ends at a slash");
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for wrong in ["only relative", "always /x", "never"] {
            std::fs::write(file.path(), format!("\n{wrong}\n")).unwrap();
            let said = ProgramLists::default().with_file(file.path()).unwrap_err().to_string();
            assert!(said.contains("line 2") && said.contains(wrong), "{said}");
        }
    }
}
