//! `/sys/kernel/debug/kvm`: what KVM counts for its guests, a row for all of them together and one for each.
//!
//! A machine's folder is called after the process that runs it and a descriptor: `4242-11`. Its files are the columns;
//! which ones there are varies by kernel and processor.

use perflab_model::{ColumnSpec, DeclaredColumn, TableCell};

use crate::column::parse_integer_cell;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// The folder.
pub const KVM_STATS: KernelFile = KernelFile {
    name: "kvm",
    source: "/sys/kernel/debug/kvm",
    about: "exits, interrupts, page table work and halts of KVM's guests: of each, and of all",
    needs: "root, debugfs mounted at /sys/kernel/debug, and a host that runs KVM",
    without: "",
    provided_by: "CONFIG_KVM and CONFIG_DEBUG_FS",
    columns: &[],
    layout: KernelFileLayout::Tree,
};

/// What is a state and not a count of events (`KVM_STATS_TYPE_INSTANT` and `_PEAK` in kvm_host.h of Linux 6.1).
const GAUGES: &[&str] = &[
    "blocking",
    "guest_mode",
    "lpages",
    "max_mmu_page_hash_collisions",
    "max_mmu_rmap_size",
    "mmu_unsync",
    "nx_lpage_splits",
    "pages_1g",
    "pages_2m",
    "pages_4k",
];

/// The columns of a folder with these files.
pub fn kvm_columns(files: &[String]) -> Vec<ColumnSpec> {
    let counts = files.iter().map(|name| match name.as_str() {
        name if name.ends_with("_ns") => ColumnSpec::counter(name, "ns"),
        name if GAUGES.contains(&name) => ColumnSpec::gauge(name, "1"),
        name => ColumnSpec::counter(name, "1"),
    });
    [DeclaredColumn::key("machine").column()].into_iter().chain(counts).collect()
}

/// What one of the files says: a number and nothing else, else it is missing.
pub fn parse_kvm_count(text: &str) -> TableCell {
    parse_integer_cell(text.trim(), 1).unwrap_or(TableCell::Missing)
}
