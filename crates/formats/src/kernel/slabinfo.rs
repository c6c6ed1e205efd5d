//! `/proc/slabinfo`, version 2: one row a cache.
//!
//! `objsize` is the padded size of an object, `num_objs` the capacity; SLUB counts objects that are free in a CPU's
//! own slab as active, and reports `active_slabs` equal to `num_slabs` (mm/slub.c, `get_slabinfo`). Slab bytes are
//! `num_slabs * pagesperslab * page size` (series `slab-caches`, fact `memory.page_size`). A name may appear on
//! several rows of a tick, distinguished by `ordinal`, and may hold spaces, so a line is read from its right end.
//!
//! No row is left out. What is wrong with one is in `flags`:
//!
//! | flag | meaning |
//! |---|---|
//! | `torn` | the counts contradict each other, in each of a few readings within the tick |
//! | `approximate` | the kernel may have estimated `active_objs` (more than 10,000 partial slabs on a node) |
//! | `malformed` | the line was cut or holds something that is not a number; what could not be read is missing |
//!
//! Fewer objects than `num_slabs * objperslab`, twice the same, are no contradiction: some slabs are of a lower
//! order.

use std::collections::HashMap;

use perflab_model::{CellRow, TableCell};

use crate::column::{DeclaredColumn, column_index, count_cell};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::slab_counts::{CountConsistency, SlabCounts};
use crate::kernel::sysfs_slab::WITHOUT_ROOT;
use crate::reading_parser::{LineRole, MalformedLine, TextLine, text_lines};

/// The file.
pub const SLABINFO: KernelFile = KernelFile {
    name: "slabinfo",
    source: "/proc/slabinfo",
    about: "objects and slabs of every cache of the kernel's slab allocator",
    needs: "root",
    without: WITHOUT_ROOT,
    columns: COLUMNS,
    layout: KernelFileLayout::Judged,
};

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::key("cache"),
    DeclaredColumn::gauge("ordinal", "1"),
    DeclaredColumn::gauge("active_objs", "objects"),
    DeclaredColumn::gauge("num_objs", "objects"),
    DeclaredColumn::gauge("objsize", "bytes"),
    DeclaredColumn::gauge("objperslab", "objects"),
    DeclaredColumn::gauge("pagesperslab", "pages"),
    DeclaredColumn::gauge("active_slabs", "slabs"),
    DeclaredColumn::gauge("num_slabs", "slabs"),
    DeclaredColumn::key("flags"),
];

const CACHE: usize = column_index(COLUMNS, "cache");

const ORDINAL: usize = column_index(COLUMNS, "ordinal");

const ACTIVE_OBJS: usize = column_index(COLUMNS, "active_objs");

const NUM_OBJS: usize = column_index(COLUMNS, "num_objs");

const OBJPERSLAB: usize = column_index(COLUMNS, "objperslab");

const ACTIVE_SLABS: usize = column_index(COLUMNS, "active_slabs");

const NUM_SLABS: usize = column_index(COLUMNS, "num_slabs");

const FLAGS: usize = column_index(COLUMNS, "flags");

/// Numbers between the name and the tunables.
const OBJECT_NUMBERS: usize = 5;

/// All numbers that are kept: those, active slabs, slabs.
const NUMBERS: usize = FLAGS - ACTIVE_OBJS;

/// The numbers of a line in the order of the columns; nothing where one was cut or is none.
pub type SlabinfoNumbers = [Option<u64>; NUMBERS];

/// A line taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabinfoLine<'a> {
    /// The cache.
    pub name: &'a str,
    /// What it counts.
    pub numbers: SlabinfoNumbers,
}

impl<'a> SlabinfoLine<'a> {
    /// Takes a line apart. Of one that breaks off, the numbers that are there, without the last: it may have lost digits.
    ///
    /// # Errors
    /// Why nothing of it can be used.
    pub fn parse(line: TextLine<'a>) -> Result<Self, String> {
        if let Some(parsed) = SlabinfoLine::parse_usual(line.text) {
            return Ok(parsed);
        }
        let mut numbers = SlabinfoNumbers::default();
        let name = match split_at_mark(line.text, TUNABLES) {
            Some((left, right)) => {
                let name = parse_numbers_from_right(left, &mut numbers)?;
                parse_slab_numbers(right, line.whole, &mut numbers);
                name
            }
            None => parse_cut_line(line, &mut numbers)?,
        };
        match numbers.iter().any(Option::is_some) {
            true => Ok(SlabinfoLine { name, numbers }),
            false => Err("no number could be read".into()),
        }
    }

    /// `NAME n n n n n : tunables n n n : slabdata n n n`, from its right end: a name may hold anything.
    fn parse_usual(line: &'a str) -> Option<Self> {
        let mut left = line;
        let [_shared_avail, num_slabs, active_slabs] = pop_words(&mut left)?;
        let [slabdata, colon] = pop_words(&mut left)?;
        let [_shared_factor, _batch_count, _limit] = pop_words(&mut left)?;
        let [tunables, other_colon] = pop_words(&mut left)?;
        let [pages, per_slab, size, num_objs, active_objs] = pop_words(&mut left)?;
        let name = left.trim_ascii_end();
        let is_usual = [other_colon, tunables, colon, slabdata] == [":", "tunables", ":", "slabdata"];
        let words = [active_objs, num_objs, size, per_slab, pages, active_slabs, num_slabs];
        let numbers = words.map(|word| word.parse().ok());
        (is_usual && !name.is_empty()).then_some(SlabinfoLine { name, numbers })
    }

    /// The row, flagged where a number is missing.
    pub fn to_row(&self, ordinal: i64) -> CellRow {
        let flags = if self.numbers.iter().all(Option::is_some) { "" } else { "malformed" };
        self.to_flagged_row(ordinal, flags)
    }

    fn to_flagged_row(self, ordinal: i64, flags: &str) -> CellRow {
        let mut row = CellRow::with_capacity(COLUMNS.len());
        row.extend([TableCell::Text(self.name.into()), TableCell::Int(ordinal)]);
        row.extend(self.numbers.map(count_cell));
        row.push(TableCell::Text(flags.into()));
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

const TUNABLES: &str = ": tunables";

const SLABDATA: &str = ": slabdata";

/// What stands before and behind `mark`, which begins with the only colons of most lines.
fn split_at_mark<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let mut colons = text.match_indices(':').filter_map(|(at, _)| text.split_at_checked(at));
    colons.find_map(|(left, right)| Some((left, right.strip_prefix(mark)?)))
}

/// The five numbers at the right end; the name is what stands before them, spaces and all.
fn parse_numbers_from_right<'a>(left: &'a str, numbers: &mut SlabinfoNumbers) -> Result<&'a str, String> {
    let mut rest = left.trim_ascii_end();
    for slot in numbers.iter_mut().take(OBJECT_NUMBERS).rev() {
        let [word] = pop_words(&mut rest).ok_or("it has fewer than a name and five numbers")?;
        if word.is_empty() {
            return Err("it has fewer than a name and five numbers".into());
        }
        *slot = word.parse().ok();
    }
    match rest.trim_ascii() {
        "" => Err("it has no name before its five numbers".into()),
        name => Ok(name),
    }
}

/// Active slabs and slabs. The last word of a line without an end may be half a number.
fn parse_slab_numbers(right: &str, whole: bool, numbers: &mut SlabinfoNumbers) {
    let Some((_, slabs)) = split_at_mark(right, SLABDATA) else { return };
    let mut words = slabs.split_ascii_whitespace().peekable();
    for slot in numbers.iter_mut().skip(OBJECT_NUMBERS) {
        let word = words.next();
        *slot = word.filter(|_| whole || words.peek().is_some()).and_then(|word| word.parse().ok());
    }
}

/// A line that ends before its tunables: the numbers that are there, from the left, without the last.
fn parse_cut_line<'a>(line: TextLine<'a>, numbers: &mut SlabinfoNumbers) -> Result<&'a str, String> {
    let text = line.text.split(" :").next().unwrap_or_default();
    let (name, words) =
        split_at_first_number(text).ok_or("it is no row of slabinfo: no numbers behind a name")?;
    let mut words = words.split_ascii_whitespace().peekable();
    for slot in numbers.iter_mut().take(OBJECT_NUMBERS) {
        let word = words.next();
        *slot = word.filter(|_| words.peek().is_some()).and_then(|word| word.parse().ok());
    }
    Ok(name.trim_ascii())
}

/// What stands before the first number behind another word, and the text from there on.
fn split_at_first_number(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for word in text.split([' ', '\t']) {
        if at > 0 && word.parse::<u64>().is_ok() {
            return text.split_at_checked(at);
        }
        at += word.len() + 1;
    }
    None
}

const VERSION: &str = "slabinfo - version:";

/// What a line of slabinfo is: the version begins it, the names of its columns are a comment.
///
/// # Errors
/// It is of another version.
pub fn slabinfo_role(text: &str) -> Result<LineRole, String> {
    match text.strip_prefix(VERSION) {
        None if text.starts_with('#') && !text.contains(" : slabdata ") => Ok(LineRole::Comment),
        None if text.starts_with("# name ") => Ok(LineRole::Comment),
        None => Ok(LineRole::Row),
        Some(version) if version.trim_ascii_start().starts_with("2.") => Ok(LineRole::Head),
        Some(version) => {
            Err(format!("version `{}` of slabinfo is not known: 2.0 and 2.1 are", version.trim_ascii()))
        }
    }
}

/// Parses the file as it is now, and appends its rows, of which none is judged.
///
/// # Errors
/// The first line that is not understood.
pub fn parse_slabinfo(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    let first = text.lines().next().unwrap_or_default();
    if !slabinfo_role(first).is_ok_and(LineRole::is_head) {
        return Err(MalformedLine::new(1, "`slabinfo - version: 2.`", "the first line", first));
    }
    let before = rows.len();
    let mut ordinals = HashMap::with_capacity(512);
    for line in cache_lines(text) {
        let malformed = |description| MalformedLine { line: line.number as usize, description };
        let parsed = SlabinfoLine::parse(line).map_err(malformed)?;
        let ordinal = ordinals.entry(parsed.name).and_modify(|ordinal| *ordinal += 1).or_insert(0);
        rows.push(parsed.to_row(*ordinal));
    }
    match rows.len() > before {
        true => Ok(()),
        false => Err(MalformedLine::new(2, "at least one cache", "the file", "")),
    }
}

/// The names in their order, a repeated one as often as it occurs.
pub fn slabinfo_names(text: &str) -> impl Iterator<Item = &str> {
    cache_lines(text).filter_map(|line| Some(SlabinfoLine::parse(line).ok()?.name))
}

fn cache_lines(text: &str) -> impl Iterator<Item = TextLine<'_>> {
    text_lines(text).filter(|line| slabinfo_role(line.text).is_ok_and(LineRole::is_row))
}

/// What a row of slabinfo says.
#[derive(Debug, Clone, Copy)]
pub struct SlabinfoRow<'a>(pub &'a CellRow);

impl<'a> SlabinfoRow<'a> {
    /// The cache.
    pub fn cache(self) -> Option<&'a str> {
        match self.0.get(CACHE)? {
            TableCell::Text(name) => Some(name),
            _ => None,
        }
    }

    /// Which of the rows of that name it is.
    pub fn ordinal(self) -> Option<i64> {
        match self.0.get(ORDINAL)? {
            TableCell::Int(ordinal) => Some(*ordinal),
            _ => None,
        }
    }

    /// Whether it is the same cache as another row's.
    pub fn is_same_cache(self, other: &CellRow) -> bool {
        self.0.get(..ACTIVE_OBJS) == other.get(..ACTIVE_OBJS)
    }

    /// Its counts, where they are numbers.
    pub fn counts(self) -> Option<SlabCounts> {
        Some(SlabCounts {
            in_use: self.count(ACTIVE_OBJS)?,
            objects: self.count(NUM_OBJS)?,
            per_slab: self.count(OBJPERSLAB)?,
            active_slabs: Some(self.count(ACTIVE_SLABS)?),
            slabs: self.count(NUM_SLABS)?,
        })
    }

    /// What its counts say about each other. A row that was not understood is flagged already, and reading it again would not help.
    /// A number that does not fit is a count below zero: the kernel subtracts two that it did not read at once.
    pub fn consistency(self) -> CountConsistency {
        let is_understood = matches!(self.0.get(FLAGS), Some(TableCell::Text(flags)) if flags.is_empty());
        match self.counts() {
            _ if !is_understood => CountConsistency::Sound,
            Some(counts) => counts.consistency(),
            None => CountConsistency::Torn("a count below zero"),
        }
    }

    fn count(self, index: usize) -> Option<u64> {
        match self.0.get(index)? {
            TableCell::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_row_lines(text: &str) -> Vec<String> {
        let mut rows = Vec::new();
        parse_slabinfo(text, &mut rows).unwrap();
        rows.iter().map(|row| format!("{row:?}")).collect()
    }

    const HEADER: &str = "slabinfo - version: 2.1\n# name <active_objs>\n";

    #[test]
    fn a_line_that_was_cut_keeps_the_numbers_before_its_last() {
        let missing = ["Missing"; 7];
        for (cut, numbers) in [
            ("dentry 12 20 192", vec!["Int(12)", "Int(20)"]),
            ("dentry 12 20 192 21 1 : tunab", vec!["Int(12)", "Int(20)", "Int(192)", "Int(21)"]),
            ("dentry 1 2 3 4 5 : tunables 0", vec!["Int(1)", "Int(2)", "Int(3)", "Int(4)", "Int(5)"]),
            ("  dentry   1 2", vec!["Int(1)"]),
        ] {
            let row = parse_row_lines(&format!("{HEADER}{cut}\n")).concat();
            let cells = [&numbers[..], &missing[numbers.len()..]].concat().join(", ");
            assert_eq!(row, format!("[Text(\"dentry\"), Int(0), {cells}, Text(\"malformed\")]"));
        }
    }

    #[test]
    fn a_line_without_numbers_is_no_row() {
        for (line, reason) in [
            ("dentry", "it is no row of slabinfo: no numbers behind a name"),
            ("dentry 1", "no number could be read"),
            ("1 2 3 4 5 : tunables 0 0 0", "it has no name before its five numbers"),
        ] {
            let error = parse_slabinfo(&format!("{HEADER}{line}\n"), &mut Vec::new()).unwrap_err();
            assert_eq!((error.line, error.description.as_str()), (3, reason), "{line}");
        }
    }

    #[test]
    fn a_word_that_is_no_number_is_missing_and_the_rest_of_the_row_stays() {
        let row =
            parse_row_lines(&format!("{HEADER}a 1 2 oops 4 5 : tunables 0 0 0 : slabdata 6 7 0\n")).concat();
        assert_eq!(
            row,
            "[Text(\"a\"), Int(0), Int(1), Int(2), Missing, Int(4), Int(5), Int(6), Int(7), Text(\"malformed\")]"
        );
    }

    #[test]
    fn what_the_debugging_slab_allocator_appended_is_left_out() {
        let more = ": globalstat 1 2 3 4 5 6 7 8 9 : cpustat 1 2 3 4";
        let row =
            parse_row_lines(&format!("{HEADER}a b 1 2 3 4 5 : tunables 120 60 8 : slabdata 6 7 0 {more}\n"))
                .concat();
        let numbers = "Int(1), Int(2), Int(3), Int(4), Int(5), Int(6), Int(7)";
        assert_eq!(row, format!("[Text(\"a b\"), Int(0), {numbers}, Text(\"\")]"));
    }

    #[test]
    fn other_versions_and_texts_without_caches_are_errors_with_their_line() {
        let error = |text: &str| {
            let error = parse_slabinfo(text, &mut Vec::new()).unwrap_err();
            format!("line {}: {}", error.line, error.description)
        };
        let version = "`slabinfo - version: 2.` was expected for the first line, found";
        assert_eq!(error(""), format!("line 1: {version} ``"));
        assert_eq!(
            error("slabinfo - version: 1.1\n"),
            format!("line 1: {version} `slabinfo - version: 1.1`")
        );
        assert_eq!(error(HEADER), "line 2: at least one cache was expected for the file, found ``");
    }

    #[test]
    fn only_the_second_line_is_a_comment() {
        assert_eq!(
            parse_row_lines(&format!("{HEADER}# odd 1 2 3 4 5 : tunables 0 0 0 : slabdata 6 7 0\n")).len(),
            1
        );
    }

    proptest! {
        #[test]
        fn a_cache_survives_being_written_and_read(name in "[a-zA-Z:][a-zA-Z0-9_ :()-]{0,20}[a-z0-9)]", numbers in any::<[u32; 7]>()) {
            let [a, b, c, d, e, f, g] = numbers;
            let line = format!("{name} {a} {b} {c} {d} {e} : tunables 0 0 0 : slabdata {f} {g} 0");
            let mut rows = Vec::new();
            prop_assert_eq!(parse_slabinfo(&format!("{HEADER}{line}\n"), &mut rows), Ok(()));
            let mut expected = vec![TableCell::Text(name), TableCell::Int(0)];
            expected.extend(numbers.map(|number| TableCell::Int(i64::from(number))));
            expected.push(TableCell::Text(String::new()));
            prop_assert_eq!(rows, vec![expected]);
        }
    }
}
