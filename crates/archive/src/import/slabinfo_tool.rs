//! The kernel's slabinfo tool (tools/mm/slabinfo.c) as it prints, with the text of its sizes kept: they
//! are decimal and truncated, so bytes cannot be had from them.

use perflab_model::{Cell, Column, Row};

use super::column;
use super::format::{Format, Role};
use super::lines::{Line, last_word};
use super::took::Read;

/// The format.
#[derive(Debug, Default)]
pub(crate) struct SlabinfoTool;

impl Format for SlabinfoTool {
    const SERIES: &'static str = "slabinfo-tool";
    const SOURCE: &'static str = "slabinfo (the kernel's tool)";

    fn role(&self, text: &str) -> Result<Role, String> {
        if !is_head(text) {
            return Ok(Role::Row);
        }
        match text.split_ascii_whitespace().nth(3) {
            Some("Space") => Ok(Role::Head),
            other => Err(format!(
                "the fourth column is `{}` and not `Space`: options of the slabinfo tool that change its \
                 columns (-L, -D, -B with -L) are not read",
                other.unwrap_or_default()
            )),
        }
    }

    fn row(&mut self, line: Line<'_>, rows: &mut Vec<Row>) -> Read {
        match parse(line) {
            Ok(row) => {
                let read = judge(&row);
                rows.push(row);
                read
            }
            Err(reason) => Read::Unusable(reason),
        }
    }

    fn columns(&self) -> Vec<Column> {
        column::slabinfo_tool()
    }
}

/// Whether this is the tool's line of column names.
pub(crate) fn is_head(text: &str) -> bool {
    text.strip_prefix("Name ").is_some_and(|rest| rest.trim_ascii_start().starts_with("Objects"))
}

/// `NAME objects size space slabs/partial/cpu o/s order %free %efficiency [flags]`: the word with two
/// slashes is the mark from which the others are counted.
fn parse(line: Line<'_>) -> Result<Row, String> {
    let text = line.text;
    let mark = text.find('/').and_then(|at| around(text, at)).ok_or("it has no word of the form n/n/n")?;
    let (left, slabs, right) = mark;
    const FEW: &str = "it has fewer than a name and three words before n/n/n";
    let (left, space) = last_word(left).ok_or(FEW)?;
    let (left, size) = last_word(left).ok_or(FEW)?;
    let (name, objects) = last_word(left).ok_or(FEW)?;
    if name.is_empty() {
        return Err("it has no name".into());
    }
    let mut row = Row::with_capacity(12);
    row.extend([Cell::Text(name.into()), int(objects), int(size), Cell::Text(space.into())]);
    row.extend(three(slabs));
    let mut words = right.split_ascii_whitespace().peekable();
    for _ in 0..4 {
        let word = words.next().filter(|_| line.whole || words.peek().is_some());
        row.push(word.map_or(Cell::Missing, int));
    }
    row.push(Cell::Text(words.next().unwrap_or_default().into()));
    Ok(row)
}

/// What stands before, at and behind the word that holds byte `at`.
fn around(text: &str, at: usize) -> Option<(&str, &str, &str)> {
    let begin = text.get(..at)?.rfind([' ', '\t']).map_or(0, |space| space + 1);
    let rest = text.get(begin..)?;
    let end = rest.find([' ', '\t']).unwrap_or(rest.len());
    let (word, right) = rest.split_at_checked(end)?;
    (word.matches('/').count() == 2).then_some((text.get(..begin)?.trim_ascii_end(), word, right))
}

/// `12/0/40`
fn three(text: &str) -> [Cell; 3] {
    let mut words = text.split('/');
    [0, 1, 2].map(|_| words.next().map_or(Cell::Missing, int))
}

fn int(word: &str) -> Cell {
    word.parse().map_or(Cell::Missing, Cell::Int)
}

/// Efficiency beyond 100 %: objects and slabs were read at two moments (the tool opens a file for each).
fn judge(row: &Row) -> Read {
    let name = || if let Some(Cell::Text(name)) = row.first() { name.as_str() } else { "" };
    if row.contains(&Cell::Missing) {
        return Read::Flagged(format!("malformed: {}: a number is missing", name()));
    }
    match row.get(10) {
        Some(Cell::Int(percent)) if *percent > 100 => {
            Read::Flagged(format!("torn: {}: an efficiency of {percent} %", name()))
        }
        _ => Read::Used,
    }
}
