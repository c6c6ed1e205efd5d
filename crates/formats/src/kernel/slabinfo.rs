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

use perflab_model::column::stored_columns;
use perflab_model::{CellRow, ColumnRef, ColumnSpec, DeclaredColumn, RowSchema, TableCell};

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::slab_counts::{
    CountConsistency, LoggedMachine, MachinePageSize, PageSizeVotes, SlabCounts, SlabShape, kernel_estimates,
};
use crate::kernel::sysfs_slab::WITHOUT_ROOT;
use crate::reading_parser::{LineOutcome, LineRole, MalformedLine, ReadingParser, TextLine, text_lines};

/// The file.
pub const SLABINFO: KernelFile = KernelFile {
    name: SlabinfoRow::NAME,
    source: "/proc/slabinfo",
    about: "objects and slabs of every cache of the kernel's slab allocator",
    needs: "root",
    without: WITHOUT_ROOT,
    provided_by: "CONFIG_SLUB_DEBUG",
    columns: SlabinfoRow::COLUMNS,
    layout: KernelFileLayout::Judged(is_slabinfo_line),
};

/// A row a cache.
#[derive(Debug, Clone, Copy)]
pub struct SlabinfoRow;

impl RowSchema for SlabinfoRow {
    const NAME: &'static str = "slabinfo";
    const COLUMNS: &'static [DeclaredColumn] = &[
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
}

impl SlabinfoRow {
    /// The cache.
    pub const CACHE: ColumnRef<Self, str> = ColumnRef::named("cache");

    /// Which of the rows of that name it is.
    pub const ORDINAL: ColumnRef<Self, i64> = ColumnRef::named("ordinal");

    /// Objects in use.
    pub const ACTIVE_OBJS: ColumnRef<Self, i64> = ColumnRef::named("active_objs");

    /// Room for objects.
    pub const NUM_OBJS: ColumnRef<Self, i64> = ColumnRef::named("num_objs");

    /// Bytes of an object, padded.
    pub const OBJSIZE: ColumnRef<Self, i64> = ColumnRef::named("objsize");

    /// Objects of a slab.
    pub const OBJPERSLAB: ColumnRef<Self, i64> = ColumnRef::named("objperslab");

    /// Pages of a slab.
    pub const PAGESPERSLAB: ColumnRef<Self, i64> = ColumnRef::named("pagesperslab");

    /// Slabs in use.
    pub const ACTIVE_SLABS: ColumnRef<Self, i64> = ColumnRef::named("active_slabs");

    /// Slabs.
    pub const NUM_SLABS: ColumnRef<Self, i64> = ColumnRef::named("num_slabs");

    /// What is wrong with the row; see above.
    pub const FLAGS: ColumnRef<Self, str> = ColumnRef::named("flags");
}

/// Numbers between the name and the tunables.
const OBJECT_NUMBERS: usize = 5;

/// Those of them that are sizes of an object and a slab.
const SIZES: std::ops::Range<usize> = 2..5;

/// The columns of the numbers of a line, in the line's order.
const NUMBERS: [ColumnRef<SlabinfoRow, i64>; 7] = [
    SlabinfoRow::ACTIVE_OBJS,
    SlabinfoRow::NUM_OBJS,
    SlabinfoRow::OBJSIZE,
    SlabinfoRow::OBJPERSLAB,
    SlabinfoRow::PAGESPERSLAB,
    SlabinfoRow::ACTIVE_SLABS,
    SlabinfoRow::NUM_SLABS,
];

/// A row is filled in the order of its columns, which is cheaper than one by one: cache, ordinal, numbers, flags.
const _: () = {
    assert!(SlabinfoRow::CACHE.index() == 0 && SlabinfoRow::ORDINAL.index() == 1);
    let mut number = 0;
    while number < NUMBERS.len() {
        assert!(NUMBERS[number].index() == 2 + number);
        number += 1;
    }
    assert!(SlabinfoRow::FLAGS.index() == 2 + NUMBERS.len());
    assert!(SlabinfoRow::COLUMNS.len() == 3 + NUMBERS.len());
};

/// The numbers of a line in its order; nothing where one was cut or is none.
pub type SlabinfoNumbers = [Option<u64>; NUMBERS.len()];

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
        let [size, per_slab, pages] = [size, per_slab, pages].map(parse_size);
        let [active_objs, num_objs, active_slabs, num_slabs] =
            [active_objs, num_objs, active_slabs, num_slabs].map(parse_count);
        let numbers = [active_objs, num_objs, size, per_slab, pages, active_slabs, num_slabs];
        (is_usual && !name.is_empty()).then_some(SlabinfoLine { name, numbers })
    }

    /// The row, flagged where a number is missing or its objects do not fit into its pages of so many bytes.
    pub fn to_row(&self, ordinal: i64, page: Option<u64>) -> CellRow {
        let malformed = self.malformed_reason(page).map_or("", |_| MALFORMED);
        self.to_flagged_row(ordinal, malformed)
    }

    fn to_flagged_row(self, ordinal: i64, flags: &str) -> CellRow {
        let mut row = CellRow::with_capacity(SlabinfoRow::COLUMNS.len());
        row.extend([TableCell::Text(self.name.into()), TableCell::Int(ordinal)]);
        row.extend(self.numbers.map(count_cell));
        row.push(TableCell::Text(flags.into()));
        row
    }
}

impl SlabinfoLine<'_> {
    /// What is wrong with the numbers themselves.
    fn malformed_reason(&self, page: Option<u64>) -> Option<&'static str> {
        if self.numbers.iter().any(Option::is_none) {
            return Some("a number is missing");
        }
        let is_impossible = self.shape().zip(page).is_some_and(|(shape, page)| !shape.is_possible(page));
        is_impossible.then_some("its objects do not fit into its pages")
    }

    /// How its slabs are filled.
    fn shape(&self) -> Option<SlabShape> {
        let [_, _, object, objects, pages, _, _] = self.numbers;
        Some(SlabShape { object: object?, objects: objects?, pages: pages? })
    }

    fn counts(&self) -> Option<SlabCounts> {
        let [in_use, objects, _, per_slab, _, active_slabs, slabs] = self.numbers;
        Some(SlabCounts {
            in_use: in_use?,
            objects: objects?,
            per_slab: per_slab?,
            active_slabs: Some(active_slabs?),
            slabs: slabs?,
        })
    }
}

/// The cell of a count; what does not fit is missing.
fn count_cell(count: Option<u64>) -> TableCell {
    count.and_then(|count| i64::try_from(count).ok()).map_or(TableCell::Missing, TableCell::Int)
}

/// A count: an unsigned number. The kernel subtracts two that it did not read at once, so it may print one below zero, as a very
/// large one (mm/slub.c, `get_slabinfo`).
fn parse_count(word: &str) -> Option<u64> {
    word.parse().ok()
}

/// A size, which no subtraction makes too large.
fn parse_size(word: &str) -> Option<u64> {
    word.parse().ok().filter(|number| i64::try_from(*number).is_ok())
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

/// The number of a word at that place of a line.
fn parse_number_at(place: usize, word: &str) -> Option<u64> {
    if SIZES.contains(&place) { parse_size(word) } else { parse_count(word) }
}

/// The five numbers at the right end; the name is what stands before them, spaces and all.
fn parse_numbers_from_right<'a>(left: &'a str, numbers: &mut SlabinfoNumbers) -> Result<&'a str, String> {
    let mut rest = left.trim_ascii_end();
    for (place, slot) in numbers.iter_mut().enumerate().take(OBJECT_NUMBERS).rev() {
        let [word] = pop_words(&mut rest).ok_or("it has fewer than a name and five numbers")?;
        if word.is_empty() {
            return Err("it has fewer than a name and five numbers".into());
        }
        *slot = parse_number_at(place, word);
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
        *slot = word.filter(|_| whole || words.peek().is_some()).and_then(parse_count);
    }
}

/// A line that ends before its tunables: the numbers that are there, from the left, without the last.
fn parse_cut_line<'a>(line: TextLine<'a>, numbers: &mut SlabinfoNumbers) -> Result<&'a str, String> {
    let text = line.text.split(" :").next().unwrap_or_default();
    let (name, words) =
        split_at_first_number(text).ok_or("it is no row of slabinfo: no numbers behind a name")?;
    let mut words = words.split_ascii_whitespace().peekable();
    for (place, slot) in numbers.iter_mut().enumerate().take(OBJECT_NUMBERS) {
        let word = words.next();
        *slot = word.filter(|_| words.peek().is_some()).and_then(|word| parse_number_at(place, word));
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

/// Whether a line is of slabinfo and of nothing else, also where the lines before it are missing.
fn is_slabinfo_line(text: &str) -> bool {
    let is_head = ["slabinfo - version", "# name"].iter().any(|head| text.starts_with(head));
    is_head || [TUNABLES, SLABDATA].iter().any(|mark| text.contains(mark))
}

/// Whether a line is a row of counts, whatever came before it: a name, and the numbers up to objects of a slab. Rows of other files
/// may hold as many numbers, but a cache's name ends with no colon.
pub fn is_slabinfo_row(text: &str) -> bool {
    let line = SlabinfoLine::parse(TextLine { number: 1, text, whole: true });
    line.is_ok_and(|line| {
        let [of_objects @ .., _, _, _] = line.numbers;
        !line.name.ends_with(':') && of_objects.iter().all(Option::is_some)
    })
}

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

/// Parses the file as it is now, of a machine of this page size, and appends its rows, whose counts are not judged.
///
/// # Errors
/// The first line that is not understood.
pub fn parse_slabinfo(text: &str, page: Option<u64>, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
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
        rows.push(parsed.to_row(*ordinal, page));
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

const MALFORMED: &str = "malformed";

const TORN: &str = "torn";

const APPROXIMATE: &str = "approximate";

const BELOW_ZERO: CountConsistency = CountConsistency::Torn("a count below zero");

/// What the cells of such a row say.
#[derive(Debug, Clone, Copy)]
pub struct SlabinfoCells<'a>(pub &'a CellRow);

impl<'a> SlabinfoCells<'a> {
    /// The cache.
    pub fn cache(self) -> Option<&'a str> {
        SlabinfoRow::CACHE.get(self.0)
    }

    /// Which of the rows of that name it is.
    pub fn ordinal(self) -> Option<i64> {
        SlabinfoRow::ORDINAL.get(self.0)
    }

    /// Whether it is the same cache as another row's.
    pub fn is_same_cache(self, other: &CellRow) -> bool {
        let other = SlabinfoCells(other);
        self.cache() == other.cache() && self.ordinal() == other.ordinal()
    }

    /// Its counts, where they are numbers.
    pub fn counts(self) -> Option<SlabCounts> {
        Some(SlabCounts {
            in_use: self.count(SlabinfoRow::ACTIVE_OBJS)?,
            objects: self.count(SlabinfoRow::NUM_OBJS)?,
            per_slab: self.count(SlabinfoRow::OBJPERSLAB)?,
            active_slabs: Some(self.count(SlabinfoRow::ACTIVE_SLABS)?),
            slabs: self.count(SlabinfoRow::NUM_SLABS)?,
        })
    }

    /// What its counts say about each other. A row that was not understood is flagged already, and reading it again would not help.
    /// A number that does not fit is a count below zero: the kernel subtracts two that it did not read at once.
    pub fn consistency(self) -> CountConsistency {
        let is_understood = SlabinfoRow::FLAGS.get(self.0) == Some("");
        match self.counts() {
            _ if !is_understood => CountConsistency::Sound,
            Some(counts) => counts.consistency(),
            None => BELOW_ZERO,
        }
    }

    fn count(self, column: ColumnRef<SlabinfoRow, i64>) -> Option<u64> {
        column.get(self.0).and_then(|number| u64::try_from(number).ok())
    }
}

/// Names that are remembered from dump to dump.
const NAMES: usize = 20_000;

/// A log of slabinfos, with what it learns of their machine. What the monitor reads again at once, a log only has in its next dump.
#[derive(Debug)]
pub struct SlabinfoParser {
    page: Option<MachinePageSize>,
    estimates: bool,
    found: Option<u64>,
    votes: PageSizeVotes,
    reading: u64,
    names: HashMap<String, RepeatedCacheNames>,
    seen: usize,
}

impl SlabinfoParser {
    /// For a log of a machine of which this is known.
    pub fn new(machine: &LoggedMachine) -> Self {
        SlabinfoParser {
            page: machine.page_size.clone(),
            estimates: kernel_estimates(machine.kernel.as_deref()),
            found: None,
            votes: PageSizeVotes::default(),
            reading: 1,
            names: HashMap::new(),
            seen: 0,
        }
    }

    /// The row's number among those of its name in this dump, and what is known of it.
    fn earlier_counts(&mut self, line: &SlabinfoLine<'_>) -> (i64, EarlierCounts) {
        if self.seen >= NAMES {
            (self.seen, self.names) = (0, HashMap::new());
        }
        if let Some(rows) = self.names.get_mut(line.name) {
            return rows.next_row(self.reading, line, &mut self.seen);
        }
        let mut rows = RepeatedCacheNames::default();
        let first = rows.next_row(self.reading, line, &mut self.seen);
        self.names.insert(line.name.into(), rows);
        first
    }

    /// The flags of a row as they are stored, empty for none, and why in words.
    fn row_flags(&self, line: &SlabinfoLine<'_>, known: EarlierCounts) -> (String, &'static str) {
        let malformed = line.malformed_reason(self.page_size_in_force()).map(|why| (MALFORMED, why));
        let torn = torn_reason(line, known).filter(|_| malformed.is_none()).map(|why| (TORN, why));
        let is_estimate = self.estimates && line.counts().is_some_and(|counts| counts.can_be_estimated());
        let estimate =
            is_estimate.then_some((APPROXIMATE, "more than 10,000 of its slabs may have been partial"));
        let found: Vec<(&str, &'static str)> = [malformed, torn, estimate].into_iter().flatten().collect();
        let names: Vec<&str> = found.iter().map(|(flag, _)| *flag).collect();
        (names.join(","), found.first().map_or("", |(_, why)| why))
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

/// Counts that cannot all have been true at once, or nearly so.
fn torn_reason(line: &SlabinfoLine<'_>, known: EarlierCounts) -> Option<&'static str> {
    let is_below_zero = line.numbers.iter().flatten().any(|number| i64::try_from(*number).is_err());
    match line.counts()?.consistency() {
        _ if is_below_zero => Some("a count below zero"),
        CountConsistency::Sound => None,
        CountConsistency::Short if known.falls_back => None,
        CountConsistency::Short => Some("fewer objects than its slabs hold, and not twice the same"),
        CountConsistency::Torn(why) => Some(why),
    }
}

impl ReadingParser for SlabinfoParser {
    fn series(&self) -> &'static str {
        SLABINFO.name
    }

    fn source(&self) -> &'static str {
        SLABINFO.source
    }

    fn line_role(&self, text: &str) -> Result<LineRole, String> {
        slabinfo_role(text)
    }

    fn parse_row(&mut self, line: TextLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        let line = match SlabinfoLine::parse(line) {
            Ok(line) => line,
            Err(reason) => return LineOutcome::Unusable(reason),
        };
        line.shape().into_iter().for_each(|shape| self.votes.add(shape));
        let (ordinal, known) = self.earlier_counts(&line);
        let (flags, why) = self.row_flags(&line, known);
        rows.push(line.to_flagged_row(ordinal, &flags));
        match flags.is_empty() {
            true => LineOutcome::Used,
            false => LineOutcome::Flagged(format!("{flags}: {}: {why}", line.name)),
        }
    }

    fn end_reading(&mut self, _: &mut Vec<CellRow>) -> Result<(), String> {
        self.reading += 1;
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
        stored_columns(SlabinfoRow::COLUMNS)
    }

    fn page_size(&self) -> Option<u64> {
        self.found
    }
}

/// The rows of one name.
#[derive(Debug, Default)]
struct RepeatedCacheNames {
    /// The dump in which it stood last, and how often so far.
    reading: u64,
    given: usize,
    known: Vec<EarlierCounts>,
}

/// What is known of one cache from the dumps before.
#[derive(Debug, Clone, Copy, Default)]
struct EarlierCounts {
    counts: Option<SlabCounts>,
    /// Whether some of its slabs are of a lower order and hold fewer objects: it was short by the same in
    /// two dumps one after the other, which torn counts are not.
    falls_back: bool,
}

impl RepeatedCacheNames {
    /// The number of the next row of this name in a dump, and what is known of it now.
    fn next_row(&mut self, reading: u64, line: &SlabinfoLine<'_>, seen: &mut usize) -> (i64, EarlierCounts) {
        let ordinal = if self.reading == reading { self.given } else { 0 };
        (self.reading, self.given) = (reading, ordinal + 1);
        if self.known.len() <= ordinal {
            *seen += 1;
            self.known.push(EarlierCounts::default());
        }
        let known = self.known.get_mut(ordinal).map_or_else(EarlierCounts::default, |known| {
            *known = known.with_counts(line.counts());
            *known
        });
        (i64::try_from(ordinal).unwrap_or(i64::MAX), known)
    }
}

impl EarlierCounts {
    fn with_counts(self, counts: Option<SlabCounts>) -> Self {
        let pair = counts.zip(self.counts);
        let falls_back = pair.is_some_and(|(now, earlier)| now.shows_lower_order(&earlier));
        EarlierCounts { counts, falls_back: self.falls_back || falls_back }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_row_lines(text: &str) -> Vec<String> {
        let mut rows = Vec::new();
        parse_slabinfo(text, None, &mut rows).unwrap();
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
            let error = parse_slabinfo(&format!("{HEADER}{line}\n"), None, &mut Vec::new()).unwrap_err();
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
            let error = parse_slabinfo(text, None, &mut Vec::new()).unwrap_err();
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
            prop_assert_eq!(parse_slabinfo(&format!("{HEADER}{line}\n"), None, &mut rows), Ok(()));
            let mut expected = vec![TableCell::Text(name), TableCell::Int(0)];
            expected.extend(numbers.map(|number| TableCell::Int(i64::from(number))));
            expected.push(TableCell::Text(String::new()));
            prop_assert_eq!(rows, vec![expected]);
        }
    }
}
