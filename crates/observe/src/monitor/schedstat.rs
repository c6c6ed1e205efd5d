//! `/proc/schedstat`, versions 15 to 17: one row a CPU (Documentation/scheduler/sched-stats.rst). The lines of
//! scheduling domains, which is where these versions differ, are left out. The file exists only with
//! CONFIG_SCHEDSTATS or CONFIG_SCHED_INFO, and the first five counts stand still unless `kernel.sched_schedstats` is 1.

use perflab_model::{CellRow, TableCell};

use crate::monitor::registry::MonitorDescriptor;
use crate::monitor::text_format::{DeclaredColumn, MalformedLine, fill_row, numbered_lines};

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "schedstat",
    source: "/proc/schedstat",
    about: "the scheduler by CPU: time run, time waited for a CPU, wake-ups",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.open_text_file(parse_schedstat),
};

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::key("cpu"),
    DeclaredColumn::counter("yld_count", "1"),
    DeclaredColumn::counter("array_exp", "1"),
    DeclaredColumn::counter("sched_count", "1"),
    DeclaredColumn::counter("sched_goidle", "1"),
    DeclaredColumn::counter("ttwu_count", "1"),
    DeclaredColumn::counter("ttwu_local", "1"),
    DeclaredColumn::counter("run_ns", "ns"),
    DeclaredColumn::counter("run_delay_ns", "ns"),
    DeclaredColumn::counter("timeslices", "1"),
];

pub(crate) fn parse_schedstat(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    let first = text.lines().next().unwrap_or_default();
    if !matches!(first.trim(), "version 15" | "version 16" | "version 17") {
        return Err(MalformedLine::new(1, "`version 15`, 16 or 17", "the first line", first));
    }
    for (number, line) in numbered_lines(text).filter(|(_, line)| line.starts_with("cpu")) {
        let mut words = line.split_ascii_whitespace();
        let mut row = CellRow::with_capacity(COLUMNS.len());
        row.push(TableCell::Text(words.next().unwrap_or_default().into()));
        fill_row(&mut row, COLUMNS.get(1..).unwrap_or_default(), words, number)?;
        rows.push(row);
    }
    Ok(())
}
