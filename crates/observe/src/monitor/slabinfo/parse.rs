//! From the text of `/proc/slabinfo` to rows, a row a line whatever the line holds.

use std::collections::HashMap;

use perflab_model::{Cell, Row};

use super::COLUMNS;
use crate::monitor::line::{Malformed, lines};
use crate::monitor::slab::flag;

/// The columns that are numbers of the line.
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
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    /// A word for each of [`NUMBERS`]; nothing where the line is not made so.
    numbers: Option<[&'a str; NUMBERS.end - NUMBERS.start]>,
}

impl<'a> Line<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        let whole = Line::whole(line);
        // What CONFIG_DEBUG_SLAB appended until 6.7.
        let cut = || Line::whole(line.split_once(" : globalstat")?.0);
        whole.or_else(cut).unwrap_or_else(|| Line { name: name_of_a_cut(line), numbers: None })
    }

    /// `NAME n n n n n : tunables n n n : slabdata n n n`, from its right end: a name may hold anything.
    fn whole(line: &'a str) -> Option<Self> {
        let mut left = line;
        let [_shared_avail, num_slabs, active_slabs] = pop(&mut left)?;
        let [slabdata, colon] = pop(&mut left)?;
        let [_shared_factor, _batch_count, _limit] = pop(&mut left)?;
        let [tunables, other_colon] = pop(&mut left)?;
        let [pages, per_slab, size, num_objs, active_objs] = pop(&mut left)?;
        let name = left.trim_ascii_end();
        let marks = [other_colon, tunables, colon, slabdata] == [":", "tunables", ":", "slabdata"];
        let numbers = Some([active_objs, num_objs, size, per_slab, pages, active_slabs, num_slabs]);
        (marks && !name.is_empty()).then_some(Line { name, numbers })
    }

    pub(super) fn row(&self, ordinal: i64) -> Row {
        let mut row = Row::with_capacity(COLUMNS.len());
        row.extend([Cell::Text(self.name.into()), Cell::Int(ordinal)]);
        let numbers = COLUMNS.get(NUMBERS).unwrap_or_default();
        let words = self.numbers.unwrap_or_default();
        let mut sound = true;
        row.extend(numbers.iter().zip(words).map(|(column, word)| {
            let cell = column.cell(word);
            sound &= cell.is_some();
            cell.unwrap_or(Cell::Missing)
        }));
        row.push(Cell::Text(String::new()));
        if !sound {
            flag(&mut row, "malformed");
        }
        row
    }
}

/// Takes the last words off `text`, the last one first.
fn pop<'a, const WORDS: usize>(text: &mut &'a str) -> Option<[&'a str; WORDS]> {
    let mut words = [""; WORDS];
    for word in &mut words {
        let trimmed = text.trim_ascii_end();
        let start = trimmed.bytes().rposition(|byte| byte == b' ').map_or(0, |space| space + 1);
        (*text, *word) = trimmed.split_at_checked(start)?;
    }
    Some(words)
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
