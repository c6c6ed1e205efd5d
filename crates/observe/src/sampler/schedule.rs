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
pub(super) struct Schedule {
    interval: Nanos,
    due: Nanos,
}

/// How punctual a tick was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Punctuality {
    /// Whole intervals that passed without a tick.
    pub lost: u64,
    /// Whether the tick was taken more than half an interval after its time.
    pub late: bool,
}

impl Schedule {
    /// The first tick is due at `first`.
    pub(super) fn new(interval: Nanos, first: Nanos) -> Self {
        Schedule { interval: interval.max(SHORTEST), due: first }
    }

    pub(super) fn interval(&self) -> Nanos {
        self.interval
    }

    pub(super) fn due(&self) -> Nanos {
        self.due
    }

    /// The tick is taken at `now`: moves on to the next one, and says how punctual this one was.
    pub(super) fn take(&mut self, now: Nanos) -> Punctuality {
        let lost = now.since(self.due).0 / self.interval.0;
        let meant = self.after(lost);
        self.due = Nanos(meant.0.saturating_add(self.interval.0));
        Punctuality { lost, late: now.since(meant).0 > self.interval.0 / 2 }
    }

    /// The monitor failed at `now`: moves on to the next try, still on the grid.
    pub(super) fn retry(&mut self, now: Nanos) {
        let soon = self.interval.0.saturating_mul(RETRY_INTERVALS).clamp(RETRY_SOONEST, RETRY_LATEST);
        let wanted = now.0.saturating_add(soon);
        let intervals = wanted.saturating_sub(self.due.0).div_ceil(self.interval.0);
        self.due = self.after(intervals);
    }

    /// There is nothing to wait for.
    pub(super) fn never(&mut self) {
        self.due = Nanos(u64::MAX);
    }

    fn after(&self, intervals: u64) -> Nanos {
        Nanos(self.due.0.saturating_add(self.interval.0.saturating_mul(intervals)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn every_second() -> Schedule {
        Schedule::new(Nanos(SECOND), Nanos(0))
    }

    #[test]
    fn a_late_tick_does_not_move_the_grid() {
        let mut schedule = every_second();
        assert_eq!(schedule.take(Nanos(400_000_000)), Punctuality { lost: 0, late: false });
        assert_eq!(schedule.due(), Nanos(SECOND));
        assert_eq!(schedule.take(Nanos(SECOND + 600_000_000)), Punctuality { lost: 0, late: true });
        assert_eq!(schedule.due(), Nanos(2 * SECOND));
    }

    #[test]
    fn whole_intervals_are_lost_and_the_tick_after_them_is_on_time() {
        let mut schedule = every_second();
        assert_eq!(schedule.take(Nanos(3 * SECOND + 1)), Punctuality { lost: 3, late: false });
        assert_eq!(schedule.due(), Nanos(4 * SECOND));
    }

    #[test]
    fn retries_are_slower_and_on_the_grid() {
        let mut schedule = Schedule::new(Nanos(300_000_000), Nanos(0));
        schedule.take(Nanos(5));
        schedule.retry(Nanos(5));
        assert_eq!(schedule.due(), Nanos(3_300_000_000));
    }

    #[test]
    fn no_interval_is_too_short_or_too_long() {
        let mut schedule = Schedule::new(Nanos(0), Nanos(0));
        schedule.take(Nanos(0));
        assert_eq!(schedule.due(), SHORTEST);
        let mut endless = Schedule::new(Nanos(u64::MAX), Nanos(1));
        endless.take(Nanos(1));
        endless.retry(Nanos(u64::MAX));
        assert_eq!(endless.due(), Nanos(u64::MAX));
    }
}
