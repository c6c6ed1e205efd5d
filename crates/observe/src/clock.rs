//! CLOCK_MONOTONIC, its anchor to the calendar, waits that a stop request ends, CPU time of a thread.
//!
//! The sampler never asks the system for the time: it asks a [`MonotonicClock`], which a test may replace.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use perflab_model::Nanos;
use perflab_model::run::ClockAnchor;
use rustix::time::{ClockId, clock_gettime};

/// A request to stop, which wakes whoever waits.
#[derive(Debug, Default)]
pub struct StopSignal {
    requested: Mutex<bool>,
    bell: Condvar,
}

impl StopSignal {
    /// Asks for the stop and wakes the waiting thread.
    pub fn request(&self) {
        *self.lock_flag() = true;
        self.bell.notify_all();
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        *self.lock_flag()
    }

    /// Waits for `time`, or less where the stop is asked for; says whether it was.
    pub fn wait(&self, time: Nanos) -> bool {
        let waiting = self.bell.wait_timeout_while(self.lock_flag(), time.into(), |asked| !*asked);
        *waiting.unwrap_or_else(PoisonError::into_inner).0
    }

    /// A flag has no half-written state, so a poisoned lock is as good as any.
    fn lock_flag(&self) -> MutexGuard<'_, bool> {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the sampler asks for the time.
pub trait MonotonicClock: Send + Sync {
    /// Now, in nanoseconds of CLOCK_MONOTONIC.
    fn now(&self) -> Nanos;

    /// Waits until `until`, or less where the stop is asked for; says whether it was.
    fn sleep_until(&self, until: Nanos, stop: &StopSignal) -> bool;
}

/// The machine's own CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl MonotonicClock for SystemClock {
    fn now(&self) -> Nanos {
        monotonic_now()
    }

    fn sleep_until(&self, until: Nanos, stop: &StopSignal) -> bool {
        stop.wait(until.since(self.now()))
    }
}

/// Now, on CLOCK_MONOTONIC of this machine.
pub fn monotonic_now() -> Nanos {
    read_clock(ClockId::Monotonic)
}

/// This instant on both clocks. The calendar is read between two looks at the monotonic clock, and the tightest
/// of a few tries is kept, so that the two differ by less than a scheduling hiccup.
pub fn read_clock_anchor() -> ClockAnchor {
    let look = || {
        let before = monotonic_now();
        let realtime = read_clock(ClockId::Realtime);
        let width = monotonic_now().since(before);
        (width, ClockAnchor { monotonic: Nanos(before.0 + width.0 / 2), realtime })
    };
    let first = look();
    let tightest = (0..4).map(|_| look()).fold(first, |best, next| if next.0 < best.0 { next } else { best });
    tightest.1
}

/// The reading of a clock of the kernel as nanoseconds.
pub(crate) fn read_clock(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_anchor_is_of_now() {
        let before = monotonic_now();
        let anchor = read_clock_anchor();
        assert!(before <= anchor.monotonic && anchor.monotonic <= monotonic_now());
        assert!(anchor.realtime.0 > 1_600_000_000_000_000_000);
    }

    #[test]
    fn a_stop_that_was_asked_for_ends_every_wait() {
        let stop = StopSignal::default();
        assert!(!stop.wait(Nanos(1)));
        stop.request();
        assert!(SystemClock.sleep_until(Nanos(u64::MAX), &stop) && stop.is_requested());
    }
}
