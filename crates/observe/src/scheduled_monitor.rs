//! One monitor on its grid of ticks: read, late, lost, failed, retried; the steal time behind a loss.
//!
//! Ticks are absolute times on a grid of the monitor's interval, so that nothing drifts.
//!
//! Steal time of a virtual machine is given as the reason for a lost tick where nothing in the machine held the
//! thread up; it never says that it *was* the reason, only how much was taken about then.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use perflab_formats::kernel::stat::{CpuTimes, NANOS_A_TICK};
use perflab_model::series::SeriesGap;
use perflab_model::{Nanos, RunEvent, RunEventKind, SeriesSchema};

use crate::clock::MonotonicClock;
use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorReading, MonitoredMachine};
use crate::monitor::registry::{find_monitor, open_run_monitor};
use crate::overhead::{explain_absence, thread_wait_time};
use crate::realtime_priority::is_fast_clock;
use crate::root::Root;

/// Every this many ticks one is sent whole, so that a loss in the stream costs the ticks until then, and no more.
const WHOLE: u32 = 100;

/// Lost at a time, this is worth being asked whether the whole process was stopped.
const LONG_LOSS: Nanos = Nanos(1_000_000_000);

/// What the monitors of a run cost, and how punctual they were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SamplerOverhead {
    /// CPU time of the monitors' threads.
    pub cpu: Nanos,
    /// Ticks taken, of all monitors together.
    pub ticks: u64,
    /// Ticks taken more than half an interval after their time.
    pub late: u64,
    /// Whole intervals in which no tick could be taken.
    pub lost: u64,
}

impl SamplerOverhead {
    /// What both cost.
    #[must_use]
    pub fn combine(self, other: SamplerOverhead) -> SamplerOverhead {
        SamplerOverhead {
            cpu: Nanos(self.cpu.0 + other.cpu.0),
            ticks: self.ticks + other.ticks,
            late: self.late + other.late,
            lost: self.lost + other.lost,
        }
    }
}

/// The event consumer is gone.
#[derive(Debug)]
pub(crate) struct EventSinkClosed;

/// Where events go, until it is closed: a thread that never comes back must not keep the stream open.
#[derive(Clone)]
pub(crate) struct EventSink(Arc<Mutex<Option<Sender<RunEvent>>>>);

impl EventSink {
    pub(crate) fn new(sink: Sender<RunEvent>) -> Self {
        EventSink(Arc::new(Mutex::new(Some(sink))))
    }

    pub(crate) fn send(&self, event: RunEvent) -> Result<(), EventSinkClosed> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(sink) => sink.send(event).map_err(|_| EventSinkClosed),
            None => Err(EventSinkClosed),
        }
    }

    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// One monitor of the run.
pub(crate) struct ScheduledMonitor {
    name: String,
    pub(crate) schedule: MonitorSchedule,
    monitor: Option<Box<dyn Monitor>>,
    /// As sent: its columns hold for the whole run.
    announced: Option<SeriesSchema>,
    /// Since when rows are missing, should the next tick fail.
    last_good: Nanos,
    /// How long the last good reading took.
    last_took: Nanos,
    gap: Option<SeriesGap>,
    /// Ticks sent as changes since one was sent whole.
    step: u32,
    stolen: Option<StealTimeWindow>,
    /// When was looked how long this thread had waited for a processor, and what was seen.
    wait: (Nanos, Option<Nanos>),
}

impl ScheduledMonitor {
    pub(crate) fn new(name: String, interval: Nanos, began: Nanos) -> Self {
        let schedule = MonitorSchedule::new(interval, began);
        ScheduledMonitor {
            name,
            schedule,
            monitor: None,
            announced: None,
            last_good: began,
            last_took: Nanos(0),
            gap: None,
            step: 0,
            stolen: None,
            wait: (began, thread_wait_time()),
        }
    }

    #[cfg(test)]
    pub(crate) fn set_monitor(&mut self, monitor: Box<dyn Monitor>) {
        self.monitor = Some(monitor);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Opens the monitor, which may take longer than a tick. What goes wrong is reported at the first tick, which tries again.
    pub(crate) fn open(&mut self, machine: &MonitoredMachine) {
        if self.monitor.is_some() {
            return;
        }
        let opened = find_monitor(&self.name)
            .and_then(|kind| open_run_monitor(kind, machine, self.schedule.interval()));
        self.monitor = opened.ok();
    }

    /// Begins the grid of ticks at `first`.
    pub(crate) fn start_ticks(&mut self, first: Nanos) {
        self.schedule = MonitorSchedule::new(self.schedule.interval(), first);
    }

    /// Takes no tick that was due before `now`: nobody wanted them.
    pub(crate) fn skip_until(&mut self, now: Nanos) {
        if self.schedule.due_at() < now {
            self.schedule = MonitorSchedule::new(self.schedule.interval(), now);
            self.last_good = now;
        }
    }

    /// Takes the tick that is due, at `at`, and sends what came of it.
    pub(crate) fn take_due_tick(
        &mut self,
        clock: &dyn MonotonicClock,
        at: Nanos,
        machine: &MonitoredMachine,
        sink: &EventSink,
        cost: &mut SamplerOverhead,
    ) -> Result<(), EventSinkClosed> {
        let punctuality = self.schedule.advance(at);
        let tick = match self.read_monitor(machine) {
            Ok(tick) => tick,
            Err(error) => return self.begin_gap(at, &error, sink),
        };
        let took = clock.now().since(at);
        self.announce_schema(at, sink)?;
        match self.gap.take() {
            Some(gap) => self.send_event(at, RunEventKind::Gap(SeriesGap { to: Some(at), ..gap }), sink)?,
            None => self.count_punctuality(at, punctuality, &machine.root, sink, cost)?,
        }
        cost.ticks += 1;
        self.last_good = at;
        self.last_took = took;
        let monitor = self.name.clone();
        let events = match tick {
            MonitorReading::Whole(rows) => {
                self.step = 0;
                RunEventKind::Rows { monitor, rows, took }
            }
            MonitorReading::Changed(rows) => {
                self.step += 1;
                RunEventKind::Changed { monitor, step: self.step, rows, took }
            }
        };
        self.send_event(at, events, sink)
    }

    /// Reads the monitor, opened first where it is not.
    fn read_monitor(&mut self, machine: &MonitoredMachine) -> Result<MonitorReading, ObserveError> {
        let monitor = match &mut self.monitor {
            Some(monitor) => monitor,
            closed => {
                let monitor = open_run_monitor(find_monitor(&self.name)?, machine, self.schedule.interval())?;
                let schema = monitor.schema();
                if self.announced.as_ref().is_some_and(|known| known != schema) {
                    return Err(ObserveError::Reshaped { path: schema.source.clone() });
                }
                closed.insert(monitor)
            }
        };
        if self.step + 1 < WHOLE {
            return monitor.read_changes();
        }
        let mut rows = Vec::new();
        monitor.read_rows(&mut rows)?;
        Ok(MonitorReading::Whole(rows))
    }

    /// Sends the schema before the first rows.
    fn announce_schema(&mut self, at: Nanos, sink: &EventSink) -> Result<(), EventSinkClosed> {
        match (&self.announced, &self.monitor) {
            (None, Some(monitor)) => {
                let schema = self.announced.insert(monitor.schema().clone()).clone();
                self.send_event(at, RunEventKind::SeriesOpened(schema), sink)
            }
            _ => Ok(()),
        }
    }

    /// Counts a late tick, and lost ones, which are a gap as well.
    fn count_punctuality(
        &mut self,
        at: Nanos,
        TickPunctuality { lost, late }: TickPunctuality,
        root: &Root,
        sink: &EventSink,
        cost: &mut SamplerOverhead,
    ) -> Result<(), EventSinkClosed> {
        cost.late += u64::from(late);
        cost.lost += lost;
        let steal = self.describe_steal(lost, root, at);
        let waited = self.measure_processor_wait(at);
        if lost == 0 {
            return Ok(());
        }
        let ticks = if lost == 1 { "tick" } else { "ticks" };
        let steal = steal.map(|steal| format!("; {steal}")).unwrap_or_default();
        let length = at.since(self.last_good);
        let cause = match waited.filter(|_| length > LONG_LOSS) {
            Some(waited) => explain_absence(length, Some(waited)),
            None => "the machine gave the sampler no time",
        };
        let reason = if self.last_took > self.schedule.interval() {
            format!("{lost} {ticks} lost: a reading took {}, longer than its interval", self.last_took)
        } else {
            format!("{lost} {ticks} lost: {cause}{steal}")
        };
        let gap = SeriesGap { monitor: self.name.clone(), from: self.last_good, to: Some(at), reason };
        self.send_event(at, RunEventKind::Gap(gap), sink)
    }

    /// How long this thread has waited for a processor since it was last looked at, which is done each second.
    fn measure_processor_wait(&mut self, at: Nanos) -> Option<Nanos> {
        let (looked, before) = self.wait;
        if at.since(looked) <= LONG_LOSS {
            return None;
        }
        self.wait = (at, thread_wait_time());
        Some(self.wait.1?.since(before?))
    }

    /// What the host took about the time of a loss. Only fast clocks lose ticks so easily that the account is worth
    /// being kept; it is begun anew each second.
    fn describe_steal(&mut self, lost: u64, root: &Root, at: Nanos) -> Option<String> {
        match &mut self.stolen {
            Some(stolen) if lost > 0 => stolen.restart(root, at),
            Some(stolen) if stolen.is_old(at) => stolen.restart(root, at).and(None),
            None if is_fast_clock(self.schedule.interval()) => {
                self.stolen = Some(StealTimeWindow::new(root, at));
                None
            }
            _ => None,
        }
    }

    /// Begins a gap, unless one is open already, and tries again later; an unknown name never comes back.
    fn begin_gap(
        &mut self,
        at: Nanos,
        error: &ObserveError,
        sink: &EventSink,
    ) -> Result<(), EventSinkClosed> {
        self.monitor = None;
        match error {
            ObserveError::Unknown { .. } => self.schedule.disable(),
            _ => self.schedule.schedule_retry(at),
        }
        if self.gap.is_some() {
            return Ok(());
        }
        let gap = SeriesGap {
            monitor: self.name.clone(),
            from: self.last_good,
            to: None,
            reason: error.to_string(),
        };
        self.gap = Some(gap.clone());
        self.send_event(at, RunEventKind::Gap(gap), sink)
    }

    fn send_event(&self, at: Nanos, what: RunEventKind, sink: &EventSink) -> Result<(), EventSinkClosed> {
        sink.send(RunEvent::new(at, what))
    }
}

/// Shorter intervals than this would measure the sampler rather than the kernel.
const SHORTEST: Nanos = Nanos(1_000_000);

/// A failed monitor is tried again after this many intervals,
const RETRY_INTERVALS: u64 = 10;

/// but not sooner than this,
const RETRY_SOONEST: u64 = 1_000_000_000;

/// and, where its interval allows, not later.
const RETRY_LATEST: u64 = 10_000_000_000;

/// The grid of one monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MonitorSchedule {
    interval: Nanos,
    due: Nanos,
}

/// How punctual a tick was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TickPunctuality {
    /// Whole intervals that passed without a tick.
    pub lost: u64,
    /// Whether the tick was taken more than half an interval after its time.
    pub late: bool,
}

impl MonitorSchedule {
    /// The first tick is due at `first`.
    pub(crate) fn new(interval: Nanos, first: Nanos) -> Self {
        MonitorSchedule { interval: interval.max(SHORTEST), due: first }
    }

    pub(crate) fn interval(&self) -> Nanos {
        self.interval
    }

    pub(crate) fn due_at(&self) -> Nanos {
        self.due
    }

    /// The tick is taken at `now`: moves on to the next one, and says how punctual this one was.
    fn advance(&mut self, now: Nanos) -> TickPunctuality {
        let lost = now.since(self.due).0 / self.interval.0;
        let meant = self.instant_after(lost);
        self.due = Nanos(meant.0.saturating_add(self.interval.0));
        TickPunctuality { lost, late: now.since(meant).0 > self.interval.0 / 2 }
    }

    /// The monitor failed at `now`: moves on to the next try, still on the grid.
    fn schedule_retry(&mut self, now: Nanos) {
        let soon = self.interval.0.saturating_mul(RETRY_INTERVALS).clamp(RETRY_SOONEST, RETRY_LATEST);
        let wanted = now.0.saturating_add(soon);
        let intervals = wanted.saturating_sub(self.due.0).div_ceil(self.interval.0);
        self.due = self.instant_after(intervals);
    }

    /// There is nothing to wait for.
    fn disable(&mut self) {
        self.due = Nanos(u64::MAX);
    }

    fn instant_after(&self, intervals: u64) -> Nanos {
        Nanos(self.due.0.saturating_add(self.interval.0.saturating_mul(intervals)))
    }
}

/// An account of a longer time says little about a moment in it.
const WINDOW: Nanos = Nanos(1_000_000_000);

/// The account since it was asked last.
#[derive(Debug)]
struct StealTimeWindow {
    at: Nanos,
    /// `steal` of all CPUs; nothing where the kernel does not report it.
    ticks: Option<u64>,
}

impl StealTimeWindow {
    pub(crate) fn new(root: &Root, now: Nanos) -> Self {
        StealTimeWindow { at: now, ticks: read_steal_ticks(root) }
    }

    /// Whether it is of more than a second.
    fn is_old(&self, now: Nanos) -> bool {
        now.since(self.at) > WINDOW
    }

    /// Begins a new account at `now`; says what was taken in the old one, where anything was.
    fn restart(&mut self, root: &Root, now: Nanos) -> Option<String> {
        let before = std::mem::replace(self, StealTimeWindow::new(root, now));
        let steal = self.ticks?.checked_sub(before.ticks?).filter(|ticks| *ticks > 0)?;
        let (steal, within) = (Nanos(steal.saturating_mul(NANOS_A_TICK)), now.since(before.at));
        Some(format!(
            "its host took {:.2} s of its CPUs in the last {:.2} s",
            steal.seconds(),
            within.seconds()
        ))
    }
}

fn read_steal_ticks(root: &Root) -> Option<u64> {
    Some(CpuTimes::parse(&root.read("/proc/stat").ok()?)?.steal())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn one_second_schedule() -> MonitorSchedule {
        MonitorSchedule::new(Nanos(SECOND), Nanos(0))
    }

    #[test]
    fn a_late_tick_does_not_move_the_grid() {
        let mut schedule = one_second_schedule();
        assert_eq!(schedule.advance(Nanos(400_000_000)), TickPunctuality { lost: 0, late: false });
        assert_eq!(schedule.due_at(), Nanos(SECOND));
        assert_eq!(schedule.advance(Nanos(SECOND + 600_000_000)), TickPunctuality { lost: 0, late: true });
        assert_eq!(schedule.due_at(), Nanos(2 * SECOND));
    }

    #[test]
    fn whole_intervals_are_lost_and_the_tick_after_them_is_on_time() {
        let mut schedule = one_second_schedule();
        assert_eq!(schedule.advance(Nanos(3 * SECOND + 1)), TickPunctuality { lost: 3, late: false });
        assert_eq!(schedule.due_at(), Nanos(4 * SECOND));
    }

    #[test]
    fn retries_are_slower_and_on_the_grid() {
        let mut schedule = MonitorSchedule::new(Nanos(300_000_000), Nanos(0));
        schedule.advance(Nanos(5));
        schedule.schedule_retry(Nanos(5));
        assert_eq!(schedule.due_at(), Nanos(3_300_000_000));
    }

    #[test]
    fn no_interval_is_too_short_or_too_long() {
        let mut schedule = MonitorSchedule::new(Nanos(0), Nanos(0));
        schedule.advance(Nanos(0));
        assert_eq!(schedule.due_at(), SHORTEST);
        let mut endless = MonitorSchedule::new(Nanos(u64::MAX), Nanos(1));
        endless.advance(Nanos(1));
        endless.schedule_retry(Nanos(u64::MAX));
        assert_eq!(endless.due_at(), Nanos(u64::MAX));
    }

    #[test]
    fn what_was_taken_is_said_once_and_nothing_where_nothing_was() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root(directory.path().into());
        let stat = |text: &str| {
            std::fs::create_dir_all(root.path("/proc")).unwrap();
            std::fs::write(root.path("/proc/stat"), text).unwrap();
        };
        let mut stolen = StealTimeWindow::new(&root, Nanos(0));
        stat("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
        assert_eq!(stolen.restart(&root, Nanos(1)), None, "it was not known before");
        stat("cpu  1 2 3 4 5 6 7 11 9 10\n");
        let explanation = stolen.restart(&root, Nanos(500_000_001));
        assert_eq!(explanation.as_deref(), Some("its host took 0.03 s of its CPUs in the last 0.50 s"));
        assert_eq!(stolen.restart(&root, Nanos(600_000_000)), None);
    }
}
