//! `/proc/loadavg`: one row of the load averages and of how many scheduling entities there are and run now.

use perflab_model::{CellRow, ColumnRef, DeclaredColumn, RowSchema};

use crate::column::{describe_mismatch, fill_row};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::{LineOutcome, LineRole};

/// The file.
pub const LOADAVG: KernelFile = KernelFile {
    name: LoadavgRow::NAME,
    source: "/proc/loadavg",
    about: "load averages, and threads: all and running",
    needs: "",
    without: "",
    provided_by: "",
    columns: LoadavgRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::Head { expected: "three loads and `running/total`", role: loadavg_role },
        parse_row: parse_loadavg_line,
    }),
};

/// The row of a reading.
#[derive(Debug, Clone, Copy)]
pub struct LoadavgRow;

impl RowSchema for LoadavgRow {
    const NAME: &'static str = "loadavg";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::float("load_1", "1"),
        DeclaredColumn::float("load_5", "1"),
        DeclaredColumn::float("load_15", "1"),
        DeclaredColumn::gauge("running", "threads"),
        DeclaredColumn::gauge("total", "threads"),
    ];
}

impl LoadavgRow {
    /// Over a minute.
    pub const LOAD_1: ColumnRef<Self, f64> = ColumnRef::named("load_1");

    /// Over five minutes.
    pub const LOAD_5: ColumnRef<Self, f64> = ColumnRef::named("load_5");

    /// Over fifteen minutes.
    pub const LOAD_15: ColumnRef<Self, f64> = ColumnRef::named("load_15");
}

/// Every line is a reading: five words, the fourth with a slash.
fn loadavg_role(line: &str) -> Result<LineRole, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(6).collect();
    let is_reading = matches!(words[..], [_, _, _, threads, _] if threads.contains('/'));
    Ok(if is_reading { LineRole::HeadRow } else { LineRole::Row })
}

/// `0.20 0.18 0.12 1/80 11206`
fn parse_loadavg_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    let words = line.split(|c: char| c.is_ascii_whitespace() || c == '/').filter(|word| !word.is_empty());
    if words.clone().count() < LoadavgRow::COLUMNS.len() {
        return LineOutcome::Unusable(describe_mismatch("three loads and `running/total`", "the line", line));
    }
    let mut row = CellRow::with_capacity(LoadavgRow::COLUMNS.len());
    if let Err(reason) = fill_row(&mut row, LoadavgRow::COLUMNS, words) {
        return LineOutcome::Unusable(reason);
    }
    rows.push(row);
    LineOutcome::Used
}
