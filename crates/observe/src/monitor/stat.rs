//! `/proc/stat`: CPU time by state, a row a CPU and one for all of them (`cpu`), which alone carries the system-wide
//! columns. Ticks are recorded as nanoseconds, so their grain is 10 ms. Time in `guest` is part of `user`, and
//! `guest_nice` of `nice` (Documentation/filesystems/proc.rst, section 1.7); `iowait` may go backwards.

use perflab_model::{Cell, Row};

use super::column::{Declared, fill, integer};
use super::kind::MonitorKind;
use super::line::{Malformed, lines};

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "stat",
    source: "/proc/stat",
    about: "CPU time by state and CPU; interrupts, context switches, forks, runnable and blocked tasks",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.one_file(parse),
};

/// USER_HZ is 100 in the binary interface of every architecture but alpha, whatever CONFIG_HZ is.
const NANOS_A_TICK: u64 = 10_000_000;

const fn ticks(name: &'static str) -> Declared {
    Declared::counter(name, "ns").times(NANOS_A_TICK)
}

const COLUMNS: &[Declared] = &[
    Declared::key("cpu"),
    ticks("user"),
    ticks("nice"),
    ticks("system"),
    ticks("idle"),
    ticks("iowait"),
    ticks("irq"),
    ticks("softirq"),
    ticks("steal"),
    ticks("guest"),
    ticks("guest_nice"),
    Declared::counter("intr", "1"),
    Declared::counter("ctxt", "1"),
    Declared::counter("processes", "1"),
    Declared::gauge("procs_running", "1"),
    Declared::gauge("procs_blocked", "1"),
];

/// Columns 1 to 10 are of a CPU, those after them of the system.
const SYSTEM_WIDE: usize = 11;

pub(super) fn parse(text: &str, rows: &mut Vec<Row>) -> Result<(), Malformed> {
    let total = rows.len();
    for (number, line) in lines(text) {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some(cpu) if cpu.starts_with("cpu") => rows.push(one_cpu(cpu, words, number)?),
            Some(name) => system_wide(rows.get_mut(total), name, words.next().unwrap_or_default(), number)?,
            None => {}
        }
    }
    let is_total = |row: &Row| row.first() == Some(&Cell::Text("cpu".into()));
    match rows.get(total).is_some_and(is_total) {
        true => Ok(()),
        false => Err(Malformed::new(1, "`cpu`", "the first line", text)),
    }
}

fn one_cpu<'a>(cpu: &str, words: impl Iterator<Item = &'a str>, number: usize) -> Result<Row, Malformed> {
    let mut row = Row::with_capacity(COLUMNS.len());
    row.push(Cell::Text(cpu.into()));
    fill(&mut row, COLUMNS.get(1..SYSTEM_WIDE).unwrap_or_default(), words, number)?;
    row.resize(COLUMNS.len(), Cell::Missing);
    Ok(row)
}

/// Puts `name`'s number into the total row; names that have no column (`btime`, `softirq`) are left out.
fn system_wide(total: Option<&mut Row>, name: &str, word: &str, number: usize) -> Result<(), Malformed> {
    let place = COLUMNS.iter().skip(SYSTEM_WIDE).position(|column| column.name == name);
    let cell = place.zip(total).and_then(|(place, row)| row.get_mut(SYSTEM_WIDE + place));
    if let Some(cell) = cell {
        *cell = integer(word, 1).ok_or_else(|| Malformed::new(number, "a number", name, word))?;
    }
    Ok(())
}
