//! `/proc/slabinfo`, version 2, as lkp's monitor and `cat` leave it.
//!
//! Names may hold spaces and repeat within a dump, so a line is read from its marks and from the right,
//! and rows carry an ordinal. What the kernel cannot have counted at one instant is flagged `torn`, as the
//! sampler does (`observe`), which can read again where a log cannot.

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

/// Partial slabs that every kernel counts one by one (MAX_PARTIAL_TO_SCAN).
const COUNTED: i64 = 10_000;
/// The kernel that began to estimate.
const ESTIMATES: (u32, u32) = (6, 10);

/// A flag, and why.
type Flag = (&'static str, &'static str);

/// The format, with what it learns of a log.
#[derive(Debug)]
pub(crate) struct Slabinfo {
    page: Option<PageSize>,
    estimates: bool,
    found: Option<u64>,
    votes: Votes,
    tick: u64,
    names: HashMap<String, Namesakes>,
    seen: usize,
}

/// The rows of one name.
#[derive(Debug, Default)]
struct Namesakes {
    /// The dump in which it stood last, and how often so far.
    tick: u64,
    given: usize,
    known: Vec<Known>,
}

/// What is known of one cache from the dumps before.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    counts: [Option<i64>; 2],
    /// Whether some of its slabs are of a lower order and hold fewer objects: it was short by the same in
    /// two dumps one after the other, which torn counts are not.
    falls_back: bool,
}

impl Namesakes {
    /// The number of the next row of this name in the dump `tick`, and what is known of it now.
    fn next(&mut self, tick: u64, numbers: &Numbers, seen: &mut usize) -> (i64, Known) {
        let ordinal = if self.tick == tick { self.given } else { 0 };
        (self.tick, self.given) = (tick, ordinal + 1);
        if self.known.len() <= ordinal {
            *seen += 1;
            self.known.push(Known::default());
        }
        let slot = self.known.get_mut(ordinal);
        let known = slot.map_or_else(Known::default, |known| {
            *known = known.next(numbers);
            *known
        });
        (i64::try_from(ordinal).unwrap_or(i64::MAX), known)
    }
}

impl Known {
    fn next(self, numbers: &Numbers) -> Self {
        let [_, all, _, each, _, _, slabs] = *numbers;
        let full = slabs.zip(each).map(|(slabs, each)| slabs.saturating_mul(each));
        let counts = [all, slabs];
        let short = all.zip(full).is_some_and(|(all, full)| all < full);
        Known { counts, falls_back: self.falls_back || (short && counts == self.counts) }
    }
}

impl Slabinfo {
    /// The format of a log of a machine whose page size and kernel are known, or not; a kernel that does
    /// not say its version is taken for a new one.
    pub(crate) fn new(page: Option<PageSize>, kernel: Option<&str>) -> Self {
        Slabinfo {
            page,
            estimates: kernel.and_then(version).is_none_or(|version| version >= ESTIMATES),
            found: None,
            votes: Votes::default(),
            tick: 1,
            names: HashMap::new(),
            seen: 0,
        }
    }

    /// The row's number among those of its name in this dump, and what is known of it.
    fn know(&mut self, name: &str, numbers: &Numbers) -> (i64, Known) {
        if self.seen >= NAMES {
            (self.seen, self.names) = (0, HashMap::new());
        }
        if let Some(rows) = self.names.get_mut(name) {
            return rows.next(self.tick, numbers, &mut self.seen);
        }
        let mut rows = Namesakes::default();
        let first = rows.next(self.tick, numbers, &mut self.seen);
        self.names.insert(name.into(), rows);
        first
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
        shape(&numbers).into_iter().for_each(|shape| self.votes.add(shape));
        let (ordinal, known) = self.know(name, &numbers);
        let broken = malformed(&numbers, self.page());
        let torn = if broken.is_none() { torn(&numbers, known) } else { None };
        let estimate = if self.estimates { approximate(&numbers) } else { None };
        let flags = [broken, torn, estimate].into_iter().flatten();
        let (flag, why) =
            flags.reduce(|first, (flag, _)| (joined(first.0, flag), first.1)).unwrap_or_default();
        rows.push(row(name, ordinal, &numbers, flag));
        if flag.is_empty() { Read::Used } else { Read::Flagged(format!("{flag}: {name}: {why}")) }
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

/// What is wrong with the numbers, as the flag and in words.
fn malformed(numbers: &Numbers, page: Option<u64>) -> Option<Flag> {
    if numbers.iter().any(Option::is_none) {
        return Some(("malformed", "a number is missing"));
    }
    let denied = shape(numbers).zip(page).is_some_and(|(shape, page)| !shape.possible(page));
    denied.then_some(("malformed", "its objects do not fit into its pages"))
}

/// Counts that cannot all have been true at once, or nearly so (see [`Known::falls_back`]).
fn torn(numbers: &Numbers, known: Known) -> Option<Flag> {
    let [Some(active), Some(all), _, Some(each), _, Some(active_slabs), Some(slabs)] = *numbers else {
        return None;
    };
    let why = match slabs.saturating_mul(each) {
        _ if active > all => "more active objects than objects",
        _ if active_slabs > slabs => "more active slabs than slabs",
        full if all > full => "more objects than its slabs hold",
        _ if all < slabs => "more slabs than objects",
        full if all < full && !known.falls_back => {
            "fewer objects than its slabs hold, and not twice the same"
        }
        _ => return None,
    };
    Some(("torn", why))
}

/// Since 6.10 the kernel looks at 10,000 slabs of a long partial list and scales up (mm/slub.c,
/// `count_partial_free_approx`). How long it was no log says; that it may have been, the counts do.
fn approximate(numbers: &Numbers) -> Option<Flag> {
    let [Some(active), Some(all), .., Some(slabs)] = *numbers else { return None };
    let may = slabs > COUNTED && all.saturating_sub(active) > COUNTED;
    may.then_some(("approximate", "more than 10,000 of its slabs may have been partial"))
}

/// The only flags that come together.
fn joined(first: &'static str, second: &'static str) -> &'static str {
    match (first, second) {
        ("torn", "approximate") => "torn,approximate",
        ("malformed", "approximate") => "malformed,approximate",
        _ => first,
    }
}

/// `6.18.44-fc-v445`
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn row(name: &str, ordinal: i64, numbers: &Numbers, flag: &str) -> Row {
    let mut row = Row::with_capacity(NUMBERS + 3);
    row.push(Cell::Text(name.into()));
    row.push(Cell::Int(ordinal));
    row.extend(numbers.iter().map(|number| number.map_or(Cell::Missing, Cell::Int)));
    row.push(Cell::Text(flag.into()));
    row
}
