//! The monitors: every kernel file that `perflab-formats` declares, how those that are more than one text are opened,
//! and finding and opening one.

use perflab_formats::column::stored_columns;
use perflab_formats::kernel::{KERNEL_FILES, KernelFile, find_kernel_file};
use perflab_formats::kernel::{kvm_stats::KVM_STATS, slabinfo::SLABINFO, sysfs_slab};
use perflab_model::{CellRow, ColumnSpec, Nanos, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::text_file::TextFileMonitor;
use crate::monitor::{kvm_stats, slab_caches, slab_exact, slabinfo};
use crate::root::Root;

/// A monitor that was opened.
pub trait Monitor: Send {
    /// Its columns; the same for as long as it is open.
    fn schema(&self) -> &SeriesSchema;

    /// Reads its file now and appends all rows of this tick.
    ///
    /// # Errors
    /// When the file cannot be read any more or is not understood; `rows` may then hold some of them.
    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError>;

    /// Reads its file now, and returns what differs from its last reading, where it knows; else everything.
    ///
    /// # Errors
    /// As [`Monitor::read_rows`].
    fn read_changes(&mut self) -> Result<MonitorReading, ObserveError> {
        let mut rows = Vec::new();
        self.read_rows(&mut rows)?;
        Ok(MonitorReading::Whole(rows))
    }
}

/// What a monitor says at a tick.
#[derive(Debug, Clone, PartialEq)]
pub enum MonitorReading {
    /// All rows.
    Whole(Vec<CellRow>),
    /// Those that differ from the last tick's, each with its index: the others are as they were.
    Changed(Vec<(u32, CellRow)>),
}

/// How a monitor is opened.
type OpenMonitor = fn(&MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError>;

/// Those that do more than to read a text again; all others are a [`TextFileMonitor`].
pub(crate) const OPENINGS: &[(&str, OpenMonitor)] = &[
    (SLABINFO.name, slabinfo::open_slabinfo),
    (sysfs_slab::SLAB_CACHES.name, slab_caches::open_slab_caches),
    (sysfs_slab::SLAB_EXACT.name, slab_exact::open_slab_exact),
    (KVM_STATS.name, kvm_stats::open_kvm_stats),
];

/// All monitors, in the order in which they are shown.
pub fn all_monitors() -> &'static [KernelFile] {
    KERNEL_FILES
}

/// The monitor called `name`.
///
/// # Errors
/// [`ObserveError::Unknown`] with the nearest name.
pub fn find_monitor(name: &str) -> Result<&'static KernelFile, ObserveError> {
    find_kernel_file(name)
        .ok_or_else(|| ObserveError::unknown_name(name, "monitor", KERNEL_FILES.iter().map(|file| file.name)))
}

/// Opens a monitor below `root`; `interval` is only written into its schema.
///
/// # Errors
/// When its file is missing, refused (the message then says what it needs), or not understood.
pub fn open_monitor(
    file: &'static KernelFile,
    root: &Root,
    interval: Nanos,
) -> Result<Box<dyn Monitor>, ObserveError> {
    let context = MonitorContext { file, root, interval };
    let opened = match OPENINGS.iter().find(|(name, _)| *name == file.name) {
        Some((_, open)) => open(&context),
        None => TextFileMonitor::open(&context),
    };
    opened.map_err(|error| error.with_requirement(file.needs, file.without))
}

/// What a monitor is opened with.
#[derive(Debug)]
pub struct MonitorContext<'a> {
    pub(crate) file: &'static KernelFile,
    pub(crate) root: &'a Root,
    pub(crate) interval: Nanos,
}

impl MonitorContext<'_> {
    /// The schema of a monitor with these columns.
    pub(crate) fn schema_with_columns(&self, columns: Vec<ColumnSpec>) -> SeriesSchema {
        SeriesSchema {
            monitor: self.file.name.into(),
            source: self.file.source.into(),
            interval: self.interval,
            columns,
        }
    }

    /// The schema of a monitor that has the columns it declares.
    pub(crate) fn declared_schema(&self) -> SeriesSchema {
        self.schema_with_columns(stored_columns(self.file.columns))
    }
}
