//! From the text of `/proc/slabinfo` to rows, a row a line whatever the line holds.

use std::collections::HashMap;

use perflab_model::{Cell, Row};

use super::COLUMNS;
use crate::monitor::line::{Malformed, lines};
use crate::monitor::slab::flag;

/// Numbers between a cache's name and ` : tunables`.
const PER_OBJECT: usize = 5;
/// Where a row's numbers begin and end.
const NUMBERS: std::ops::Range<usize> = 2..9;

pub(in crate::monitor) fn parse(text: &str, rows: &mut Vec<Row>) -> Result<(), Malformed> {
    let first = text.lines().next().unwrap_or_default();
    if !first.starts_with("slabinfo - version: 2.") {
        return Err(Malformed::new(1, "`slabinfo - version: 2.`", "the first line", first));
    }
    let before = rows.len();
    let mut ordinals = HashMap::with_capacity(512);
    rows.extend(caches(text).map(|line| {
        let line = Line::of(line);
        let ordinal = ordinals.entry(line.name).and_modify(|ordinal| *ordinal += 1).or_insert(0);
        line.row(*ordinal)
    }));
    match rows.len() > before {
        true => Ok(()),
        false => Err(Malformed::new(2, "at least one cache", "the file", "")),
    }
}

/// The names in their order, a repeated one as often as it stands there.
pub(in crate::monitor) fn names(text: &str) -> impl Iterator<Item = &str> {
    caches(text).map(|line| Line::of(line).name)
}

/// The lines below the header; the second line, of column names, is a comment.
fn caches(text: &str) -> impl Iterator<Item = &str> {
    let is_header = |number, line: &str| number == 1 || (number == 2 && line.starts_with('#'));
    lines(text).filter(move |(number, line)| !is_header(*number, line)).map(|(_, line)| line)
}

/// A line taken apart.
struct Line<'a> {
    name: &'a str,
    /// The five numbers of objects, and what follows ` : slabdata`; nothing where the line is not made so.
    numbers: Option<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let whole = line.rsplit_once(" : slabdata").and_then(|(left, slabs)| {
            let (name, numbers) = last_words(left.rsplit_once(" : tunables")?.0, PER_OBJECT)?;
            Some(Line { name, numbers: Some((numbers, slabs)) })
        });
        whole.unwrap_or_else(|| Line { name: name_of_a_cut(line), numbers: None })
    }

    fn row(&self, ordinal: i64) -> Row {
        let (objects, slabs) = self.numbers.unwrap_or_default();
        let mut words = objects.split_ascii_whitespace().chain(slabs.split_ascii_whitespace());
        let mut row = Row::with_capacity(COLUMNS.len());
        row.extend([Cell::Text(self.name.into()), Cell::Int(ordinal)]);
        let mut sound = true;
        for column in COLUMNS.get(NUMBERS).unwrap_or_default() {
            let cell = words.next().and_then(|word| column.cell(word));
            sound &= cell.is_some();
            row.push(cell.unwrap_or(Cell::Missing));
        }
        row.push(Cell::Text(String::new()));
        if !sound {
            flag(&mut row, "malformed");
        }
        row
    }
}

/// Everything before the last `count` words, and those words; nothing where no name is left.
fn last_words(text: &str, count: usize) -> Option<(&str, &str)> {
    let mut left = text.trim_end();
    for _ in 0..count {
        left = left.rsplit_once(|c: char| c.is_ascii_whitespace())?.0.trim_end();
    }
    (!left.is_empty()).then(|| (left, text.get(left.len()..).unwrap_or_default()))
}

/// What is left of the name of a line that was cut: everything before its numbers. Which numbers those are is not known.
fn name_of_a_cut(line: &str) -> &str {
    let mut name = line.split_once(" : ").map_or(line, |(left, _)| left).trim();
    while let Some((left, last)) = name.rsplit_once(|c: char| c.is_ascii_whitespace()) {
        if !last.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        name = left.trim_end();
    }
    name
}
