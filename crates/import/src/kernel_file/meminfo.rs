//! Dumps of `/proc/meminfo`: one row per dump, one column per line.
//!
//! Columns are those of the first dump; kilobytes become bytes, counts of huge pages stay counts.

use std::collections::HashMap;

use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{CellRow, ColumnSpec, TableCell};

use crate::dump_log::{DumpFormat, LogLineRole};
use crate::input_lines::LogLine;

/// Names of one file at most.
const NAMES: usize = 1_000;

/// The format, with the columns of the first dump.
#[derive(Debug, Default)]
pub(crate) struct MeminfoParser {
    columns: Vec<ColumnSpec>,
    places: HashMap<String, usize>,
    settled: bool,
}

impl MeminfoParser {
    fn column_index(&mut self, name: &str, unit: MeminfoUnit) -> Option<usize> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        if self.settled || self.columns.len() >= NAMES {
            return None;
        }
        let place = self.columns.len();
        self.columns.push(ColumnSpec::gauge(name, unit.name(name)));
        self.places.insert(name.into(), place);
        Some(place)
    }
}

impl DumpFormat for MeminfoParser {
    const SERIES: &'static str = "meminfo";
    const SOURCE: &'static str = "/proc/meminfo";

    fn line_role(&self, text: &str) -> Result<LogLineRole, String> {
        Ok(if text.starts_with("MemTotal:") { LogLineRole::HeadRow } else { LogLineRole::Row })
    }

    fn parse_row(&mut self, line: LogLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        let Some((name, value, unit)) = parse_meminfo_line(line) else {
            return LineOutcome::Unusable("it is not `NAME: NUMBER kB`".into());
        };
        let Some(place) = self.column_index(name, unit) else {
            return LineOutcome::Unusable(format!("`{name}` is not in the first dump"));
        };
        if rows.is_empty() {
            rows.push(CellRow::new());
        }
        let Some(row) = rows.first_mut() else { return LineOutcome::Unusable("it has no row".into()) };
        if row.len() <= place {
            row.resize(place + 1, TableCell::Missing);
        }
        if let Some(cell) = row.get_mut(place) {
            *cell = TableCell::Int(value);
        }
        LineOutcome::Used
    }

    fn end_reading(&mut self, rows: &mut Vec<CellRow>) -> Result<(), String> {
        self.settled |= !self.columns.is_empty();
        rows.iter_mut().for_each(|row| row.resize(self.columns.len(), TableCell::Missing));
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        self.columns.clone()
    }
}

#[derive(Clone, Copy)]
enum MeminfoUnit {
    Kilobytes,
    None,
}

impl MeminfoUnit {
    fn name(self, of: &str) -> &'static str {
        match self {
            MeminfoUnit::Kilobytes => "bytes",
            MeminfoUnit::None if of.starts_with("HugePages_") => "huge pages",
            MeminfoUnit::None => "1",
        }
    }
}

/// A line that was cut off may have lost digits or its unit.
fn parse_meminfo_line(line: LogLine<'_>) -> Option<(&str, i64, MeminfoUnit)> {
    let (name, rest) = line.text.split_once(':').filter(|(name, _)| !name.is_empty() && line.whole)?;
    let mut words = rest.split_ascii_whitespace();
    let number = words.next()?.parse::<i64>().ok()?;
    match words.next() {
        Some("kB") => Some((name, number.checked_mul(1024)?, MeminfoUnit::Kilobytes)),
        None => Some((name, number, MeminfoUnit::None)),
        Some(_) => None,
    }
}
