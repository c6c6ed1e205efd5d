//! `/proc/net/netstat`, `snmp` and `snmp6`: the counters of IP, TCP, UDP and what extends them, of the reader's network
//! namespace, in one wide row.

use perflab_model::ColumnSpec;

use crate::column::{DiscoveredColumn, describe_mismatch};
use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::reading_parser::MalformedLine;

/// The files.
pub const NET_PROTOCOLS: KernelFile = KernelFile {
    name: "net-protocols",
    source: "/proc/net/snmp",
    about: "counters of IP, TCP and UDP: retransmits, drops, overflows, resets, prunes; two hundred and more",
    needs: "",
    without: "",
    provided_by: "CONFIG_INET",
    columns: &[],
    layout: KernelFileLayout::Tree,
};

/// What is read, in the order of the columns.
pub const NET_PROTOCOL_FILES: &[&str] = &["/proc/net/snmp", "/proc/net/netstat", "/proc/net/snmp6"];

/// What is a state and not a count (net/ipv4/proc.c).
const GAUGES: &[&str] = &[
    "Ip_Forwarding",
    "Ip_DefaultTTL",
    "Tcp_RtoAlgorithm",
    "Tcp_RtoMin",
    "Tcp_RtoMax",
    "Tcp_MaxConn",
    "Tcp_CurrEstab",
];

/// The column of a name: `Tcp_RetransSegs`.
pub fn discover_protocol_column(name: &str) -> DiscoveredColumn {
    let unit = if name.ends_with("Octets") { "bytes" } else { "1" };
    let column =
        if GAUGES.contains(&name) { ColumnSpec::gauge(name, unit) } else { ColumnSpec::counter(name, unit) };
    DiscoveredColumn { column, scale: 1, suffix: "" }
}

/// Hands over each counter of a text: its protocol, its name and its number.
///
/// # Errors
/// The first line that is not understood.
pub fn parse_protocol_counters<'t>(
    text: &'t str,
    mut take: impl FnMut(&'t str, &'t str, &'t str),
) -> Result<(), MalformedLine> {
    let mut names: Option<(&str, &str)> = None;
    for (index, line) in text.lines().enumerate() {
        let malformed = |expected: &str| MalformedLine {
            line: index + 1,
            description: describe_mismatch(expected, "a protocol", line),
        };
        let Some((protocol, rest)) = line.split_once(':') else {
            // `Ip6InReceives                   	3` of snmp6
            let mut words = line.split_ascii_whitespace();
            let (Some(name), Some(number), None) = (words.next(), words.next(), words.next()) else {
                return Err(malformed("a name and a number"));
            };
            take("", name, number);
            continue;
        };
        match names.take() {
            None => names = Some((protocol, rest)),
            Some((named, names)) if named == protocol => {
                let mut numbers = rest.split_ascii_whitespace();
                for name in names.split_ascii_whitespace() {
                    let Some(number) = numbers.next() else {
                        return Err(malformed("as many numbers as names"));
                    };
                    take(protocol, name, number);
                }
            }
            Some((named, _)) => {
                return Err(malformed(&format!("the numbers of {named}")));
            }
        }
    }
    Ok(())
}

/// What is worked out of them (RFC 1213: segments sent do not count those that were sent again).
pub(crate) const DERIVED: &[DerivedColumn] = &[DerivedColumn::share(
    "tcp_retransmitted_share",
    "segments of TCP that were sent again",
    &["Tcp_RetransSegs"],
    &["Tcp_OutSegs", "Tcp_RetransSegs"],
)];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, usize> {
        let mut found = Vec::new();
        let parsed = parse_protocol_counters(text, |protocol, name, number| {
            found.push(format!("{protocol}.{name}={number}"));
        });
        parsed.map(|()| found).map_err(|error| error.line)
    }

    #[test]
    fn names_and_numbers_stand_in_pairs_of_lines_or_alone() {
        let text = "Tcp: RtoMin MaxConn\nTcp: 200 -1\nIp6InReceives   \t3\n";
        assert_eq!(read(text).unwrap(), ["Tcp.RtoMin=200", "Tcp.MaxConn=-1", ".Ip6InReceives=3"]);
        assert_eq!(read("Tcp: A B\nUdp: 1 2\n"), Err(2));
        assert_eq!(read("Tcp: A B\nTcp: 1\n"), Err(2));
        assert_eq!(read("Tcp\n"), Err(1));
    }
}
