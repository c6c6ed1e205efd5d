//! The usual monitor: files of `/proc` opened once, re-read in place into a buffer that is kept, parsed into rows.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;

use perflab_formats::kernel::KernelFileParser;
use perflab_formats::reading_parser::{MalformedLine, ReadingParser as _};
use perflab_model::{CellRow, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::root::{Root, open_unblocked};

/// More than any known file needs at first; it grows where a machine has more to say.
const FIRST_BUFFER: usize = 16 << 10;

/// No kernel gives more at once; a file of a copied tree may not end at all.
const LONGEST: usize = 64 << 20;

/// An open file of `/proc`.
#[derive(Debug)]
pub(crate) struct ProcFile {
    path: String,
    file: File,
    buffer: Vec<u8>,
    /// Bytes of the last reading.
    length: usize,
}

impl ProcFile {
    /// Opens `path` (as the kernel names it) below `root`.
    pub(crate) fn open(root: &Root, path: &str) -> Result<Self, ObserveError> {
        let file =
            open_unblocked(&root.path(path)).map_err(|source| ObserveError::read_failed(path, source))?;
        Ok(ProcFile { path: path.into(), file, buffer: vec![0; FIRST_BUFFER], length: 0 })
    }

    /// The whole text as it is now. Bytes that are not ASCII become `?` where the text is not UTF-8.
    pub(crate) fn read(&mut self) -> Result<&str, ObserveError> {
        let length = read_again(&self.file, &mut self.buffer)
            .map_err(|source| ObserveError::read_failed(&self.path, source))?;
        self.length = length;
        let text = self.buffer.get_mut(..length).unwrap_or_default();
        if std::str::from_utf8(text).is_err() {
            text.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'?');
        }
        Ok(std::str::from_utf8(text).unwrap_or_default())
    }

    /// The same, with the path that errors name.
    pub(crate) fn read_with_path(&mut self) -> Result<(&str, &str), ObserveError> {
        self.read()?;
        let text = self.buffer.get(..self.length).unwrap_or_default();
        Ok((&self.path, std::str::from_utf8(text).unwrap_or_default()))
    }

    /// As the kernel names it.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The error for a line of this file that is not understood.
    pub(crate) fn malformed_error(&self, malformed: MalformedLine) -> ObserveError {
        ObserveError::malformed(&self.path, malformed)
    }
}

/// Reads an open file from its start to its end, and returns how long it is: `/proc` hands out a page or so a call.
pub(crate) fn read_again(file: &File, buffer: &mut Vec<u8>) -> Result<usize, Error> {
    let mut length = 0;
    loop {
        if length > LONGEST {
            return Err(Error::other(format!("it is longer than the {LONGEST} bytes that the kernel gives")));
        }
        if length == buffer.len() {
            buffer.resize((length * 2).max(4096), 0);
        }
        let rest = buffer.get_mut(length..).unwrap_or_default();
        match file.read_at(rest, length as u64) {
            Ok(0) => return Ok(length),
            Ok(read) => length += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A file that is open, and its parser.
type OpenPart = (ProcFile, KernelFileParser);

/// A monitor of a text, or of several that are made alike.
pub(crate) struct TextFileMonitor {
    schema: SeriesSchema,
    parts: Vec<OpenPart>,
}

impl TextFileMonitor {
    /// Opens whichever of its files there are; none at all is the error of the first. Columns that vary are those of a first
    /// reading.
    pub(crate) fn open(context: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
        let mut parts = Vec::new();
        let mut refused = None;
        for (label, path) in context.file.parts() {
            match ProcFile::open(context.root, path) {
                Ok(file) => parts.push((file, KernelFileParser::new(context.file, label))),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        if let Some(error) = refused.filter(|_| parts.is_empty()) {
            return Err(error);
        }
        let mut monitor = TextFileMonitor { schema: context.declared_schema(), parts };
        if context.file.columns.is_empty() {
            monitor.read_rows(&mut Vec::new())?;
            let columns = monitor.parts.first().map(|(_, parser)| parser.columns()).unwrap_or_default();
            monitor.schema.columns = columns;
        }
        Ok(Box::new(monitor))
    }
}

impl Monitor for TextFileMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        for (file, parser) in &mut self.parts {
            let parsed = parser.parse_text(file.read()?, rows);
            parsed.map_err(|malformed| file.malformed_error(malformed))?;
        }
        Ok(())
    }
}
