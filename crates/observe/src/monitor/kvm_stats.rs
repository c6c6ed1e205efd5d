//! Series `kvm` (`/sys/kernel/debug/kvm`): what KVM counts for its guests.
//!
//! A row for all of them together, and one for each machine, whose folder is called after the process that runs it
//! and a descriptor: `4242-11`. Its files are the columns; which ones there are varies by kernel and processor. A
//! machine that went between two readings has no row any more.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{CellRow, ColumnSpec, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::registry::{Monitor, MonitorContext, MonitorDescriptor};
use crate::monitor::text_format::{DeclaredColumn, parse_integer_cell};

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "kvm",
    source: "/sys/kernel/debug/kvm",
    about: "exits, interrupts, page table work and halts of KVM's guests: of each, and of all",
    needs: "root, debugfs mounted at /sys/kernel/debug, and a host that runs KVM",
    without: "",
    columns: &[],
    open: open_kvm_stats,
};

/// The row of all machines.
const ALL: &str = "all";

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

/// What one of the files says: a number and nothing else, else it is missing.
pub(crate) fn parse_count_cell(text: &str) -> TableCell {
    parse_integer_cell(text.trim(), 1).unwrap_or(TableCell::Missing)
}

/// The open folder.
struct KvmStatsMonitor {
    folder: PathBuf,
    schema: SeriesSchema,
}

fn open_kvm_stats(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let folder = opening.root.path(opening.kind.source);
    let refused = |source| ObserveError::read_failed(opening.kind.source, source);
    let entries = fs::read_dir(&folder).map_err(refused)?.flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    if names.is_empty() {
        return Err(refused(std::io::Error::other(
            "KVM counts nothing here: no guest was ever started by it",
        )));
    }
    names.sort();
    let columns = [DeclaredColumn::key("machine").column()]
        .into_iter()
        .chain(names.iter().map(|name| declare_kvm_column(name)));
    Ok(Box::new(KvmStatsMonitor { folder, schema: opening.schema_with_columns(columns.collect()) }))
}

fn declare_kvm_column(name: &str) -> ColumnSpec {
    match name {
        _ if name.ends_with("_ns") => ColumnSpec::counter(name, "ns"),
        _ if GAUGES.contains(&name) => ColumnSpec::gauge(name, "1"),
        _ => ColumnSpec::counter(name, "1"),
    }
}

impl Monitor for KvmStatsMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let entries = fs::read_dir(&self.folder);
        let entries =
            entries.map_err(|source| ObserveError::read_failed(&self.schema.source, source))?.flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut machines: Vec<String> =
            folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        machines.sort();
        rows.push(self.read_guest_row(ALL, &self.folder));
        rows.extend(machines.iter().map(|machine| self.read_guest_row(machine, &self.folder.join(machine))));
        Ok(())
    }
}

impl KvmStatsMonitor {
    fn read_guest_row(&self, name: &str, folder: &Path) -> CellRow {
        let numbers = self.schema.columns.iter().skip(1).map(|column| {
            parse_count_cell(&fs::read_to_string(folder.join(&column.name)).unwrap_or_default())
        });
        [TableCell::Text(name.into())].into_iter().chain(numbers).collect()
    }
}
