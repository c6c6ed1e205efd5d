//! The table of monitors, what each of them is, and finding and opening one.

use perflab_model::{CellRow, ColumnSpec, Nanos, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::text_format::DeclaredColumn;
use crate::monitor::{
    diskstats, kvm_stats, loadavg, meminfo, net_dev, pressure, schedstat, slab_caches, slab_exact, slabinfo,
    stat, vmstat,
};
use crate::root::Root;

/// One monitor that a study may ask for.
#[derive(Debug, Clone, Copy)]
pub struct MonitorDescriptor {
    /// What studies call it, and its table: `slabinfo`.
    pub name: &'static str,
    /// What it reads, as the kernel names it: `/proc/slabinfo`.
    pub source: &'static str,
    /// One line for people: what its numbers show.
    pub about: &'static str,
    /// What it cannot be read without: `root`, or nothing.
    pub needs: &'static str,
    /// What is missing without that, and what remains; empty where that is everything and nothing.
    pub without: &'static str,
    /// Its columns; empty where they vary by kernel and are found when it is opened.
    pub columns: &'static [DeclaredColumn],
    pub(crate) open: fn(&MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError>,
}

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

/// Every monitor there is: the one line that each adds outside of its own file.
const MONITORS: &[MonitorDescriptor] = &[
    slabinfo::KIND,
    slab_caches::KIND,
    slab_exact::KIND,
    vmstat::KIND,
    meminfo::KIND,
    stat::KIND,
    diskstats::KIND,
    pressure::KIND,
    loadavg::KIND,
    net_dev::KIND,
    schedstat::KIND,
    kvm_stats::KIND,
];

/// All monitors, in the order in which they are shown.
pub fn all_monitors() -> &'static [MonitorDescriptor] {
    MONITORS
}

/// The monitor called `name`.
///
/// # Errors
/// [`ObserveError::Unknown`] with the nearest name.
pub fn find_monitor(name: &str) -> Result<&'static MonitorDescriptor, ObserveError> {
    let found = MONITORS.iter().find(|kind| kind.name == name);
    found.ok_or_else(|| ObserveError::unknown_name(name, "monitor", MONITORS.iter().map(|kind| kind.name)))
}

/// Opens a monitor below `root`; `interval` is only written into its schema.
///
/// # Errors
/// When its file is missing, refused (the message then says what it needs), or not understood.
pub fn open_monitor(
    kind: &MonitorDescriptor,
    root: &Root,
    interval: Nanos,
) -> Result<Box<dyn Monitor>, ObserveError> {
    (kind.open)(&MonitorContext { kind, root, interval })
        .map_err(|error| error.with_requirement(kind.needs, kind.without))
}

/// What a monitor is opened with.
#[derive(Debug)]
pub struct MonitorContext<'a> {
    pub(crate) kind: &'a MonitorDescriptor,
    pub(crate) root: &'a Root,
    pub(crate) interval: Nanos,
}

impl MonitorContext<'_> {
    /// The schema of a monitor with these columns.
    pub(crate) fn schema_with_columns(&self, columns: Vec<ColumnSpec>) -> SeriesSchema {
        SeriesSchema {
            monitor: self.kind.name.into(),
            source: self.kind.source.into(),
            interval: self.interval,
            columns,
        }
    }

    /// The schema of a monitor that has the columns it declares.
    pub(crate) fn declared_schema(&self) -> SeriesSchema {
        self.schema_with_columns(self.kind.columns.iter().map(DeclaredColumn::column).collect())
    }
}
