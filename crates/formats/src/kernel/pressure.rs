//! `/proc/pressure/*`: one row a resource and kind of stall (Documentation/accounting/psi.rst). `some`: at least one
//! task waits; `full`: all that could run do. The files need CONFIG_PSI, and psi=1 where it is off by default.

use perflab_model::{CellRow, ColumnRef, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, parse_cell};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::LineOutcome;

/// The files, one format.
pub const PRESSURE: KernelFile = KernelFile {
    name: PressureRow::NAME,
    source: "/proc/pressure",
    about: "share of time that tasks wait for CPU, memory, I/O or interrupts",
    needs: "",
    without: "",
    provided_by: "CONFIG_PSI, and with the boot parameter psi=1 where it is off by default",
    columns: PressureRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: RESOURCES,
        start: ReadingStart::SubjectAgain(find_stall_kind),
        parse_row: parse_pressure_line,
    }),
};

/// A row a resource and kind of stall.
#[derive(Debug, Clone, Copy)]
pub struct PressureRow;

impl RowSchema for PressureRow {
    const NAME: &'static str = "pressure";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("resource"),
        DeclaredColumn::key("kind"),
        DeclaredColumn::float("avg10", "percent"),
        DeclaredColumn::float("avg60", "percent"),
        DeclaredColumn::float("avg300", "percent"),
        DeclaredColumn::counter("total_ns", "ns").scaled(1000),
    ];
}

impl PressureRow {
    /// Over ten seconds, in per cent.
    pub const AVG10: ColumnRef<Self, f64> = ColumnRef::named("avg10");

    /// Over a minute, in per cent.
    pub const AVG60: ColumnRef<Self, f64> = ColumnRef::named("avg60");

    /// Over five minutes, in per cent.
    pub const AVG300: ColumnRef<Self, f64> = ColumnRef::named("avg300");
}

/// Each with its file; `irq` came with 6.1 and needs CONFIG_IRQ_TIME_ACCOUNTING.
const RESOURCES: &[(&str, &str)] = &[
    ("cpu", "/proc/pressure/cpu"),
    ("memory", "/proc/pressure/memory"),
    ("io", "/proc/pressure/io"),
    ("irq", "/proc/pressure/irq"),
];

/// `some` or `full`.
fn find_stall_kind(line: &str) -> Option<&str> {
    line.split_once(" avg10=").map(|(kind, _)| kind).filter(|kind| matches!(*kind, "some" | "full"))
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, of which the label is the resource.
fn parse_pressure_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    let mut words = line.split_ascii_whitespace();
    let mut row = CellRow::with_capacity(PressureRow::COLUMNS.len());
    row.push(TableCell::Text(words.next().unwrap_or_default().into()));
    for column in PressureRow::COLUMNS.iter().skip(2) {
        let word = words.next().and_then(|word| Some(word.split_once('=')?.1)).unwrap_or_default();
        let Some(cell) = parse_cell(column, word) else {
            return LineOutcome::Unusable(describe_mismatch("a number", column.name, line));
        };
        row.push(cell);
    }
    rows.push(row);
    LineOutcome::Used
}
