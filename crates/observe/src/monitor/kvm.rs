//! `/sys/kernel/debug/kvm`: what KVM counts for its guests. A row for all of them together, and one for each machine, whose
//! folder is called after the process that runs it and a descriptor: `4242-11`. Its files are the columns; which ones there
//! are varies by kernel and processor. A machine that went between two looks is simply not there any more.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Cell, Column, Row, SeriesSchema};

use super::column::{Declared, integer};
use super::kind::{Monitor, MonitorKind, Opening};
use crate::ObserveError;

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "kvm",
    source: "/sys/kernel/debug/kvm",
    about: "exits, interrupts, page table work and halts of KVM's guests: of each, and of all",
    needs: "root, debugfs mounted at /sys/kernel/debug, and a host that runs KVM",
    without: "",
    columns: &[],
    open,
};

/// The row of all machines.
const ALL: &str = "all";

/// What stands for a state and not for events (`KVM_STATS_TYPE_INSTANT` and `_PEAK` in kvm_host.h of Linux 6.1).
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
pub(super) fn count(text: &str) -> Cell {
    integer(text.trim(), 1).unwrap_or(Cell::Missing)
}

/// The open folder.
struct Kvm {
    folder: PathBuf,
    schema: SeriesSchema,
}

fn open(opening: &Opening<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let folder = opening.root.path(opening.kind.source);
    let refused = |source| ObserveError::read(opening.kind.source, source);
    let entries = fs::read_dir(&folder).map_err(refused)?.flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    if names.is_empty() {
        return Err(refused(std::io::Error::other(
            "KVM counts nothing here: no guest was ever started by it",
        )));
    }
    names.sort();
    let columns =
        [Declared::key("machine").column()].into_iter().chain(names.iter().map(|name| column(name)));
    Ok(Box::new(Kvm { folder, schema: opening.schema(columns.collect()) }))
}

fn column(name: &str) -> Column {
    match name {
        _ if name.ends_with("_ns") => Column::counter(name, "ns"),
        _ if GAUGES.contains(&name) => Column::gauge(name, "1"),
        _ => Column::counter(name, "1"),
    }
}

impl Monitor for Kvm {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn sample(&mut self, rows: &mut Vec<Row>) -> Result<(), ObserveError> {
        let entries = fs::read_dir(&self.folder);
        let entries = entries.map_err(|source| ObserveError::read(&self.schema.source, source))?.flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut machines: Vec<String> =
            folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        machines.sort();
        rows.push(self.row(ALL, &self.folder));
        rows.extend(machines.iter().map(|machine| self.row(machine, &self.folder.join(machine))));
        Ok(())
    }
}

impl Kvm {
    fn row(&self, name: &str, folder: &Path) -> Row {
        let numbers = self
            .schema
            .columns
            .iter()
            .skip(1)
            .map(|column| count(&fs::read_to_string(folder.join(&column.name)).unwrap_or_default()));
        [Cell::Text(name.into())].into_iter().chain(numbers).collect()
    }
}
