//! Dumps of `/proc/slabinfo`, version 2, as lkp's monitor and `cat` leave it.
//!
//! Names may hold spaces and repeat within a dump, so a line is read from its marks and from the right, and rows carry
//! an ordinal. A line that breaks off is read from the left, without a number that may have lost digits.
//!
//! What the kernel cannot have counted at one instant is flagged `torn`, by the rules of the monitor in `observe`; what
//! it reads again at once, a log only has in its next dump.

use std::collections::HashMap;

use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{CellRow, ColumnSpec, TableCell};

use crate::dump_log::{DumpFormat, LogLineRole};
use crate::input_lines::{LogLine, split_last_word};
use crate::kernel_file::page_size::{MachinePageSize, PageSizeVotes, SlabShape};
use crate::kernel_file::slab_columns;

const VERSION: &str = "slabinfo - version:";

/// Names that are remembered from dump to dump.
const NAMES: usize = 20_000;

/// The format, with what it learns of a log.
#[derive(Debug)]
pub(crate) struct SlabinfoParser {
    page: Option<MachinePageSize>,
    estimates: bool,
    found: Option<u64>,
    votes: PageSizeVotes,
    tick: u64,
    names: HashMap<String, RepeatedCacheNames>,
    seen: usize,
}

impl SlabinfoParser {
    /// The format of a log of a machine whose page size and kernel are known, or not; a kernel that does
    /// not say its version is taken for a new one.
    pub(crate) fn new(page: Option<MachinePageSize>, kernel: Option<&str>) -> Self {
        SlabinfoParser {
            page,
            estimates: kernel_estimates(kernel),
            found: None,
            votes: PageSizeVotes::default(),
            tick: 1,
            names: HashMap::new(),
            seen: 0,
        }
    }

    /// The row's number among those of its name in this dump, and what is known of it.
    fn earlier_counts(&mut self, name: &str, numbers: &SlabinfoNumbers) -> (i64, EarlierCounts) {
        if self.seen >= NAMES {
            (self.seen, self.names) = (0, HashMap::new());
        }
        if let Some(rows) = self.names.get_mut(name) {
            return rows.next_row(self.tick, numbers, &mut self.seen);
        }
        let mut rows = RepeatedCacheNames::default();
        let first = rows.next_row(self.tick, numbers, &mut self.seen);
        self.names.insert(name.into(), rows);
        first
    }

    fn page_size_in_force(&self) -> Option<u64> {
        self.page.as_ref().map(|page| page.bytes).or(self.found)
    }

    fn page_size_contradiction(&self, winner: u64) -> String {
        let reported = self.page.as_ref().map(|page| format!("{} ({})", page.bytes, page.source));
        let reported = reported.or_else(|| self.found.map(|found| format!("{found} (the dumps before it)")));
        format!(
            "the slabs of this dump fit pages of {winner} bytes and not {}: import logs of different machines \
             one by one, each with its --page-size",
            reported.unwrap_or_default()
        )
    }
}

impl DumpFormat for SlabinfoParser {
    const SERIES: &'static str = "slabinfo";
    const SOURCE: &'static str = "/proc/slabinfo";

    fn line_role(&self, text: &str) -> Result<LogLineRole, String> {
        if text.starts_with('#') {
            return Ok(LogLineRole::Comment);
        }
        match text.strip_prefix(VERSION) {
            None => Ok(LogLineRole::Row),
            Some(version) if version.trim_ascii_start().starts_with("2.") => Ok(LogLineRole::Head),
            Some(version) => {
                Err(format!("version `{}` of slabinfo is not known: 2.0 and 2.1 are", version.trim_ascii()))
            }
        }
    }

    fn parse_row(&mut self, line: LogLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        let (name, numbers) = match parse_slabinfo_log_line(line) {
            Ok(parsed) => parsed,
            Err(reason) => return LineOutcome::Unusable(reason),
        };
        slab_shape(&numbers).into_iter().for_each(|shape| self.votes.add(shape));
        let (ordinal, known) = self.earlier_counts(name, &numbers);
        let (flag, why) = row_flags(&numbers, known, self.page_size_in_force(), self.estimates);
        rows.push(make_slabinfo_row(name, ordinal, &numbers, flag));
        if flag.is_empty() {
            LineOutcome::Used
        } else {
            LineOutcome::Flagged(format!("{flag}: {name}: {why}"))
        }
    }

    fn end_reading(&mut self, _: &mut Vec<CellRow>) -> Result<(), String> {
        self.tick += 1;
        let winner = std::mem::take(&mut self.votes).best_page_size();
        match (winner, self.page_size_in_force()) {
            (Some(winner), Some(known)) if winner != known => Err(self.page_size_contradiction(winner)),
            (winner, _) => {
                self.found = self.found.or(winner);
                Ok(())
            }
        }
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        slab_columns::slabinfo_columns()
    }

    fn page_size(&self) -> Option<u64> {
        self.found
    }
}

fn make_slabinfo_row(name: &str, ordinal: i64, numbers: &SlabinfoNumbers, flag: &str) -> CellRow {
    let mut row = CellRow::with_capacity(NUMBERS + 3);
    row.push(TableCell::Text(name.into()));
    row.push(TableCell::Int(ordinal));
    row.extend(numbers.iter().map(|number| number.map_or(TableCell::Missing, TableCell::Int)));
    row.push(TableCell::Text(flag.into()));
    row
}

const TUNABLES: &str = ": tunables";

const SLABDATA: &str = ": slabdata";

/// Numbers between the name and the tunables.
const OBJECTS: usize = 5;

/// All numbers that are kept: those, active slabs, slabs.
const NUMBERS: usize = 7;

/// Numbers of a line: active, all, size, objects a slab, pages a slab, active slabs, slabs.
type SlabinfoNumbers = [Option<i64>; NUMBERS];

/// What stands before and behind `mark`, which begins with the only colons of most lines.
fn split_at_mark<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let colons = text.match_indices(':').filter_map(|(at, _)| text.split_at_checked(at));
    colons.into_iter().find_map(|(left, right)| Some((left, right.strip_prefix(mark)?)))
}

/// Name and numbers of a line; why nothing of it can be used.
fn parse_slabinfo_log_line(line: LogLine<'_>) -> Result<(&str, SlabinfoNumbers), String> {
    let mut numbers = SlabinfoNumbers::default();
    let name = match split_at_mark(line.text, TUNABLES) {
        Some((left, right)) => {
            let name = parse_numbers_from_right(left, &mut numbers)?;
            parse_slab_counts(right, line.whole, &mut numbers);
            name
        }
        None => parse_cut_line(line, &mut numbers)?,
    };
    match numbers.iter().any(Option::is_some) {
        true => Ok((name, numbers)),
        false => Err("no number could be read".into()),
    }
}

/// The five numbers at the right end; the name is what stands before them, spaces and all.
fn parse_numbers_from_right<'a>(left: &'a str, numbers: &mut SlabinfoNumbers) -> Result<&'a str, String> {
    let mut rest = left.trim_ascii_end();
    for slot in numbers.iter_mut().take(OBJECTS).rev() {
        let (before, word) = split_last_word(rest).ok_or("it has fewer than a name and five numbers")?;
        *slot = parse_slab_count(word);
        rest = before;
    }
    if rest.is_empty() { Err("it has no name before its five numbers".into()) } else { Ok(rest) }
}

/// Active slabs and slabs. The last word of a line without an end may be half a number.
fn parse_slab_counts(right: &str, whole: bool, numbers: &mut SlabinfoNumbers) {
    let Some((_, slabs)) = split_at_mark(right, SLABDATA) else { return };
    let mut words = slabs.split_ascii_whitespace().peekable();
    for slot in numbers.iter_mut().skip(OBJECTS) {
        let word = words.next();
        *slot = word.filter(|_| whole || words.peek().is_some()).and_then(parse_slab_count);
    }
}

/// A line that ends before its tunables: the numbers that are there, from the left, without the last.
fn parse_cut_line<'a>(line: LogLine<'a>, numbers: &mut SlabinfoNumbers) -> Result<&'a str, String> {
    let text = line.text.split(" :").next().unwrap_or_default();
    let (name, words) =
        split_at_first_number(text).ok_or("it is no row of slabinfo: no numbers behind a name")?;
    let mut words = words.split_ascii_whitespace().peekable();
    for slot in numbers.iter_mut().take(OBJECTS) {
        let word = words.next();
        *slot = word.filter(|_| words.peek().is_some()).and_then(parse_slab_count);
    }
    Ok(name.trim_ascii())
}

/// What stands before the first number behind another word, and the text from there on.
fn split_at_first_number(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for word in text.split([' ', '\t']) {
        if at > 0 && parse_slab_count(word).is_some() {
            return text.split_at_checked(at);
        }
        at += word.len() + 1;
    }
    None
}

fn parse_slab_count(word: &str) -> Option<i64> {
    word.parse().ok().filter(|number| *number >= 0)
}

/// Partial slabs that every kernel counts one by one (MAX_PARTIAL_TO_SCAN).
const COUNTED: i64 = 10_000;

/// The kernel that began to estimate.
const ESTIMATES: (u32, u32) = (6, 10);

/// A flag, and why.
type FlagWithReason = (&'static str, &'static str);

/// The rows of one name.
#[derive(Debug, Default)]
struct RepeatedCacheNames {
    /// The dump in which it stood last, and how often so far.
    tick: u64,
    given: usize,
    known: Vec<EarlierCounts>,
}

/// What is known of one cache from the dumps before.
#[derive(Debug, Clone, Copy, Default)]
struct EarlierCounts {
    counts: [Option<i64>; 2],
    /// Whether some of its slabs are of a lower order and hold fewer objects: it was short by the same in
    /// two dumps one after the other, which torn counts are not.
    falls_back: bool,
}

impl RepeatedCacheNames {
    /// The number of the next row of this name in the dump `tick`, and what is known of it now.
    fn next_row(&mut self, tick: u64, numbers: &SlabinfoNumbers, seen: &mut usize) -> (i64, EarlierCounts) {
        let ordinal = if self.tick == tick { self.given } else { 0 };
        (self.tick, self.given) = (tick, ordinal + 1);
        if self.known.len() <= ordinal {
            *seen += 1;
            self.known.push(EarlierCounts::default());
        }
        let slot = self.known.get_mut(ordinal);
        let known = slot.map_or_else(EarlierCounts::default, |known| {
            *known = known.with_counts(numbers);
            *known
        });
        (i64::try_from(ordinal).unwrap_or(i64::MAX), known)
    }
}

impl EarlierCounts {
    fn with_counts(self, numbers: &SlabinfoNumbers) -> Self {
        let [_, all, _, each, _, _, slabs] = *numbers;
        let full = slabs.zip(each).map(|(slabs, each)| slabs.saturating_mul(each));
        let counts = [all, slabs];
        let short = all.zip(full).is_some_and(|(all, full)| all < full);
        EarlierCounts { counts, falls_back: self.falls_back || (short && counts == self.counts) }
    }
}

/// Whether a kernel estimates; one that does not say its version is taken for a new one.
fn kernel_estimates(kernel: Option<&str>) -> bool {
    kernel.and_then(parse_kernel_version).is_none_or(|version| version >= ESTIMATES)
}

/// The flags of a row as they are stored, empty for none, and why in words.
fn row_flags(
    numbers: &SlabinfoNumbers,
    known: EarlierCounts,
    page: Option<u64>,
    estimates: bool,
) -> FlagWithReason {
    let broken = malformed_reason(numbers, page);
    let torn = if broken.is_none() { torn_reason(numbers, known) } else { None };
    let estimate = if estimates { estimate_reason(numbers) } else { None };
    let flags = [broken, torn, estimate].into_iter().flatten();
    flags.reduce(|first, (flag, _)| (join_flags(first.0, flag), first.1)).unwrap_or_default()
}

/// How the row's slabs are filled.
pub(crate) fn slab_shape(numbers: &SlabinfoNumbers) -> Option<SlabShape> {
    let [_, _, Some(object), Some(objects), Some(pages), _, _] = *numbers else { return None };
    Some(SlabShape { object, objects, pages })
}

/// What is wrong with the numbers, as the flag and in words.
fn malformed_reason(numbers: &SlabinfoNumbers, page: Option<u64>) -> Option<FlagWithReason> {
    if numbers.iter().any(Option::is_none) {
        return Some(("malformed", "a number is missing"));
    }
    let denied = slab_shape(numbers).zip(page).is_some_and(|(shape, page)| !shape.is_possible(page));
    denied.then_some(("malformed", "its objects do not fit into its pages"))
}

/// Counts that cannot all have been true at once, or nearly so (see [`EarlierCounts`]).
fn torn_reason(numbers: &SlabinfoNumbers, known: EarlierCounts) -> Option<FlagWithReason> {
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
fn estimate_reason(numbers: &SlabinfoNumbers) -> Option<FlagWithReason> {
    let [Some(active), Some(all), .., Some(slabs)] = *numbers else { return None };
    let may = slabs > COUNTED && all.saturating_sub(active) > COUNTED;
    may.then_some(("approximate", "more than 10,000 of its slabs may have been partial"))
}

/// The only flags that come together.
fn join_flags(first: &'static str, second: &'static str) -> &'static str {
    match (first, second) {
        ("torn", "approximate") => "torn,approximate",
        ("malformed", "approximate") => "malformed,approximate",
        _ => first,
    }
}

/// `6.18.44-fc-v445`
fn parse_kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
