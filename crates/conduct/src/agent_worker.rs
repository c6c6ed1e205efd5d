//! Carries out the orders of a run, one by one, on one machine.
//!
//! The same worker is behind an agent's stream and inside this process: where orders come from and where reports go
//! is its owner's matter. The wait for a start instant is asleep for most of the time and reads the clock for the
//! rest, so that it ends to the microsecond.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

use perflab_model::{Nanos, RunEventKind, Slot};
use perflab_observe::{RealtimeGuard, monotonic_now};
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;

use crate::barrier::BarrierPoint;
use crate::duet::DuetState;
use crate::error::ConductError;
use crate::executor::SlotExecutor;

/// What a worker is ordered to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerOrder {
    /// Bring the settings to what this case wants; no iteration follows yet.
    Settle {
        /// index into the plan's cases
        case: u32,
    },
    /// Make everything ready for this slot, and reach [`BarrierPoint::Before`].
    Prepare {
        /// index into the plan's slots
        index: u32,
        /// the slot
        slot: Slot,
    },
    /// Carry out its iteration, and reach [`BarrierPoint::After`].
    Start {
        /// index into the plan's slots
        index: u32,
        /// when to start, on this machine's clock
        at: Nanos,
    },
    /// Make everything ready for this slot and carry out its iteration at once, as nobody else takes part in it: it is between
    /// [`BarrierPoint::Before`] and [`BarrierPoint::After`] all along, and comes to the latter.
    Iterate {
        /// index into the plan's slots
        index: u32,
        /// the slot
        slot: Slot,
    },
    /// Undo every setting: no further slot comes.
    Undo,
}

/// What a worker has to say beside the events of its executor.
#[derive(Debug)]
pub(crate) enum WorkerReport {
    /// Settings that were changed before any slot.
    Changed(Vec<RunEventKind>),
    /// The point is reached; whatever belongs before it was sent before.
    Reached {
        /// the point
        point: BarrierPoint,
        /// whether the iteration before it went well
        good: bool,
    },
    /// The iteration was not begun, as a stop was asked for before.
    Unbegun {
        /// index into the plan's slots
        index: u32,
    },
    /// An order could not be carried out.
    Failed(ConductError),
}

/// Where the reports of a worker go.
pub(crate) trait ReportSink {
    /// Sends one, after all events that the executor has sent. One whom nobody hears is lost.
    fn report(&self, report: WorkerReport);
}

/// One machine that takes part in a run.
pub(crate) struct AgentWorker<'a, S> {
    pub(crate) executor: SlotExecutor<'a>,
    pub(crate) reports: S,
    /// Where two levels run at once.
    pub(crate) duet: Option<DuetState>,
    /// The slot that everything was made ready for.
    ready: Option<(u32, Slot)>,
}

impl<'a, S: ReportSink> AgentWorker<'a, S> {
    /// One that is prepared; `duet` where two levels run at once.
    pub(crate) fn new(executor: SlotExecutor<'a>, reports: S, duet: Option<DuetState>) -> Self {
        AgentWorker { executor, reports, duet, ready: None }
    }

    /// Reports a point that no iteration comes before.
    pub(crate) fn report_reached(&self, point: BarrierPoint) {
        self.reports.report(WorkerReport::Reached { point, good: true });
    }

    /// Carries out orders; `true` when it is ordered to undo, `false` when nobody orders any more.
    pub(crate) fn carry_out_orders(
        &mut self,
        next_order: impl Fn() -> Option<WorkerOrder>,
    ) -> Result<bool, ConductError> {
        while let Some(order) = next_order() {
            if order == WorkerOrder::Undo {
                return Ok(true);
            }
            self.carry_out(order)?;
        }
        Ok(false)
    }

    /// Carries out an order. Undoing consumes the executor, and is its owner's.
    pub(crate) fn carry_out(&mut self, order: WorkerOrder) -> Result<(), ConductError> {
        match order {
            WorkerOrder::Undo => {}
            WorkerOrder::Settle { case } => self.settle(case)?,
            WorkerOrder::Prepare { index, slot } => {
                self.prepare(index, slot)?;
                self.ready = Some((index, slot));
                self.report_reached(BarrierPoint::Before(index));
            }
            WorkerOrder::Start { index, at } => {
                if let Some((_, slot)) = self.ready.take().filter(|(ready, _)| *ready == index) {
                    self.run_iteration(index, slot, Some(at))?;
                }
            }
            WorkerOrder::Iterate { index, slot } => {
                self.prepare(index, slot)?;
                match self.executor.stop.is_requested() {
                    true => self.reports.report(WorkerReport::Unbegun { index }),
                    false => self.run_iteration(index, slot, None)?,
                }
            }
        }
        Ok(())
    }

    fn settle(&mut self, case: u32) -> Result<(), ConductError> {
        let Some(case) = self.executor.manifest.plan.case(case) else { return Ok(()) };
        let changes = self.executor.apply_settings(case)?;
        self.reports.report(WorkerReport::Changed(changes));
        Ok(())
    }

    fn prepare(&mut self, index: u32, slot: Slot) -> Result<(), ConductError> {
        if let Some(duet) = &mut self.duet {
            return self.executor.prepare_duet(duet, index);
        }
        let Some(case) = self.executor.manifest.plan.case(slot.case) else { return Ok(()) };
        self.executor.prepare_slot(index, &slot, case)
    }

    /// Carries out an iteration that is prepared, at an instant or at once, and reports that it is over.
    fn run_iteration(&mut self, index: u32, slot: Slot, at: Option<Nanos>) -> Result<(), ConductError> {
        let flag = self.executor.stop.flag();
        let begin = || at.and_then(|at| wait_until_instant(at, &flag)).map(|woken| woken.urgent);
        let good = match (&mut self.duet, self.executor.manifest.plan.case(slot.case)) {
            (Some(duet), _) => self.executor.carry_out_duet(duet, index, &begin)?,
            (None, Some(case)) => self.executor.carry_out(index, &slot, case, &begin)?,
            (None, None) => false,
        };
        self.reports.report(WorkerReport::Reached { point: BarrierPoint::After(index), good });
        Ok(())
    }
}

/// What a timer may be late on a machine at rest: the rest is spent looking at the clock.
const LOOKING: Nanos = Nanos(60_000);

/// How often a wish to stop is looked at.
const TICK: Nanos = Nanos(50_000_000);

/// The moment after a wait.
#[derive(Debug)]
pub(crate) struct WakeUp {
    /// When it was over.
    pub(crate) at: Nanos,
    /// Held until what was waited for is done: on a busy machine, whoever wakes up waits for others.
    urgent: RealtimeGuard,
}

/// Waits until `at` and says when it was over, or `None` where a stop was asked for before.
pub(crate) fn wait_until_instant(at: Nanos, stop: &AtomicBool) -> Option<WakeUp> {
    let urgent = RealtimeGuard::acquire();
    // The kernel may otherwise delay a timer by 50 microseconds, to save wake-ups.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    loop {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let now = monotonic_now();
        if at.since(now) <= LOOKING {
            break;
        }
        let next = Nanos((now.0 + TICK.0).min(at.0 - LOOKING.0));
        let (seconds, nanos) = (next.0 / 1_000_000_000, next.0 % 1_000_000_000);
        // A signal ends the sleep early, and the loop sees to it.
        let _ = clock_nanosleep_absolute(
            ClockId::Monotonic,
            &Timespec { tv_sec: seconds as i64, tv_nsec: nanos as i64 },
        );
    }
    loop {
        let now = monotonic_now();
        if now >= at {
            return Some(WakeUp { at: now, urgent });
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_early_and_a_stop_ends_it() {
        let stop = AtomicBool::new(false);
        let at = Nanos(monotonic_now().0 + 3_000_000);
        assert!(wait_until_instant(at, &stop).is_some_and(|woken| woken.at >= at));
        assert!(wait_until_instant(Nanos(0), &stop).is_some(), "what is over is not waited for");
        stop.store(true, Ordering::Relaxed);
        assert!(wait_until_instant(Nanos(u64::MAX), &stop).is_none());
    }
}
