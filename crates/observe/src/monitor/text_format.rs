//! Columns declared or discovered, and lines of a text made into rows.
//!
//! A monitor declares a column by name, unit, kind, and what the kernel's number is multiplied by to be in that
//! unit. Filling a row follows the declaration, so that the two cannot diverge. Files of one `name value` a line,
//! whose names vary by kernel, become one wide row, its columns found when opened.

use perflab_model::series::{ColumnKind, ColumnType};
use perflab_model::{CellRow, ColumnSpec, SeriesSchema, TableCell, Unit};

use crate::error::ObserveError;
use crate::monitor::registry::{Monitor, MonitorContext};
use crate::monitor::text_file::ProcFile;

/// One column as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeclaredColumn {
    /// The kernel's own name where it has one.
    pub name: &'static str,
    /// The unit of the recorded number.
    pub unit: &'static str,
    /// Whether it counts, gauges or names.
    pub kind: ColumnKind,
    /// How it is stored.
    pub stored: ColumnType,
    /// What the kernel's number is multiplied by to be in `unit`.
    pub scale: u64,
}

impl DeclaredColumn {
    pub(crate) const fn key(name: &'static str) -> Self {
        DeclaredColumn { name, unit: "1", kind: ColumnKind::Key, stored: ColumnType::Text, scale: 1 }
    }

    pub(crate) const fn counter(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Counter, stored: ColumnType::Int, scale: 1 }
    }

    pub(crate) const fn gauge(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Gauge, stored: ColumnType::Int, scale: 1 }
    }

    pub(crate) const fn float(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Gauge, stored: ColumnType::Float, scale: 1 }
    }

    pub(crate) const fn scaled(self, scale: u64) -> Self {
        DeclaredColumn { scale, ..self }
    }

    /// The column as stored.
    pub fn column(&self) -> ColumnSpec {
        ColumnSpec {
            name: self.name.into(),
            unit: Unit::new(self.unit),
            kind: self.kind,
            stored: self.stored,
        }
    }

    /// The cell of one word of the kernel; nothing where the word is not what the column holds.
    pub(crate) fn parse_cell(&self, word: &str) -> Option<TableCell> {
        match self.stored {
            ColumnType::Int => parse_integer_cell(word, self.scale),
            ColumnType::Float => {
                word.parse().ok().filter(|number: &f64| number.is_finite()).map(TableCell::Float)
            }
            ColumnType::Text => Some(TableCell::Text(word.into())),
        }
    }
}

/// A number of the kernel times `scale`. What 64 bits with a sign cannot hold is `Missing` rather than wrong.
pub(crate) fn parse_integer_cell(word: &str, scale: u64) -> Option<TableCell> {
    let number: u64 = word.parse().ok()?;
    let scaled = number.checked_mul(scale).and_then(|scaled| i64::try_from(scaled).ok());
    Some(scaled.map_or(TableCell::Missing, TableCell::Int))
}

/// Appends a cell a column: the next word each, `Missing` once an older kernel's words are used up.
pub(crate) fn fill_row<'a>(
    row: &mut CellRow,
    columns: &[DeclaredColumn],
    mut words: impl Iterator<Item = &'a str>,
    line: usize,
) -> Result<(), MalformedLine> {
    for column in columns {
        row.push(match words.next() {
            Some(word) => column
                .parse_cell(word)
                .ok_or_else(|| MalformedLine::new(line, "a number", column.name, word))?,
            None => TableCell::Missing,
        });
    }
    Ok(())
}

/// A line that a parser does not understand; its file's name is added by whoever read the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MalformedLine {
    /// From 1.
    pub line: usize,
    /// What was expected and what was there.
    pub description: String,
}

impl MalformedLine {
    /// `expected` for `subject`, and `found` in its place (shown shortened).
    pub(crate) fn new(line: usize, expected: &str, subject: &str, found: &str) -> Self {
        let found: String = found.chars().take(60).collect();
        MalformedLine { line, description: format!("{expected} was expected for {subject}, found `{found}`") }
    }
}

/// The lines of `text` that hold something, each with its number from 1.
pub(crate) fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim().is_empty())
}

/// One column found, and what the kernel's number is multiplied by to be in its unit.
#[derive(Debug, Clone)]
pub(crate) struct DiscoveredColumn {
    pub column: ColumnSpec,
    pub scale: u64,
}

/// How such a file declares its columns: from name and the text after it.
type ColumnDiscovery = fn(name: &str, rest: &str) -> DiscoveredColumn;

/// A monitor of such a file.
struct NameValueMonitor {
    file: ProcFile,
    schema: SeriesSchema,
    found: Vec<DiscoveredColumn>,
}

impl Monitor for NameValueMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        match parse_name_value_row(self.file.read()?, &self.found) {
            Ok(row) => rows.push(row),
            Err(malformed) => return Err(self.file.malformed_error(malformed)),
        }
        Ok(())
    }
}

impl MonitorContext<'_> {
    /// Opens the monitor's file and finds its columns.
    pub(crate) fn open_name_value_file(
        &self,
        discover: ColumnDiscovery,
    ) -> Result<Box<dyn Monitor>, ObserveError> {
        let mut file = ProcFile::open(self.root, self.kind.source)?;
        let found =
            discover_columns(file.read()?, discover).map_err(|malformed| file.malformed_error(malformed))?;
        let schema = self.schema_with_columns(found.iter().map(|found| found.column.clone()).collect());
        Ok(Box::new(NameValueMonitor { file, schema, found }))
    }
}

/// The columns of `text`.
pub(crate) fn discover_columns(
    text: &str,
    discover: ColumnDiscovery,
) -> Result<Vec<DiscoveredColumn>, MalformedLine> {
    let mut found: Vec<DiscoveredColumn> = Vec::new();
    for (number, line) in numbered_lines(text) {
        let (name, rest) = split_name_value(number, line)?;
        if found.iter().all(|known| known.column.name != name) {
            found.push(discover(name, rest));
        }
    }
    if found.is_empty() { Err(MalformedLine::new(1, "at least one line", "the file", "")) } else { Ok(found) }
}

/// The row of `text`. Lines are at the same position as before, nearly always; a name that came later is left out.
pub(crate) fn parse_name_value_row(text: &str, found: &[DiscoveredColumn]) -> Result<CellRow, MalformedLine> {
    let mut row = vec![TableCell::Missing; found.len()];
    for (index, (number, line)) in numbered_lines(text).enumerate() {
        let (name, rest) = split_name_value(number, line)?;
        let is_it = |known: &DiscoveredColumn| known.column.name == name;
        let place =
            if found.get(index).is_some_and(is_it) { Some(index) } else { found.iter().position(is_it) };
        let Some((known, cell)) = place.and_then(|place| Some((found.get(place)?, row.get_mut(place)?)))
        else {
            continue;
        };
        let word = rest.split_ascii_whitespace().next().unwrap_or_default();
        *cell = parse_integer_cell(word, known.scale)
            .ok_or_else(|| MalformedLine::new(number, "a number", name, word))?;
    }
    if row.iter().all(|cell| *cell == TableCell::Missing) {
        return Err(MalformedLine::new(1, "a known name", "any line", text));
    }
    Ok(row)
}

/// `name value` and `name: value unit` as name and the rest.
fn split_name_value(number: usize, line: &str) -> Result<(&str, &str), MalformedLine> {
    let halves = line.split_once(':').or_else(|| line.trim_start().split_once(' '));
    let (name, rest) =
        halves.ok_or_else(|| MalformedLine::new(number, "a name and a number", "a line", line))?;
    Ok((name.trim(), rest.trim()))
}
