//! `/proc/diskstats`: one row a block device (Documentation/admin-guide/iostats.rst). Sectors are of 512 bytes
//! whatever the device's own are; times have a grain of 1 ms and wrap at 2^32 ms on 32-bit kernels. Discards came
//! with 4.18, flushes with 5.5: `Missing` before.

use perflab_model::{CellRow, TableCell};

use crate::monitor::registry::MonitorDescriptor;
use crate::monitor::text_format::{DeclaredColumn, MalformedLine, fill_row, numbered_lines};

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "diskstats",
    source: "/proc/diskstats",
    about: "reads, writes, discards and flushes of every block device: how many, how much, how long",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.open_text_file(parse_diskstats),
};

const fn sectors_column(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "bytes").scaled(512)
}

const fn millis_column(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "ns").scaled(1_000_000)
}

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::key("device"),
    DeclaredColumn::counter("read_ios", "1"),
    DeclaredColumn::counter("read_merges", "1"),
    sectors_column("read_bytes"),
    millis_column("read_ns"),
    DeclaredColumn::counter("write_ios", "1"),
    DeclaredColumn::counter("write_merges", "1"),
    sectors_column("write_bytes"),
    millis_column("write_ns"),
    DeclaredColumn::gauge("in_flight", "1"),
    millis_column("io_ns"),
    millis_column("queue_ns"),
    DeclaredColumn::counter("discard_ios", "1"),
    DeclaredColumn::counter("discard_merges", "1"),
    sectors_column("discard_bytes"),
    millis_column("discard_ns"),
    DeclaredColumn::counter("flush_ios", "1"),
    millis_column("flush_ns"),
];

/// Numbers a line has since 2.6.25, before which partitions had but four, with other meanings.
const FEWEST: usize = 11;

pub(crate) fn parse_diskstats(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    for (number, line) in numbered_lines(text) {
        let mut words = line.split_ascii_whitespace();
        let device = words.nth(2).filter(|_| words.clone().count() >= FEWEST);
        let device =
            device.ok_or_else(|| MalformedLine::new(number, "14 words or more", "a device", line))?;
        let mut row = CellRow::with_capacity(COLUMNS.len());
        row.push(TableCell::Text(device.into()));
        fill_row(&mut row, COLUMNS.get(1..).unwrap_or_default(), words, number)?;
        rows.push(row);
    }
    Ok(())
}
