//! A path that is to be imported, looked at once for all importers.

use std::cell::OnceCell;
use std::io::Read;
use std::path::Path;

use perflab_files::{ENDLESS_KIND, open_finite_file};

use crate::error::ImportError;
use crate::input_document::{DocumentError, InputDocument};
use crate::input_folder::{InputFolder, SearchBudget};
use crate::input_lines::{InputLines, open_unpacked};

/// Bytes that are looked at to see what a file of bytes is.
const BEGINNING: u64 = 4096;

/// Bytes of text that are looked at to see what a file is.
const HEAD: usize = 1 << 16;

/// Lines of which those that tell what a log is are among the first.
const FIRST_LINES: usize = 20;

/// How the first line of a log of dumps begins: such a log may be long, and is no document whatever follows.
const DUMPS: [&str; 2] = ["time:", "slabinfo - version"];

/// What lies at a path.
#[derive(Debug)]
pub struct InputPath<'a> {
    path: &'a Path,
    folder: Option<InputFolder<'a>>,
    /// the first bytes, as they are on the disk
    beginning: Vec<u8>,
    /// the first bytes, unpacked
    unpacked: OnceCell<Vec<u8>>,
    /// the first lines, unpacked
    head: Vec<String>,
    head_error: Option<ImportError>,
    document: OnceCell<Result<InputDocument, ImportError>>,
}

impl<'a> InputPath<'a> {
    /// Looks at a path.
    ///
    /// # Errors
    /// It is not there or cannot be opened, it is neither a file nor a folder, or a folder of the kernel's own.
    pub(crate) fn look_at(path: &'a Path, budget: &'a SearchBudget) -> Result<Self, ImportError> {
        let found = std::fs::metadata(path).map_err(ImportError::io("read", path))?;
        let mut input = InputPath {
            path,
            folder: None,
            beginning: Vec::new(),
            unpacked: OnceCell::new(),
            head: Vec::new(),
            head_error: None,
            document: OnceCell::new(),
        };
        match () {
            () if found.is_dir() => input.folder = Some(InputFolder::open(path, budget)?),
            () if found.is_file() => {
                input.beginning = open_finite_file(path).map_or_else(|_| Vec::new(), read_beginning);
                input.head_error = input.read_head().err();
            }
            () => {
                let reason = format!("{ENDLESS_KIND}: write what it gives to a file, and import that");
                return Err(ImportError::not_importable(path, None, reason));
            }
        }
        Ok(input)
    }

    fn read_head(&mut self) -> Result<(), ImportError> {
        let mut lines = InputLines::open(self.path)?;
        let mut seen = 0;
        while let Some(line) = lines.next_line()? {
            seen += line.text.len() + 1;
            self.head.push(line.text.into());
            if seen > HEAD {
                break;
            }
        }
        Ok(())
    }

    /// What it is, where it is a folder.
    pub(crate) fn folder(&self) -> Option<&InputFolder<'a>> {
        self.folder.as_ref()
    }

    /// The first bytes of a file, as they are on the disk.
    pub(crate) fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// The first bytes of a file, unpacked.
    pub(crate) fn unpacked_beginning(&self) -> &[u8] {
        let unpack =
            || open_unpacked(self.path).map_or_else(|_| Vec::new(), |(file, _)| read_beginning(file));
        if self.folder.is_some() { &[] } else { self.unpacked.get_or_init(unpack) }
    }

    /// The first lines of a file of text, unpacked; none of a folder.
    pub(crate) fn first_lines(&self) -> Option<&[String]> {
        let are_read = self.head_error.is_none() || self.head.len() >= FIRST_LINES;
        (are_read && self.folder.is_none()).then(|| self.head.get(..FIRST_LINES).unwrap_or(&self.head))
    }

    /// The file as one document, where one of its first lines begins like one of `beginnings`. Only then it is read whole.
    pub(crate) fn document_with(&self, beginnings: &[&str]) -> Option<&InputDocument> {
        let is_dump = |line: &&String| DUMPS.iter().any(|begin| line.trim_start().starts_with(begin));
        let is_one = |line: &String| beginnings.iter().any(|begin| line.trim_start().starts_with(begin));
        let before_dumps = self.head.iter().take_while(|line| !is_dump(line));
        let is_likely = before_dumps.into_iter().any(is_one);
        is_likely.then(|| self.read_document())?
    }

    /// The file as JSON.
    pub(crate) fn json_document(&self) -> Option<&InputDocument> {
        self.document_with(&["{", "["])
    }

    /// The file as one document, which is read whole.
    pub(crate) fn read_document(&self) -> Option<&InputDocument> {
        self.document.get_or_init(|| InputDocument::read(self.path)).as_ref().ok()
    }

    /// Why nobody recognised it, where that is known: it cannot be read, or it begins as JSON and is none.
    pub(crate) fn into_error(self) -> Option<ImportError> {
        let path = self.path;
        let of_document = match self.document.into_inner() {
            Some(Err(error)) => Some(error),
            Some(Ok(document)) => document
                .json_error()
                .map(|DocumentError { line, reason }| ImportError::not_importable(path, line, reason)),
            None => None,
        };
        of_document.or(self.head_error)
    }
}

/// The first bytes of a file; what can be read of them.
fn read_beginning(file: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = file.take(BEGINNING).read_to_end(&mut bytes);
    bytes
}
