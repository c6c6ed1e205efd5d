//! Dumps of `/proc/vmstat`: one row per dump, one column per line; columns are those of the first dump.

use std::collections::HashMap;

use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{CellRow, ColumnSpec, TableCell};

use crate::dump_log::{DumpFormat, LogLineRole};
use crate::input_lines::LogLine;

/// Names of one file at most.
const NAMES: usize = 2_000;

/// Names that begin like a gauge's and only grow.
const COUNTERS: [&str; 6] = [
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_dirtied",
    "nr_written",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
];

/// The format, with the columns of the first dump.
#[derive(Debug, Default)]
pub(crate) struct ProcVmstatParser {
    columns: Vec<ColumnSpec>,
    places: HashMap<String, usize>,
    settled: bool,
}

impl ProcVmstatParser {
    fn column_index(&mut self, name: &str) -> Option<usize> {
        let known = self.places.get(name).copied();
        if known.is_some() || self.settled || self.columns.len() >= NAMES {
            return known;
        }
        let gauge = name.starts_with("nr_") && !COUNTERS.contains(&name);
        let unit = if gauge && name != "nr_unstable" { "pages" } else { "1" };
        let column = if gauge { ColumnSpec::gauge(name, unit) } else { ColumnSpec::counter(name, unit) };
        self.columns.push(column);
        self.places.insert(name.into(), self.columns.len() - 1);
        Some(self.columns.len() - 1)
    }
}

impl DumpFormat for ProcVmstatParser {
    const SERIES: &'static str = "proc-vmstat";
    const SOURCE: &'static str = "/proc/vmstat";
    const MAY_BE_EMPTY: bool = true;
    const HEADED: bool = false;

    fn line_role(&self, text: &str) -> Result<LogLineRole, String> {
        Ok(if text.starts_with("nr_free_pages ") { LogLineRole::HeadRow } else { LogLineRole::Row })
    }

    fn parse_row(&mut self, line: LogLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        let pair = line.text.trim_ascii().split_once(' ').filter(|_| line.whole);
        let Some((name, Ok(value))) = pair.map(|(name, value)| (name, value.trim().parse::<i64>())) else {
            return LineOutcome::Unusable("it is not `NAME NUMBER`".into());
        };
        let Some(place) = self.column_index(name) else {
            return LineOutcome::Unusable(format!("`{name}` is not in the first dump"));
        };
        if rows.is_empty() {
            rows.push(CellRow::new());
        }
        let Some(row) = rows.first_mut() else { return LineOutcome::Unusable("it has no row".into()) };
        row.resize(row.len().max(place + 1), TableCell::Missing);
        row.get_mut(place).into_iter().for_each(|cell| *cell = TableCell::Int(value));
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
