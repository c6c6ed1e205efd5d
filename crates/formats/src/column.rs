//! Columns declared or discovered, and words of a text made into cells.
//!
//! A column is declared by name, unit, kind, and what the kernel's number is multiplied by to be in that unit. Filling
//! a row follows the declaration, so that the two cannot diverge.

use perflab_model::series::{ColumnKind, ColumnType};
use perflab_model::{CellRow, ColumnSpec, TableCell, Unit};

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
    /// A text that names the row's subject.
    pub const fn key(name: &'static str) -> Self {
        DeclaredColumn { name, unit: "1", kind: ColumnKind::Key, stored: ColumnType::Text, scale: 1 }
    }

    /// A whole number that only grows.
    pub const fn counter(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Counter, stored: ColumnType::Int, scale: 1 }
    }

    /// A whole number that goes up and down.
    pub const fn gauge(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Gauge, stored: ColumnType::Int, scale: 1 }
    }

    /// A fraction that goes up and down.
    pub const fn float(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn { name, unit, kind: ColumnKind::Gauge, stored: ColumnType::Float, scale: 1 }
    }

    /// The same, of a number that is multiplied by `scale`.
    #[must_use]
    pub const fn scaled(self, scale: u64) -> Self {
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
    pub fn parse_cell(&self, word: &str) -> Option<TableCell> {
        match self.stored {
            ColumnType::Int => parse_integer_cell(word, self.scale),
            ColumnType::Float => {
                word.parse().ok().filter(|number: &f64| number.is_finite()).map(TableCell::Float)
            }
            ColumnType::Text => Some(TableCell::Text(word.into())),
        }
    }
}

/// The index of the column of that name, found by the compiler: what is not there does not build.
///
/// # Panics
/// There is no such column.
pub const fn column_index(columns: &[DeclaredColumn], name: &str) -> usize {
    let mut index = 0;
    while index < columns.len() {
        if is_same_text(columns[index].name.as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    panic!("there is no such column")
}

const fn is_same_text(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// The columns as stored.
pub fn stored_columns(columns: &[DeclaredColumn]) -> Vec<ColumnSpec> {
    columns.iter().map(DeclaredColumn::column).collect()
}

/// One column found in a text, and what its number is multiplied by to be in its unit.
#[derive(Debug, Clone)]
pub struct DiscoveredColumn {
    /// The column as stored.
    pub column: ColumnSpec,
    /// What the kernel's number is multiplied by.
    pub scale: u64,
    /// The word behind the number, as the kernel writes it: `kB`, or nothing.
    pub suffix: &'static str,
}

/// A number of the kernel times `scale`. What 64 bits with a sign cannot hold is `Missing` rather than wrong.
pub fn parse_integer_cell(word: &str, scale: u64) -> Option<TableCell> {
    let number: u64 = word.parse().ok()?;
    let scaled = number.checked_mul(scale).and_then(|scaled| i64::try_from(scaled).ok());
    Some(scaled.map_or(TableCell::Missing, TableCell::Int))
}

/// Appends a cell a column: the next word each, `Missing` once an older kernel's words are used up.
///
/// # Errors
/// What was expected, and found instead.
pub fn fill_row<'a>(
    row: &mut CellRow,
    columns: &[DeclaredColumn],
    mut words: impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    for column in columns {
        row.push(match words.next() {
            Some(word) => {
                column.parse_cell(word).ok_or_else(|| describe_mismatch("a number", column.name, word))?
            }
            None => TableCell::Missing,
        });
    }
    Ok(())
}

/// `expected` for `subject`, and `found` in its place (shown shortened).
pub fn describe_mismatch(expected: &str, subject: &str, found: &str) -> String {
    let found: String = found.chars().take(60).collect();
    format!("{expected} was expected for {subject}, found `{found}`")
}

/// Adds a flag to the last cell of a row, which holds them comma separated.
pub fn add_row_flag(row: &mut CellRow, flag: &str) {
    if let Some(TableCell::Text(flags)) = row.last_mut() {
        let comma = if flags.is_empty() { "" } else { "," };
        flags.push_str(comma);
        flags.push_str(flag);
    }
}

/// A cell of a count; what does not fit is missing.
pub fn count_cell(count: Option<u64>) -> TableCell {
    count.and_then(|count| i64::try_from(count).ok()).map_or(TableCell::Missing, TableCell::Int)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[DeclaredColumn] =
        &[DeclaredColumn::key("a"), DeclaredColumn::counter("bytes", "bytes").scaled(512)];

    const BYTES: usize = column_index(COLUMNS, "bytes");

    #[test]
    fn columns_are_found_by_name_and_scale_what_they_hold() {
        assert_eq!(COLUMNS[BYTES].parse_cell("3"), Some(TableCell::Int(1536)));
        assert_eq!(COLUMNS[BYTES].parse_cell("-3"), None);
        assert_eq!(COLUMNS[BYTES].parse_cell(&u64::MAX.to_string()), Some(TableCell::Missing));
        let mut row = CellRow::new();
        assert_eq!(fill_row(&mut row, COLUMNS, ["sda"].into_iter()), Ok(()));
        assert_eq!(row, [TableCell::Text("sda".into()), TableCell::Missing]);
        let error = fill_row(&mut row, COLUMNS, ["sda", "oops"].into_iter()).unwrap_err();
        assert_eq!(error, "a number was expected for bytes, found `oops`");
    }
}
