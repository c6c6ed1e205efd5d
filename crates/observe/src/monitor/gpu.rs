//! Series `gpu` on a clock: a row a process, graphics device and part of it. Which descriptors are of such devices is looked at
//! every few readings.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use perflab_formats::kernel::gpu::{parse_drm_client, push_drm_rows};
use perflab_formats::kernel::tasks::TaskStat;
use perflab_model::{CellRow, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::tasks::read_small;
use crate::root::Root;

/// Readings after which is looked who has such a device open.
const LISTED_EVERY: u32 = 10;

/// Descriptors that are read at most.
const MOST: usize = 500;

struct GpuMonitor {
    root: Root,
    schema: SeriesSchema,
    /// The descriptors of graphics devices: process, name, path of its `fdinfo`.
    open: Vec<(u32, String, PathBuf)>,
    until_listed: u32,
    buffer: Vec<u8>,
}

pub(crate) fn open_gpu(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let devices = "/dev/dri";
    if opening.root.list(devices).is_empty() && opening.root.list("/dev/accel").is_empty() {
        return Err(ObserveError::read_failed(
            &format!("/proc/PID/fdinfo: {devices}"),
            rustix::io::Errno::NOENT.into(),
        ));
    }
    let schema = SeriesSchema { source: "/proc/PID/fdinfo".into(), ..opening.declared_schema() };
    let root = opening.root.clone();
    Ok(Box::new(GpuMonitor { root, schema, open: Vec::new(), until_listed: 0, buffer: vec![0; 4096] }))
}

impl GpuMonitor {
    fn list_descriptors(&mut self) {
        self.until_listed = LISTED_EVERY;
        self.open.clear();
        for pid in self.root.list("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
            let folder = self.root.path(&format!("/proc/{pid}/fd"));
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let target = fs::read_link(entry.path()).unwrap_or_default();
                if !(target.starts_with("/dev/dri") || target.starts_with("/dev/accel"))
                    || self.open.len() >= MOST
                {
                    continue;
                }
                let stat = read_small(&self.root.path(&format!("/proc/{pid}/stat")), &mut self.buffer);
                let comm =
                    stat.and_then(TaskStat::parse).map(|task| task.comm.to_owned()).unwrap_or_default();
                let name = entry.file_name();
                self.open.push((pid, comm, self.root.path(&format!("/proc/{pid}/fdinfo")).join(name)));
            }
        }
    }
}

impl Monitor for GpuMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.until_listed = self.until_listed.saturating_sub(1);
        if self.until_listed == 0 {
            self.list_descriptors();
        }
        let mut clients = BTreeSet::new();
        for (pid, comm, path) in &self.open {
            let Some(text) = read_small(path, &mut self.buffer) else { continue };
            let Some(client) = parse_drm_client(text) else { continue };
            if clients.insert((client.device.to_owned(), client.client.to_owned())) {
                push_drm_rows(*pid, comm, &client, text, rows);
            }
        }
        Ok(())
    }
}
