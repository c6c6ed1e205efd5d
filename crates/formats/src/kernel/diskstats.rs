//! `/proc/diskstats`: one row a block device (Documentation/admin-guide/iostats.rst). Sectors are of 512 bytes
//! whatever the device's own are; times have a grain of 1 ms and wrap at 2^32 ms on 32-bit kernels. Discards came
//! with 4.18, flushes with 5.5: `Missing` before.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, fill_row};
use crate::kernel::derived_column::DerivedColumn;
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

/// What is worked out of it, under the names of iostat(1) of sysstat, whose formulas these are.
pub const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::each("r_await", "ns", "time of a read, waiting and served", &["read_ns"], &["read_ios"]),
    DerivedColumn::each(
        "w_await",
        "ns",
        "time of a write, waiting and served",
        &["write_ns"],
        &["write_ios"],
    ),
    DerivedColumn::each(
        "d_await",
        "ns",
        "time of a discard, waiting and served",
        &["discard_ns"],
        &["discard_ios"],
    ),
    DerivedColumn::each("f_await", "ns", "time of a flush", &["flush_ns"], &["flush_ios"]),
    DerivedColumn::per_second("aqu_sz", "1", "requests in the queue, on average", &["queue_ns"], 1e-9),
    DerivedColumn::per_second(
        "util",
        "%",
        "time in which a request was in flight; of a device that serves several at once, no measure of its limit",
        &["io_ns"],
        1e-7,
    ),
    DerivedColumn::share(
        "rrqm",
        "reads that were merged before they were sent",
        &["read_merges"],
        &["read_merges", "read_ios"],
    ),
    DerivedColumn::share(
        "wrqm",
        "writes that were merged before they were sent",
        &["write_merges"],
        &["write_merges", "write_ios"],
    ),
    DerivedColumn::each("rareq_sz", "bytes", "mean size of a read", &["read_bytes"], &["read_ios"]),
    DerivedColumn::each("wareq_sz", "bytes", "mean size of a write", &["write_bytes"], &["write_ios"]),
    DerivedColumn::each("dareq_sz", "bytes", "mean size of a discard", &["discard_bytes"], &["discard_ios"]),
];

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
