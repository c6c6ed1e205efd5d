//! Series `smaps` and `task-numa` on a clock: memory of the processes of the workload.

use perflab_formats::kernel::smaps::parse_smaps_rollup;
use perflab_formats::kernel::task_numa::push_numa_rows;
use perflab_model::{CellRow, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::tasks::read_small;
use crate::monitor::workload_tree::{WorkloadProcess, list_workload};
use crate::root::Root;

/// Processes with a row at most: the first by number.
const MOST: usize = 200;

/// Appends the rows of one process' file.
type PushRows = fn(&WorkloadProcess, &str, &mut Vec<CellRow>);

struct WorkloadMemoryMonitor {
    root: Root,
    schema: SeriesSchema,
    file: &'static str,
    push_rows: PushRows,
    buffer: Vec<u8>,
}

pub(crate) fn open_smaps(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    open_workload_memory(opening, "smaps_rollup", |process, text, rows| {
        rows.extend(parse_smaps_rollup(process.pid, &process.comm, text));
    })
}

pub(crate) fn open_task_numa(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    open_workload_memory(opening, "numa_maps", |process, text, rows| {
        push_numa_rows(process.pid, &process.comm, text, rows);
    })
}

fn open_workload_memory(
    opening: &MonitorContext<'_>,
    file: &'static str,
    push_rows: PushRows,
) -> Result<Box<dyn Monitor>, ObserveError> {
    let own = format!("/proc/self/{file}");
    if !opening.root.path(&own).exists() {
        return Err(ObserveError::read_failed(&own, rustix::io::Errno::NOENT.into()));
    }
    let schema = SeriesSchema { source: format!("/proc/PID/{file}"), ..opening.declared_schema() };
    let root = opening.root.clone();
    Ok(Box::new(WorkloadMemoryMonitor { root, schema, file, push_rows, buffer: vec![0; 4096] }))
}

impl Monitor for WorkloadMemoryMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let proc = self.root.path("/proc");
        for process in list_workload(&self.root, &mut self.buffer).into_iter().take(MOST) {
            let path = proc.join(format!("{}/{}", process.pid, self.file));
            if let Some(text) = read_small(&path, &mut self.buffer) {
                (self.push_rows)(&process, text, rows);
            }
        }
        Ok(())
    }
}
