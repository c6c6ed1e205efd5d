//! `/proc/slabinfo`, version 2, as lkp's monitor and `cat` leave it.
//!
//! Names may hold spaces and repeat within a dump, so a line is read from its marks and from the right,
//! and rows carry an ordinal. What the kernel cannot have counted at one instant is flagged `torn`, as the
//! sampler does (`observe`), which can read again where a log cannot.

use std::collections::HashMap;

use perflab_model::{Cell, Column, Row};

use super::column;
use super::format::{Format, Role};
use super::lines::Line;
use super::page_size::{PageSize, Votes};
use super::took::Read;

mod parse;
mod sound;

use parse::{NUMBERS, Numbers, parse};
use sound::{Known, Namesakes, estimates, flags, shape};

const VERSION: &str = "slabinfo - version:";
/// Names that are remembered from dump to dump.
const NAMES: usize = 20_000;

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

impl Slabinfo {
    /// The format of a log of a machine whose page size and kernel are known, or not; a kernel that does
    /// not say its version is taken for a new one.
    pub(crate) fn new(page: Option<PageSize>, kernel: Option<&str>) -> Self {
        Slabinfo {
            page,
            estimates: estimates(kernel),
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
        let (flag, why) = flags(&numbers, known, self.page(), self.estimates);
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

fn row(name: &str, ordinal: i64, numbers: &Numbers, flag: &str) -> Row {
    let mut row = Row::with_capacity(NUMBERS + 3);
    row.push(Cell::Text(name.into()));
    row.push(Cell::Int(ordinal));
    row.extend(numbers.iter().map(|number| number.map_or(Cell::Missing, Cell::Int)));
    row.push(Cell::Text(flag.into()));
    row
}
