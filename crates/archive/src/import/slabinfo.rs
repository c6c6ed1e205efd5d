//! `/proc/slabinfo`, version 2, as lkp's monitor and `cat` leave it.
//!
//! Names may hold spaces and repeat within a dump, so a line is read from its marks and from the right,
//! and rows carry an ordinal. What the kernel cannot have counted at one instant is flagged `torn`: more
//! active objects than objects, more active slabs than slabs, more objects than the slabs hold.

use std::collections::HashMap;

use perflab_model::{Cell, Column, Row};

use super::column;
use super::lines::{Line, last_word};
use super::log::{Format, Role};
use super::page_size::{PageSize, Shape, Votes};
use super::took::Read;

const VERSION: &str = "slabinfo - version:";
const TUNABLES: &str = ": tunables";
const SLABDATA: &str = ": slabdata";
/// Numbers between the name and the tunables.
const OBJECTS: usize = 5;
/// All numbers that are kept: those, active slabs, slabs.
const NUMBERS: usize = 7;
/// Names that are remembered from dump to dump.
const NAMES: usize = 100_000;

/// Numbers of a line: active, all, size, objects a slab, pages a slab, active slabs, slabs.
type Numbers = [Option<i64>; NUMBERS];

/// The format, with what it learns of a log.
#[derive(Debug, Default)]
pub(crate) struct Slabinfo {
    page: Option<PageSize>,
    found: Option<u64>,
    votes: Votes,
    tick: u64,
    names: HashMap<String, (u64, i64)>,
}

impl Slabinfo {
    /// The format of a log of a machine whose page size is known, or not.
    pub(crate) fn new(page: Option<PageSize>) -> Self {
        Slabinfo { page, ..Slabinfo::default() }
    }

    fn ordinal(&mut self, name: &str) -> i64 {
        if let Some((tick, ordinal)) = self.names.get_mut(name) {
            *ordinal = if *tick == self.tick { *ordinal + 1 } else { 0 };
            *tick = self.tick;
            return *ordinal;
        }
        if self.names.len() >= NAMES {
            self.names.clear();
        }
        self.names.insert(name.into(), (self.tick, 0));
        0
    }

    fn page(&self) -> Option<u64> {
        self.page.as_ref().map(|page| page.bytes).or(self.found)
    }

    fn contradiction(&self, winner: u64) -> String {
        let told = self.page.as_ref().map(|page| format!("{} ({})", page.bytes, page.source));
        let told = told.or_else(|| self.found.map(|found| format!("{found} (the dumps before it)")));
        format!(
            "the slabs of this dump fit pages of {winner} bytes and not {}: import logs of different machines \
             one by one, each with its --page-size",
            told.unwrap_or_default()
        )
    }
}

impl Format for Slabinfo {
    const SERIES: &'static str = "slabinfo";
    const SOURCE: &'static str = "/proc/slabinfo";

    fn role(&self, text: &str) -> Result<Role, String> {
        if text.starts_with('#') {
            return Ok(Role::Comment);
        }
        match text.strip_prefix(VERSION) {
            None => Ok(Role::Row),
            Some(version) if version.trim_ascii_start().starts_with("2.") => Ok(Role::Head),
            Some(version) => {
                Err(format!("version `{}` of slabinfo is not known: 2.0 and 2.1 are", version.trim_ascii()))
            }
        }
    }

    fn row(&mut self, line: Line<'_>, rows: &mut Vec<Row>) -> Read {
        let (name, numbers) = match parse(line) {
            Ok(parsed) => parsed,
            Err(reason) => return Read::Unusable(reason),
        };
        let shape = shape(&numbers);
        let flag = flag(&numbers, shape, self.page());
        shape.into_iter().for_each(|shape| self.votes.add(shape));
        let ordinal = self.ordinal(name);
        rows.push(row(name, ordinal, &numbers, flag.map_or("", |(flag, _)| flag)));
        flag.map_or(Read::Used, |(flag, why)| Read::Flagged(format!("{flag}: {name}: {why}")))
    }

    fn end(&mut self, _: &mut Vec<Row>) -> Result<(), String> {
        self.tick += 1;
        let winner = std::mem::take(&mut self.votes).winner();
        match (winner, self.page()) {
            (Some(winner), Some(known)) if winner != known => Err(self.contradiction(winner)),
            (winner, _) => {
                self.found = self.found.or(winner);
                Ok(())
            }
        }
    }

    fn columns(&self) -> Vec<Column> {
        column::slabinfo()
    }

    fn page_size(&self) -> Option<u64> {
        self.found
    }
}

/// What stands before and behind `mark`, which begins with the only colons of most lines.
fn split_at<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let colons = text.match_indices(':').filter_map(|(at, _)| text.split_at_checked(at));
    colons.into_iter().find_map(|(left, right)| Some((left, right.strip_prefix(mark)?)))
}

/// Name and numbers of a line; why nothing of it can be used.
fn parse(line: Line<'_>) -> Result<(&str, Numbers), String> {
    let mut numbers = Numbers::default();
    let name = match split_at(line.text, TUNABLES) {
        Some((left, right)) => {
            let name = from_right(left, &mut numbers)?;
            slabs(right, line.whole, &mut numbers);
            name
        }
        None => cut_short(line, &mut numbers)?,
    };
    match numbers.iter().any(Option::is_some) {
        true => Ok((name, numbers)),
        false => Err("no number could be read".into()),
    }
}

/// The five numbers at the right end; the name is what stands before them, spaces and all.
fn from_right<'a>(left: &'a str, numbers: &mut Numbers) -> Result<&'a str, String> {
    let mut rest = left.trim_ascii_end();
    for slot in numbers.iter_mut().take(OBJECTS).rev() {
        let (before, word) = last_word(rest).ok_or("it has fewer than a name and five numbers")?;
        *slot = count(word);
        rest = before;
    }
    if rest.is_empty() { Err("it has no name before its five numbers".into()) } else { Ok(rest) }
}

/// Active slabs and slabs. The last word of a line without an end may be half a number.
fn slabs(right: &str, whole: bool, numbers: &mut Numbers) {
    let Some((_, slabs)) = split_at(right, SLABDATA) else { return };
    let mut words = slabs.split_ascii_whitespace().peekable();
    for slot in numbers.iter_mut().skip(OBJECTS) {
        let word = words.next();
        *slot = word.filter(|_| whole || words.peek().is_some()).and_then(count);
    }
}

/// A line that ends before its tunables: the numbers that are there, from the left, without the last.
fn cut_short<'a>(line: Line<'a>, numbers: &mut Numbers) -> Result<&'a str, String> {
    let text = line.text.split(" :").next().unwrap_or_default();
    let first = text.split_ascii_whitespace().skip(1).find(|word| count(word).is_some());
    let first = first.ok_or("it is no row of slabinfo: no numbers behind a name")?;
    // `first` is a slice of `text`, so its address tells where it stands.
    let at = first.as_ptr() as usize - text.as_ptr() as usize;
    let (name, words) = text.split_at_checked(at).unwrap_or_default();
    let mut words = words.split_ascii_whitespace().peekable();
    for slot in numbers.iter_mut().take(OBJECTS) {
        let word = words.next();
        *slot = word.filter(|_| words.peek().is_some()).and_then(count);
    }
    Ok(name.trim_ascii())
}

fn count(word: &str) -> Option<i64> {
    word.parse().ok().filter(|number| *number >= 0)
}

fn shape(numbers: &Numbers) -> Option<Shape> {
    let [_, _, Some(object), Some(objects), Some(pages), _, _] = *numbers else { return None };
    Some(Shape { object, objects, pages })
}

/// What is wrong with a row, as the flag and in words.
fn flag(numbers: &Numbers, shape: Option<Shape>, page: Option<u64>) -> Option<(&'static str, &'static str)> {
    let [active, all, _, each, _, active_slabs, slabs] = *numbers;
    if numbers.iter().any(Option::is_none) {
        return Some(("malformed", "a number is missing"));
    }
    if let (Some(shape), Some(page)) = (shape, page)
        && !shape.possible(page)
    {
        return Some(("malformed", "its objects do not fit into its pages"));
    }
    if active > all {
        return Some(("torn", "more active objects than objects"));
    }
    if active_slabs > slabs {
        return Some(("torn", "more active slabs than slabs"));
    }
    (all? > slabs?.saturating_mul(each?)).then_some(("torn", "more objects than its slabs hold"))
}

fn row(name: &str, ordinal: i64, numbers: &Numbers, flag: &str) -> Row {
    let mut row = Row::with_capacity(NUMBERS + 3);
    row.push(Cell::Text(name.into()));
    row.push(Cell::Int(ordinal));
    row.extend(numbers.iter().map(|number| number.map_or(Cell::Missing, Cell::Int)));
    row.push(Cell::Text(flag.into()));
    row
}
