//! Tasks that do the same over and over, counted while a window of time is open: threads of this process, or processes forked from it.
//!
//! The design is that of will-it-scale (A. Blanchard, <https://github.com/antonblanchard/will-it-scale>): each task has a counter in
//! a cache line of its own that only it writes, all start together, and what they count during a warm-up is not used. Tasks are
//! bound to cores in turn, to CPUs in turn, or not at all.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use perflab_formats::kernel::small_values::parse_cpu_list;
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::futex;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::system_calls::{SharedLines, SingleThread};

/// More tasks than this are a mistake in a number.
pub(crate) const MOST_TASKS: usize = 4096;

/// How long it is waited at most between two looks at what the tasks do. Each look may disturb them: a thread that runs on another
/// CPU makes theirs tell that one what they unmap.
const TICK: Duration = Duration::from_secs(1);

/// How long the window stays open at most beyond its time where nothing is finished in it.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// How long a process may take to end once it is asked to.
const END_LIMIT: Duration = Duration::from_secs(10);

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskModel {
    /// a process, with memory and open files of its own
    Processes,
    /// a thread: all share memory and open files
    Threads,
}

pub(crate) const MODELS: &[(&str, TaskModel)] =
    &[("processes", TaskModel::Processes), ("threads", TaskModel::Threads)];

/// Where tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskPlacement {
    /// each bound to a core with all its hardware threads, in turn
    Cores,
    /// each bound to a CPU, in turn
    Cpus,
    /// where the scheduler puts them
    Any,
}

pub(crate) const PLACEMENTS: &[(&str, TaskPlacement)] =
    &[("cores", TaskPlacement::Cores), ("cpus", TaskPlacement::Cpus), ("any", TaskPlacement::Any)];

/// How many tasks of which kind run where, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct TaskPlan {
    pub(crate) tasks: usize,
    pub(crate) model: TaskModel,
    pub(crate) placement: TaskPlacement,
    pub(crate) warm_up: Duration,
    pub(crate) time: Duration,
    /// how many of the first tasks must have done something, where others are there to disturb them only
    pub(crate) awaited: usize,
}

impl TaskPlan {
    /// From `--tasks`, `--model`, `--placement`, `--warm-up` and `--time`.
    pub(crate) fn take(options: &mut BuiltinLoadArgs) -> Result<Self, LoadError> {
        let tasks = options.count_within("tasks", 1, 1..=MOST_TASKS)?;
        TaskPlan::take_with_tasks(options, tasks)
    }

    /// The same where the load says how many they are.
    pub(crate) fn take_with_tasks(options: &mut BuiltinLoadArgs, tasks: usize) -> Result<Self, LoadError> {
        let plan = TaskPlan {
            tasks,
            model: options.choice("model", MODELS)?,
            placement: options.choice("placement", PLACEMENTS)?,
            warm_up: options.duration("warm-up", Duration::from_millis(200))?,
            time: options.duration("time", Duration::from_secs(1))?,
            awaited: 0,
        };
        if plan.time.is_zero() {
            return Err(invalid_value_error("time", "nothing can be counted in no time"));
        }
        Ok(plan)
    }

    /// Runs `body` in every task and counts what they do while the window is open.
    ///
    /// `body` prepares what it needs, calls [`Task::begin`], and then works until [`Task::count`] says that it is enough. The bytes
    /// that it returns are in the result.
    ///
    /// # Errors
    /// A task's own; the system refuses a task or its place; a signal asks for the end.
    pub(crate) fn measure(&self, body: &TaskBody<'_>) -> Result<TaskCounts, LoadError> {
        let places = TaskPlaces::find(self.placement)?;
        let board = TaskBoard::new(self.tasks)?;
        let run = |index: usize| body(&board.task(index));
        let signals = StopSignals::watch()?;
        match self.model {
            TaskModel::Threads => self.measure_threads(&board, &places, &signals, &run),
            TaskModel::Processes => self.measure_processes(&board, &places, &signals, &run),
        }
    }

    fn measure_threads(
        &self,
        board: &TaskBoard,
        places: &TaskPlaces,
        signals: &StopSignals,
        run: &(dyn Fn(usize) -> Result<Vec<u8>, LoadError> + Sync),
    ) -> Result<TaskCounts, LoadError> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut refused = None;
            for index in 0..self.tasks {
                let start = || {
                    std::thread::Builder::new().spawn_scoped(scope, move || {
                        // Also where it panics: nobody waits for what has ended.
                        let _end = EndMark { board, index };
                        run(index)
                    })
                };
                match places.start_at(index, start) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        refused = Some(LoadError::system_error(format!("start thread {index}"))(error));
                        break;
                    }
                }
            }
            let window = match refused {
                Some(error) => Err(error),
                None => self.time_window(board, signals, &mut || Ok(())),
            };
            board.stop();
            let ends: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            let mut reports = Vec::new();
            for (task, end) in ends.into_iter().enumerate() {
                let report = end.unwrap_or_else(|_| {
                    Err(LoadError::system_error("finish a thread")(io::Error::other("it panicked")))
                });
                reports.push(report.map_err(|error| task_error(task, &error))?);
            }
            let (seconds, operations) = window?;
            Ok(TaskCounts { seconds, operations, reports })
        })
    }

    fn measure_processes(
        &self,
        board: &TaskBoard,
        places: &TaskPlaces,
        signals: &StopSignals,
        run: &(dyn Fn(usize) -> Result<Vec<u8>, LoadError> + Sync),
    ) -> Result<TaskCounts, LoadError> {
        let mut children = TaskProcesses::default();
        for index in 0..self.tasks {
            children.start(index, places, || {
                let _end = EndMark { board, index };
                run(index)
            })?;
        }
        let window = self.time_window(board, signals, &mut || children.check());
        board.stop();
        // A child's own reason says more than that it has ended.
        let reports = children.finish()?;
        let (seconds, operations) = window?;
        Ok(TaskCounts { seconds, operations, reports })
    }

    /// Opens the gate when all tasks are there; the seconds that the window was open, and what each task counted in them.
    fn time_window(
        &self,
        board: &TaskBoard,
        signals: &StopSignals,
        check: &mut dyn FnMut() -> Result<(), LoadError>,
    ) -> Result<(f64, Vec<u64>), LoadError> {
        while !board.all_are(READY) {
            signals.check()?;
            check()?;
            if board.any_is(ENDED) {
                return Err(ended_early());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        board.open_gate();
        let mut wait = |time: Duration| {
            let end = Instant::now() + time;
            let bell = board.lines.state(BELL);
            loop {
                let rung = bell.load(Ordering::Acquire);
                signals.check()?;
                check()?;
                if board.any_is(ENDED) {
                    return Err(ended_early());
                }
                if !nap(bell, rung, end) {
                    return Ok(());
                }
            }
        };
        wait(self.warm_up)?;
        board.lines.state(PHASE).store(MEASURED, Ordering::Release);
        let (before, start) = (board.counts(), Instant::now());
        loop {
            wait(self.time)?;
            let (seconds, after) = (start.elapsed().as_secs_f64(), board.counts());
            let operations: Vec<u64> =
                after.iter().zip(&before).map(|(after, before)| after.wrapping_sub(*before)).collect();
            // Where the machine is busy, nothing may be finished in a short time; of two, one was begun in it.
            let is_enough = |count: &u64| *count >= 2;
            if operations.iter().any(is_enough) && operations[..self.awaited].iter().all(is_enough) {
                return Ok((seconds, operations));
            }
            if start.elapsed() > LONGEST_WAIT {
                let reason = format!("no task finished an operation in {seconds:.3} s; give it more");
                return Err(invalid_value_error("time", &reason));
            }
        }
    }
}

/// What a task does, and the bytes that it returns.
pub(crate) type TaskBody<'a> = dyn Fn(&Task<'_>) -> Result<Vec<u8>, LoadError> + Sync + 'a;

/// What tasks counted while the window was open.
#[derive(Debug)]
pub(crate) struct TaskCounts {
    /// how long it was
    pub(crate) seconds: f64,
    /// of each task
    pub(crate) operations: Vec<u64>,
    /// what each task returned
    pub(crate) reports: Vec<Vec<u8>>,
}

impl TaskCounts {
    /// Operations a second of all tasks.
    pub(crate) fn rate(&self) -> f64 {
        self.operations.iter().sum::<u64>() as f64 / self.seconds
    }

    /// Operations a second of a task, in the mean.
    pub(crate) fn rate_per_task(&self) -> f64 {
        self.rate() / self.operations.len() as f64
    }

    /// What the slowest task did as a part of what the fastest did: 1 where all did the same, 0 where one did nothing.
    pub(crate) fn fairness(&self) -> f64 {
        let least = self.operations.iter().copied().min().unwrap_or_default();
        let most = self.operations.iter().copied().max().unwrap_or_default();
        if most == 0 { 0.0 } else { least as f64 / most as f64 }
    }
}

/// One task, as its body sees it.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// which it is, from 0 on
    pub(crate) index: usize,
    counter: &'a AtomicU64,
    phase: &'a AtomicU32,
    board: &'a TaskBoard,
}

impl Task<'_> {
    /// Waits until all tasks got here; what was done before is not counted.
    pub(crate) fn begin(&self) {
        let gate = self.board.lines.state(GATE);
        self.board.state(self.index).store(READY, Ordering::Release);
        while gate.load(Ordering::Acquire) == 0 {
            // A signal, or the gate was opened meanwhile: it is looked at again.
            let _ = futex::wait(gate, futex::Flags::empty(), 0, None);
        }
    }

    /// Adds to what this task has done, and says whether it goes on.
    #[inline]
    pub(crate) fn count(&self, operations: u64) -> bool {
        // Nobody else writes it: no locked instruction is needed.
        self.counter.store(self.counter.load(Ordering::Relaxed) + operations, Ordering::Relaxed);
        !self.is_stopped()
    }

    /// Whether the window is open.
    #[inline]
    pub(crate) fn is_measured(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == MEASURED
    }

    /// Whether all are to end.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == STOPPED
    }

    /// Begins, and does `operation` until it is enough; each counts as one.
    #[inline]
    pub(crate) fn repeat(&self, mut operation: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        self.begin();
        loop {
            operation()?;
            if !self.count(1) {
                return Ok(());
            }
        }
    }
}

impl Task<'_> {
    /// The same for an operation of a few nanoseconds: only after each batch it is looked whether it is enough.
    #[inline]
    pub(crate) fn repeat_in_batches(&self, mut operation: impl FnMut()) {
        self.begin();
        let mut done = self.counter.load(Ordering::Relaxed);
        while !self.is_stopped() {
            for _ in 0..BATCH {
                operation();
                done += 1;
                self.counter.store(done, Ordering::Relaxed);
            }
        }
    }
}

/// Operations of a batch.
const BATCH: usize = 256;

/// Lines of the board: three that all share, then a counter of each task, then a state of each.
const GATE: usize = 0;
const PHASE: usize = 1;
const BELL: usize = 2;
const FIRST_COUNTER: usize = 3;

/// Phases of all; it begins as 0, the warm-up.
const MEASURED: u32 = 1;
const STOPPED: u32 = 2;

/// States of a task; it begins as 0, preparing.
const READY: u32 = 1;
const ENDED: u32 = 2;

/// What tasks and who counts them share.
#[derive(Debug)]
struct TaskBoard {
    lines: SharedLines,
    tasks: usize,
}

impl TaskBoard {
    fn new(tasks: usize) -> Result<Self, LoadError> {
        let lines = SharedLines::map(FIRST_COUNTER + 2 * tasks)
            .map_err(LoadError::system_error("get memory that tasks share"))?;
        Ok(TaskBoard { lines, tasks })
    }

    fn task(&self, index: usize) -> Task<'_> {
        let counter = self.lines.counter(FIRST_COUNTER + index);
        Task { index, counter, phase: self.lines.state(PHASE), board: self }
    }

    fn state(&self, index: usize) -> &AtomicU32 {
        self.lines.state(FIRST_COUNTER + self.tasks + index)
    }

    fn states(&self) -> impl Iterator<Item = u32> {
        (0..self.tasks).map(|index| self.state(index).load(Ordering::Acquire))
    }

    fn all_are(&self, state: u32) -> bool {
        self.states().all(|one| one == state)
    }

    fn any_is(&self, state: u32) -> bool {
        self.states().any(|one| one == state)
    }

    fn counts(&self) -> Vec<u64> {
        let counter = |index: usize| self.lines.counter(FIRST_COUNTER + index).load(Ordering::Relaxed);
        (0..self.tasks).map(counter).collect()
    }

    fn open_gate(&self) {
        let gate = self.lines.state(GATE);
        gate.store(1, Ordering::Release);
        // Who is not waiting yet sees that it is open.
        let _ = futex::wake(gate, futex::Flags::empty(), i32::MAX.unsigned_abs());
    }

    /// Also those that wait at the gate come to an end.
    fn stop(&self) {
        self.lines.state(PHASE).store(STOPPED, Ordering::Release);
        self.open_gate();
    }
}

/// Marks a task as ended, and tells who waits.
struct EndMark<'a> {
    board: &'a TaskBoard,
    index: usize,
}

impl Drop for EndMark<'_> {
    fn drop(&mut self) {
        self.board.state(self.index).store(ENDED, Ordering::Release);
        let bell = self.board.lines.state(BELL);
        bell.fetch_add(1, Ordering::Release);
        // Nobody may wait.
        let _ = futex::wake(bell, futex::Flags::empty(), 1);
    }
}

/// Lets this thread's sleeps end when they are over, and not up to 50 us later, as the kernel allows itself.
pub(crate) fn wake_exactly() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?)
}

fn ended_early() -> LoadError {
    LoadError::system_error("keep all tasks running")(io::Error::other("one has ended"))
}

fn task_error(task: usize, error: &LoadError) -> LoadError {
    LoadError::Task { task, reason: error.to_string() }
}

/// Forked tasks; those that were not waited for are killed when it is dropped. They end with this process in any case.
#[derive(Debug, Default)]
struct TaskProcesses {
    running: Vec<TaskProcess>,
}

#[derive(Debug)]
struct TaskProcess {
    pid: Pid,
    /// what it says at its end: the report, or why it failed
    report: File,
    /// its exit code, once it has ended
    code: Option<i32>,
}

impl TaskProcesses {
    fn start(
        &mut self,
        index: usize,
        places: &TaskPlaces,
        body: impl FnOnce() -> Result<Vec<u8>, LoadError>,
    ) -> Result<(), LoadError> {
        let refused = || LoadError::system_error(format!("start process {index}"));
        let report = rustix::fs::memfd_create("perflab-task", MemfdFlags::CLOEXEC)
            .map_err(|error| refused()(error.into()))?;
        let mut report = File::from(report);
        let parent = rustix::process::getpid();
        let in_child = || {
            let ended = match end_with_parent(parent) {
                Ok(()) => body(),
                Err(error) => Err(LoadError::system_error("tie its life to its parent's")(error)),
            };
            let (bytes, code) = match ended {
                Ok(bytes) => (bytes, 0),
                Err(error) => (error.to_string().into_bytes(), 1),
            };
            if io::Write::write_all(&mut report, &bytes).is_err() { 2 } else { code }
        };
        let pid = SingleThread::check().and_then(|one| places.start_at(index, || one.fork(in_child)));
        let pid = pid.map_err(refused())?;
        self.running.push(TaskProcess { pid, report, code: None });
        Ok(())
    }

    /// Fails where one has ended.
    fn check(&mut self) -> Result<(), LoadError> {
        if self.reap(WaitOptions::NOHANG)? { Err(ended_early()) } else { Ok(()) }
    }

    /// Whether any has ended by now.
    fn reap(&mut self, options: WaitOptions) -> Result<bool, LoadError> {
        let mut any = false;
        for process in &mut self.running {
            if process.code.is_some() {
                any = true;
                continue;
            }
            let waited = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(process.pid), options));
            let waited = waited.map_err(|error| LoadError::system_error("wait for a task")(error.into()))?;
            if let Some((_, status)) = waited {
                process.code = Some(status.exit_status().unwrap_or(-1));
                any = true;
            }
        }
        Ok(any)
    }

    /// Waits for all, and reads what they say; one that does not come to an end is killed.
    fn finish(mut self) -> Result<Vec<Vec<u8>>, LoadError> {
        let limit = Instant::now() + END_LIMIT;
        while self.running.iter().any(|process| process.code.is_none()) {
            self.reap(WaitOptions::NOHANG)?;
            if Instant::now() > limit {
                return Err(LoadError::system_error("end all tasks")(io::ErrorKind::TimedOut.into()));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let mut reports = Vec::new();
        for (task, process) in self.running.iter_mut().enumerate() {
            let mut bytes = Vec::new();
            io::Seek::rewind(&mut process.report)
                .and_then(|()| io::Read::read_to_end(&mut process.report, &mut bytes))
                .map_err(LoadError::system_error("read what a task reports"))?;
            match process.code {
                Some(0) => reports.push(bytes),
                Some(1) => {
                    let reason = String::from_utf8_lossy(&bytes).into_owned();
                    return Err(LoadError::Task { task, reason });
                }
                _ => {
                    return Err(LoadError::Task {
                        task,
                        reason: "it was killed, or ended by a defect".into(),
                    });
                }
            }
        }
        Ok(reports)
    }
}

impl Drop for TaskProcesses {
    fn drop(&mut self) {
        for process in self.running.iter().filter(|process| process.code.is_none()) {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(process.pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(process.pid), WaitOptions::empty());
        }
    }
}

/// Lets the kernel kill this process when its parent ends, which it may have done already.
pub(crate) fn end_with_parent(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(io::Error::other("it is gone")) }
}

/// SIGINT and SIGTERM, noticed in place of ending the process: what was made is removed first.
#[derive(Debug)]
pub(crate) struct StopSignals {
    arrived: Arc<AtomicBool>,
    handlers: Vec<signal_hook::SigId>,
}

impl StopSignals {
    pub(crate) fn watch() -> Result<Self, LoadError> {
        let arrived = Arc::new(AtomicBool::new(false));
        let mut handlers = Vec::new();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let handler = signal_hook::flag::register(signal, Arc::clone(&arrived));
            handlers.push(handler.map_err(LoadError::system_error("watch for signals"))?);
        }
        Ok(StopSignals { arrived, handlers })
    }

    /// Sleeps as long as none arrives.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), LoadError> {
        let (end, bell) = (Instant::now() + time, AtomicU32::new(0));
        loop {
            self.check()?;
            if !nap(&bell, 0, end) {
                return Ok(());
            }
        }
    }

    /// Fails where one has arrived.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        if self.arrived.load(Ordering::Relaxed) { Err(LoadError::Stopped) } else { Ok(()) }
    }
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

/// Waits until the end, a tick, a signal, or the bell, if it has not rung since it was looked at; false where the end has come.
fn nap(bell: &AtomicU32, rung: u32, end: Instant) -> bool {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    let left = left.min(TICK);
    let timeout = futex::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    // However it returns, it is looked again at everything.
    let _ = futex::wait(bell, futex::Flags::empty(), rung, Some(&timeout));
    true
}

/// Where tasks are started, so that they stay there and their memory is near.
#[derive(Debug)]
struct TaskPlaces {
    /// where this thread may run
    allowed: CpuSet,
    /// where tasks are bound to, in turn; none where they are not bound
    places: Vec<CpuSet>,
}

impl TaskPlaces {
    fn find(placement: TaskPlacement) -> Result<Self, LoadError> {
        let allowed = sched_getaffinity(None)
            .map_err(|error| LoadError::system_error("read the CPU mask")(error.into()))?;
        let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        let groups = match placement {
            TaskPlacement::Any => Vec::new(),
            TaskPlacement::Cpus => cpus.iter().map(|cpu| vec![*cpu]).collect(),
            TaskPlacement::Cores => group_by_core(&cpus, Path::new("/sys")),
        };
        let as_set = |cpus: &Vec<usize>| {
            let mut set = CpuSet::new();
            cpus.iter().for_each(|cpu| set.set(*cpu));
            set
        };
        Ok(TaskPlaces { allowed, places: groups.iter().map(as_set).collect() })
    }

    /// Starts a task, which inherits where this thread runs meanwhile.
    fn start_at<T>(&self, index: usize, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.places.is_empty() {
            return start();
        }
        sched_setaffinity(None, &self.places[index % self.places.len()])?;
        let started = start();
        sched_setaffinity(None, &self.allowed)?;
        started
    }
}

/// Allowed CPUs by core, in the order of their first; a CPU whose core is not described is one of its own.
fn group_by_core(allowed: &[usize], sys: &Path) -> Vec<Vec<usize>> {
    let mut cores: Vec<Vec<usize>> = Vec::new();
    for cpu in allowed {
        if cores.iter().any(|core| core.contains(cpu)) {
            continue;
        }
        let list = sys.join(format!("devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        let siblings = fs::read_to_string(list).map(|list| parse_cpu_list(&list)).unwrap_or_default();
        let mut core: Vec<usize> = siblings.iter().map(|cpu| *cpu as usize).collect();
        core.retain(|sibling| allowed.contains(sibling));
        if !core.contains(cpu) {
            core.push(*cpu);
        }
        cores.push(core);
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread_plan(tasks: usize) -> TaskPlan {
        TaskPlan {
            tasks,
            model: TaskModel::Threads,
            placement: TaskPlacement::Cores,
            warm_up: Duration::ZERO,
            time: Duration::from_millis(5),
            awaited: 0,
        }
    }

    #[test]
    fn what_tasks_count_and_return_is_told_by_task() {
        let counted = thread_plan(3)
            .measure(&|task| {
                task.begin();
                while task.count(task.index as u64 + 1) {
                    std::thread::yield_now();
                }
                Ok(vec![task.index as u8])
            })
            .unwrap();
        assert_eq!(counted.reports, [[0], [1], [2]]);
        assert_eq!(counted.operations.len(), 3);
        assert!(
            counted.operations[1].is_multiple_of(2) && counted.operations[2].is_multiple_of(3),
            "{counted:?}"
        );
        assert!(counted.seconds >= 0.005);
    }

    #[test]
    fn rates_and_fairness_follow_from_counts() {
        let counted = TaskCounts { seconds: 2.0, operations: vec![30, 10], reports: Vec::new() };
        assert_eq!((counted.rate(), counted.rate_per_task()), (20.0, 10.0));
        assert!((counted.fairness() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_task_that_fails_while_others_wait_is_named() {
        let error = thread_plan(3).measure(&|task| {
            if task.index == 1 {
                return Err(LoadError::system_error("open it")(io::ErrorKind::NotFound.into()));
            }
            task.begin();
            while task.count(1) {}
            Ok(Vec::new())
        });
        assert_eq!(error.unwrap_err().to_string(), "task 1: cannot open it: entity not found");
    }

    #[test]
    fn cores_are_taken_from_the_topology_and_the_mask() {
        let sys = tempfile::tempdir().unwrap();
        for (cpu, siblings) in [(0, "0,4"), (1, "1,5"), (4, "0,4"), (5, "1,5")] {
            let folder = sys.path().join(format!("devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("thread_siblings_list"), format!("{siblings}\n")).unwrap();
        }
        // CPU 5 is not allowed, and of CPU 7 nothing is said.
        assert_eq!(group_by_core(&[0, 1, 4, 7], sys.path()), [vec![0, 4], vec![1], vec![7]]);
    }
}
