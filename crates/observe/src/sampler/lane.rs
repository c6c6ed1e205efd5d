//! One monitor on its schedule: opened, read, lost and found again, each step as events.

use std::sync::mpsc::{SendError, Sender};

use perflab_model::series::Gap;
use perflab_model::{Event, Nanos, SeriesSchema, What};

use super::priority::is_fast;
use super::run::SamplerCost;
use super::schedule::{Punctuality, Schedule};
use super::stolen::Stolen;
use crate::monitor::{Monitor, Tick, find, open};
use crate::usage::{absence_cause, own_thread_wait};
use crate::{ObserveError, Root};

/// Every so many ticks one is told whole, so that what is lost of a stream costs those until then, and no more.
const WHOLE: u32 = 100;

/// Lost at a time, this is worth being asked whether the whole process was stopped.
const LONG_LOSS: Nanos = Nanos(1_000_000_000);

/// Nobody listens any more.
pub(super) type Deaf = SendError<Event>;

/// One wanted monitor.
pub(super) struct Lane {
    name: String,
    pub(super) schedule: Schedule,
    monitor: Option<Box<dyn Monitor>>,
    /// As sent: its columns hold for the whole run.
    announced: Option<SeriesSchema>,
    /// Since when rows are missing, should the next tick fail.
    last_good: Nanos,
    gap: Option<Gap>,
    /// Ticks told as changes since one was told whole.
    step: u32,
    stolen: Option<Stolen>,
    /// When was looked how long this thread had waited for a processor, and what was seen.
    wait: (Nanos, Option<Nanos>),
}

impl Lane {
    pub(super) fn new(name: String, interval: Nanos, began: Nanos) -> Self {
        let schedule = Schedule::new(interval, began);
        Lane {
            name,
            schedule,
            monitor: None,
            announced: None,
            last_good: began,
            gap: None,
            step: 0,
            stolen: None,
            wait: (began, own_thread_wait()),
        }
    }

    /// Opens the monitor, which may take longer than a tick. What goes wrong is said at the first tick, which tries again.
    pub(super) fn open(&mut self, root: &Root) {
        let opened = find(&self.name).and_then(|kind| open(kind, root, self.schedule.interval()));
        self.monitor = opened.ok();
    }

    /// Begins the grid of ticks at `first`.
    pub(super) fn begin(&mut self, first: Nanos) {
        self.schedule = Schedule::new(self.schedule.interval(), first);
    }

    /// Takes the tick that is due, at `at`, and sends what came of it.
    pub(super) fn tick(
        &mut self,
        at: Nanos,
        root: &Root,
        sink: &Sender<Event>,
        cost: &mut SamplerCost,
    ) -> Result<(), Deaf> {
        let punctuality = self.schedule.take(at);
        let tick = match self.read(root) {
            Ok(tick) => tick,
            Err(error) => return self.fail(at, &error, sink),
        };
        self.announce(at, sink)?;
        match self.gap.take() {
            Some(gap) => self.send(at, What::Gap(Gap { to: Some(at), ..gap }), sink)?,
            None => self.count(at, punctuality, root, sink, cost)?,
        }
        cost.ticks += 1;
        self.last_good = at;
        let monitor = self.name.clone();
        let told = match tick {
            Tick::Whole(rows) => {
                self.step = 0;
                What::Rows { monitor, rows }
            }
            Tick::Changed(rows) => {
                self.step += 1;
                What::Changed { monitor, step: self.step, rows }
            }
        };
        self.send(at, told, sink)
    }

    /// Reads the monitor, opened first where it is not.
    fn read(&mut self, root: &Root) -> Result<Tick, ObserveError> {
        let monitor = match &mut self.monitor {
            Some(monitor) => monitor,
            closed => {
                let monitor = open(find(&self.name)?, root, self.schedule.interval())?;
                let schema = monitor.schema();
                if self.announced.as_ref().is_some_and(|known| known != schema) {
                    return Err(ObserveError::Reshaped { path: schema.source.clone() });
                }
                closed.insert(monitor)
            }
        };
        if self.step + 1 < WHOLE {
            return monitor.tick();
        }
        let mut rows = Vec::new();
        monitor.sample(&mut rows)?;
        Ok(Tick::Whole(rows))
    }

    /// Sends the schema before the first rows.
    fn announce(&mut self, at: Nanos, sink: &Sender<Event>) -> Result<(), Deaf> {
        match (&self.announced, &self.monitor) {
            (None, Some(monitor)) => {
                let schema = self.announced.insert(monitor.schema().clone()).clone();
                self.send(at, What::SeriesOpened(schema), sink)
            }
            _ => Ok(()),
        }
    }

    /// Counts a late tick, and lost ones, which are a gap as well.
    fn count(
        &mut self,
        at: Nanos,
        Punctuality { lost, late }: Punctuality,
        root: &Root,
        sink: &Sender<Event>,
        cost: &mut SamplerCost,
    ) -> Result<(), Deaf> {
        cost.late += u64::from(late);
        cost.lost += lost;
        let taken = self.stolen(lost, root, at);
        let waited = self.waited(at);
        if lost == 0 {
            return Ok(());
        }
        let ticks = if lost == 1 { "tick" } else { "ticks" };
        let taken = taken.map(|taken| format!("; {taken}")).unwrap_or_default();
        let length = at.since(self.last_good);
        let cause = match waited.filter(|_| length > LONG_LOSS) {
            Some(waited) => absence_cause(length, Some(waited)),
            None => "the machine gave the sampler no time",
        };
        let reason = format!("{lost} {ticks} lost: {cause}{taken}");
        let gap = Gap { monitor: self.name.clone(), from: self.last_good, to: Some(at), reason };
        self.send(at, What::Gap(gap), sink)
    }

    /// How long this thread has waited for a processor since it was last looked at, which is done each second.
    fn waited(&mut self, at: Nanos) -> Option<Nanos> {
        let (looked, before) = self.wait;
        if at.since(looked) <= LONG_LOSS {
            return None;
        }
        self.wait = (at, own_thread_wait());
        Some(self.wait.1?.since(before?))
    }

    /// What the host took about the time of a loss. Only fast clocks lose ticks so easily that the account is worth
    /// being kept; it is begun anew each second.
    fn stolen(&mut self, lost: u64, root: &Root, at: Nanos) -> Option<String> {
        match &mut self.stolen {
            Some(stolen) if lost > 0 => stolen.ask(root, at),
            Some(stolen) if stolen.is_old(at) => stolen.ask(root, at).and(None),
            None if is_fast(self.schedule.interval()) => {
                self.stolen = Some(Stolen::new(root, at));
                None
            }
            _ => None,
        }
    }

    /// Begins a gap, unless one is open already, and tries again later; an unknown name never comes back.
    fn fail(&mut self, at: Nanos, error: &ObserveError, sink: &Sender<Event>) -> Result<(), Deaf> {
        self.monitor = None;
        match error {
            ObserveError::Unknown { .. } => self.schedule.never(),
            _ => self.schedule.retry(at),
        }
        if self.gap.is_some() {
            return Ok(());
        }
        let gap =
            Gap { monitor: self.name.clone(), from: self.last_good, to: None, reason: error.to_string() };
        self.gap = Some(gap.clone());
        self.send(at, What::Gap(gap), sink)
    }

    fn send(&self, at: Nanos, what: What, sink: &Sender<Event>) -> Result<(), Deaf> {
        sink.send(Event::new(at, what))
    }
}
