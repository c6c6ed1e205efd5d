//! The output of vmstat(8): a line per interval, in the columns that its head names.
//!
//! Sizes become bytes. Its first line, which holds means since the machine was started, is left out. A log without a head
//! is read by the order of procps' columns, as an assumption: 17, or 18 since procps 4.0.1 counts time in guests.

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

/// What vmstat prints without options; older ones lack the last.
const USUAL: [&str; 18] = [
    "r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo", "in", "cs", "us", "sy", "id", "wa",
    "st", "gu",
];

/// The format, with the columns of its head.
#[derive(Debug, Default)]
pub struct VmstatToolParser {
    columns: Vec<(&'static str, &'static str, i64)>,
    rows: u64,
    /// No head came before the first row.
    assumed: bool,
}

/// The usual columns, where a row without a head has as many.
fn assume_columns(count: usize) -> Result<Vec<(&'static str, &'static str, i64)>, String> {
    let usual = (USUAL.len() - 1..=USUAL.len()).contains(&count);
    let names = USUAL.get(..count).filter(|_| usual).ok_or_else(|| {
        format!("it has {count} columns and no head that names them: without one, vmstat has 17 or 18")
    })?;
    Ok(names.iter().filter_map(|name| COLUMNS.iter().find(|(known, ..)| known == name).copied()).collect())
}

impl VmstatToolParser {
    fn parse_head(&mut self, text: &str) -> LineOutcome {
        let known = |name: &str| COLUMNS.iter().find(|(known, ..)| *known == name).copied();
        match text.split_ascii_whitespace().map(known).collect::<Option<Vec<_>>>() {
            Some(columns) if self.columns.is_empty() || self.columns == columns => {
                (self.columns, self.assumed) = (columns, false);
                LineOutcome::Nothing
            }
            Some(_) => LineOutcome::Unusable("this head names other columns than the first".into()),
            None => LineOutcome::Unusable("this head names columns that are not known".into()),
        }
    }

    fn parse_cells(&mut self, text: &str) -> Result<CellRow, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let settled = !self.columns.is_empty();
        let columns = if settled { self.columns.clone() } else { assume_columns(words.len())? };
        if words.len() != columns.len() {
            let other = if self.assumed { "the first row" } else { "its head" };
            return Err(format!("it has {} columns and {other} {}", words.len(), columns.len()));
        }
        let cell = |(word, (_, _, factor)): (&&str, &(_, _, i64))| {
            let value = word.parse::<i64>().ok().and_then(|value| value.checked_mul(*factor));
            value.map(TableCell::Int).ok_or_else(|| format!("`{word}` is no whole number"))
        };
        let row = words.iter().zip(&columns).map(cell).collect::<Result<CellRow, String>>()?;
        if !settled {
            (self.columns, self.assumed) = (columns, true);
        }
        Ok(row)
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
        let first = "its first row, of means since the machine was started, is left out";
        let assumed = || {
            format!("no head names its columns: taken as the {} of procps in their order", self.columns.len())
        };
        match (self.rows, self.assumed) {
            (0, _) => None,
            (_, false) => Some(first.into()),
            (_, true) => Some(format!("{}; {first}", assumed())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading_parser::text_lines;

    const ROWS: &str = " 1  0      0 100000  1000  50000    0    0     1     2  100  200  1  2 97  0  0\n \
        2  0     10 200000  1000  50000    0    0     1     2  100  200  1  2 97  0  0\n";

    fn parse_lines(text: &str) -> (VmstatToolParser, Vec<LineOutcome>, Vec<CellRow>) {
        let (mut parser, mut rows) = (VmstatToolParser::default(), Vec::new());
        let outcomes = text_lines(text).map(|line| parser.parse_row(line, &mut rows)).collect();
        (parser, outcomes, rows)
    }

    #[test]
    fn without_a_head_columns_are_those_of_procps_in_their_order() {
        let (parser, outcomes, rows) = parse_lines(ROWS);
        assert_eq!(outcomes, [LineOutcome::Nothing, LineOutcome::Used]);
        let names: Vec<String> = parser.columns().into_iter().map(|column| column.name).collect();
        assert_eq!(names, USUAL[..17]);
        assert_eq!(rows[0][2..4], [TableCell::Int(10 << 10), TableCell::Int(200_000 << 10)]);
        assert!(parser.assumed && parser.closing_note().is_some());
        let with_guests: String = ROWS.lines().map(|line| format!("{line} 3\n")).collect();
        let (parser, _, rows) = parse_lines(&with_guests);
        assert_eq!((parser.columns().len(), &rows[0][17]), (18, &TableCell::Int(3)));
    }

    #[test]
    fn other_numbers_of_columns_are_not_guessed() {
        for line in [
            "1 2 3",
            "1 0 0 1 1 1 0 0 1 2 100 200 1 2 97 0",
            &format!("{} 0 2026", ROWS.lines().next().unwrap()),
        ] {
            let (parser, outcomes, rows) = parse_lines(&format!("{line}\n{line}\n"));
            assert!(outcomes.iter().all(|outcome| matches!(outcome, LineOutcome::Unusable(_))), "{line}");
            assert!(rows.is_empty() && parser.columns().is_empty() && parser.closing_note().is_none());
        }
        let (_, outcomes, rows) = parse_lines(&format!("{ROWS}1 2 3\n"));
        assert!(matches!(outcomes[2], LineOutcome::Unusable(_)));
        assert_eq!(rows.len(), 1);
    }

    #[test]
    fn a_head_that_comes_later_names_the_columns_that_it_has() {
        let head = "r b swpd free buff cache si so bi bo in cs us sy id wa st\n";
        let (parser, outcomes, _) = parse_lines(&format!("{ROWS}{head}"));
        assert_eq!((outcomes[2].clone(), parser.assumed), (LineOutcome::Nothing, false));
        let (_, outcomes, _) = parse_lines(&format!("{ROWS}{}", head.replace("buff cache", "inact active")));
        assert!(matches!(outcomes[2], LineOutcome::Unusable(_)), "{outcomes:?}");
    }
}
