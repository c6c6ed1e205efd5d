//! Series `delays`, meant for the edges of iterations: what the processes that began in an iteration waited for.
//!
//! The kernel reports each thread when it ends (taskstats), exactly, and nothing is slowed. What lives when an iteration begins, a
//! server, or a load that runs beside, is not of it, nor is what that starts. Sums only grow.

use std::collections::{HashMap, HashSet};

use perflab_formats::kernel::delays::DelayRow;
use perflab_model::{CellRow, IterationEdge, RowSchema, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::workload_tree::{WorkloadChild, list_descendants};
use crate::processes::is_in_first_pid_namespace;
use crate::root::Root;
use crate::taskstats::{TaskDelays, TaskstatsSocket, ThreadExit, is_delay_accounting_on};

struct DelaysMonitor {
    schema: SeriesSchema,
    root: Root,
    /// On one line the kernel reports what ends, on the other it answers.
    reports: TaskstatsSocket,
    answers: TaskstatsSocket,
    own: u32,
    /// Processes that lived when the iteration began.
    others: HashSet<u32>,
    /// Of all that began and ended in iterations.
    total: DelayTotal,
    /// Whether a report of this iteration was lost: its sums are not known.
    is_incomplete: bool,
}

/// Sums of delays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DelayTotal {
    delays: TaskDelays,
    threads: u64,
}

impl DelayTotal {
    fn add(&mut self, delays: TaskDelays, threads: u64) {
        self.delays += delays;
        self.threads += threads;
    }
}

pub(crate) fn open_delays(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let failed = |source: std::io::Error| ObserveError::read_failed(opening.file.source, source);
    if !opening.root.is_host() {
        return Err(failed(rustix::io::Errno::NOENT.into()));
    }
    if !is_in_first_pid_namespace() {
        // Reports name processes by numbers that are others here.
        return Err(failed(rustix::io::Errno::OPNOTSUPP.into()));
    }
    let refused = |error: crate::taskstats::TaskstatsError| failed(std::io::Error::other(error));
    let (reports, answers) =
        (TaskstatsSocket::listen().map_err(refused)?, TaskstatsSocket::open().map_err(refused)?);
    let mut schema = opening.declared_schema();
    if !is_delay_accounting_on(opening.root) {
        schema.source = format!("{}; kernel.task_delayacct is 0: only waits for a CPU", opening.file.source);
    }
    let own = std::process::id();
    let mut monitor = DelaysMonitor {
        schema,
        root: opening.root.clone(),
        reports,
        answers,
        own,
        others: HashSet::new(),
        total: DelayTotal::default(),
        is_incomplete: false,
    };
    monitor.begin_iteration();
    Ok(Box::new(monitor))
}

impl DelaysMonitor {
    /// What lives now is not of the iteration, and what ended before is not either.
    fn begin_iteration(&mut self) {
        // What is lost here was of no iteration.
        let _ = self.reports.drain_delays(|_, _| ());
        self.is_incomplete = false;
        self.others = list_descendants(&self.root, self.own).into_iter().map(|child| child.pid).collect();
    }

    /// The sums with what ended since the iteration began, and what it left behind; kept where the iteration ends.
    fn add_up(&mut self) -> DelayTotal {
        let mut ended: Vec<(ThreadExit, TaskDelays)> = Vec::new();
        let drained = self.reports.drain_delays(|exit, delays| ended.push((exit, delays)));
        self.is_incomplete |= !drained.unwrap_or(false);
        let alive = list_descendants(&self.root, self.own);
        let mut parents: HashMap<u32, u32> =
            ended.iter().map(|(exit, _)| (exit.process, exit.parent)).collect();
        parents.extend(alive.iter().map(|child| (child.pid, child.parent)));
        for (exit, delays) in ended {
            if is_of_iteration(exit.process, self.own, &parents, &self.others) {
                self.total.add(delays, 1);
            }
        }
        let mut total = self.total;
        let left: Vec<&WorkloadChild> = alive
            .iter()
            .filter(|child| is_of_iteration(child.pid, self.own, &parents, &self.others))
            .collect();
        for child in left {
            total.add(self.answers.process_delays(child.pid).unwrap_or_default(), 1);
        }
        total
    }

    fn push_row(&self, total: DelayTotal, rows: &mut Vec<CellRow>) {
        let mut row = DelayRow::missing_row();
        if !self.is_incomplete {
            let to_cell = |number: u64| i64::try_from(number).ok();
            let delays = total.delays;
            DelayRow::RUN.set(&mut row, to_cell(delays.run));
            DelayRow::THREADS.set(&mut row, to_cell(total.threads));
            if is_delay_accounting_on(&self.root) {
                DelayRow::DISK.set(&mut row, to_cell(delays.disk));
                DelayRow::SWAP.set(&mut row, to_cell(delays.swap));
                DelayRow::RECLAIM.set(&mut row, to_cell(delays.reclaim));
                DelayRow::THRASHING.set(&mut row, to_cell(delays.thrashing));
                DelayRow::COMPACTION.set(&mut row, to_cell(delays.compaction));
                DelayRow::COPY.set(&mut row, to_cell(delays.copy));
                DelayRow::IRQ.set(&mut row, to_cell(delays.irq));
            }
        }
        rows.push(row);
    }
}

impl Monitor for DelaysMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let total = self.add_up();
        self.push_row(total, rows);
        Ok(())
    }

    fn read_edge(&mut self, edge: IterationEdge, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        match edge {
            IterationEdge::Begin => self.begin_iteration(),
            IterationEdge::End => self.total = self.add_up(),
        }
        self.push_row(self.total, rows);
        Ok(())
    }
}

/// Whether a process was started by `own`, or by what that started, and not by one that lived before. The parent of one whose parent had
/// ended is not known: it is of no iteration.
fn is_of_iteration(process: u32, own: u32, parents: &HashMap<u32, u32>, others: &HashSet<u32>) -> bool {
    if process == own {
        return false;
    }
    let mut at = process;
    // Numbers come again, so parents may form a loop: no line is longer than all of them.
    for _ in 0..=parents.len() {
        if at == own {
            return true;
        }
        match parents.get(&at).filter(|_| !others.contains(&at)) {
            Some(parent) => at = *parent,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use perflab_formats::kernel::delays::DELAYS;
    use perflab_model::Nanos;

    use super::*;
    use crate::monitor::registry::open_monitor;

    #[test]
    fn what_lives_when_an_iteration_begins_and_what_it_starts_are_not_of_it() {
        let parents: HashMap<u32, u32> = [(2, 1), (3, 2), (4, 1), (5, 4), (8, 9), (9, 8), (7, 6)].into();
        let others = HashSet::from([4]);
        let is_own = |process: u32| is_of_iteration(process, 1, &parents, &others);
        assert!(is_own(2) && is_own(3));
        assert!(![1, 4, 5, 7, 8].into_iter().any(is_own));
    }

    /// Two processes that compute on one CPU wait for it about half of the time; one that is older does not count.
    #[test]
    fn waiting_for_a_cpu_is_counted_of_all_that_an_iteration_started() {
        let mut monitor = match open_monitor(&DELAYS, &Root::host(), Nanos(0)) {
            Ok(monitor) => monitor,
            Err(error) => {
                assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{error}");
                return eprintln!(
                    "SKIP waiting_for_a_cpu_is_counted_of_all_that_an_iteration_started: {error}"
                );
            }
        };
        // Other tests start processes of this one as well, now and then.
        let mut seen = Vec::new();
        for _ in 0..20 {
            let threads = count_waiting_threads(&mut *monitor);
            seen.push(threads);
            // The shell, which became of taskset, and its child.
            if threads == 2 {
                return;
            }
        }
        panic!("threads that an iteration started: {seen:?}");
    }

    /// Runs two shells beside an older one on a CPU: how many threads were seen to wait for it.
    fn count_waiting_threads(monitor: &mut dyn Monitor) -> i64 {
        let spin = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
        let start = |script: String| {
            std::process::Command::new("taskset").args(["-c", "0", "sh", "-c"]).arg(script).spawn().unwrap()
        };
        let mut hog = start("while :; do :; done".into());
        let mut read = |edge| {
            let mut rows = Vec::new();
            monitor.read_edge(edge, &mut rows).unwrap();
            let cell = |column: ColumnNumber| column(&rows[0]).unwrap();
            (cell(|row| DelayRow::RUN.get(row)), cell(|row| DelayRow::THREADS.get(row)))
        };
        let before = read(IterationEdge::Begin);
        let status = start(format!("({spin}) & {spin}; wait")).wait();
        let after = read(IterationEdge::End);
        hog.kill().unwrap();
        hog.wait().unwrap();
        assert!(status.unwrap().success());
        assert!(after.0 - before.0 > 10_000_000, "{before:?} {after:?}");
        assert_eq!(read(IterationEdge::Begin), after, "what is of no iteration does not count");
        after.1 - before.1
    }

    type ColumnNumber = fn(&CellRow) -> Option<i64>;
}
