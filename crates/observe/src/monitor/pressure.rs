//! `/proc/pressure/*`: one row a resource and kind of stall (Documentation/accounting/psi.rst). `some`: at least one
//! task waits; `full`: all that could run do. The files need CONFIG_PSI, and psi=1 where it is off by default.

use perflab_model::{CellRow, SeriesSchema, TableCell};

use crate::ObserveError;
use crate::monitor::registry::{Monitor, MonitorContext, MonitorDescriptor};
use crate::monitor::text_file::ProcFile;
use crate::monitor::text_format::{DeclaredColumn, MalformedLine, numbered_lines};

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "pressure",
    source: "/proc/pressure",
    about: "share of time that tasks wait for CPU, memory, I/O or interrupts",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: open_pressure,
};

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::key("resource"),
    DeclaredColumn::key("kind"),
    DeclaredColumn::float("avg10", "percent"),
    DeclaredColumn::float("avg60", "percent"),
    DeclaredColumn::float("avg300", "percent"),
    DeclaredColumn::counter("total_ns", "ns").scaled(1000),
];

/// Each with its file; `irq` came with 6.1 and needs CONFIG_IRQ_TIME_ACCOUNTING.
const RESOURCES: &[(&str, &str)] = &[
    ("cpu", "/proc/pressure/cpu"),
    ("memory", "/proc/pressure/memory"),
    ("io", "/proc/pressure/io"),
    ("irq", "/proc/pressure/irq"),
];

struct PressureMonitor {
    schema: SeriesSchema,
    files: Vec<(&'static str, ProcFile)>,
}

/// Opens whichever of the files there are; none at all is the error of the first.
fn open_pressure(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let mut files = Vec::with_capacity(RESOURCES.len());
    let mut refused = None;
    for (resource, path) in RESOURCES {
        match ProcFile::open(opening.root, path) {
            Ok(file) => files.push((*resource, file)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match refused {
        Some(error) if files.is_empty() => Err(error),
        _ => Ok(Box::new(PressureMonitor { schema: opening.declared_schema(), files })),
    }
}

impl Monitor for PressureMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        for (resource, file) in &mut self.files {
            let parsed = parse_pressure(resource, file.read()?, rows);
            parsed.map_err(|malformed| file.malformed_error(malformed))?;
        }
        Ok(())
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`
pub(crate) fn parse_pressure(
    resource: &str,
    text: &str,
    rows: &mut Vec<CellRow>,
) -> Result<(), MalformedLine> {
    for (number, line) in numbered_lines(text) {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next().unwrap_or_default();
        let mut row = CellRow::with_capacity(COLUMNS.len());
        row.extend([TableCell::Text(resource.into()), TableCell::Text(kind.into())]);
        for column in COLUMNS.iter().skip(2) {
            let word = words.next().and_then(|word| Some(word.split_once('=')?.1)).unwrap_or_default();
            let cell = column
                .parse_cell(word)
                .ok_or_else(|| MalformedLine::new(number, "a number", column.name, line))?;
            row.push(cell);
        }
        rows.push(row);
    }
    Ok(())
}
