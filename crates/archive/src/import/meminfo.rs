//! `/proc/meminfo`: one row a dump, a column a line. Columns are those of the first dump; kilobytes become
//! bytes, counts of huge pages stay counts.

use std::collections::HashMap;

use perflab_model::{Cell, Column, Row};

use super::format::{Format, Role};
use super::lines::Line;
use super::took::Read;

/// Names of one file at most.
const NAMES: usize = 1_000;

/// The format, with the columns of the first dump.
#[derive(Debug, Default)]
pub(crate) struct Meminfo {
    columns: Vec<Column>,
    places: HashMap<String, usize>,
    settled: bool,
}

impl Meminfo {
    fn place(&mut self, name: &str, unit: Unit) -> Option<usize> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        if self.settled || self.columns.len() >= NAMES {
            return None;
        }
        let place = self.columns.len();
        self.columns.push(Column::gauge(name, unit.name(name)));
        self.places.insert(name.into(), place);
        Some(place)
    }
}

impl Format for Meminfo {
    const SERIES: &'static str = "meminfo";
    const SOURCE: &'static str = "/proc/meminfo";

    fn role(&self, text: &str) -> Result<Role, String> {
        Ok(if text.starts_with("MemTotal:") { Role::HeadRow } else { Role::Row })
    }

    fn row(&mut self, line: Line<'_>, rows: &mut Vec<Row>) -> Read {
        let Some((name, value, unit)) = parse(line) else {
            return Read::Unusable("it is not `NAME: NUMBER kB`".into());
        };
        let Some(place) = self.place(name, unit) else {
            return Read::Unusable(format!("`{name}` is not in the first dump"));
        };
        if rows.is_empty() {
            rows.push(Row::new());
        }
        let Some(row) = rows.first_mut() else { return Read::Unusable("it has no row".into()) };
        if row.len() <= place {
            row.resize(place + 1, Cell::Missing);
        }
        if let Some(cell) = row.get_mut(place) {
            *cell = Cell::Int(value);
        }
        Read::Used
    }

    fn end(&mut self, rows: &mut Vec<Row>) -> Result<(), String> {
        self.settled |= !self.columns.is_empty();
        rows.iter_mut().for_each(|row| row.resize(self.columns.len(), Cell::Missing));
        Ok(())
    }

    fn columns(&self) -> Vec<Column> {
        self.columns.clone()
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Kilobytes,
    None,
}

impl Unit {
    fn name(self, of: &str) -> &'static str {
        match self {
            Unit::Kilobytes => "bytes",
            Unit::None if of.starts_with("HugePages_") => "huge pages",
            Unit::None => "1",
        }
    }
}

/// A line that was cut off may have lost digits or its unit.
fn parse(line: Line<'_>) -> Option<(&str, i64, Unit)> {
    let (name, rest) = line.text.split_once(':').filter(|(name, _)| !name.is_empty() && line.whole)?;
    let mut words = rest.split_ascii_whitespace();
    let number = words.next()?.parse::<i64>().ok()?;
    match words.next() {
        Some("kB") => Some((name, number.checked_mul(1024)?, Unit::Kilobytes)),
        None => Some((name, number, Unit::None)),
        Some(_) => None,
    }
}
