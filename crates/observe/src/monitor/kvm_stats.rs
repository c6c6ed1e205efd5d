//! Series `kvm` on a clock: what KVM counts for its guests.
//!
//! A row for all of them together, and one for each machine. A machine that went between two readings has no row any
//! more.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_formats::kernel::kvm_stats::{kvm_columns, parse_kvm_count};
use perflab_model::{CellRow, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};

/// The row of all machines.
const ALL: &str = "all";

/// The open folder.
struct KvmStatsMonitor {
    folder: PathBuf,
    schema: SeriesSchema,
}

pub(crate) fn open_kvm_stats(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let folder = opening.root.path(opening.file.source);
    let refused = |source| ObserveError::read_failed(opening.file.source, source);
    let entries = fs::read_dir(&folder).map_err(refused)?.flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    if names.is_empty() {
        return Err(refused(std::io::Error::other(
            "KVM counts nothing here: no guest was ever started by it",
        )));
    }
    names.sort();
    Ok(Box::new(KvmStatsMonitor { folder, schema: opening.schema_with_columns(kvm_columns(&names)) }))
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
            parse_kvm_count(&fs::read_to_string(folder.join(&column.name)).unwrap_or_default())
        });
        [TableCell::Text(name.into())].into_iter().chain(numbers).collect()
    }
}
