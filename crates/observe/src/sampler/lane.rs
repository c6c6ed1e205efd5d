//! One monitor on its schedule: opened, read, lost and found again, each step as events.

use std::sync::mpsc::{SendError, Sender};

use perflab_model::series::SeriesGap;
use perflab_model::{Nanos, RunEvent, RunEventKind, SeriesSchema};

use super::priority::is_fast_clock;
use super::run::SamplerOverhead;
use super::schedule::{MonitorSchedule, TickPunctuality};
use super::stolen::StealTimeWindow;
use crate::monitor::{Monitor, MonitorReading, find_monitor, open_monitor};
use crate::usage::{explain_absence, thread_wait_time};
use crate::{ObserveError, Root};

/// Every so many ticks one is told whole, so that what is lost of a stream costs those until then, and no more.
const WHOLE: u32 = 100;

/// Lost at a time, this is worth being asked whether the whole process was stopped.
const LONG_LOSS: Nanos = Nanos(1_000_000_000);

/// Nobody listens any more.
pub(super) type EventSinkClosed = SendError<RunEvent>;

/// One wanted monitor.
pub(super) struct ScheduledMonitor {
    name: String,
    pub(super) schedule: MonitorSchedule,
    monitor: Option<Box<dyn Monitor>>,
    /// As sent: its columns hold for the whole run.
    announced: Option<SeriesSchema>,
    /// Since when rows are missing, should the next tick fail.
    last_good: Nanos,
    gap: Option<SeriesGap>,
    /// Ticks told as changes since one was told whole.
    step: u32,
    stolen: Option<StealTimeWindow>,
    /// When was looked how long this thread had waited for a processor, and what was seen.
    wait: (Nanos, Option<Nanos>),
}

impl ScheduledMonitor {
    pub(super) fn new(name: String, interval: Nanos, began: Nanos) -> Self {
        let schedule = MonitorSchedule::new(interval, began);
        ScheduledMonitor {
            name,
            schedule,
            monitor: None,
            announced: None,
            last_good: began,
            gap: None,
            step: 0,
            stolen: None,
            wait: (began, thread_wait_time()),
        }
    }

    /// Opens the monitor, which may take longer than a tick. What goes wrong is said at the first tick, which tries again.
    pub(super) fn open(&mut self, root: &Root) {
        let opened =
            find_monitor(&self.name).and_then(|kind| open_monitor(kind, root, self.schedule.interval()));
        self.monitor = opened.ok();
    }

    /// Begins the grid of ticks at `first`.
    pub(super) fn start_ticks(&mut self, first: Nanos) {
        self.schedule = MonitorSchedule::new(self.schedule.interval(), first);
    }

    /// Takes the tick that is due, at `at`, and sends what came of it.
    pub(super) fn take_due_tick(
        &mut self,
        at: Nanos,
        root: &Root,
        sink: &Sender<RunEvent>,
        cost: &mut SamplerOverhead,
    ) -> Result<(), EventSinkClosed> {
        let punctuality = self.schedule.advance(at);
        let tick = match self.read_monitor(root) {
            Ok(tick) => tick,
            Err(error) => return self.begin_gap(at, &error, sink),
        };
        self.announce_schema(at, sink)?;
        match self.gap.take() {
            Some(gap) => self.send_event(at, RunEventKind::Gap(SeriesGap { to: Some(at), ..gap }), sink)?,
            None => self.count_punctuality(at, punctuality, root, sink, cost)?,
        }
        cost.ticks += 1;
        self.last_good = at;
        let monitor = self.name.clone();
        let told = match tick {
            MonitorReading::Whole(rows) => {
                self.step = 0;
                RunEventKind::Rows { monitor, rows }
            }
            MonitorReading::Changed(rows) => {
                self.step += 1;
                RunEventKind::Changed { monitor, step: self.step, rows }
            }
        };
        self.send_event(at, told, sink)
    }

    /// Reads the monitor, opened first where it is not.
    fn read_monitor(&mut self, root: &Root) -> Result<MonitorReading, ObserveError> {
        let monitor = match &mut self.monitor {
            Some(monitor) => monitor,
            closed => {
                let monitor = open_monitor(find_monitor(&self.name)?, root, self.schedule.interval())?;
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
    fn announce_schema(&mut self, at: Nanos, sink: &Sender<RunEvent>) -> Result<(), EventSinkClosed> {
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
        sink: &Sender<RunEvent>,
        cost: &mut SamplerOverhead,
    ) -> Result<(), EventSinkClosed> {
        cost.late += u64::from(late);
        cost.lost += lost;
        let taken = self.describe_steal(lost, root, at);
        let waited = self.measure_processor_wait(at);
        if lost == 0 {
            return Ok(());
        }
        let ticks = if lost == 1 { "tick" } else { "ticks" };
        let taken = taken.map(|taken| format!("; {taken}")).unwrap_or_default();
        let length = at.since(self.last_good);
        let cause = match waited.filter(|_| length > LONG_LOSS) {
            Some(waited) => explain_absence(length, Some(waited)),
            None => "the machine gave the sampler no time",
        };
        let reason = format!("{lost} {ticks} lost: {cause}{taken}");
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
        sink: &Sender<RunEvent>,
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

    fn send_event(
        &self,
        at: Nanos,
        what: RunEventKind,
        sink: &Sender<RunEvent>,
    ) -> Result<(), EventSinkClosed> {
        sink.send(RunEvent::new(at, what))
    }
}
