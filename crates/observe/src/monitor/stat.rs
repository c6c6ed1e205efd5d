//! `/proc/stat`: CPU time by state, a row a CPU and one for all of them (`cpu`), which alone carries the system-wide
//! columns. Ticks are recorded as nanoseconds, so their grain is 10 ms. Time in `guest` is part of `user`, and
//! `guest_nice` of `nice` (Documentation/filesystems/proc.rst, section 1.7); `iowait` may go backwards.

use perflab_model::{CellRow, TableCell};

use crate::monitor::registry::MonitorDescriptor;
use crate::monitor::text_format::{
    DeclaredColumn, MalformedLine, fill_row, numbered_lines, parse_integer_cell,
};

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "stat",
    source: "/proc/stat",
    about: "CPU time by state and CPU; interrupts, context switches, forks, runnable and blocked tasks",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.open_text_file(parse_stat),
};

/// USER_HZ is 100 in the binary interface of every architecture but alpha, whatever CONFIG_HZ is.
const NANOS_A_TICK: u64 = 10_000_000;

const fn ticks_column(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "ns").scaled(NANOS_A_TICK)
}

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::key("cpu"),
    ticks_column("user"),
    ticks_column("nice"),
    ticks_column("system"),
    ticks_column("idle"),
    ticks_column("iowait"),
    ticks_column("irq"),
    ticks_column("softirq"),
    ticks_column("steal"),
    ticks_column("guest"),
    ticks_column("guest_nice"),
    DeclaredColumn::counter("intr", "1"),
    DeclaredColumn::counter("ctxt", "1"),
    DeclaredColumn::counter("processes", "1"),
    DeclaredColumn::gauge("procs_running", "1"),
    DeclaredColumn::gauge("procs_blocked", "1"),
];

/// Columns 1 to 10 are of a CPU, those after them of the system.
const SYSTEM_WIDE: usize = 11;

pub(crate) fn parse_stat(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    let total = rows.len();
    for (number, line) in numbered_lines(text) {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some(cpu) if cpu.starts_with("cpu") => rows.push(parse_cpu_line(cpu, words, number)?),
            Some(name) => {
                add_system_wide_number(rows.get_mut(total), name, words.next().unwrap_or_default(), number)?
            }
            None => {}
        }
    }
    let is_total = |row: &CellRow| row.first() == Some(&TableCell::Text("cpu".into()));
    match rows.get(total).is_some_and(is_total) {
        true => Ok(()),
        false => Err(MalformedLine::new(1, "`cpu`", "the first line", text)),
    }
}

fn parse_cpu_line<'a>(
    cpu: &str,
    words: impl Iterator<Item = &'a str>,
    number: usize,
) -> Result<CellRow, MalformedLine> {
    let mut row = CellRow::with_capacity(COLUMNS.len());
    row.push(TableCell::Text(cpu.into()));
    fill_row(&mut row, COLUMNS.get(1..SYSTEM_WIDE).unwrap_or_default(), words, number)?;
    row.resize(COLUMNS.len(), TableCell::Missing);
    Ok(row)
}

/// Puts `name`'s number into the total row; names that have no column (`btime`, `softirq`) are left out.
fn add_system_wide_number(
    total: Option<&mut CellRow>,
    name: &str,
    word: &str,
    number: usize,
) -> Result<(), MalformedLine> {
    let place = COLUMNS.iter().skip(SYSTEM_WIDE).position(|column| column.name == name);
    let cell = place.zip(total).and_then(|(place, row)| row.get_mut(SYSTEM_WIDE + place));
    if let Some(cell) = cell {
        *cell =
            parse_integer_cell(word, 1).ok_or_else(|| MalformedLine::new(number, "a number", name, word))?;
    }
    Ok(())
}
