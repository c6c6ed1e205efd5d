//! `/proc/diskstats`: one row a block device (Documentation/admin-guide/iostats.rst). Sectors are of 512 bytes
//! whatever the device's own are; times have a grain of 1 ms and wrap at 2^32 ms on 32-bit kernels. Discards came
//! with 4.18, flushes with 5.5: `Missing` before.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, fill_row};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::LineOutcome;

/// The file.
pub const DISKSTATS: KernelFile = KernelFile {
    name: DiskstatsRow::NAME,
    source: "/proc/diskstats",
    about: "reads, writes, discards and flushes of every block device: how many, how much, how long",
    needs: "",
    without: "",
    provided_by: "CONFIG_BLOCK",
    columns: DiskstatsRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::SubjectAgain(find_device),
        parse_row: parse_diskstats_line,
    }),
};

const fn sectors_column(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "bytes").scaled(512)
}

const fn millis_column(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "ns").scaled(1_000_000)
}

/// A row a block device.
#[derive(Debug, Clone, Copy)]
pub struct DiskstatsRow;

impl RowSchema for DiskstatsRow {
    const NAME: &'static str = "diskstats";
    const COLUMNS: &'static [DeclaredColumn] = &[
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
}

/// Numbers a line has since 2.6.25, before which partitions had but four, with other meanings.
const FEWEST: usize = 11;

/// The device of a line: its third word, behind two numbers and before many.
fn find_device(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let numbers = [words.next()?, words.next()?];
    let device = words.next().filter(|_| words.count() >= FEWEST);
    device.filter(|_| numbers.iter().all(|word| word.parse::<u32>().is_ok()))
}

/// ` 254       0 vda 2037 …`
fn parse_diskstats_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    let Some(device) = find_device(line) else {
        return LineOutcome::Unusable(describe_mismatch("14 words or more", "a device", line));
    };
    let mut row = CellRow::with_capacity(DiskstatsRow::COLUMNS.len());
    row.push(TableCell::Text(device.into()));
    let numbers = line.split_ascii_whitespace().skip(3);
    if let Err(reason) = fill_row(&mut row, DiskstatsRow::COLUMNS.get(1..).unwrap_or_default(), numbers) {
        return LineOutcome::Unusable(reason);
    }
    rows.push(row);
    LineOutcome::Used
}
