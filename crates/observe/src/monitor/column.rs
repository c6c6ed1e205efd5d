//! How a monitor declares a column: name, unit, kind, and what the kernel's number is multiplied by to be in that
//! unit. Filling a row follows the declaration, so that the two cannot part.

use perflab_model::series::{ColumnKind, ColumnType};
use perflab_model::{CellRow, ColumnSpec, TableCell, Unit};

use super::line::MalformedLine;

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
    pub(super) const fn key(name: &'static str) -> Self {
        DeclaredColumn { name, unit: "1", kind: ColumnKind::Key, stored: ColumnType::Text, scale: 1 }
    }

    pub(super) const fn counter(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Counter, stored: ColumnType::Int, scale: 1 }
    }

    pub(super) const fn gauge(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Gauge, stored: ColumnType::Int, scale: 1 }
    }

    pub(super) const fn float(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Gauge, stored: ColumnType::Float, scale: 1 }
    }

    pub(super) const fn scaled(self, scale: u64) -> Self {
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
    pub(super) fn parse_cell(&self, word: &str) -> Option<TableCell> {
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
pub(super) fn parse_integer_cell(word: &str, scale: u64) -> Option<TableCell> {
    let number: u64 = word.parse().ok()?;
    let scaled = number.checked_mul(scale).and_then(|scaled| i64::try_from(scaled).ok());
    Some(scaled.map_or(TableCell::Missing, TableCell::Int))
}

/// Appends a cell a column: the next word each, `Missing` once an older kernel's words are used up.
pub(super) fn fill_row<'a>(
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
