//! `/proc/net/dev`: one row a network interface of the reader's network namespace.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, fill_row};
use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::{LineOutcome, LineRole};

/// The file.
pub const NET_DEV: KernelFile = KernelFile {
    name: NetDevRow::NAME,
    source: "/proc/net/dev",
    about: "bytes, packets, errors and drops of every network interface",
    needs: "",
    without: "",
    provided_by: "CONFIG_NET",
    columns: NetDevRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::Head { expected: "`Inter-|`", role: net_dev_role },
        parse_row: parse_net_dev_line,
    }),
};

/// A row an interface.
#[derive(Debug, Clone, Copy)]
pub struct NetDevRow;

impl RowSchema for NetDevRow {
    const NAME: &'static str = "net-dev";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("interface"),
        DeclaredColumn::counter("rx_bytes", "bytes"),
        DeclaredColumn::counter("rx_packets", "1"),
        DeclaredColumn::counter("rx_errs", "1"),
        DeclaredColumn::counter("rx_drop", "1"),
        DeclaredColumn::counter("rx_fifo", "1"),
        DeclaredColumn::counter("rx_frame", "1"),
        DeclaredColumn::counter("rx_compressed", "1"),
        DeclaredColumn::counter("rx_multicast", "1"),
        DeclaredColumn::counter("tx_bytes", "bytes"),
        DeclaredColumn::counter("tx_packets", "1"),
        DeclaredColumn::counter("tx_errs", "1"),
        DeclaredColumn::counter("tx_drop", "1"),
        DeclaredColumn::counter("tx_fifo", "1"),
        DeclaredColumn::counter("tx_colls", "1"),
        DeclaredColumn::counter("tx_carrier", "1"),
        DeclaredColumn::counter("tx_compressed", "1"),
    ];
}

/// Two lines of headings come first, parted by bars.
fn net_dev_role(line: &str) -> Result<LineRole, String> {
    Ok(match line {
        _ if line.starts_with("Inter-|") => LineRole::Head,
        _ if line.trim_ascii_start().starts_with("face |") => LineRole::Comment,
        _ => LineRole::Row,
    })
}

fn parse_net_dev_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    // The name may hold a colon (an alias), and old drivers left no space after the last one.
    let halves = line.rsplit_once(':').filter(|(_, numbers)| numbers.split_ascii_whitespace().count() >= 16);
    let Some((interface, numbers)) = halves else {
        return LineOutcome::Unusable(describe_mismatch("a name and 16 numbers", "an interface", line));
    };
    let mut row = CellRow::with_capacity(NetDevRow::COLUMNS.len());
    row.push(TableCell::Text(interface.trim().into()));
    let columns = NetDevRow::COLUMNS.get(1..).unwrap_or_default();
    if let Err(reason) = fill_row(&mut row, columns, numbers.split_ascii_whitespace()) {
        return LineOutcome::Unusable(reason);
    }
    rows.push(row);
    LineOutcome::Used
}

/// What is worked out of them.
pub(crate) const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::each(
        "rx_packet_size",
        "bytes",
        "mean size of a packet received",
        &["rx_bytes"],
        &["rx_packets"],
    ),
    DerivedColumn::each(
        "tx_packet_size",
        "bytes",
        "mean size of a packet sent",
        &["tx_bytes"],
        &["tx_packets"],
    ),
    DerivedColumn::share(
        "rx_drop_share",
        "packets received that were dropped",
        &["rx_drop"],
        &["rx_packets", "rx_drop"],
    ),
];
