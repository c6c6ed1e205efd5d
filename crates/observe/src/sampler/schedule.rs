//! When a monitor is due: absolute times on a grid of its interval, so that nothing drifts.

use perflab_model::Nanos;

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
pub(super) struct MonitorSchedule {
    interval: Nanos,
    due: Nanos,
}

/// How punctual a tick was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TickPunctuality {
    /// Whole intervals that passed without a tick.
    pub lost: u64,
    /// Whether the tick was taken more than half an interval after its time.
    pub late: bool,
}

impl MonitorSchedule {
    /// The first tick is due at `first`.
    pub(super) fn new(interval: Nanos, first: Nanos) -> Self {
        MonitorSchedule { interval: interval.max(SHORTEST), due: first }
    }

    pub(super) fn interval(&self) -> Nanos {
        self.interval
    }

    pub(super) fn due_at(&self) -> Nanos {
        self.due
    }

    /// The tick is taken at `now`: moves on to the next one, and says how punctual this one was.
    pub(super) fn advance(&mut self, now: Nanos) -> TickPunctuality {
        let lost = now.since(self.due).0 / self.interval.0;
        let meant = self.instant_after(lost);
        self.due = Nanos(meant.0.saturating_add(self.interval.0));
        TickPunctuality { lost, late: now.since(meant).0 > self.interval.0 / 2 }
    }

    /// The monitor failed at `now`: moves on to the next try, still on the grid.
    pub(super) fn schedule_retry(&mut self, now: Nanos) {
        let soon = self.interval.0.saturating_mul(RETRY_INTERVALS).clamp(RETRY_SOONEST, RETRY_LATEST);
        let wanted = now.0.saturating_add(soon);
        let intervals = wanted.saturating_sub(self.due.0).div_ceil(self.interval.0);
        self.due = self.instant_after(intervals);
    }

    /// There is nothing to wait for.
    pub(super) fn disable(&mut self) {
        self.due = Nanos(u64::MAX);
    }

    fn instant_after(&self, intervals: u64) -> Nanos {
        Nanos(self.due.0.saturating_add(self.interval.0.saturating_mul(intervals)))
    }
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
}
