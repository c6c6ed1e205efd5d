//! `/proc/loadavg`: one row of the load averages and of how many scheduling entities there are and run now.

use perflab_model::Row;

use super::column::{Declared, fill};
use super::kind::MonitorKind;
use super::line::Malformed;

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "loadavg",
    source: "/proc/loadavg",
    about: "load averages, and threads: all and running",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.one_file(parse),
};

const COLUMNS: &[Declared] = &[
    Declared::float("load_1", "1"),
    Declared::float("load_5", "1"),
    Declared::float("load_15", "1"),
    Declared::gauge("running", "threads"),
    Declared::gauge("total", "threads"),
];

pub(super) fn parse(text: &str, rows: &mut Vec<Row>) -> Result<(), Malformed> {
    let words = text.split(|c: char| c.is_ascii_whitespace() || c == '/').filter(|word| !word.is_empty());
    if words.clone().count() < COLUMNS.len() {
        return Err(Malformed::new(1, "three loads and `running/total`", "the line", text));
    }
    let mut row = Row::with_capacity(COLUMNS.len());
    fill(&mut row, COLUMNS, words, 1)?;
    rows.push(row);
    Ok(())
}
