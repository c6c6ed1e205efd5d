//! `/proc/net/dev`: one row a network interface of our own network namespace.

use perflab_model::{CellRow, TableCell};

use crate::monitor::registry::MonitorDescriptor;
use crate::monitor::text_format::{DeclaredColumn, MalformedLine, fill_row, numbered_lines};

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "net-dev",
    source: "/proc/net/dev",
    about: "bytes, packets, errors and drops of every network interface",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.open_text_file(parse_net_dev),
};

const COLUMNS: &[DeclaredColumn] = &[
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

/// Two lines of headings come first.
const HEADINGS: usize = 2;

pub(crate) fn parse_net_dev(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    if !text.starts_with("Inter-|") {
        return Err(MalformedLine::new(1, "`Inter-|`", "the first line", text));
    }
    for (number, line) in numbered_lines(text).skip(HEADINGS) {
        // The name may hold a colon (an alias), and old drivers left no space after the last one.
        let halves =
            line.rsplit_once(':').filter(|(_, numbers)| numbers.split_ascii_whitespace().count() >= 16);
        let (interface, numbers) = halves
            .ok_or_else(|| MalformedLine::new(number, "a name and 16 numbers", "an interface", line))?;
        let mut row = CellRow::with_capacity(COLUMNS.len());
        row.push(TableCell::Text(interface.trim().into()));
        fill_row(&mut row, COLUMNS.get(1..).unwrap_or_default(), numbers.split_ascii_whitespace(), number)?;
        rows.push(row);
    }
    Ok(())
}
