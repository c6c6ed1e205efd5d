//! The thread: sleeps until the first monitor is due, ticks whatever is due, until it is asked to stop.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

use perflab_model::series::Gap;
use perflab_model::{Event, Nanos, What};

use super::lane::{Deaf, Lane};
use super::priority::Priority;
use crate::clock::{Clock, Monotonic, Stop};
use crate::{Root, usage};

/// The running monitors of a run. Dropping it stops them as well.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<SamplerCost>>,
}

/// What the monitors of a run cost, and how punctual they were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SamplerCost {
    /// CPU time of the monitors' thread.
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
    /// thread of their own. The first tick of each is taken as soon as all are open. With an interval below 100 ms the thread takes the
    /// lowest real-time priority, where it may. Whatever cannot be read becomes a gap.
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
        let began = clock.now();
        let names: Vec<String> = wanted.iter().map(|(name, _)| name.clone()).collect();
        let (asked, listener) = (Arc::clone(&stop), sink.clone());
        let spawned = Builder::new()
            .name("monitors".into())
            .spawn(move || run(&*clock, &asked, lanes(wanted, began), &root, &sink));
        if let Err(error) = &spawned {
            refuse(names, began, &error.to_string(), &listener);
        }
        Sampler { stop, thread: spawned.ok() }
    }

    /// Stops at once, without waiting for a tick, and says what it cost.
    pub fn stop(mut self) -> SamplerCost {
        self.join()
    }

    fn join(&mut self) -> SamplerCost {
        self.stop.ask();
        let joined = self.thread.take().map(JoinHandle::join);
        joined.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

fn lanes(wanted: Vec<(String, Nanos)>, began: Nanos) -> Vec<Lane> {
    let mut seen = BTreeSet::new();
    let once = wanted.into_iter().filter(|(name, _)| seen.insert(name.clone()));
    once.map(|(name, interval)| Lane::new(name, interval, began)).collect()
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
