//! What was read, skipped and why, file by file: every row that was read is used or unusable.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_formats::reading_parser::LineOutcome;

use crate::error::{ImportError, shorten_quotes};
use crate::input_lines::InputLines;

/// Remarks that are kept of a file; all are counted.
const KEPT: usize = 20;

/// A line that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRemark {
    /// Its number in the (unpacked) file, from 1; 0 where it is no line but a member of a document.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// What was taken of one file. `rows_read == rows_used + rows_unusable`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub file: PathBuf,
    /// What it became: a series' name, `samples` or `facts`.
    pub became: &'static str,
    /// Dumps, for a log.
    pub ticks: u64,
    /// Rows that the file has.
    pub rows_read: u64,
    /// Rows that are in the run.
    pub rows_used: u64,
    /// Rows among the used ones that say of themselves that something is wrong with them.
    pub rows_flagged: u64,
    /// Rows of which nothing could be used.
    pub rows_unusable: u64,
    /// The first flagged rows, with the reason.
    pub flagged: Vec<LineRemark>,
    /// The first unusable rows, with the reason.
    pub unusable: Vec<LineRemark>,
    /// What was assumed or missing.
    pub notes: Vec<String>,
    /// Why the system did not let it be read, if it did not: nothing of it is in the run then.
    pub refused: Option<String>,
}

impl FileReport {
    pub(crate) fn new(file: &Path, became: &'static str) -> Self {
        FileReport {
            file: file.into(),
            became,
            ticks: 0,
            rows_read: 0,
            rows_used: 0,
            rows_flagged: 0,
            rows_unusable: 0,
            flagged: Vec::new(),
            unusable: Vec::new(),
            notes: Vec::new(),
            refused: None,
        }
    }

    /// Of a file or folder that cannot be read.
    pub(crate) fn unreadable(path: &Path, reason: impl ToString) -> Self {
        FileReport { refused: Some(reason.to_string()), ..FileReport::new(path, "nothing") }
    }

    /// Says of a file that was read why that ended early, if it did.
    pub(crate) fn note_early_end(&mut self, lines: &InputLines) {
        self.refused = lines.unreadable_reason().map(String::from);
        lines.cut_reason().into_iter().for_each(|reason| self.add_note(reason));
    }

    /// Counts one row.
    pub(crate) fn count_row(&mut self, line: u64, read: LineOutcome) {
        self.rows_read += u64::from(read != LineOutcome::Nothing);
        match read {
            LineOutcome::Nothing => {}
            LineOutcome::Used => self.rows_used += 1,
            LineOutcome::Flagged(reason) => {
                self.rows_used += 1;
                self.rows_flagged += 1;
                keep_remark(&mut self.flagged, line, reason);
            }
            LineOutcome::LeftOut(reason) | LineOutcome::Unusable(reason) => {
                self.rows_unusable += 1;
                keep_remark(&mut self.unusable, line, reason);
            }
        }
    }

    /// Adds a note, unless there are many already.
    pub(crate) fn add_note(&mut self, note: impl Into<String>) {
        if self.notes.len() < KEPT {
            self.notes.push(shorten_quotes(&note.into()));
        }
    }

    /// The counts in one line: `29295 rows read, 29295 used, 0 flagged, 0 unusable`.
    pub fn format_counts(&self) -> String {
        let (read, used) = (self.rows_read, self.rows_used);
        format!(
            "{read} rows read, {used} used, {} flagged, {} unusable",
            self.rows_flagged, self.rows_unusable
        )
    }

    /// The file's name without its directories.
    pub fn file_name(&self) -> String {
        self.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
    }
}

fn keep_remark(remarks: &mut Vec<LineRemark>, line: u64, reason: String) {
    if remarks.len() < KEPT {
        remarks.push(LineRemark { line, reason: shorten_quotes(&reason) });
    }
}

/// The error of the first file that the system did not let be read, if there is one.
pub(crate) fn first_unreadable(report: &[FileReport]) -> Option<ImportError> {
    let (file, reason) = report.iter().find_map(|report| Some((&report.file, report.refused.as_ref()?)))?;
    Some(ImportError::not_importable(file, None, format!("it cannot be read: {reason}")))
}

/// Says which of the things in a folder are not read: those that are not `known` by name.
pub(crate) fn note_unread_entries(folder: &Path, known: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    note_unread_names(folder, names.filter(|name| !known(name)).collect())
}

/// Says that these things in a folder are not read: the first few, and how many more.
pub(crate) fn note_unread_names(folder: &Path, mut names: Vec<String>) -> Option<(String, String)> {
    names.sort();
    let first = names.get(..names.len().min(3))?;
    let more = names.len() - first.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let of = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    (!first.is_empty()).then(|| {
        let message = format!("not read of {of}: {}{more}", first.join(", "));
        (message, "nothing of them is in this run".into())
    })
}
