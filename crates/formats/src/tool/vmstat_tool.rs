//! The output of vmstat(8): a line per interval, in the columns that its head names.
//!
//! Sizes become bytes. Its first line, which holds means since the machine was started, is left out.

use perflab_model::{CellRow, ColumnSpec, TableCell};

use crate::reading_parser::{LineOutcome, LineRole, ReadingParser, TextLine};

/// Columns: name, unit, and what makes its numbers of the tool's.
const COLUMNS: &[(&str, &str, i64)] = &[
    ("r", "tasks", 1),
    ("b", "tasks", 1),
    ("swpd", "bytes", 1024),
    ("free", "bytes", 1024),
    ("buff", "bytes", 1024),
    ("cache", "bytes", 1024),
    ("inact", "bytes", 1024),
    ("active", "bytes", 1024),
    ("si", "bytes/s", 1024),
    ("so", "bytes/s", 1024),
    ("bi", "bytes/s", 1024),
    ("bo", "bytes/s", 1024),
    ("in", "interrupts/s", 1),
    ("cs", "switches/s", 1),
    ("us", "%", 1),
    ("sy", "%", 1),
    ("id", "%", 1),
    ("wa", "%", 1),
    ("st", "%", 1),
    ("gu", "%", 1),
];

/// The format, with the columns of its head.
#[derive(Debug, Default)]
pub struct VmstatToolParser {
    columns: Vec<(&'static str, &'static str, i64)>,
    rows: u64,
}

impl VmstatToolParser {
    fn parse_head(&mut self, text: &str) -> LineOutcome {
        let known = |name: &str| COLUMNS.iter().find(|(known, ..)| *known == name).copied();
        match text.split_ascii_whitespace().map(known).collect::<Option<Vec<_>>>() {
            Some(columns) if self.columns.is_empty() || self.columns == columns => {
                self.columns = columns;
                LineOutcome::Nothing
            }
            Some(_) => LineOutcome::Unusable("this head names other columns than the first".into()),
            None => LineOutcome::Unusable("this head names columns that are not known".into()),
        }
    }

    fn parse_cells(&self, text: &str) -> Result<CellRow, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if words.len() != self.columns.len() {
            return Err(format!("it has {} columns and its head {}", words.len(), self.columns.len()));
        }
        let cell = |(word, (_, _, factor)): (&&str, &(_, _, i64))| {
            let value = word.parse::<i64>().ok().and_then(|value| value.checked_mul(*factor));
            value.map(TableCell::Int).ok_or_else(|| format!("`{word}` is no whole number"))
        };
        words.iter().zip(&self.columns).map(cell).collect()
    }
}

impl ReadingParser for VmstatToolParser {
    fn series(&self) -> &'static str {
        "vmstat-tool"
    }

    fn source(&self) -> &'static str {
        "vmstat"
    }

    fn may_be_empty(&self) -> bool {
        true
    }

    fn line_role(&self, text: &str) -> Result<LineRole, String> {
        let banner = text.trim_start().starts_with("procs");
        Ok(if banner { LineRole::Comment } else { LineRole::HeadRow })
    }

    fn parse_row(&mut self, line: TextLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        let text = line.text.trim();
        if text.starts_with('r') {
            return self.parse_head(text);
        }
        if !line.whole {
            return LineOutcome::Unusable("the line is cut off".into());
        }
        let row = match self.parse_cells(text) {
            Ok(row) => row,
            Err(reason) => return LineOutcome::Unusable(reason),
        };
        self.rows += 1;
        if self.rows == 1 {
            return LineOutcome::Nothing;
        }
        rows.push(row);
        LineOutcome::Used
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        self.columns.iter().map(|(name, unit, _)| ColumnSpec::gauge(name, unit)).collect()
    }

    fn closing_note(&self) -> Option<String> {
        (self.rows > 0).then(|| "its first row, of means since the machine was started, is left out".into())
    }
}
