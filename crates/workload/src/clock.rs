//! The clock of executions.

use perflab_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC of this host.
pub(crate) fn read_monotonic_clock() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    // Neither is ever negative on this clock.
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}
