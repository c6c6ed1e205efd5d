//! `/proc/slabinfo`, version 2, as lkp's monitor and `cat` leave it.
//!
//! Names may hold spaces and repeat within a dump, so a line is read from its marks and from the right,
//! and rows carry an ordinal. What the kernel cannot have counted at one instant is flagged `torn`, as the
//! sampler does (`observe`), which can read again where a log cannot.

use std::collections::HashMap;

use perflab_model::{CellRow, ColumnSpec, TableCell};

use super::column;
use super::format::{LogLineRole, ReadingParser};
use super::lines::LogLine;
use super::page_size::{MachinePageSize, PageSizeVotes};
use super::took::LineOutcome;

mod parse;
mod sound;

use parse::{NUMBERS, SlabinfoNumbers, parse_slabinfo_log_line};
use sound::{EarlierCounts, RepeatedCacheNames, kernel_estimates, row_flags, slab_shape};

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
        let told = self.page.as_ref().map(|page| format!("{} ({})", page.bytes, page.source));
        let told = told.or_else(|| self.found.map(|found| format!("{found} (the dumps before it)")));
        format!(
            "the slabs of this dump fit pages of {winner} bytes and not {}: import logs of different machines \
             one by one, each with its --page-size",
            told.unwrap_or_default()
        )
    }
}

impl ReadingParser for SlabinfoParser {
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
        column::slabinfo_columns()
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
