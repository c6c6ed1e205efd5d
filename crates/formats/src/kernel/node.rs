//! `/sys/devices/system/node/nodeN`: the memory of each NUMA node, and where its allocations came from
//! (Documentation/ABI/stable/sysfs-devices-node); and its counters, in the names of `/proc/vmstat`.

use perflab_model::ColumnSpec;

use crate::column::DiscoveredColumn;
use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::kernel_folder::{FolderCells, FolderLayout, split_at_space};
use crate::kernel::meminfo::discover_meminfo_column;
use crate::kernel::vmstat::discover_vmstat_column;

/// `meminfo` and `numastat` of each node.
pub const NODE: KernelFile = KernelFile {
    name: "node",
    source: "/sys/devices/system/node/node*",
    about: "memory of each NUMA node by use, and its allocations: local, remote, missed",
    needs: "",
    without: "",
    provided_by: "CONFIG_NUMA",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: NODES,
        keys: &["node"],
        cells: &[
            FolderCells::Lines { file: "meminfo", split: split_node_line, discover: discover_meminfo_column },
            FolderCells::Lines {
                file: "numastat",
                split: split_at_space,
                discover: discover_numastat_column,
            },
        ],
    }),
};

/// `vmstat` of each node.
pub const NODE_VMSTAT: KernelFile = KernelFile {
    name: "node-vmstat",
    source: "/sys/devices/system/node/node*",
    about: "the memory manager's counters of each NUMA node",
    needs: "",
    without: "",
    provided_by: "CONFIG_NUMA",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: NODES,
        keys: &["node"],
        cells: &[FolderCells::Lines {
            file: "vmstat",
            split: split_at_space,
            discover: discover_vmstat_column,
        }],
    }),
};

const NODES: &[&str] = &["/sys/devices/system/node/node*"];

/// `Node 0 MemTotal:       25112540 kB`
fn split_node_line(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("Node ")?.split_once(' ')?.1.split_once(':')?;
    Some((name.trim_ascii(), rest.trim_ascii()))
}

/// `numa_hit 1234`
fn discover_numastat_column(name: &str, _rest: &str) -> DiscoveredColumn {
    DiscoveredColumn { column: ColumnSpec::counter(name, "pages"), scale: 1, suffix: "" }
}

/// What is worked out of them (Documentation/admin-guide/numastat.rst).
pub(crate) const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::share(
        "local_share",
        "pages given to who ran on the node",
        &["local_node"],
        &["local_node", "other_node"],
    ),
    DerivedColumn::share(
        "miss_share",
        "pages given though another node was wanted",
        &["numa_miss"],
        &["numa_hit", "numa_miss"],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_node_begin_with_it() {
        assert_eq!(split_node_line("Node 0 MemFree:        3145364 kB"), Some(("MemFree", "3145364 kB")));
        assert_eq!(split_node_line("MemFree: 1 kB"), None);
    }
}
