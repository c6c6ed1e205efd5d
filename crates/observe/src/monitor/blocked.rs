//! Series `blocked` on a clock: a row a task that has been in state D since the last reading or longer.
//!
//! That it is the same wait is known by its switches: a task that ran in between has more of them.

use std::collections::HashMap;
use std::fs;

use perflab_formats::kernel::blocked::{BlockedRow, fold_kernel_stack};
use perflab_formats::kernel::tasks::{TaskStat, parse_task_switches};
use perflab_model::{CellRow, Nanos, RowSchema, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::tasks::read_small;
use crate::root::Root;

/// Tasks with a stack at a reading: others have none there.
const MOST_STACKS: usize = 50;

/// A wait that is going on.
#[derive(Debug, Clone, Copy)]
struct Wait {
    started: u64,
    switches: (u64, u64),
    /// Readings that saw it.
    readings: u64,
    seen: u64,
}

struct BlockedMonitor {
    root: Root,
    schema: SeriesSchema,
    interval: Nanos,
    waits: HashMap<u32, Wait>,
    reading: u64,
    buffer: Vec<u8>,
}

pub(crate) fn open_blocked(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let proc = opening.root.path("/proc");
    fs::read_dir(proc).map_err(|source| ObserveError::read_failed(opening.file.source, source))?;
    let source = "/proc/PID/task/TID/stat, status, wchan, stack";
    Ok(Box::new(BlockedMonitor {
        root: opening.root.clone(),
        schema: SeriesSchema { source: source.into(), ..opening.declared_schema() },
        interval: opening.interval,
        waits: HashMap::new(),
        reading: 0,
        buffer: vec![0; 4096],
    }))
}

impl BlockedMonitor {
    /// Looks at one thread; appends a row where it waits since an earlier reading.
    fn look_at(&mut self, process: &str, thread: u32, rows: &mut Vec<CellRow>) {
        let folder = self.root.path(&format!("/proc/{process}/task/{thread}"));
        let Some(text) = read_small(&folder.join("stat"), &mut self.buffer) else { return };
        let Some(task) = TaskStat::parse(text).filter(|task| task.state == b'D') else { return };
        let (started, comm) = (task.started, task.comm.to_owned());
        let status = read_small(&folder.join("status"), &mut self.buffer);
        let Some(switches) = status.and_then(parse_task_switches) else { return };
        let same = |wait: &&mut Wait| wait.started == started && wait.switches == switches;
        let readings = match self.waits.get_mut(&thread).filter(same) {
            Some(wait) => {
                wait.readings += 1;
                wait.seen = self.reading;
                wait.readings
            }
            None => {
                self.waits.insert(thread, Wait { started, switches, readings: 1, seen: self.reading });
                return;
            }
        };
        let mut row = BlockedRow::missing_row();
        BlockedRow::TID.set(&mut row, thread.to_string().as_str());
        BlockedRow::COMM.set(&mut row, comm.as_str());
        let blocked = self.interval.0.saturating_mul(readings - 1);
        BlockedRow::BLOCKED.set(&mut row, i64::try_from(blocked).ok());
        let wchan = read_small(&folder.join("wchan"), &mut self.buffer).map(str::trim);
        BlockedRow::WCHAN.set(&mut row, wchan.filter(|name| !name.is_empty() && *name != "0"));
        if rows.len() < MOST_STACKS {
            let stack = read_small(&folder.join("stack"), &mut self.buffer).map(fold_kernel_stack);
            BlockedRow::STACK.set(&mut row, stack.as_deref().filter(|stack| !stack.is_empty()));
        }
        rows.push(row);
    }
}

impl Monitor for BlockedMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.reading += 1;
        for process in self.root.list("/proc").iter().filter(|name| name.parse::<u32>().is_ok()) {
            for thread in self.root.list(&format!("/proc/{process}/task")) {
                if let Ok(thread) = thread.parse() {
                    self.look_at(process, thread, rows);
                }
            }
        }
        let reading = self.reading;
        self.waits.retain(|_, wait| wait.seen == reading);
        Ok(())
    }
}
