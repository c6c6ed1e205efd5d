//! `/proc/PID/smaps_rollup`: the memory of each process of a workload, shared pages divided among those that share them
//! (Documentation/ABI/testing/procfs-smaps_rollup).

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::parse_integer_cell;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// The processes of the workload.
pub const SMAPS: KernelFile = KernelFile {
    name: SmapsRow::NAME,
    source: "/proc",
    about: "memory of each process of the workload: resident, proportional, anonymous, huge pages, swapped; 100 us each",
    needs: "",
    without: "",
    provided_by: "CONFIG_PROC_PAGE_MONITOR",
    columns: SmapsRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a process.
#[derive(Debug, Clone, Copy)]
pub struct SmapsRow;

const fn bytes(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::gauge(name, "bytes")
}

impl RowSchema for SmapsRow {
    const NAME: &'static str = "smaps";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("pid"),
        DeclaredColumn::key("comm"),
        bytes("Rss"),
        bytes("Pss"),
        bytes("Pss_Dirty"),
        bytes("Pss_Anon"),
        bytes("Pss_File"),
        bytes("Pss_Shmem"),
        bytes("Shared_Clean"),
        bytes("Shared_Dirty"),
        bytes("Private_Clean"),
        bytes("Private_Dirty"),
        bytes("Referenced"),
        bytes("Anonymous"),
        bytes("KSM"),
        bytes("LazyFree"),
        bytes("AnonHugePages"),
        bytes("ShmemPmdMapped"),
        bytes("FilePmdMapped"),
        bytes("Shared_Hugetlb"),
        bytes("Private_Hugetlb"),
        bytes("Swap"),
        bytes("SwapPss"),
        bytes("Locked"),
    ];
}

/// The row of one process; nothing where the text has no number of ours, as of one that is ending.
pub fn parse_smaps_rollup(pid: u32, comm: &str, text: &str) -> Option<CellRow> {
    let mut row = SmapsRow::missing_row();
    let mut has_number = false;
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let columns = SmapsRow::COLUMNS.iter().zip(&mut row).skip(2);
        let found = columns.into_iter().find(|(column, _)| column.name == name);
        let number = rest.trim().strip_suffix("kB").and_then(|kib| parse_integer_cell(kib.trim(), 1024));
        if let (Some((_, cell)), Some(number)) = (found, number) {
            *cell = number;
            has_number = true;
        }
    }
    for (cell, text) in row.iter_mut().zip([pid.to_string(), comm.to_owned()]) {
        *cell = TableCell::Text(text);
    }
    has_number.then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kibibytes_become_bytes_and_an_empty_text_no_row() {
        let row = parse_smaps_rollup(7, "cc1", "5-7 ---p 0 00:00 0   [rollup]\nRss:   4 kB\nLocked:  0 kB\n")
            .unwrap();
        assert_eq!(
            row[..3],
            [TableCell::Text("7".into()), TableCell::Text("cc1".into()), TableCell::Int(4096)]
        );
        assert_eq!(row.last(), Some(&TableCell::Int(0)));
        assert_eq!(parse_smaps_rollup(7, "cc1", ""), None);
    }
}
