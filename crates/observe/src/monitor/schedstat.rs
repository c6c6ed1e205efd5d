//! `/proc/schedstat`, versions 15 to 17: one row a CPU (Documentation/scheduler/sched-stats.rst). The lines of
//! scheduling domains, which is where these versions differ, are left out. The file exists only with
//! CONFIG_SCHEDSTATS or CONFIG_SCHED_INFO, and the first five counts stand still unless `kernel.sched_schedstats` is 1.

use perflab_model::{Cell, Row};

use super::column::{Declared, fill};
use super::kind::MonitorKind;
use super::line::{Malformed, lines};

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "schedstat",
    source: "/proc/schedstat",
    about: "the scheduler by CPU: time run, time waited for a CPU, wake-ups",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.one_file(parse),
};

const COLUMNS: &[Declared] = &[
    Declared::key("cpu"),
    Declared::counter("yld_count", "1"),
    Declared::counter("array_exp", "1"),
    Declared::counter("sched_count", "1"),
    Declared::counter("sched_goidle", "1"),
    Declared::counter("ttwu_count", "1"),
    Declared::counter("ttwu_local", "1"),
    Declared::counter("run_ns", "ns"),
    Declared::counter("run_delay_ns", "ns"),
    Declared::counter("timeslices", "1"),
];

pub(super) fn parse(text: &str, rows: &mut Vec<Row>) -> Result<(), Malformed> {
    let first = text.lines().next().unwrap_or_default();
    if !matches!(first.trim(), "version 15" | "version 16" | "version 17") {
        return Err(Malformed::new(1, "`version 15`, 16 or 17", "the first line", first));
    }
    for (number, line) in lines(text).filter(|(_, line)| line.starts_with("cpu")) {
        let mut words = line.split_ascii_whitespace();
        let mut row = Row::with_capacity(COLUMNS.len());
        row.push(Cell::Text(words.next().unwrap_or_default().into()));
        fill(&mut row, COLUMNS.get(1..).unwrap_or_default(), words, number)?;
        rows.push(row);
    }
    Ok(())
}
