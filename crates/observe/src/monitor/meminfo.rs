//! `/proc/meminfo`: one row of the kernel's own account of memory. Everything in kB is recorded in bytes; counts of
//! huge pages (`HugePages_*`) stay counts.

use perflab_model::ColumnSpec;

use crate::monitor::registry::MonitorDescriptor;
use crate::monitor::text_format::DiscoveredColumn;

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "meminfo",
    source: "/proc/meminfo",
    about: "how memory is used: free, page cache, anonymous, slab, dirty, huge pages",
    needs: "",
    without: "",
    columns: &[],
    open: |opening| opening.open_name_value_file(discover_meminfo_column),
};

pub(crate) fn discover_meminfo_column(name: &str, rest: &str) -> DiscoveredColumn {
    match rest.ends_with("kB") {
        true => DiscoveredColumn { column: ColumnSpec::gauge(name, "bytes"), scale: 1024 },
        false if name.starts_with("HugePages_") => {
            DiscoveredColumn { column: ColumnSpec::gauge(name, "huge pages"), scale: 1 }
        }
        false => DiscoveredColumn { column: ColumnSpec::gauge(name, "1"), scale: 1 },
    }
}
