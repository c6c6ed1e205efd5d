//! Waiting for an instant, to the microsecond: asleep for most of it, looking at the clock for the rest.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

use perflab_model::Nanos;
use perflab_observe::{RealtimeGuard, monotonic_now};
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;

/// What a timer may be late on a machine at rest: the rest is spent looking at the clock.
const LOOKING: Nanos = Nanos(60_000);
/// How often a wish to stop is looked at.
const TICK: Nanos = Nanos(50_000_000);

/// The moment after a wait.
#[derive(Debug)]
pub(super) struct WakeUp {
    /// When it was over.
    pub(super) at: Nanos,
    /// Held until what was waited for is done: on a busy machine, whoever wakes up waits for others.
    pub(super) urgent: RealtimeGuard,
}

/// Waits until `at` and says when it was over, or `None` where a stop was asked for before.
pub(super) fn wait_until_instant(at: Nanos, stop: &AtomicBool) -> Option<WakeUp> {
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
