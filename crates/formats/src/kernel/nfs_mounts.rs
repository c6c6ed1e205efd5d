//! The NFS mounts of `/proc/self/mountstats`: a row a mount and operation, of those that were used
//! (net/sunrpc/stats.c, `rpc_clnt_show_stats`).

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::fill_row;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::reading_parser::MalformedLine;

/// The mounts.
pub const NFS: KernelFile = KernelFile {
    name: NfsRow::NAME,
    source: "/proc/self/mountstats",
    about: "NFS mounts by operation: calls, bytes, time queued, on the wire and in all, errors",
    needs: "",
    without: "",
    provided_by: "CONFIG_NFS_FS, with an NFS mounted",
    columns: NfsRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a mount and operation.
#[derive(Debug, Clone, Copy)]
pub struct NfsRow;

const fn millis(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "ns").scaled(1_000_000)
}

impl RowSchema for NfsRow {
    const NAME: &'static str = "nfs";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("mount"),
        DeclaredColumn::key("operation"),
        DeclaredColumn::counter("operations", "1"),
        DeclaredColumn::counter("transmissions", "1"),
        DeclaredColumn::counter("timeouts", "1"),
        DeclaredColumn::counter("sent", "bytes"),
        DeclaredColumn::counter("received", "bytes"),
        millis("queue_ns"),
        millis("round_trip_ns"),
        millis("execute_ns"),
        DeclaredColumn::counter("errors", "1"),
    ];
}

/// The rows of a whole text.
///
/// # Errors
/// The first line of an NFS mount that is not understood.
pub fn parse_nfs_mountstats(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    let mut mount = None;
    let mut in_operations = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("device ") {
            let found =
                rest.split_once(" mounted on ").and_then(|(_, rest)| rest.split_once(" with fstype nfs"));
            (mount, in_operations) = (found.map(|(mount, _)| mount), false);
            continue;
        }
        let Some(mount) = mount else { continue };
        if line.trim() == "per-op statistics" {
            in_operations = true;
            continue;
        }
        let Some((operation, numbers)) = line.split_once(':').filter(|_| in_operations) else { continue };
        let mut words = numbers.split_ascii_whitespace();
        if words.clone().next() == Some("0") {
            continue;
        }
        let mut row: CellRow = [mount, operation.trim()].map(|text| TableCell::Text(text.into())).into();
        let columns = NfsRow::COLUMNS.get(2..).unwrap_or_default();
        fill_row(&mut row, columns, &mut words)
            .map_err(|description| MalformedLine { line: index + 1, description })?;
        rows.push(row);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After the text that Documentation/filesystems/nfs and nfs-utils' mountstats describe.
    #[test]
    fn operations_of_nfs_mounts_that_were_used_have_a_row() {
        let text = "device proc mounted on /proc with fstype proc\n\
                    device host:/a mounted on /mnt/a with fstype nfs4 statvers=1.1\n\
                    \tage:\t12\n\tper-op statistics\n\
                    \t        NULL: 0 0 0 0 0 0 0 0\n\
                    \t        READ: 3 4 0 600 4096 1 2 5 0\n\
                    device tmpfs mounted on /tmp with fstype tmpfs\n";
        let mut rows = Vec::new();
        parse_nfs_mountstats(text, &mut rows).unwrap();
        let number = |index: usize| if let TableCell::Int(number) = rows[0][index] { number } else { -1 };
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0][..2], ["/mnt/a", "READ"].map(|text| TableCell::Text(text.into())));
        assert_eq!([number(2), number(3), number(6), number(9)], [3, 4, 4096, 5_000_000]);
        let broken = text.replace("600", "x");
        assert_eq!(parse_nfs_mountstats(&broken, &mut rows).unwrap_err().line, 6);
    }
}
