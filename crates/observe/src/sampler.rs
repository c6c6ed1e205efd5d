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
//!
//! A reading that blocks cannot be interrupted. A watchdog gives it up: it says so in a gap, and another thread reads the other
//! monitors from then on. Who stops the sampler does not wait for it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use perflab_model::series::SeriesGap;
use perflab_model::{Nanos, RunEvent, RunEventKind};

use crate::clock::{MonotonicClock, StopSignal, SystemClock};
use crate::monitor::context::MonitoredMachine;
use crate::monitor_switch::MonitorSwitch;
use crate::overhead;
use crate::realtime_priority::{MonitorThreadPriority, is_fast_clock};
use crate::root::Root;
use crate::scheduled_monitor::{EventSink, EventSinkClosed, SamplerOverhead, ScheduledMonitor};

/// A reading that has not come back after this, and after its interval, blocks.
const BLOCKED: Duration = Duration::from_secs(1);

/// How often the watchdog looks.
const LOOK: Nanos = Nanos(500_000_000);

/// A thread that is not blocked has ended by then.
const GRACE: Duration = Duration::from_millis(50);

/// How often who stops looks whether a thread has ended.
const PAUSE: Duration = Duration::from_micros(200);

/// The running monitors of a run. Dropping it stops them as well.
pub struct Sampler {
    groups: Vec<Arc<MonitorGroup>>,
    watchdog: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sampler").field("groups", &self.groups.len()).finish()
    }
}

impl Sampler {
    /// Starts the monitors (name, interval; a name twice counts once, an interval below 1 ms is 1 ms) on a
    /// thread of their own; those with an interval below 100 ms on another, which takes the lowest real-time priority
    /// where it may. The first tick of each is taken as soon as all of its thread are open. Whatever cannot be read
    /// becomes a gap.
    pub fn start(intervals: Vec<(String, Nanos)>, root: Root, sink: Sender<RunEvent>) -> Sampler {
        Sampler::start_switched(intervals, (&root).into(), sink, MonitorSwitch::default())
    }

    /// The same, as long as the switch is on: ticks that are due while it is off are not taken, and not missed.
    pub fn start_switched(
        intervals: Vec<(String, Nanos)>,
        machine: MonitoredMachine,
        sink: Sender<RunEvent>,
        switch: MonitorSwitch,
    ) -> Sampler {
        Sampler::start_monitors(Arc::new(SystemClock), intervals, machine, sink, switch)
    }

    /// The same with a clock of the caller's.
    pub fn start_with_clock(
        clock: Arc<dyn MonotonicClock>,
        intervals: Vec<(String, Nanos)>,
        root: Root,
        sink: Sender<RunEvent>,
    ) -> Sampler {
        Sampler::start_monitors(clock, intervals, (&root).into(), sink, MonitorSwitch::default())
    }

    fn start_monitors(
        clock: Arc<dyn MonotonicClock>,
        intervals: Vec<(String, Nanos)>,
        machine: MonitoredMachine,
        sink: Sender<RunEvent>,
        switch: MonitorSwitch,
    ) -> Sampler {
        let mut seen = BTreeSet::new();
        let once = intervals.into_iter().filter(|(name, _)| seen.insert(name.clone()));
        let (fast, slow): (Vec<_>, Vec<_>) = once.partition(|(_, interval)| is_fast_clock(*interval));
        let began = clock.now();
        let monitor = |(name, interval)| ScheduledMonitor::new(name, interval, began);
        let groups = [fast, slow].into_iter().filter(|group| !group.is_empty());
        let groups = groups.map(|group| group.into_iter().map(monitor).collect());
        Sampler::start_groups(&clock, groups, &machine, (&EventSink::new(sink), &switch))
    }

    fn start_groups(
        clock: &Arc<dyn MonotonicClock>,
        groups: impl Iterator<Item = Vec<ScheduledMonitor>>,
        machine: &MonitoredMachine,
        (sink, switch): (&EventSink, &MonitorSwitch),
    ) -> Sampler {
        let stop = Arc::new(StopSignal::default());
        let group = |monitors| MonitorGroup::start(clock, &stop, monitors, machine, (sink, switch));
        let groups: Vec<Arc<MonitorGroup>> = groups.map(group).collect();
        let watched = groups.clone();
        let watch = move || {
            while !stop.wait(LOOK) {
                watched.iter().for_each(|group| group.give_up_blocked());
            }
        };
        // Without it a reading that blocks is only noticed at the end.
        let watchdog = Builder::new().name("watchdog".into()).spawn(watch).ok();
        Sampler { watchdog: watchdog.filter(|_| !groups.is_empty()), groups }
    }

    /// Stops at once, without waiting for a tick or for a reading that blocks, and says what it cost.
    pub fn stop(mut self) -> SamplerOverhead {
        self.join_threads()
    }

    fn join_threads(&mut self) -> SamplerOverhead {
        for group in &self.groups {
            group.stop.request();
            group.switch.wake();
        }
        let stopped = self.groups.drain(..).map(|group| group.join());
        let cost = stopped.fold(SamplerOverhead::default(), SamplerOverhead::combine);
        if let Some(watchdog) = self.watchdog.take() {
            let _ = watchdog.join();
        }
        cost
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join_threads();
    }
}

/// Monitors that are read by one thread after the other.
struct MonitorGroup {
    clock: Arc<dyn MonotonicClock>,
    stop: Arc<StopSignal>,
    machine: MonitoredMachine,
    sink: EventSink,
    switch: MonitorSwitch,
    monitors: Mutex<Vec<GroupedMonitor>>,
    threads: Mutex<Vec<JoinHandle<SamplerOverhead>>>,
    /// The number of the thread that reads: who comes back to find another one ends.
    reader: AtomicU32,
}

/// A monitor of a group.
struct GroupedMonitor {
    name: String,
    interval: Nanos,
    due: Nanos,
    /// Not here while it is opened or read.
    monitor: Option<ScheduledMonitor>,
    /// Since when it is.
    busy: Option<Instant>,
    /// Whoever reads it was given up.
    given_up: Option<SeriesGap>,
}

impl GroupedMonitor {
    /// How long it has been busy beyond what one waits for.
    fn is_blocked(&self) -> bool {
        self.busy.is_some_and(|since| since.elapsed() > BLOCKED.max(self.interval.into()))
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is half-written across a panic: each change is one assignment.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MonitorGroup {
    fn start(
        clock: &Arc<dyn MonotonicClock>,
        stop: &Arc<StopSignal>,
        monitors: Vec<ScheduledMonitor>,
        machine: &MonitoredMachine,
        (sink, switch): (&EventSink, &MonitorSwitch),
    ) -> Arc<Self> {
        let monitor = |monitor: ScheduledMonitor| GroupedMonitor {
            name: monitor.name().to_owned(),
            interval: monitor.schedule.interval(),
            due: monitor.schedule.due_at(),
            monitor: Some(monitor),
            busy: None,
            given_up: None,
        };
        let group = Arc::new(MonitorGroup {
            clock: Arc::clone(clock),
            stop: Arc::clone(stop),
            machine: machine.clone(),
            sink: sink.clone(),
            switch: switch.clone(),
            monitors: Mutex::new(monitors.into_iter().map(monitor).collect()),
            threads: Mutex::default(),
            reader: AtomicU32::new(0),
        });
        group.spawn_reader(0);
        group
    }

    /// Starts the thread of that number; without one, every monitor has a gap that says so.
    fn spawn_reader(self: &Arc<Self>, number: u32) {
        let group = Arc::clone(self);
        match Builder::new().name(overhead::MONITORS.into()).spawn(move || group.read_all(number)) {
            Ok(thread) => lock(&self.threads).push(thread),
            Err(error) => {
                let at = self.clock.now();
                for monitor in lock(&self.monitors).iter() {
                    let (monitor, reason) =
                        (monitor.name.clone(), format!("cannot start the monitors' thread: {error}"));
                    let gap = SeriesGap { monitor, from: at, to: None, reason };
                    // The event consumer is gone.
                    let _ = self.sink.send(RunEvent::new(at, RunEventKind::Gap(gap)));
                }
            }
        }
    }

    /// A thread's whole life.
    fn read_all(&self, number: u32) -> SamplerOverhead {
        let mut cost = SamplerOverhead::default();
        if number == 0 {
            self.with_each(|monitor| monitor.open(&self.machine));
        }
        let first = self.clock.now();
        let shortest = lock(&self.monitors).iter().map(|monitor| monitor.interval).min();
        let mut priority = MonitorThreadPriority::raise(shortest, first);
        if number == 0 {
            self.with_each(|monitor| monitor.start_ticks(first));
        }
        loop {
            if !self.switch.is_on() {
                self.switch.wait();
                if self.stop.is_requested() {
                    break;
                }
                let now = self.clock.now();
                self.with_each(|monitor| monitor.skip_until(now));
                continue;
            }
            let due =
                lock(&self.monitors).iter().filter(|one| one.monitor.is_some()).map(|one| one.due).min();
            let due = due.unwrap_or(Nanos(u64::MAX));
            if self.clock.sleep_until(due, &self.stop)
                || self.is_replaced(number)
                || self.take_due_ticks(number, &mut cost).is_err()
            {
                break;
            }
            priority.lower_if_greedy(self.clock.now());
        }
        cost.cpu = overhead::thread_cpu_time();
        cost
    }

    /// How many monitors it has; the lock is let go before any of them is taken.
    fn count(&self) -> usize {
        lock(&self.monitors).len()
    }

    fn is_replaced(&self, number: u32) -> bool {
        self.reader.load(Ordering::SeqCst) != number
    }

    /// Does something to each monitor, which is not here meanwhile.
    fn with_each(&self, what: impl Fn(&mut ScheduledMonitor)) {
        for index in 0..self.count() {
            let Some(mut monitor) = self.take(index, |_| true) else { continue };
            what(&mut monitor);
            self.put_back(index, monitor);
        }
    }

    /// Ticks every monitor that is due.
    fn take_due_ticks(&self, number: u32, cost: &mut SamplerOverhead) -> Result<(), EventSinkClosed> {
        if !self.switch.is_on() {
            return Ok(());
        }
        for index in 0..self.count() {
            let now = self.clock.now();
            let Some(mut monitor) = self.take(index, |due| due <= now) else { continue };
            let ticked = monitor.take_due_tick(&*self.clock, now, &self.machine, &self.sink, cost);
            self.put_back(index, monitor);
            ticked?;
            if self.is_replaced(number) {
                break;
            }
        }
        Ok(())
    }

    fn take(&self, index: usize, is_due: impl Fn(Nanos) -> bool) -> Option<ScheduledMonitor> {
        let mut all = lock(&self.monitors);
        let one = all.get_mut(index).filter(|one| is_due(one.due))?;
        let monitor = one.monitor.take()?;
        one.busy = Some(Instant::now());
        Some(monitor)
    }

    fn put_back(&self, index: usize, monitor: ScheduledMonitor) {
        let mut all = lock(&self.monitors);
        let Some(one) = all.get_mut(index) else { return };
        (one.busy, one.due, one.monitor) = (None, monitor.schedule.due_at(), Some(monitor));
        if let Some(gap) = one.given_up.take() {
            let now = self.clock.now();
            // The event consumer is gone.
            let _ = self.sink.send(RunEvent::new(now, RunEventKind::Gap(SeriesGap { to: Some(now), ..gap })));
        }
    }

    /// Says of a monitor that blocks that it does, and has another thread read the others.
    fn give_up_blocked(self: &Arc<Self>) {
        let mut all = lock(&self.monitors);
        let blocked: Vec<&mut GroupedMonitor> =
            all.iter_mut().filter(|one| one.given_up.is_none() && one.is_blocked()).collect();
        if blocked.is_empty() {
            return;
        }
        let now = self.clock.now();
        for one in blocked {
            let lasted = Nanos(one.busy.map_or(0, |since| since.elapsed().as_nanos() as u64));
            let reason = format!("given up: a reading had not come back after {lasted}");
            let from = Nanos(now.0.saturating_sub(lasted.0));
            let gap = SeriesGap { monitor: one.name.clone(), from, to: None, reason };
            one.given_up = Some(gap.clone());
            // The event consumer is gone.
            let _ = self.sink.send(RunEvent::new(now, RunEventKind::Gap(gap)));
        }
        drop(all);
        let number = self.reader.fetch_add(1, Ordering::SeqCst) + 1;
        self.spawn_reader(number);
    }

    /// Waits until its threads have ended, but for those that are blocked; nothing is sent any more afterwards.
    fn join(&self) -> SamplerOverhead {
        let mut cost = SamplerOverhead::default();
        let threads: Vec<JoinHandle<SamplerOverhead>> = lock(&self.threads).drain(..).collect();
        for thread in threads {
            let asked = Instant::now();
            let is_blocked =
                || asked.elapsed() > GRACE && lock(&self.monitors).iter().any(GroupedMonitor::is_blocked);
            while !thread.is_finished() && !is_blocked() {
                std::thread::sleep(PAUSE);
            }
            if thread.is_finished() {
                cost = cost.combine(thread.join().unwrap_or_default());
            }
        }
        self.sink.close();
        cost
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use perflab_model::{CellRow, ColumnSpec, SeriesSchema, TableCell};

    use super::*;
    use crate::ObserveError;
    use crate::monitor::context::Monitor;

    /// A monitor whose readings last until somebody says so.
    struct BlockingMonitor {
        schema: SeriesSchema,
        held: Receiver<()>,
    }

    impl Monitor for BlockingMonitor {
        fn schema(&self) -> &SeriesSchema {
            &self.schema
        }

        fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
            let _ = self.held.recv();
            rows.push(vec![TableCell::Int(1)]);
            Ok(())
        }
    }

    #[test]
    fn a_reading_that_blocks_is_given_up_the_others_go_on_and_nobody_waits_for_it() {
        let (release, held) = channel::<()>();
        let (monitor, source, interval) = ("vmstat".to_owned(), "/proc/vmstat".to_owned(), Nanos(1_000_000));
        let columns = vec![ColumnSpec::counter("pgfault", "1")];
        let schema = SeriesSchema {
            monitor: monitor.clone(),
            source,
            interval,
            columns,
            stored: perflab_model::series::StoredRows::Every,
        };
        let mut blocking = ScheduledMonitor::new(monitor, interval, Nanos(0));
        blocking.set_monitor(Box::new(BlockingMonitor { schema, held }));
        let other = ScheduledMonitor::new("loadavg".into(), Nanos(20_000_000), Nanos(0));
        let (sink, events) = channel();
        let clock: Arc<dyn MonotonicClock> = Arc::new(SystemClock);
        let groups = std::iter::once(vec![blocking, other]);
        let sampler = Sampler::start_groups(
            &clock,
            groups,
            &(&Root::host()).into(),
            (&EventSink::new(sink), &MonitorSwitch::default()),
        );
        // The watchdog needs a second at least: the other monitor is not read until then.
        let mut gap = None;
        let mut others = 0;
        while others < 3 {
            match events.recv().unwrap().what {
                RunEventKind::Gap(one) if one.monitor == "vmstat" => gap = Some(one),
                RunEventKind::Rows { monitor, .. } if monitor == "loadavg" => others += 1,
                _ => {}
            }
        }
        let gap = gap.expect("it was given up before the other could be read");
        assert!(gap.to.is_none());
        sampler.stop();
        assert!(
            events.into_iter().all(|event| !matches!(event.what, RunEventKind::Ended { .. })),
            "the stream ends"
        );
        drop(release);
    }
}
