//! One document: its text, and what it is as JSON, with errors that name the field.

use std::path::{Path, PathBuf};

use perflab_formats::json_document::find_json_document;
use serde_json::Value;

use crate::error::ImportError;
use crate::input_lines::InputLines;

/// The longest document in bytes: it is held in memory, and what programs report of themselves is far smaller.
const LONGEST: u64 = 256 << 20;

/// What is wrong with a document, and in which line where that is known.
#[derive(Debug, PartialEq)]
pub(crate) struct DocumentError {
    pub(crate) line: Option<u64>,
    pub(crate) reason: String,
}

impl DocumentError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        DocumentError { line: None, reason: reason.into() }
    }
}

/// A file read whole.
#[derive(Debug)]
pub(crate) struct InputDocument {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    json: Result<Value, DocumentError>,
    /// Whether the last line ends.
    pub(crate) whole: bool,
}

impl InputDocument {
    pub(crate) fn read(path: &Path) -> Result<Self, ImportError> {
        InputDocument::from_lines(path, InputLines::open(path)?)
    }

    /// A document among other files; else why it cannot be read.
    pub(crate) fn read_optional(path: &Path) -> Result<Self, String> {
        let lines = InputLines::open_optional(path);
        lines.unreadable_reason().map_or(Ok(()), |reason| Err(reason.to_owned()))?;
        InputDocument::from_lines(path, lines).map_err(|error| match error {
            ImportError::Foreign { reason, .. } => reason,
            error => error.to_string(),
        })
    }

    fn from_lines(path: &Path, lines: InputLines) -> Result<Self, ImportError> {
        let text = lines.read_all(LONGEST)?;
        let whole = text.ends_with('\n');
        let json = parse_first_json(&text);
        Ok(InputDocument { path: path.into(), text, json, whole })
    }

    /// A document of a text, for tests.
    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Self {
        let (path, whole) = (PathBuf::from("document"), text.ends_with('\n'));
        InputDocument { path, text: text.into(), json: parse_first_json(text), whole }
    }

    /// The document as JSON.
    pub(crate) fn json(&self) -> Option<&Value> {
        self.json.as_ref().ok()
    }

    /// Why it is no JSON although it begins as such.
    pub(crate) fn json_error(&self) -> Option<DocumentError> {
        let begins = self.text.trim_start().starts_with(['{', '[']);
        let fault = self.json.as_ref().err().filter(|_| begins)?;
        Some(DocumentError { line: fault.line, reason: fault.reason.clone() })
    }

    /// The member of the object that the document is.
    pub(crate) fn member(&self, name: &str) -> Option<&Value> {
        self.json()?.get(name)
    }

    /// The list of that name.
    pub(crate) fn list_member(&self, name: &str) -> &[Value] {
        self.member(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The lines with their numbers, from 1, and whether each ends.
    pub(crate) fn numbered_lines(&self) -> impl Iterator<Item = (u64, &str, bool)> {
        let last = self.text.lines().count() as u64;
        (1..).zip(self.text.lines()).map(move |(number, text)| (number, text, self.whole || number < last))
    }
}

/// Some programs put warnings before their JSON. Behind it there is nothing, but with fio: asked for several formats it writes
/// text there; asked for a report every few seconds, a document each, of which the last holds what the others do.
fn parse_first_json(text: &str) -> Result<Value, DocumentError> {
    let mut rest = text;
    loop {
        let found = find_json_document(rest).map_err(|fault| DocumentError {
            line: fault.line.map(|line| line + count_lines_before(text, rest)),
            reason: match fault.line {
                Some(_) => format!("it is no whole JSON: {}", fault.reason),
                None => "it is no JSON".into(),
            },
        })?;
        rest = found.rest.trim_start();
        if rest.is_empty() {
            return Ok(found.document);
        }
        let is_fio = found.document.get("fio version").is_some();
        if is_fio && !rest.starts_with(['{', '[']) {
            return Ok(found.document);
        }
        if !is_fio {
            let line = Some(count_lines_before(text, rest) + 1);
            return Err(DocumentError {
                line,
                reason: "it is no whole JSON: something else stands behind it".into(),
            });
        }
    }
}

/// Line ends of `text` before `rest`, its last part.
fn count_lines_before(text: &str, rest: &str) -> u64 {
    let before = text.get(..text.len() - rest.len()).unwrap_or_default();
    before.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// A finite number.
pub(crate) fn finite_json_number(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|number| number.is_finite())
}

/// A text.
pub(crate) fn json_text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}
