//! The threads: each sleeps until the first of its monitors is due, ticks whatever is due, until it is asked to stop.
//! Monitors on fast clocks have one of their own, so that none loses a tick while a slow one is read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

use perflab_model::series::Gap;
use perflab_model::{Event, Nanos, What};

use super::lane::{Deaf, Lane};
use super::priority::{Priority, is_fast};
use crate::clock::{Clock, Monotonic, Stop};
use crate::{Root, usage};

/// The running monitors of a run. Dropping it stops them as well.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<SamplerCost>>,
}

/// What the monitors of a run cost, and how punctual they were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SamplerCost {
    /// CPU time of the monitors' threads.
    pub cpu: Nanos,
    /// Ticks taken, of all monitors together.
    pub ticks: u64,
    /// Ticks taken more than half an interval after their time.
    pub late: u64,
    /// Whole intervals in which no tick could be taken.
    pub lost: u64,
}

impl Sampler {
    /// Starts the wanted monitors (name, interval; a name twice counts once, an interval below 1 ms is 1 ms) on a
    /// thread of their own; those with an interval below 100 ms on another, which takes the lowest real-time priority
    /// where it may. The first tick of each is taken as soon as all of its thread are open. Whatever cannot be read
    /// becomes a gap.
    pub fn start(wanted: Vec<(String, Nanos)>, root: Root, sink: Sender<Event>) -> Sampler {
        Sampler::start_on(Arc::new(Monotonic), wanted, root, sink)
    }

    /// The same with a clock of the caller's.
    pub fn start_on(
        clock: Arc<dyn Clock>,
        wanted: Vec<(String, Nanos)>,
        root: Root,
        sink: Sender<Event>,
    ) -> Sampler {
        let stop = Arc::new(Stop::default());
        let mut seen = BTreeSet::new();
        let once = wanted.into_iter().filter(|(name, _)| seen.insert(name.clone()));
        let (fast, slow): (Vec<_>, Vec<_>) = once.partition(|(_, interval)| is_fast(*interval));
        let groups = [fast, slow].into_iter().filter(|group| !group.is_empty());
        let start = |group| spawn(Arc::clone(&clock), Arc::clone(&stop), group, root.clone(), sink.clone());
        let threads = groups.filter_map(start).collect();
        Sampler { stop, threads }
    }

    /// Stops at once, without waiting for a tick, and says what it cost.
    pub fn stop(mut self) -> SamplerCost {
        self.join()
    }

    fn join(&mut self) -> SamplerCost {
        self.stop.ask();
        let joined = self.threads.drain(..).map(|thread| thread.join().unwrap_or_default());
        joined.fold(SamplerCost::default(), SamplerCost::and)
    }
}

impl SamplerCost {
    fn and(self, other: SamplerCost) -> SamplerCost {
        SamplerCost {
            cpu: Nanos(self.cpu.0 + other.cpu.0),
            ticks: self.ticks + other.ticks,
            late: self.late + other.late,
            lost: self.lost + other.lost,
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

/// A thread that reads these monitors; none where the system gives none.
fn spawn(
    clock: Arc<dyn Clock>,
    stop: Arc<Stop>,
    wanted: Vec<(String, Nanos)>,
    root: Root,
    sink: Sender<Event>,
) -> Option<JoinHandle<SamplerCost>> {
    let began = clock.now();
    let (names, listener): (Vec<String>, _) =
        (wanted.iter().map(|(name, _)| name.clone()).collect(), sink.clone());
    let lanes = wanted.into_iter().map(|(name, interval)| Lane::new(name, interval, began)).collect();
    let spawned =
        Builder::new().name("monitors".into()).spawn(move || run(&*clock, &stop, lanes, &root, &sink));
    if let Err(error) = &spawned {
        refuse(names, began, &error.to_string(), &listener);
    }
    spawned.ok()
}

/// Says of every monitor that there is no thread to read it.
fn refuse(names: Vec<String>, at: Nanos, error: &str, sink: &Sender<Event>) {
    for monitor in names {
        let reason = format!("cannot start the monitors' thread: {error}");
        let gap = Gap { monitor, from: at, to: None, reason };
        // A sink that nobody reads is nobody's loss.
        sink.send(Event::new(at, What::Gap(gap))).ok();
    }
}

/// The thread's whole life.
fn run(
    clock: &dyn Clock,
    stop: &Stop,
    mut lanes: Vec<Lane>,
    root: &Root,
    sink: &Sender<Event>,
) -> SamplerCost {
    let mut cost = SamplerCost::default();
    lanes.iter_mut().for_each(|lane| lane.open(root));
    let first = clock.now();
    let mut priority = Priority::raise(lanes.iter().map(|lane| lane.schedule.interval()).min(), first);
    lanes.iter_mut().for_each(|lane| lane.begin(first));
    loop {
        let due = lanes.iter().map(|lane| lane.schedule.due()).min().unwrap_or(Nanos(u64::MAX));
        if clock.sleep_until(due, stop) || tick(clock, &mut lanes, root, sink, &mut cost).is_err() {
            break;
        }
        priority.check(clock.now());
    }
    cost.cpu = usage::own_thread();
    cost
}

/// Ticks every lane that is due.
fn tick(
    clock: &dyn Clock,
    lanes: &mut [Lane],
    root: &Root,
    sink: &Sender<Event>,
    cost: &mut SamplerCost,
) -> Result<(), Deaf> {
    for lane in lanes {
        let now = clock.now();
        if lane.schedule.due() <= now {
            lane.tick(now, root, sink, cost)?;
        }
    }
    Ok(())
}
