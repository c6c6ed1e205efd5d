//! Where the memory of a workload's processes lies: `/proc/PID/numa_maps`, by node (Documentation/filesystems/proc.rst).

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// The processes of the workload.
pub const TASK_NUMA: KernelFile = KernelFile {
    name: TaskNumaRow::NAME,
    source: "/proc",
    about: "on which NUMA node the memory of the workload's processes lies; 150 us each, 1 s is often enough",
    needs: "",
    without: "",
    provided_by: "CONFIG_NUMA",
    columns: TaskNumaRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a process and node.
#[derive(Debug, Clone, Copy)]
pub struct TaskNumaRow;

impl RowSchema for TaskNumaRow {
    const NAME: &'static str = "task-numa";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("pid"),
        DeclaredColumn::key("comm"),
        DeclaredColumn::key("node"),
        DeclaredColumn::gauge("anonymous", "bytes"),
        DeclaredColumn::gauge("file", "bytes"),
    ];
}

/// Nodes of a process at most.
const MOST_NODES: usize = 1024;

/// Appends a row for each node on which the process has memory.
pub fn push_numa_rows(pid: u32, comm: &str, text: &str, rows: &mut Vec<CellRow>) {
    // Of each node: anonymous memory and that of files.
    let mut nodes: Vec<(usize, [i64; 2])> = Vec::new();
    for line in text.lines() {
        let words = || line.split_ascii_whitespace();
        let kind = usize::from(words().any(|word| word.starts_with("file=")));
        let page = words().find_map(|word| word.strip_prefix("kernelpagesize_kB=")?.parse::<i64>().ok());
        for word in words() {
            let found = word.strip_prefix('N').and_then(|rest| rest.split_once('='));
            let Some((Ok(node), Ok(pages))) =
                found.map(|(node, pages)| (node.parse::<usize>(), pages.parse::<i64>()))
            else {
                continue;
            };
            let bytes =
                pages.checked_mul(page.unwrap_or(4)).and_then(|kib| kib.checked_mul(1024)).unwrap_or(0);
            let index = match nodes.iter().position(|(known, _)| *known == node) {
                Some(index) => index,
                None if nodes.len() < MOST_NODES => {
                    nodes.push((node, [0; 2]));
                    nodes.len() - 1
                }
                None => continue,
            };
            if let Some(sum) = nodes.get_mut(index).and_then(|(_, sums)| sums.get_mut(kind)) {
                *sum = sum.saturating_add(bytes);
            }
        }
    }
    nodes.sort_unstable();
    for (node, sums) in nodes {
        let keys = [pid.to_string(), comm.to_owned(), node.to_string()].map(TableCell::Text);
        rows.push(keys.into_iter().chain(sums.map(TableCell::Int)).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_all_sizes_are_bytes_of_their_node() {
        let text = "5500 default file=/bin/a mapped=3 N1=3 kernelpagesize_kB=4\n7f00 default anon=2 dirty=2 N0=1 N1=1 kernelpagesize_kB=2048\n";
        let mut rows = Vec::new();
        push_numa_rows(7, "a", text, &mut rows);
        let numbers: Vec<&[TableCell]> = rows.iter().map(|row| &row[2..]).collect();
        let int = TableCell::Int;
        assert_eq!(numbers[0], [TableCell::Text("0".into()), int(2 << 20), int(0)]);
        assert_eq!(numbers[1], [TableCell::Text("1".into()), int(2 << 20), int(3 << 12)]);
    }
}
