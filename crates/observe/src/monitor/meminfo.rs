//! `/proc/meminfo`: one row of the kernel's own account of memory. Everything in kB is recorded in bytes; counts of
//! huge pages (`HugePages_*`) stay counts.

use perflab_model::Column;

use super::kind::MonitorKind;
use super::wide::Found;

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "meminfo",
    source: "/proc/meminfo",
    about: "how memory is used: free, page cache, anonymous, slab, dirty, huge pages",
    needs: "",
    without: "",
    columns: &[],
    open: |opening| opening.wide(discover),
};

pub(super) fn discover(name: &str, rest: &str) -> Found {
    match rest.ends_with("kB") {
        true => Found { column: Column::gauge(name, "bytes"), scale: 1024 },
        false if name.starts_with("HugePages_") => {
            Found { column: Column::gauge(name, "huge pages"), scale: 1 }
        }
        false => Found { column: Column::gauge(name, "1"), scale: 1 },
    }
}
