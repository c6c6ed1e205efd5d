//! From the text of `/proc/slabinfo` to rows, a row a line whatever the line holds.

use std::collections::HashMap;

use perflab_model::{CellRow, TableCell};

use super::COLUMNS;
use crate::monitor::line::{MalformedLine, numbered_lines};
use crate::monitor::slab::add_row_flag;

/// The columns that are numbers of the line.
const NUMBERS: std::ops::Range<usize> = 2..9;

pub(in crate::monitor) fn parse_slabinfo(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    let first = text.lines().next().unwrap_or_default();
    if !first.starts_with("slabinfo - version: 2.") {
        return Err(MalformedLine::new(1, "`slabinfo - version: 2.`", "the first line", first));
    }
    let before = rows.len();
    let mut ordinals = HashMap::with_capacity(512);
    rows.extend(cache_lines(text).map(|line| {
        let line = SlabinfoLine::parse(line);
        let ordinal = ordinals.entry(line.name).and_modify(|ordinal| *ordinal += 1).or_insert(0);
        line.to_row(*ordinal)
    }));
    match rows.len() > before {
        true => Ok(()),
        false => Err(MalformedLine::new(2, "at least one cache", "the file", "")),
    }
}

/// The names in their order, a repeated one as often as it stands there.
pub(in crate::monitor) fn slabinfo_names(text: &str) -> impl Iterator<Item = &str> {
    cache_lines(text).map(|line| SlabinfoLine::parse(line).name)
}

/// The lines below the header; the second line, of column names, is a comment.
fn cache_lines(text: &str) -> impl Iterator<Item = &str> {
    let is_header = |number, line: &str| number == 1 || (number == 2 && line.starts_with('#'));
    numbered_lines(text).filter(move |(number, line)| !is_header(*number, line)).map(|(_, line)| line)
}

/// A line taken apart.
pub(super) struct SlabinfoLine<'a> {
    pub(super) name: &'a str,
    /// A word for each of [`NUMBERS`]; nothing where the line is not made so.
    numbers: Option<[&'a str; NUMBERS.end - NUMBERS.start]>,
}

impl<'a> SlabinfoLine<'a> {
    pub(super) fn parse(line: &'a str) -> Self {
        let whole = SlabinfoLine::parse_whole(line);
        // What CONFIG_DEBUG_SLAB appended until 6.7.
        let cut = || SlabinfoLine::parse_whole(line.split_once(" : globalstat")?.0);
        whole.or_else(cut).unwrap_or_else(|| SlabinfoLine { name: name_of_cut_line(line), numbers: None })
    }

    /// `NAME n n n n n : tunables n n n : slabdata n n n`, from its right end: a name may hold anything.
    fn parse_whole(line: &'a str) -> Option<Self> {
        let mut left = line;
        let [_shared_avail, num_slabs, active_slabs] = pop_words(&mut left)?;
        let [slabdata, colon] = pop_words(&mut left)?;
        let [_shared_factor, _batch_count, _limit] = pop_words(&mut left)?;
        let [tunables, other_colon] = pop_words(&mut left)?;
        let [pages, per_slab, size, num_objs, active_objs] = pop_words(&mut left)?;
        let name = left.trim_ascii_end();
        let marks = [other_colon, tunables, colon, slabdata] == [":", "tunables", ":", "slabdata"];
        let numbers = Some([active_objs, num_objs, size, per_slab, pages, active_slabs, num_slabs]);
        (marks && !name.is_empty()).then_some(SlabinfoLine { name, numbers })
    }

    pub(super) fn to_row(&self, ordinal: i64) -> CellRow {
        let mut row = CellRow::with_capacity(COLUMNS.len());
        row.extend([TableCell::Text(self.name.into()), TableCell::Int(ordinal)]);
        let numbers = COLUMNS.get(NUMBERS).unwrap_or_default();
        let words = self.numbers.unwrap_or_default();
        let mut sound = true;
        row.extend(numbers.iter().zip(words).map(|(column, word)| {
            let cell = column.parse_cell(word);
            sound &= cell.is_some();
            cell.unwrap_or(TableCell::Missing)
        }));
        row.push(TableCell::Text(String::new()));
        if !sound {
            add_row_flag(&mut row, "malformed");
        }
        row
    }
}

/// Takes the last words off `text`, the last one first.
fn pop_words<'a, const WORDS: usize>(text: &mut &'a str) -> Option<[&'a str; WORDS]> {
    let mut words = [""; WORDS];
    for word in &mut words {
        let trimmed = text.trim_ascii_end();
        let start = trimmed.bytes().rposition(|byte| byte == b' ').map_or(0, |space| space + 1);
        (*text, *word) = trimmed.split_at_checked(start)?;
    }
    Some(words)
}

/// What is left of the name of a line that was cut: everything before its numbers. Which numbers those are is not known.
fn name_of_cut_line(line: &str) -> &str {
    let mut name = line.split_once(" : ").map_or(line, |(left, _)| left).trim();
    while let Some((left, last)) = name.rsplit_once(|c: char| c.is_ascii_whitespace()) {
        if !last.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        name = left.trim_end();
    }
    name
}
