//! Series `tasks` on a clock: the processes that used most since the last reading, kernel threads by name, and what ended.
//!
//! Every reading looks at all of `/proc/PID/stat`, and at more of those that get a row. What ends between two readings is
//! never seen there: the kernel reports it (taskstats, as root), and it is added up by name.
//!
//! Counters of a process are those of its whole life, so that the growth between any two of its rows is what it used between
//! them, though it had none in the meantime. Rows of several processes (`*`, `ended`) are sums that only grow.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use perflab_formats::kernel::tasks::{
    TaskRow, TaskStat, is_named_so, parse_run_delay, parse_task_io, parse_task_switches,
};
use perflab_model::{CellRow, RowSchema, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::slab_caches::read_page_size;
use crate::monitor::text_file::read_again;
use crate::root::open_unblocked;
use crate::taskstats::{TaskUsage, TaskstatsSocket};

/// Processes with a row of their own for the CPU time that they used since the last reading,
const LARGEST_BY_CPU: usize = 20;

/// and for the memory that they hold.
const LARGEST_BY_MEMORY: usize = 5;

/// Names of ended processes with a row at a reading.
const LARGEST_ENDED: usize = 20;

/// Names of ended processes that are told apart; those beyond are added up as one.
const ENDED_NAMES: usize = 1_000;

/// What those are called.
const OTHERS: &str = "(others)";

/// Threads of the kernel that always have a row: all of a name together.
const ALWAYS: &[&str] = &["kswapd*", "kcompactd*", "khugepaged", "ksoftirqd*", "kworker*"];

/// What a process had used when it was looked at last.
#[derive(Debug, Clone, Copy)]
struct KnownTask {
    started: u64,
    cpu: (u64, u64),
    faults: (u64, u64),
    disk_delay: u64,
    /// The number of the reading.
    seen: u64,
    /// How many processes of that number there were before it: another of the same number is another row.
    generation: u32,
}

/// One process of a reading.
#[derive(Debug)]
struct FoundTask {
    pid: u32,
    comm: String,
    state: u8,
    parts: KnownTask,
    threads: u64,
    rss: u64,
    last_cpu: u64,
    /// CPU time since the last reading.
    used: u64,
}

/// What all processes of a name used since the monitor was opened.
#[derive(Debug, Default, Clone, Copy)]
struct NameTotal {
    cpu: (u64, u64),
    faults: (u64, u64),
    disk_delay: u64,
    threads: u64,
    processes: u64,
}

/// What ended processes of a name had used in their whole lives.
#[derive(Debug, Default, Clone)]
struct EndedTotal {
    used: TaskUsage,
    processes: u64,
    /// CPU time at the last reading.
    before: u64,
    has_changed: bool,
}

struct TasksMonitor {
    schema: SeriesSchema,
    proc: PathBuf,
    page_size: Option<u64>,
    /// On one line the kernel reports what ends, on the other it answers.
    reports: Option<TaskstatsSocket>,
    answers: Option<TaskstatsSocket>,
    known: HashMap<u32, KnownTask>,
    always: Vec<NameTotal>,
    ended: HashMap<String, EndedTotal>,
    reading: u64,
    found: Vec<FoundTask>,
    buffer: Vec<u8>,
}

pub(crate) fn open_tasks(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let proc = opening.root.path(opening.file.source);
    fs::read_dir(&proc).map_err(|source| ObserveError::read_failed(opening.file.source, source))?;
    let mut schema = opening.declared_schema();
    let taskstats = if opening.root.is_host() { TaskstatsSocket::listen().map_err(Some) } else { Err(None) };
    let (reports, source) = match taskstats {
        Ok(socket) => (Some(socket), "/proc/PID/stat, io; taskstats".to_owned()),
        Err(error) => {
            let reason = error.map_or("a copied tree has none".to_owned(), |error| error.to_string());
            let rest =
                "waiting and switches are of main threads, processes that end between readings are not seen";
            (None, format!("/proc/PID/stat, io, schedstat, status; no taskstats: {reason}; {rest}"))
        }
    };
    schema.source = source;
    let mut monitor = TasksMonitor {
        schema,
        proc,
        page_size: read_page_size(opening.root),
        answers: reports.is_some().then(TaskstatsSocket::open).and_then(Result::ok),
        reports,
        known: HashMap::new(),
        always: vec![NameTotal::default(); ALWAYS.len()],
        ended: HashMap::new(),
        reading: 0,
        found: Vec::new(),
        buffer: vec![0; 4096],
    };
    // What was used before is not growth of the first reading.
    monitor.look_at_all(opening.file.source)?;
    monitor.always.iter_mut().for_each(|total| *total = NameTotal::default());
    Ok(Box::new(monitor))
}

impl TasksMonitor {
    /// Looks at every process, and adds up what kernel threads of the wanted names used.
    fn look_at_all(&mut self, source: &str) -> Result<(), ObserveError> {
        self.reading += 1;
        self.found.clear();
        self.always.iter_mut().for_each(|total| {
            (total.threads, total.processes) = (0, 0);
        });
        let entries = fs::read_dir(&self.proc).map_err(|error| ObserveError::read_failed(source, error))?;
        for entry in entries.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            self.look_at(pid);
        }
        let reading = self.reading;
        self.known.retain(|_, task| task.seen == reading);
        Ok(())
    }

    /// Looks at one; one that has ended in the meantime is not found.
    fn look_at(&mut self, pid: u32) {
        let Some(text) = read_small(&self.proc.join(format!("{pid}/stat")), &mut self.buffer) else { return };
        let Some(task) = TaskStat::parse(text) else { return };
        let before = self.known.get(&pid).copied();
        let same = before.filter(|before| before.started == task.started);
        let parts = KnownTask {
            started: task.started,
            cpu: task.cpu,
            faults: task.faults,
            disk_delay: task.disk_delay,
            seen: self.reading,
            generation: match (before, same) {
                (_, Some(same)) => same.generation,
                (Some(other), None) => other.generation + 1,
                (None, None) => 0,
            },
        };
        let sum = |cpu: (u64, u64)| cpu.0.saturating_add(cpu.1);
        let used = task.cpu_time().saturating_sub(same.map_or(0, |same| sum(same.cpu)));
        for (pattern, total) in ALWAYS.iter().zip(&mut self.always) {
            if is_named_so(pattern, task.comm) {
                total.add(&task, same);
            }
        }
        self.found.push(FoundTask {
            pid,
            comm: task.comm.to_owned(),
            state: task.state,
            parts,
            threads: task.threads,
            rss: task.rss,
            last_cpu: task.last_cpu,
            used,
        });
        self.known.insert(pid, parts);
    }

    /// Adds what ended since the last reading.
    fn take_ended(&mut self) {
        let Some(reports) = &self.reports else { return };
        let ended = &mut self.ended;
        // Reports that were lost for want of room are of processes that nobody sees; their number is not known.
        let drained = reports.drain_accounts(|account| {
            let is_known = ended.contains_key(account.comm.as_str());
            let name = if is_known || ended.len() < ENDED_NAMES { account.comm.as_str() } else { OTHERS };
            let total = match ended.get_mut(name) {
                Some(total) => total,
                None => ended.entry(name.to_owned()).or_default(),
            };
            total.used += account.used;
            total.processes += u64::from(account.is_last);
            total.has_changed = true;
        });
        if drained.is_err() {
            self.reports = None;
        }
    }

    fn push_tasks(&mut self, rows: &mut Vec<CellRow>) {
        let mut by_cpu: Vec<usize> = (0..self.found.len()).collect();
        let used = |index: &usize| self.found.get(*index).map_or(0, |task| task.used);
        let rss = |index: &usize| self.found.get(*index).map_or(0, |task| task.rss);
        by_cpu.retain(|index| used(index) > 0);
        keep_largest(&mut by_cpu, LARGEST_BY_CPU, used);
        let mut by_memory: Vec<usize> = (0..self.found.len()).filter(|index| rss(index) > 0).collect();
        keep_largest(&mut by_memory, LARGEST_BY_MEMORY, rss);
        by_memory.retain(|index| !by_cpu.contains(index));
        let chosen = by_cpu.iter().map(|index| (*index, "cpu"));
        for (index, why) in chosen.chain(by_memory.iter().map(|index| (*index, "memory"))) {
            let Some(task) = self.found.get(index) else { continue };
            rows.push(task_row(task, why, self.page_size));
            let detail = read_details(&self.proc, task.pid, self.answers.as_ref(), &mut self.buffer);
            if let Some(row) = rows.last_mut() {
                detail.set_in(row);
            }
        }
    }

    fn push_names(&mut self, rows: &mut Vec<CellRow>) {
        for (pattern, total) in ALWAYS.iter().zip(&self.always).filter(|(_, total)| total.processes > 0) {
            let mut row = TaskRow::missing_row();
            TaskRow::PID.set(&mut row, "*");
            TaskRow::COMM.set(&mut row, *pattern);
            TaskRow::WHY.set(&mut row, "name");
            TaskRow::PROCESSES.set(&mut row, to_cell(total.processes));
            TaskRow::THREADS.set(&mut row, to_cell(total.threads));
            set_usage(&mut row, total.cpu, total.faults, total.disk_delay);
            rows.push(row);
        }
    }

    fn push_ended(&mut self, rows: &mut Vec<CellRow>) {
        let mut largest: Vec<(&str, u64)> = self
            .ended
            .iter()
            .filter(|(_, total)| total.has_changed)
            .map(|(name, total)| (name.as_str(), total.used.cpu_time().saturating_sub(total.before)))
            .collect();
        largest.sort_by_key(|(name, used)| (Reverse(*used), name.to_owned()));
        largest.truncate(LARGEST_ENDED);
        let names: Vec<String> = largest.into_iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let Some(total) = self.ended.get_mut(&name) else { continue };
            (total.before, total.has_changed) = (total.used.cpu_time(), false);
            let mut row = TaskRow::missing_row();
            TaskRow::PID.set(&mut row, "ended");
            TaskRow::COMM.set(&mut row, name.as_str());
            TaskRow::WHY.set(&mut row, "ended");
            TaskRow::ENDED.set(&mut row, to_cell(total.processes));
            let used = &total.used;
            set_usage(&mut row, used.cpu, used.faults, used.disk_delay);
            TaskRow::RUN_DELAY.set(&mut row, to_cell(used.run_delay));
            TaskRow::VOLUNTARY.set(&mut row, to_cell(used.switches.0));
            TaskRow::INVOLUNTARY.set(&mut row, to_cell(used.switches.1));
            TaskRow::READ.set(&mut row, to_cell(used.bytes.0));
            TaskRow::WRITE.set(&mut row, to_cell(used.bytes.1));
            rows.push(row);
        }
    }
}

impl NameTotal {
    /// What a process used since it was looked at last; all of it where it is new.
    fn add(&mut self, task: &TaskStat<'_>, before: Option<KnownTask>) {
        let grown = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0));
        self.cpu.0 += grown(task.cpu.0, before.map(|task| task.cpu.0));
        self.cpu.1 += grown(task.cpu.1, before.map(|task| task.cpu.1));
        self.faults.0 += grown(task.faults.0, before.map(|task| task.faults.0));
        self.faults.1 += grown(task.faults.1, before.map(|task| task.faults.1));
        self.disk_delay += grown(task.disk_delay, before.map(|task| task.disk_delay));
        self.threads += task.threads;
        self.processes += 1;
    }
}

impl Monitor for TasksMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.look_at_all("/proc")?;
        self.take_ended();
        self.push_tasks(rows);
        self.push_names(rows);
        self.push_ended(rows);
        Ok(())
    }
}

/// Puts the largest first, and drops what is beyond `most`.
fn keep_largest(indexes: &mut Vec<usize>, most: usize, size: impl Fn(&usize) -> u64) {
    indexes.sort_by_key(|index| Reverse(size(index)));
    indexes.truncate(most);
}

fn to_cell(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

fn task_row(task: &FoundTask, why: &str, page_size: Option<u64>) -> CellRow {
    let mut row = TaskRow::missing_row();
    let pid = match task.parts.generation {
        0 => task.pid.to_string(),
        later => format!("{}#{}", task.pid, later + 1),
    };
    TaskRow::PID.set(&mut row, pid.as_str());
    TaskRow::COMM.set(&mut row, task.comm.as_str());
    TaskRow::WHY.set(&mut row, why);
    TaskRow::STATE.set(&mut row, char::from(task.state).to_string().as_str());
    TaskRow::PROCESSES.set(&mut row, 1);
    TaskRow::THREADS.set(&mut row, to_cell(task.threads));
    set_usage(&mut row, task.parts.cpu, task.parts.faults, task.parts.disk_delay);
    TaskRow::RSS.set(&mut row, page_size.and_then(|size| to_cell(task.rss.checked_mul(size)?)));
    TaskRow::LAST_CPU.set(&mut row, to_cell(task.last_cpu));
    row
}

fn set_usage(row: &mut CellRow, cpu: (u64, u64), faults: (u64, u64), disk_delay: u64) {
    TaskRow::USER.set(row, to_cell(cpu.0));
    TaskRow::SYSTEM.set(row, to_cell(cpu.1));
    TaskRow::MINOR.set(row, to_cell(faults.0));
    TaskRow::MAJOR.set(row, to_cell(faults.1));
    TaskRow::DISK_DELAY.set(row, to_cell(disk_delay));
}

/// What is only read of processes that have a row.
#[derive(Debug, Default)]
struct TaskDetails {
    run_delay: Option<u64>,
    switches: Option<(u64, u64)>,
    bytes: Option<(u64, u64)>,
}

impl TaskDetails {
    fn set_in(&self, row: &mut CellRow) {
        let first = |pair: Option<(u64, u64)>| pair.and_then(|pair| to_cell(pair.0));
        let second = |pair: Option<(u64, u64)>| pair.and_then(|pair| to_cell(pair.1));
        TaskRow::RUN_DELAY.set(row, self.run_delay.and_then(to_cell));
        TaskRow::VOLUNTARY.set(row, first(self.switches));
        TaskRow::INVOLUNTARY.set(row, second(self.switches));
        TaskRow::READ.set(row, first(self.bytes));
        TaskRow::WRITE.set(row, second(self.bytes));
    }
}

/// Waiting and switches of all threads of a process, from taskstats where there is one; else of its main thread.
fn read_details(
    proc: &std::path::Path,
    pid: u32,
    answers: Option<&TaskstatsSocket>,
    buffer: &mut Vec<u8>,
) -> TaskDetails {
    let mut read = |name: &str| read_small(&proc.join(format!("{pid}/{name}")), buffer).map(str::to_owned);
    let bytes = read("io").and_then(|text| parse_task_io(&text));
    match answers.and_then(|socket| socket.process_usage(pid)) {
        Some(used) => TaskDetails { run_delay: Some(used.run_delay), switches: Some(used.switches), bytes },
        None => TaskDetails {
            run_delay: read("schedstat").and_then(|text| parse_run_delay(&text)),
            switches: read("status").and_then(|text| parse_task_switches(&text)),
            bytes,
        },
    }
}

/// The text of a small file; nothing where it is gone, or no text.
pub(crate) fn read_small<'b>(path: &std::path::Path, buffer: &'b mut Vec<u8>) -> Option<&'b str> {
    let file = open_unblocked(path).ok()?;
    let length = read_again(&file, buffer).ok()?;
    let bytes = buffer.get_mut(..length)?;
    // Names of tasks may hold any bytes.
    if std::str::from_utf8(bytes).is_err() {
        bytes.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'?');
    }
    std::str::from_utf8(bytes).ok()
}
