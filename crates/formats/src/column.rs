//! Words of a text made into cells of declared columns, and columns that are discovered in a text.
//!
//! A column is declared beside the parser of its rows ([`perflab_model::RowSchema`]). Filling a row follows the declaration, so
//! that the two cannot diverge.

use perflab_model::column::ColumnType;
use perflab_model::{CellRow, ColumnRef, ColumnSpec, DeclaredColumn, RowSchema, TableCell};

/// The cell of one word of the kernel; nothing where the word is not what the column holds.
pub fn parse_cell(column: &DeclaredColumn, word: &str) -> Option<TableCell> {
    match column.stored {
        ColumnType::Int | ColumnType::Int32 | ColumnType::Boolean => parse_integer_cell(word, column.scale),
        ColumnType::Float => {
            word.parse().ok().filter(|number: &f64| number.is_finite()).map(TableCell::Float)
        }
        ColumnType::Text => Some(TableCell::Text(word.into())),
    }
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
                parse_cell(column, word).ok_or_else(|| describe_mismatch("a number", column.name, word))?
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

/// Adds a flag to the column of a row that holds them, comma separated.
pub fn add_row_flag<R: RowSchema>(row: &mut CellRow, column: ColumnRef<R, str>, flag: &str) {
    if let Some(TableCell::Text(flags)) = row.get_mut(column.index()) {
        let comma = if flags.is_empty() { "" } else { "," };
        flags.push_str(comma);
        flags.push_str(flag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[DeclaredColumn] =
        &[DeclaredColumn::key("a"), DeclaredColumn::counter("bytes", "bytes").scaled(512)];

    #[test]
    fn columns_scale_what_they_hold() {
        assert_eq!(parse_cell(&COLUMNS[1], "3"), Some(TableCell::Int(1536)));
        assert_eq!(parse_cell(&COLUMNS[1], "-3"), None);
        assert_eq!(parse_cell(&COLUMNS[1], &u64::MAX.to_string()), Some(TableCell::Missing));
        let mut row = CellRow::new();
        assert_eq!(fill_row(&mut row, COLUMNS, ["sda"].into_iter()), Ok(()));
        assert_eq!(row, [TableCell::Text("sda".into()), TableCell::Missing]);
        let error = fill_row(&mut row, COLUMNS, ["sda", "oops"].into_iter()).unwrap_err();
        assert_eq!(error, "a number was expected for bytes, found `oops`");
    }
}
