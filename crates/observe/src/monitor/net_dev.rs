//! `/proc/net/dev`: one row a network interface of our own network namespace.

use perflab_model::{Cell, Row};

use super::column::{Declared, fill};
use super::kind::MonitorKind;
use super::line::{Malformed, lines};

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "net-dev",
    source: "/proc/net/dev",
    about: "bytes, packets, errors and drops of every network interface",
    needs: "",
    without: "",
    columns: COLUMNS,
    open: |opening| opening.one_file(parse),
};

const COLUMNS: &[Declared] = &[
    Declared::key("interface"),
    Declared::counter("rx_bytes", "bytes"),
    Declared::counter("rx_packets", "1"),
    Declared::counter("rx_errs", "1"),
    Declared::counter("rx_drop", "1"),
    Declared::counter("rx_fifo", "1"),
    Declared::counter("rx_frame", "1"),
    Declared::counter("rx_compressed", "1"),
    Declared::counter("rx_multicast", "1"),
    Declared::counter("tx_bytes", "bytes"),
    Declared::counter("tx_packets", "1"),
    Declared::counter("tx_errs", "1"),
    Declared::counter("tx_drop", "1"),
    Declared::counter("tx_fifo", "1"),
    Declared::counter("tx_colls", "1"),
    Declared::counter("tx_carrier", "1"),
    Declared::counter("tx_compressed", "1"),
];

/// Two lines of headings come first.
const HEADINGS: usize = 2;

pub(super) fn parse(text: &str, rows: &mut Vec<Row>) -> Result<(), Malformed> {
    if !text.starts_with("Inter-|") {
        return Err(Malformed::new(1, "`Inter-|`", "the first line", text));
    }
    for (number, line) in lines(text).skip(HEADINGS) {
        // The name may hold a colon (an alias), and old drivers left no space after the last one.
        let halves =
            line.rsplit_once(':').filter(|(_, numbers)| numbers.split_ascii_whitespace().count() >= 16);
        let (interface, numbers) =
            halves.ok_or_else(|| Malformed::new(number, "a name and 16 numbers", "an interface", line))?;
        let mut row = Row::with_capacity(COLUMNS.len());
        row.push(Cell::Text(interface.trim().into()));
        fill(&mut row, COLUMNS.get(1..).unwrap_or_default(), numbers.split_ascii_whitespace(), number)?;
        rows.push(row);
    }
    Ok(())
}
