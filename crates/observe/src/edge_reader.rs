//! Monitors at the edges of iterations: read when a workload is about to be started and when it has ended, each reading with its
//! own time.
//!
//! Readings are taken on a thread of their own, so that a file that blocks holds up no iteration: who waits for an edge goes on
//! after [`EDGE_LIMIT`], the monitor at fault gets a gap that names it, and the edge is missing rather than taken late.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use perflab_model::column::ColumnKind;
use perflab_model::series::SeriesGap;
use perflab_model::study::MonitorTiming;
use perflab_model::{CellRow, EdgeReading, IterationEdge, Nanos, RunEvent, RunEventKind, SeriesSchema};

use crate::clock::{MonotonicClock, SystemClock};
use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitoredMachine};
use crate::monitor::registry::{find_monitor, open_run_monitor};
use crate::overhead::thread_cpu_time;
use crate::realtime_priority::RealtimeGuard;
use crate::scheduled_monitor::SamplerOverhead;

/// All monitors of an edge together take less than a millisecond; whoever takes this long blocks.
pub const EDGE_LIMIT: Nanos = Nanos(1_000_000_000);

/// An edge to be read.
#[derive(Debug, Clone, Copy)]
struct EdgeOrder {
    slot: u32,
    edge: IterationEdge,
    /// Nobody waits for it any more after this.
    until: Nanos,
}

/// What the reading thread and its owner share.
#[derive(Default)]
struct EdgeState {
    /// None once nobody listens: a thread that never comes back must not keep the stream open.
    sink: Option<Sender<RunEvent>>,
    /// The monitor that is being read, and since when.
    reading: Option<(String, Nanos)>,
    /// The order that is being carried out was given up.
    given_up: Option<SeriesGap>,
}

impl EdgeState {
    fn send(&self, at: Nanos, what: RunEventKind) {
        // Whoever conducts notices by itself that the event consumer is gone.
        self.sink.iter().for_each(|sink| drop(sink.send(RunEvent::new(at, what.clone()))));
    }
}

type SharedState = Arc<Mutex<EdgeState>>;

/// A state is as good as any, whatever happened to the thread that held it.
fn lock_state(state: &SharedState) -> MutexGuard<'_, EdgeState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The monitors of a run that are read at edges, and the thread that reads them.
pub struct EdgeReader {
    orders: Option<Sender<EdgeOrder>>,
    done: Receiver<()>,
    state: SharedState,
    /// Orders that have not come back.
    open: Cell<u32>,
    limit: Nanos,
    thread: Option<JoinHandle<Nanos>>,
}

impl EdgeReader {
    /// Opens, on the thread, those of these monitors that are read at edges: whoever is not read on a clock, and whoever counts.
    /// None where the study has no monitor.
    pub fn start<'a>(
        timings: impl IntoIterator<Item = (&'a String, &'a MonitorTiming)>,
        machine: &MonitoredMachine,
        sink: Sender<RunEvent>,
    ) -> Option<EdgeReader> {
        let timings = timings.into_iter().filter(|(_, timing)| **timing != MonitorTiming::Off);
        let monitors = timings.map(|(name, timing)| EdgeMonitor::new(name, *timing));
        EdgeReader::start_with_limit(monitors.collect(), machine, sink, EDGE_LIMIT)
    }

    fn start_with_limit(
        mut monitors: Vec<EdgeMonitor>,
        machine: &MonitoredMachine,
        sink: Sender<RunEvent>,
        limit: Nanos,
    ) -> Option<EdgeReader> {
        if monitors.is_empty() {
            return None;
        }
        let ((orders, todo), (report, done)) = (channel::<EdgeOrder>(), channel());
        let state = Arc::new(Mutex::new(EdgeState { sink: Some(sink), ..EdgeState::default() }));
        let (shared, machine) = (Arc::clone(&state), machine.clone());
        let read_edges = move || {
            monitors.iter_mut().for_each(|monitor| drop(monitor.open(&machine)));
            for order in todo {
                read_edge(&mut monitors, order, &machine, &shared);
                if report.send(()).is_err() {
                    break;
                }
            }
            thread_cpu_time()
        };
        let thread = Builder::new().name("edges".into()).spawn(read_edges);
        // Without a thread no edge comes back, and the first one says so.
        Some(EdgeReader { orders: Some(orders), done, state, open: Cell::new(0), limit, thread: thread.ok() })
    }

    /// Reads an edge now, and returns when all monitors are read, or when one of them blocks.
    pub fn read(&self, slot: u32, edge: IterationEdge) {
        while self.open.get() > 0 && self.done.try_recv().is_ok() {
            self.open.set(self.open.get() - 1);
        }
        if self.open.get() > 0 {
            // The gap that is open says why this edge is missing.
            return;
        }
        let until = Nanos(SystemClock.now().0.saturating_add(self.limit.0));
        let order = EdgeOrder { slot, edge, until };
        if self.orders.as_ref().is_none_or(|orders| orders.send(order).is_err()) {
            return;
        }
        self.open.set(1);
        match self.done.recv_timeout(self.limit.into()) {
            Ok(()) => self.open.set(0),
            Err(_) => self.give_up(slot, edge),
        }
    }

    fn give_up(&self, slot: u32, edge: IterationEdge) {
        let mut state = lock_state(&self.state);
        let (monitor, since) = match &state.reading {
            Some((monitor, since)) => (monitor.clone(), *since),
            None => return,
        };
        let now = SystemClock.now();
        let source = find_monitor(&monitor).map_or("", |file| file.source);
        let reason = format!(
            "{source}: given up at the {} of iteration {slot}: the reading had not come back after {}",
            edge.name(),
            now.since(since)
        );
        let gap = SeriesGap { monitor, from: since, to: None, reason };
        state.send(now, RunEventKind::Gap(gap.clone()));
        state.given_up = Some(gap);
    }

    /// Ends the thread, unless it is blocked, and says what it cost.
    pub fn stop(mut self) -> SamplerOverhead {
        SamplerOverhead { cpu: self.end(), ..SamplerOverhead::default() }
    }

    fn end(&mut self) -> Nanos {
        self.orders = None;
        while self.open.get() > 0 && self.done.try_recv().is_ok() {
            self.open.set(self.open.get() - 1);
        }
        let is_blocked = self.open.get() > 0;
        let thread = self.thread.take().filter(|_| !is_blocked);
        let cpu = thread.map_or(Nanos(0), |thread| thread.join().unwrap_or_default());
        lock_state(&self.state).sink = None;
        cpu
    }
}

impl Drop for EdgeReader {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads all monitors, as long as somebody waits.
fn read_edge(
    monitors: &mut [EdgeMonitor],
    order: EdgeOrder,
    machine: &MonitoredMachine,
    state: &SharedState,
) {
    // Whoever waits is about to start the workload.
    let urgent = RealtimeGuard::acquire();
    let mut readings = Vec::with_capacity(monitors.len());
    for (index, monitor) in monitors.iter_mut().enumerate().filter(|(_, monitor)| monitor.is_wanted()) {
        let at = SystemClock.now();
        if at > order.until {
            readings.push((index, at, Nanos(0), Err(EdgeAbsence::Late)));
            continue;
        }
        lock_state(state).reading = Some((monitor.name.clone(), at));
        let read = monitor.read(machine, order.edge);
        let took = SystemClock.now().since(at);
        if lock_state(state).given_up.is_some() {
            break;
        }
        readings.push((index, at, took, read.map_err(EdgeAbsence::Refused)));
    }
    drop(urgent);
    let mut state = lock_state(state);
    state.reading = None;
    if let Some(gap) = state.given_up.take() {
        let now = SystemClock.now();
        state.send(now, RunEventKind::Gap(SeriesGap { to: Some(now), ..gap }));
    }
    for (index, at, took, read) in readings {
        let Some(monitor) = monitors.get_mut(index) else { continue };
        match read {
            Ok(Some(rows)) => {
                monitor.announce(at, &state);
                let (slot, edge, monitor) = (order.slot, order.edge, monitor.name.clone());
                state.send(at, RunEventKind::Edge(EdgeReading { slot, edge, monitor, took, rows }));
            }
            Ok(None) => {}
            Err(EdgeAbsence::Refused(error)) => monitor.begin_gap(at, &error, &state),
            Err(EdgeAbsence::Late) => {
                let (EdgeOrder { slot, edge, until }, monitor) = (order, monitor.name.clone());
                let edge = edge.name();
                let reason =
                    format!("not read in time at the {edge} of iteration {slot}: perflab got no processor");
                let gap = SeriesGap { monitor, from: until, to: Some(at), reason };
                state.send(at, RunEventKind::Gap(gap));
            }
        }
    }
}

/// Why a monitor has no reading at an edge.
enum EdgeAbsence {
    Refused(ObserveError),
    /// nobody waited for it any more
    Late,
}

/// One monitor that is read at edges.
struct EdgeMonitor {
    name: String,
    timing: MonitorTiming,
    monitor: Option<Box<dyn Monitor>>,
    /// As sent: its columns hold for the whole run.
    announced: Option<SeriesSchema>,
    gap: Option<SeriesGap>,
}

impl EdgeMonitor {
    fn new(name: &str, timing: MonitorTiming) -> Self {
        EdgeMonitor { name: name.into(), timing, monitor: None, announced: None, gap: None }
    }

    /// Opens it where it is not open.
    fn open(&mut self, machine: &MonitoredMachine) -> Result<(), ObserveError> {
        if self.monitor.is_some() {
            return Ok(());
        }
        let interval = self.timing.interval().unwrap_or_default();
        let monitor = open_run_monitor(find_monitor(&self.name)?, machine, interval)?;
        let schema = monitor.schema();
        if self.announced.as_ref().is_some_and(|known| known.columns != schema.columns) {
            return Err(ObserveError::Reshaped { path: schema.source.clone() });
        }
        self.monitor = Some(monitor);
        Ok(())
    }

    /// What its clock reads is enough of one that does not count.
    fn is_wanted(&self) -> bool {
        self.timing == MonitorTiming::Edges || self.monitor.as_deref().is_none_or(has_counters)
    }

    /// Its rows; none where it turns out not to be wanted.
    fn read(
        &mut self,
        machine: &MonitoredMachine,
        edge: IterationEdge,
    ) -> Result<Option<Vec<CellRow>>, ObserveError> {
        self.open(machine)?;
        let wanted = self.is_wanted();
        let Some(monitor) = self.monitor.as_mut().filter(|_| wanted) else { return Ok(None) };
        let mut rows = Vec::new();
        let read = monitor.read_edge(edge, &mut rows);
        read.inspect_err(|_| self.monitor = None).map(|()| Some(rows))
    }

    /// Sends the schema before the first rows, and the end of a gap.
    fn announce(&mut self, at: Nanos, state: &EdgeState) {
        if let (None, Some(monitor)) = (&self.announced, &self.monitor) {
            let schema = self.announced.insert(monitor.schema().clone()).clone();
            state.send(at, RunEventKind::SeriesOpened(schema));
        }
        if let Some(gap) = self.gap.take() {
            state.send(at, RunEventKind::Gap(SeriesGap { to: Some(at), ..gap }));
        }
    }

    /// Begins a gap, unless one is open, or its clock tells of it.
    fn begin_gap(&mut self, at: Nanos, error: &ObserveError, state: &EdgeState) {
        if self.gap.is_some() || self.timing != MonitorTiming::Edges {
            return;
        }
        let gap = SeriesGap { monitor: self.name.clone(), from: at, to: None, reason: error.to_string() };
        state.send(at, RunEventKind::Gap(self.gap.insert(gap).clone()));
    }
}

/// Whether a monitor has a column that counts.
fn has_counters(monitor: &dyn Monitor) -> bool {
    monitor.schema().columns.iter().any(|column| column.kind == ColumnKind::Counter)
}

#[cfg(test)]
mod tests {
    use perflab_model::{ColumnSpec, TableCell};

    use super::*;
    use crate::root::Root;

    fn timings(all: &[(&str, MonitorTiming)]) -> Vec<(String, MonitorTiming)> {
        all.iter().map(|(name, timing)| ((*name).to_owned(), *timing)).collect()
    }

    /// Reads one iteration below a tree; gives what was sent.
    fn read_iteration(root: &Root, all: &[(&str, MonitorTiming)]) -> Vec<RunEventKind> {
        let (sink, events) = channel();
        let timings = timings(all);
        let reader =
            EdgeReader::start(timings.iter().map(|(name, timing)| (name, timing)), &root.into(), sink)
                .unwrap();
        reader.read(0, IterationEdge::Begin);
        reader.read(0, IterationEdge::End);
        assert!(reader.stop().ticks == 0);
        events.into_iter().map(|event| event.what).collect()
    }

    #[test]
    fn counters_have_edges_and_gauges_only_where_they_are_asked_for() {
        let second = MonitorTiming::Every(Nanos(1_000_000_000));
        let all = [("vmstat", second), ("meminfo", second), ("loadavg", MonitorTiming::Edges)];
        let events = read_iteration(&Root::host(), &all);
        let edges: Vec<(&str, IterationEdge)> = events
            .iter()
            .filter_map(|event| match event {
                RunEventKind::Edge(reading) => Some((reading.monitor.as_str(), reading.edge)),
                _ => None,
            })
            .collect();
        use IterationEdge::{Begin, End};
        assert_eq!(edges, [("vmstat", Begin), ("loadavg", Begin), ("vmstat", End), ("loadavg", End)]);
        let opened = events.iter().filter(|event| matches!(event, RunEventKind::SeriesOpened(_))).count();
        assert_eq!((opened, events.len()), (2, 6));
    }

    #[test]
    fn what_cannot_be_read_is_one_gap_and_its_clock_tells_of_it_where_it_has_one() {
        let root = tempfile::tempdir().unwrap();
        let second = MonitorTiming::Every(Nanos(1_000_000_000));
        let root = Root(root.path().into());
        let events = read_iteration(&root, &[("vmstat", MonitorTiming::Edges), ("stat", second)]);
        let [RunEventKind::Gap(gap)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((gap.monitor.as_str(), gap.to), ("vmstat", None));
    }

    #[test]
    fn a_study_without_monitors_has_no_thread() {
        let (sink, _events) = channel();
        assert!(EdgeReader::start([], &(&Root::host()).into(), sink).is_none());
    }

    /// A monitor whose first reading lasts until somebody says so.
    struct BlockingMonitor {
        schema: SeriesSchema,
        held: Option<Receiver<()>>,
    }

    impl Monitor for BlockingMonitor {
        fn schema(&self) -> &SeriesSchema {
            &self.schema
        }

        fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
            if let Some(held) = self.held.take() {
                let _ = held.recv();
            }
            rows.push(vec![TableCell::Int(1)]);
            Ok(())
        }
    }

    fn blocking_reader(limit: Nanos) -> (EdgeReader, Sender<()>, Receiver<RunEvent>) {
        let (release, held) = channel();
        let (monitor, source, interval) = ("vmstat".to_owned(), "/proc/vmstat".to_owned(), Nanos(0));
        let columns = vec![ColumnSpec::counter("pgfault", "1")];
        let schema = SeriesSchema {
            monitor,
            source,
            interval,
            columns,
            stored: perflab_model::series::StoredRows::Every,
        };
        let mut blocking = EdgeMonitor::new("vmstat", MonitorTiming::Edges);
        blocking.monitor = Some(Box::new(BlockingMonitor { schema, held: Some(held) }));
        let (sink, events) = channel();
        let reader =
            EdgeReader::start_with_limit(vec![blocking], &(&Root::host()).into(), sink, limit).unwrap();
        (reader, release, events)
    }

    #[test]
    fn a_file_that_blocks_is_given_up_and_named_and_comes_back() {
        let (reader, release, events) = blocking_reader(Nanos(20_000_000));
        reader.read(0, IterationEdge::Begin);
        let RunEventKind::Gap(begun) = events.recv().unwrap().what else { panic!("no gap") };
        assert_eq!((begun.monitor.as_str(), begun.to), ("vmstat", None));
        // While it blocks, nobody waits for it again.
        reader.read(0, IterationEdge::End);
        release.send(()).unwrap();
        let RunEventKind::Gap(ended) = events.recv().unwrap().what else { panic!("no end of the gap") };
        assert!(ended.is_end_of(&begun) && ended.to.is_some());
        while reader.open.get() > 0 && reader.done.try_recv().is_err() {
            std::thread::yield_now();
        }
        reader.open.set(0);
        reader.read(1, IterationEdge::Begin);
        let what: Vec<RunEventKind> = [events.recv(), events.recv()].map(|event| event.unwrap().what).into();
        let [RunEventKind::SeriesOpened(_), RunEventKind::Edge(reading)] = what.as_slice() else {
            panic!("{what:?}")
        };
        assert_eq!((reading.slot, reading.edge), (1, IterationEdge::Begin), "the late one is not an edge");
    }

    #[test]
    fn a_file_that_blocks_for_ever_holds_up_neither_the_end_nor_the_stream() {
        let (reader, _release, events) = blocking_reader(Nanos(20_000_000));
        reader.read(0, IterationEdge::Begin);
        reader.stop();
        assert_eq!(events.into_iter().count(), 1, "the stream is closed");
    }
}
