//! One file of the kernel as declared once: what it is called, its columns, and how its lines become rows, on a clock
//! and in a log alike.

use std::collections::HashMap;

use perflab_model::column::{ColumnKind, stored_columns};
use perflab_model::{CellRow, ColumnSpec, DeclaredColumn, TableCell};

use crate::column::{DiscoveredColumn, describe_mismatch, parse_integer_cell};
use crate::kernel::kernel_folder::FolderLayout;
use crate::reading_parser::{
    LineOutcome, LineRole, MalformedLine, ReadingParser, TextLine, parse_whole_text,
};

/// A file of `/proc` or `/sys`, or a folder of them, that becomes a series.
#[derive(Debug, Clone, Copy)]
pub struct KernelFile {
    /// What studies call it, and its table: `slabinfo`.
    pub name: &'static str,
    /// Where it lies, as the kernel names it: `/proc/slabinfo`.
    pub source: &'static str,
    /// One line for people: what its numbers show.
    pub about: &'static str,
    /// What it cannot be read without: `root`, or nothing.
    pub needs: &'static str,
    /// What is missing without that, and what remains; empty where that is everything and nothing.
    pub without: &'static str,
    /// What a kernel without it lacks: its option, boot parameter or sysctl, as it is written; empty where every kernel has it.
    pub provided_by: &'static str,
    /// Its columns; empty where they vary by kernel and are found in its first reading.
    pub columns: &'static [DeclaredColumn],
    /// How its text is made.
    pub layout: KernelFileLayout,
}

/// How the text of a kernel file becomes rows.
#[derive(Debug, Clone, Copy)]
pub enum KernelFileLayout {
    /// A line a row, or nearly so, in the declared columns.
    Rows(RowLayout),
    /// One `name value` a line: one wide row, whose columns are those of the first reading.
    NameValues(NameValueLayout),
    /// A row a line, which is judged by what was read before: slabinfo. The function knows its lines.
    Judged(fn(&str) -> bool),
    /// Folders that are rows, of which files, words or lines are cells.
    Folders(FolderLayout),
    /// Several files or folders, or more than a text says: its monitor reads it in its own way.
    Tree,
}

/// Lines that become rows.
#[derive(Debug, Clone, Copy)]
pub struct RowLayout {
    /// Several files of the same text, each with the label that is the first cell of its rows; empty where there is one file.
    pub parts: &'static [(&'static str, &'static str)],
    /// Where a reading begins.
    pub start: ReadingStart,
    /// Takes one line, given the rows of the reading so far.
    pub parse_row: fn(&str, &mut Vec<CellRow>) -> LineOutcome,
}

/// Where a reading begins in a log of them.
#[derive(Debug, Clone, Copy)]
pub enum ReadingStart {
    /// At a line that tells what it is.
    Head {
        /// what it looks like, for a message
        expected: &'static str,
        /// what a line is; an error where nothing that follows can be read
        role: fn(&str) -> Result<LineRole, String>,
    },
    /// Where the subject of the reading's first row comes again; the function gives that of a line.
    SubjectAgain(fn(&str) -> Option<&str>),
}

/// Lines that become cells.
#[derive(Debug, Clone, Copy)]
pub struct NameValueLayout {
    /// How the first line begins.
    pub first: &'static str,
    /// What stands between a name and its value.
    pub separator: char,
    /// The column of a name, given the text behind it too.
    pub discover: fn(name: &str, rest: &str) -> DiscoveredColumn,
}

impl KernelFile {
    /// The files to open, each with the label of its rows.
    pub fn parts(&self) -> Vec<(&'static str, &'static str)> {
        match self.layout {
            KernelFileLayout::Rows(layout) if !layout.parts.is_empty() => layout.parts.to_vec(),
            _ => vec![("", self.source)],
        }
    }

    /// Whether it counts anything, so that it is read at the edges of iterations; a folder may.
    pub fn counts(&self) -> bool {
        match self.layout {
            // What no rule knows is what the file mostly holds.
            KernelFileLayout::NameValues(layout) => {
                (layout.discover)("any_other_name", "").column.kind == ColumnKind::Counter
            }
            KernelFileLayout::Tree | KernelFileLayout::Folders(_) if self.columns.is_empty() => true,
            _ => self.columns.iter().any(|column| column.kind == ColumnKind::Counter),
        }
    }

    /// Whether a line is the first of such a text, or so made that it is of no other.
    pub fn is_begun_by(&self, line: &str) -> bool {
        match self.layout {
            KernelFileLayout::Rows(layout) => match layout.start {
                ReadingStart::Head { role, .. } => role(line).is_ok_and(LineRole::is_head),
                ReadingStart::SubjectAgain(subject) => subject(line).is_some(),
            },
            KernelFileLayout::NameValues(layout) => line.starts_with(layout.first),
            KernelFileLayout::Judged(is_of_it) => is_of_it(line),
            KernelFileLayout::Tree | KernelFileLayout::Folders(_) => false,
        }
    }
}

/// Names of one file at most.
const NAMES: usize = 2_000;

/// The parser of any kernel file whose lines need no judgement.
#[derive(Debug)]
pub struct KernelFileParser {
    file: KernelFile,
    label: String,
    found: Vec<DiscoveredColumn>,
    places: HashMap<String, usize>,
    settled: bool,
    /// Rows of this reading so far.
    lines: usize,
    first_subject: Option<String>,
}

impl KernelFileParser {
    /// For the texts of `file`, or of that part of it which has this label.
    pub fn new(file: &KernelFile, label: &str) -> Self {
        KernelFileParser {
            file: *file,
            label: label.into(),
            found: Vec::new(),
            places: HashMap::new(),
            settled: false,
            lines: 0,
            first_subject: None,
        }
    }

    /// Parses the file as it is now, and appends its rows.
    ///
    /// # Errors
    /// The first line that is not understood.
    pub fn parse_text(&mut self, text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
        if let KernelFileLayout::Rows(RowLayout { start: ReadingStart::Head { expected, role }, .. }) =
            self.file.layout
        {
            let first = text.lines().next().unwrap_or_default();
            if !role(first).is_ok_and(LineRole::is_head) {
                return Err(MalformedLine::new(1, expected, "the first line", first));
            }
        }
        let mut reading = Vec::new();
        let parsed = parse_whole_text(self, text, &mut reading);
        (self.lines, self.first_subject) = (0, None);
        parsed?;
        if reading.is_empty() && matches!(self.file.layout, KernelFileLayout::NameValues(_)) {
            return Err(MalformedLine::new(1, "a known name", "any line", text));
        }
        rows.append(&mut reading);
        Ok(())
    }

    fn parse_labelled_row(&mut self, layout: &RowLayout, text: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
        if let ReadingStart::SubjectAgain(subject) = layout.start
            && self.first_subject.is_none()
        {
            self.first_subject = subject(text).map(str::to_owned);
        }
        let before = rows.len();
        let outcome = (layout.parse_row)(text, rows);
        if !layout.parts.is_empty() {
            let added = rows.iter_mut().skip(before);
            added.for_each(|row| row.insert(0, TableCell::Text(self.label.clone())));
        }
        outcome
    }

    /// `name value`. Lines are at the same position as before, nearly always.
    fn parse_name_value(
        &mut self,
        layout: &NameValueLayout,
        text: &str,
        rows: &mut Vec<CellRow>,
    ) -> LineOutcome {
        let line = self.lines;
        self.lines += 1;
        let Some((name, rest)) = text.trim_ascii().split_once(layout.separator) else {
            return LineOutcome::Unusable(describe_mismatch("a name and a number", "a line", text));
        };
        let (name, rest) = (name.trim_ascii(), rest.trim_ascii());
        let (word, suffix) = rest.split_once(' ').unwrap_or((rest, ""));
        if word.parse::<u64>().is_err() {
            return LineOutcome::Unusable(describe_mismatch("a number", name, word));
        }
        let Some(place) = self.column_place(layout, line, name, rest) else {
            return LineOutcome::LeftOut(format!("`{name}` is not in the first reading"));
        };
        let Some(found) = self.found.get(place).filter(|found| found.suffix == suffix.trim_ascii()) else {
            return LineOutcome::Unusable(describe_mismatch("a number in the usual unit", name, rest));
        };
        if rows.is_empty() {
            rows.push(vec![TableCell::Missing; self.found.len()]);
        }
        if let Some(row) = rows.first_mut() {
            row.resize(row.len().max(place + 1), TableCell::Missing);
            if let Some(cell) = row.get_mut(place) {
                *cell = parse_integer_cell(word, found.scale).unwrap_or(TableCell::Missing);
            }
        }
        LineOutcome::Used
    }

    fn column_place(
        &mut self,
        layout: &NameValueLayout,
        line: usize,
        name: &str,
        rest: &str,
    ) -> Option<usize> {
        if self.found.get(line).is_some_and(|found| found.column.name == name) {
            return Some(line);
        }
        let known = self.places.get(name).copied();
        if known.is_some() || self.settled || self.found.len() >= NAMES {
            return known;
        }
        self.found.push((layout.discover)(name, rest));
        self.places.insert(name.into(), self.found.len() - 1);
        Some(self.found.len() - 1)
    }
}

impl ReadingParser for KernelFileParser {
    fn series(&self) -> &'static str {
        self.file.name
    }

    fn source(&self) -> &'static str {
        self.file.source
    }

    fn is_headed(&self) -> bool {
        !matches!(
            self.file.layout,
            KernelFileLayout::Rows(RowLayout { start: ReadingStart::SubjectAgain(_), .. })
        )
    }

    /// `intr` of `/proc/stat` has a number for every interrupt.
    fn longest_row(&self) -> usize {
        64 << 10
    }

    fn line_role(&self, text: &str) -> Result<LineRole, String> {
        match self.file.layout {
            KernelFileLayout::Rows(layout) => match layout.start {
                ReadingStart::Head { role, .. } => role(text),
                ReadingStart::SubjectAgain(subject) => {
                    let first = self.first_subject.as_deref();
                    let is_again = first.is_none_or(|first| subject(text) == Some(first));
                    Ok(if is_again { LineRole::HeadRow } else { LineRole::Row })
                }
            },
            KernelFileLayout::NameValues(layout) if text.starts_with(layout.first) => Ok(LineRole::HeadRow),
            _ => Ok(LineRole::Row),
        }
    }

    fn parse_row(&mut self, line: TextLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        if !line.whole {
            return LineOutcome::Unusable("the line is cut off".into());
        }
        match self.file.layout {
            KernelFileLayout::Rows(layout) => self.parse_labelled_row(&layout, line.text, rows),
            KernelFileLayout::NameValues(layout) => self.parse_name_value(&layout, line.text, rows),
            KernelFileLayout::Judged(_) | KernelFileLayout::Folders(_) | KernelFileLayout::Tree => {
                LineOutcome::Unusable(format!("{} is not read so", self.file.source))
            }
        }
    }

    fn end_reading(&mut self, rows: &mut Vec<CellRow>) -> Result<(), String> {
        (self.lines, self.first_subject) = (0, None);
        self.settled |= !self.found.is_empty();
        if matches!(self.file.layout, KernelFileLayout::NameValues(_)) {
            rows.iter_mut().for_each(|row| row.resize(self.found.len(), TableCell::Missing));
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        match self.file.layout {
            KernelFileLayout::NameValues(_) => self.found.iter().map(|found| found.column.clone()).collect(),
            _ => stored_columns(self.file.columns),
        }
    }
}
