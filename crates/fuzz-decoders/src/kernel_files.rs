//! Files of /proc and /sys, as the monitors read them.

use perflab_model::Nanos;
use perflab_observe::mounts::MountTable;
use perflab_observe::{Root, find_monitor, open_monitor};

use crate::{MemoryFolder, choose};

/// Monitors, and the file that each reads.
pub const KERNEL_FILES: &[(&str, &str)] = &[
    ("slabinfo", "proc/slabinfo"),
    ("vmstat", "proc/vmstat"),
    ("meminfo", "proc/meminfo"),
    ("stat", "proc/stat"),
    ("diskstats", "proc/diskstats"),
    ("pressure", "proc/pressure/memory"),
    ("loadavg", "proc/loadavg"),
    ("net-dev", "proc/net/dev"),
    ("schedstat", "proc/schedstat"),
];

/// A file, read twice: what it says the second time stands behind a zero byte. The first byte says which of
/// [`KERNEL_FILES`] it is.
pub(crate) fn decode_kernel_file(bytes: &[u8]) {
    let Some(((name, file), texts)) = choose(KERNEL_FILES, bytes) else { return };
    let folder = MemoryFolder::new("proc");
    let mut texts = texts.splitn(2, |byte| *byte == 0);
    folder.write(file, texts.next().unwrap_or_default());
    let root = Root(folder.path().into());
    let Ok(kind) = find_monitor(name) else { panic!("there is no monitor {name}") };
    let Ok(mut monitor) = open_monitor(kind, &root, Nanos(1_000_000_000)) else { return };
    let columns = monitor.schema().columns.len();
    let mut rows = Vec::new();
    if monitor.read_rows(&mut rows).is_ok() {
        assert!(rows.iter().all(|row| row.len() == columns), "{name}: rows have {columns} columns");
    }
    if let Some(second) = texts.next() {
        let _ = monitor.read_changes();
        folder.write(file, second);
        let _ = monitor.read_changes();
    }
}

/// The table of mounts.
pub(crate) fn decode_mounts(bytes: &[u8]) {
    for mount in MountTable::parse(bytes).iter() {
        let _ = format!("{mount:?}");
    }
}
