//! Folders of `/proc` and `/sys` as declared once: a folder a row, a file of it, a word of one or a line of one a cell.

use perflab_model::column::{ColumnKind, ColumnType};
use perflab_model::{DeclaredColumn, TableCell};

use crate::column::{DiscoveredColumn, parse_cell, parse_integer_cell};

/// Folders that are rows of one table.
#[derive(Debug, Clone, Copy)]
pub struct FolderLayout {
    /// Where they lie: several patterns, in which `*` stands for any text within one name.
    pub folders: &'static [&'static str],
    /// What names a row: a column for each `*` of a pattern, without what stands around it.
    pub keys: &'static [&'static str],
    /// What is read in each folder, in the order of the columns.
    pub cells: &'static [FolderCells],
}

/// Cells that a folder gives.
#[derive(Debug, Clone, Copy)]
pub enum FolderCells {
    /// A file a column, which has the column's name.
    Files {
        /// the folder of the files below the row's, with a slash at its end, or nothing
        below: &'static str,
        /// the columns, declared
        columns: &'static [DeclaredColumn],
    },
    /// The words of one file, in their order.
    Words {
        /// below the row's folder
        file: &'static str,
        /// the columns, declared
        columns: &'static [DeclaredColumn],
    },
    /// The lines of one file, of which each names its numbers.
    NamedWords {
        /// below the row's folder
        file: &'static str,
        /// the first word of a line, and the columns of those behind it
        lines: &'static [(&'static str, &'static [DeclaredColumn])],
    },
    /// The lines of one file, of which each names its number. The columns are those of the first reading.
    Lines {
        /// below the row's folder
        file: &'static str,
        /// name and value of a line; nothing of one that is neither
        split: fn(&str) -> Option<(&str, &str)>,
        /// the column of a name, given what stands behind it
        discover: fn(name: &str, rest: &str) -> DiscoveredColumn,
    },
}

impl FolderCells {
    /// The file that is read; nothing where each column is one.
    pub fn file(&self) -> Option<&'static str> {
        match self {
            FolderCells::Files { .. } => None,
            FolderCells::Words { file, .. }
            | FolderCells::NamedWords { file, .. }
            | FolderCells::Lines { file, .. } => Some(file),
        }
    }
}

/// What the `*` of a pattern's part stands for in a name; nothing where the name does not fit.
pub fn match_name<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    match pattern.split_once('*') {
        Some((before, after)) => {
            name.strip_prefix(before)?.strip_suffix(after).filter(|text| !text.is_empty())
        }
        None => (pattern == name).then_some(""),
    }
}

/// The cell of a small file's text: its first word, or all of it for a text.
pub fn parse_small_cell(column: &DeclaredColumn, text: &str) -> TableCell {
    if column.stored == ColumnType::Text {
        return TableCell::Text(text.trim().into());
    }
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    parse_folder_cell(column, word)
}

/// The cell of one word; what is no number of that column is missing. Gauges may be below zero.
pub fn parse_folder_cell(column: &DeclaredColumn, word: &str) -> TableCell {
    if column.kind == ColumnKind::Gauge && column.stored == ColumnType::Int && word.starts_with('-') {
        return parse_negative_cell(word, column.scale);
    }
    parse_cell(column, word).unwrap_or(TableCell::Missing)
}

/// The cell of what stands behind a name in a line.
pub fn parse_discovered_cell(column: &DiscoveredColumn, rest: &str) -> TableCell {
    let word = rest.split_ascii_whitespace().next().unwrap_or_default();
    if column.column.kind == ColumnKind::Gauge && word.starts_with('-') {
        return parse_negative_cell(word, column.scale);
    }
    parse_integer_cell(word, column.scale).unwrap_or(TableCell::Missing)
}

fn parse_negative_cell(word: &str, scale: u64) -> TableCell {
    let scaled = word.parse::<i64>().ok().and_then(|number| number.checked_mul(i64::try_from(scale).ok()?));
    scaled.map_or(TableCell::Missing, TableCell::Int)
}

/// `name value`
pub fn split_at_space(line: &str) -> Option<(&str, &str)> {
    line.trim_ascii().split_once(' ').map(|(name, rest)| (name, rest.trim_ascii()))
}

/// `name: value`
pub fn split_at_colon(line: &str) -> Option<(&str, &str)> {
    line.split_once(':').map(|(name, rest)| (name.trim_ascii(), rest.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_what_is_left_of_a_name() {
        assert_eq!(match_name("node*", "node12"), Some("12"));
        assert_eq!(match_name("node*", "node"), None);
        assert_eq!(match_name("hugepages-*kB", "hugepages-2048kB"), Some("2048"));
        assert_eq!(match_name("*", "eth0"), Some("eth0"));
        assert_eq!(match_name("stats", "stats"), Some(""));
        assert_eq!(match_name("stats", "statistics"), None);
    }

    #[test]
    fn gauges_may_be_below_zero_and_counters_not() {
        let gauge = DeclaredColumn::gauge("temperature", "mC").scaled(10);
        assert_eq!(parse_small_cell(&gauge, "-5\n"), TableCell::Int(-50));
        assert_eq!(parse_small_cell(&DeclaredColumn::counter("a", "1"), "-5\n"), TableCell::Missing);
        assert_eq!(
            parse_small_cell(&DeclaredColumn::key("type"), " x86 pkg\n"),
            TableCell::Text("x86 pkg".into())
        );
        assert_eq!(parse_small_cell(&gauge, ""), TableCell::Missing);
    }
}
