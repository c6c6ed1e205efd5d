//! `/proc/meminfo`: one row of the kernel's own account of memory. Everything in kB is recorded in bytes; counts of
//! huge pages (`HugePages_*`) stay counts.

use perflab_model::ColumnSpec;

use crate::column::DiscoveredColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, NameValueLayout};
use crate::kernel::small_values::find_field;

/// The file.
pub const MEMINFO: KernelFile = KernelFile {
    name: "meminfo",
    source: "/proc/meminfo",
    about: "how memory is used: free, page cache, anonymous, slab, dirty, huge pages",
    needs: "",
    without: "",
    provided_by: "",
    columns: &[],
    layout: KernelFileLayout::NameValues(NameValueLayout {
        first: "MemTotal:",
        separator: ':',
        discover: discover_meminfo_column,
    }),
};

pub(crate) fn discover_meminfo_column(name: &str, rest: &str) -> DiscoveredColumn {
    let (unit, scale, suffix) = match rest.ends_with(" kB") {
        true => ("bytes", 1024, "kB"),
        false if name.starts_with("HugePages_") => ("huge pages", 1, ""),
        false => ("1", 1, ""),
    };
    DiscoveredColumn { column: ColumnSpec::gauge(name, unit), scale, suffix }
}

/// One field of a meminfo: bytes, or a bare count as it is.
pub fn find_meminfo_field(text: &str, name: &str) -> Option<i64> {
    find_field(text, ':', name).and_then(parse_kernel_bytes)
}

/// `MemTotal` of a node's meminfo, whose lines begin `Node 0 MemTotal:`.
pub fn find_node_memory(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.split_once("MemTotal:"))?;
    parse_kernel_bytes(line.1.trim())
}

/// `24682416 kB` in bytes, and a bare count as it is.
fn parse_kernel_bytes(value: &str) -> Option<i64> {
    match value.strip_suffix("kB") {
        Some(kib) => kib.trim_end().parse::<i64>().ok()?.checked_mul(1024),
        None => value.parse().ok(),
    }
}
