//! `/proc/diskstats`: one row a block device (Documentation/admin-guide/iostats.rst). Sectors are of 512 bytes
//! whatever the device's own are; times have a grain of 1 ms and wrap at 2^32 ms on 32-bit kernels. Discards came
//! with 4.18, flushes with 5.5: `Missing` before.

use perflab_model::{Cell, Row};

use super::column::{Declared, fill};
use super::kind::MonitorKind;
use super::line::{Malformed, lines};

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "diskstats",
    source: "/proc/diskstats",
    about: "reads, writes, discards and flushes of every block device: how many, how much, how long",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.one_file(parse),
};

const fn sectors(name: &'static str) -> Declared {
    Declared::counter(name, "bytes").times(512)
}

const fn millis(name: &'static str) -> Declared {
    Declared::counter(name, "ns").times(1_000_000)
}

const COLUMNS: &[Declared] = &[
    Declared::key("device"),
    Declared::counter("read_ios", "1"),
    Declared::counter("read_merges", "1"),
    sectors("read_bytes"),
    millis("read_ns"),
    Declared::counter("write_ios", "1"),
    Declared::counter("write_merges", "1"),
    sectors("write_bytes"),
    millis("write_ns"),
    Declared::gauge("in_flight", "1"),
    millis("io_ns"),
    millis("queue_ns"),
    Declared::counter("discard_ios", "1"),
    Declared::counter("discard_merges", "1"),
    sectors("discard_bytes"),
    millis("discard_ns"),
    Declared::counter("flush_ios", "1"),
    millis("flush_ns"),
];

/// Numbers a line has since 2.6.25, before which partitions had but four, with other meanings.
const FEWEST: usize = 11;

pub(super) fn parse(text: &str, rows: &mut Vec<Row>) -> Result<(), Malformed> {
    for (number, line) in lines(text) {
        let mut words = line.split_ascii_whitespace();
        let device = words.nth(2).filter(|_| words.clone().count() >= FEWEST);
        let device = device.ok_or_else(|| Malformed::new(number, "14 words or more", "a device", line))?;
        let mut row = Row::with_capacity(COLUMNS.len());
        row.push(Cell::Text(device.into()));
        fill(&mut row, COLUMNS.get(1..).unwrap_or_default(), words, number)?;
        rows.push(row);
    }
    Ok(())
}
