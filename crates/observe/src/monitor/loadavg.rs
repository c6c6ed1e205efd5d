//! `/proc/loadavg`: one row of the load averages and of how many scheduling entities there are and run now.

use perflab_model::CellRow;

use crate::monitor::registry::MonitorDescriptor;
use crate::monitor::text_format::{DeclaredColumn, MalformedLine, fill_row};

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "loadavg",
    source: "/proc/loadavg",
    about: "load averages, and threads: all and running",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.open_text_file(parse_loadavg),
};

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::float("load_1", "1"),
    DeclaredColumn::float("load_5", "1"),
    DeclaredColumn::float("load_15", "1"),
    DeclaredColumn::gauge("running", "threads"),
    DeclaredColumn::gauge("total", "threads"),
];

pub(crate) fn parse_loadavg(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    let words = text.split(|c: char| c.is_ascii_whitespace() || c == '/').filter(|word| !word.is_empty());
    if words.clone().count() < COLUMNS.len() {
        return Err(MalformedLine::new(1, "three loads and `running/total`", "the line", text));
    }
    let mut row = CellRow::with_capacity(COLUMNS.len());
    fill_row(&mut row, COLUMNS, words, 1)?;
    rows.push(row);
    Ok(())
}
