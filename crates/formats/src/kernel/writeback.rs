//! Dirty pages and their thresholds, of the machine and of each device that is written back to: `/proc/vmstat` and
//! debugfs' `bdi/DEVICE/stats` (mm/backing-dev.c).

use perflab_model::ColumnSpec;

use crate::column::DiscoveredColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// The devices.
pub const WRITEBACK: KernelFile = KernelFile {
    name: "writeback",
    source: "/proc/vmstat",
    about: "dirty memory, its thresholds, and writeback by device: bandwidth, pages written, inodes waiting",
    needs: "root for single devices, and debugfs mounted at /sys/kernel/debug",
    without: "",
    provided_by: "",
    columns: &[],
    layout: KernelFileLayout::Tree,
};

/// Where each device has a folder.
pub const BDI_FOLDER: &str = "/sys/kernel/debug/bdi";

/// Names of `/proc/vmstat` that are the machine's row.
pub const WRITEBACK_NAMES: &[&str] = &[
    "nr_dirty",
    "nr_writeback",
    "nr_writeback_temp",
    "nr_dirtied",
    "nr_written",
    "nr_dirty_threshold",
    "nr_dirty_background_threshold",
    "nr_throttled_written",
    "balance_dirty_pages",
];

/// The column of a line of `stats`: `BdiWritten:   12 kB`, `BdiWriteBandwidth: 102400 kBps`, `b_dirty: 3`.
pub fn discover_bdi_column(name: &str, rest: &str) -> DiscoveredColumn {
    let of = |column, scale| DiscoveredColumn { column, scale, suffix: "" };
    match rest.split_ascii_whitespace().nth(1) {
        Some("kB") if matches!(name, "BdiDirtied" | "BdiWritten") => {
            of(ColumnSpec::counter(name, "bytes"), 1024)
        }
        Some("kB") => of(ColumnSpec::gauge(name, "bytes"), 1024),
        Some("kBps") => of(ColumnSpec::gauge(name, "bytes/s"), 1024),
        _ => of(ColumnSpec::gauge(name, "1"), 1),
    }
}
