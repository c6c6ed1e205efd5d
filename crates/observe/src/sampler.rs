//! All monitors of a run on a thread of their own (two, where some have short intervals), each with its interval.
//!
//! The sampler decides when a monitor is read, what is counted as late and lost, and what becomes a gap. It emits
//! `SeriesOpened` before the first `Rows` of a monitor, and never ends because one of them fails: a failure is a
//! `Gap` from the last good tick, sent at once and still open, and the monitor is tried again at longer intervals;
//! when it comes back, the same gap (same monitor, same `from`) is sent again with its end, in place of the open
//! one.
//!
//! Each thread sleeps until the first of its monitors is due, and reads whatever is due, until it is asked to stop.
//! Monitors with short intervals have a thread of their own, so that none loses a tick while a slow one is read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

use perflab_model::series::SeriesGap;
use perflab_model::{Nanos, RunEvent, RunEventKind};

use crate::clock::{MonotonicClock, StopSignal, SystemClock};
use crate::overhead;
use crate::realtime_priority::{MonitorThreadPriority, is_fast_clock};
use crate::root::Root;
use crate::scheduled_monitor::{EventSinkClosed, SamplerOverhead, ScheduledMonitor};

/// The running monitors of a run. Dropping it stops them as well.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<StopSignal>,
    threads: Vec<JoinHandle<SamplerOverhead>>,
}

impl Sampler {
    /// Starts the monitors (name, interval; a name twice counts once, an interval below 1 ms is 1 ms) on a
    /// thread of their own; those with an interval below 100 ms on another, which takes the lowest real-time priority
    /// where it may. The first tick of each is taken as soon as all of its thread are open. Whatever cannot be read
    /// becomes a gap.
    pub fn start(intervals: Vec<(String, Nanos)>, root: Root, sink: Sender<RunEvent>) -> Sampler {
        Sampler::start_with_clock(Arc::new(SystemClock), intervals, root, sink)
    }

    /// The same with a clock of the caller's.
    pub fn start_with_clock(
        clock: Arc<dyn MonotonicClock>,
        intervals: Vec<(String, Nanos)>,
        root: Root,
        sink: Sender<RunEvent>,
    ) -> Sampler {
        let stop = Arc::new(StopSignal::default());
        let mut seen = BTreeSet::new();
        let once = intervals.into_iter().filter(|(name, _)| seen.insert(name.clone()));
        let (fast, slow): (Vec<_>, Vec<_>) = once.partition(|(_, interval)| is_fast_clock(*interval));
        let groups = [fast, slow].into_iter().filter(|group| !group.is_empty());
        let start = |group| {
            spawn_monitor_thread(Arc::clone(&clock), Arc::clone(&stop), group, root.clone(), sink.clone())
        };
        let threads = groups.filter_map(start).collect();
        Sampler { stop, threads }
    }

    /// Stops at once, without waiting for a tick, and says what it cost.
    pub fn stop(mut self) -> SamplerOverhead {
        self.join_threads()
    }

    fn join_threads(&mut self) -> SamplerOverhead {
        self.stop.request();
        let joined = self.threads.drain(..).map(|thread| thread.join().unwrap_or_default());
        joined.fold(SamplerOverhead::default(), SamplerOverhead::combine)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join_threads();
    }
}

/// A thread that reads these monitors; none where the system gives none.
fn spawn_monitor_thread(
    clock: Arc<dyn MonotonicClock>,
    stop: Arc<StopSignal>,
    intervals: Vec<(String, Nanos)>,
    root: Root,
    sink: Sender<RunEvent>,
) -> Option<JoinHandle<SamplerOverhead>> {
    let began = clock.now();
    let (names, listener): (Vec<String>, _) =
        (intervals.iter().map(|(name, _)| name.clone()).collect(), sink.clone());
    let monitors =
        intervals.into_iter().map(|(name, interval)| ScheduledMonitor::new(name, interval, began)).collect();
    let spawned = Builder::new()
        .name("monitors".into())
        .spawn(move || run_monitor_thread(&*clock, &stop, monitors, &root, &sink));
    if let Err(error) = &spawned {
        report_missing_thread(names, began, &error.to_string(), &listener);
    }
    spawned.ok()
}

/// Reports for every monitor that there is no thread to read it.
fn report_missing_thread(names: Vec<String>, at: Nanos, error: &str, sink: &Sender<RunEvent>) {
    for monitor in names {
        let reason = format!("cannot start the monitors' thread: {error}");
        let gap = SeriesGap { monitor, from: at, to: None, reason };
        // The event consumer is gone.
        sink.send(RunEvent::new(at, RunEventKind::Gap(gap))).ok();
    }
}

/// The thread's whole life.
fn run_monitor_thread(
    clock: &dyn MonotonicClock,
    stop: &StopSignal,
    mut monitors: Vec<ScheduledMonitor>,
    root: &Root,
    sink: &Sender<RunEvent>,
) -> SamplerOverhead {
    let mut cost = SamplerOverhead::default();
    monitors.iter_mut().for_each(|scheduled| scheduled.open(root));
    let first = clock.now();
    let mut priority = MonitorThreadPriority::raise(
        monitors.iter().map(|scheduled| scheduled.schedule.interval()).min(),
        first,
    );
    monitors.iter_mut().for_each(|scheduled| scheduled.start_ticks(first));
    loop {
        let due =
            monitors.iter().map(|scheduled| scheduled.schedule.due_at()).min().unwrap_or(Nanos(u64::MAX));
        if clock.sleep_until(due, stop)
            || take_due_ticks(clock, &mut monitors, root, sink, &mut cost).is_err()
        {
            break;
        }
        priority.lower_if_greedy(clock.now());
    }
    cost.cpu = overhead::thread_cpu_time();
    cost
}

/// Ticks every lane that is due.
fn take_due_ticks(
    clock: &dyn MonotonicClock,
    monitors: &mut [ScheduledMonitor],
    root: &Root,
    sink: &Sender<RunEvent>,
    cost: &mut SamplerOverhead,
) -> Result<(), EventSinkClosed> {
    for scheduled in monitors {
        let now = clock.now();
        if scheduled.schedule.due_at() <= now {
            scheduled.take_due_tick(now, root, sink, cost)?;
        }
    }
    Ok(())
}
