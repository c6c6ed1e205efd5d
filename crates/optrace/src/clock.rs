//! Which clock stamps here, and reading it.
//!
//! A time stamp costs a few nanoseconds; pairs of both clocks tie its ticks to CLOCK_MONOTONIC, on which the
//! kernel's events are. Instructions are not ordered: a fence would cost more than what it corrects.

/// Which clock gives the time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockKind {
    /// The processor's time-stamp counter, steady in all states (x86-64).
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`: everywhere, two to three times the cost.
    Monotonic,
}

impl ClockKind {
    /// The cheapest one that is steady here.
    #[must_use]
    pub fn cheapest_steady() -> Self {
        if is_counter_steady() { Self::Tsc } else { Self::Monotonic }
    }

    /// The clock's ticks now.
    #[inline(always)]
    pub(crate) fn now(self) -> u64 {
        match self {
            Self::Tsc => read_ticks(),
            Self::Monotonic => read_monotonic_clock(),
        }
    }

    /// One instant on both clocks; of several tries the one that took least.
    pub(crate) fn read_pair(self) -> ClockPair {
        let once = || {
            let (before, ns, after) = (self.now(), read_monotonic_clock(), self.now());
            let took = after.saturating_sub(before);
            (took, ClockPair { ticks: before + took / 2, ns })
        };
        if self == Self::Monotonic {
            let ns = read_monotonic_clock();
            return ClockPair { ticks: ns, ns };
        }
        let tries = [once(), once(), once()];
        tries
            .into_iter()
            .min_by_key(|(took, _)| *took)
            .map_or(ClockPair { ticks: 0, ns: 0 }, |(_, pair)| pair)
    }
}

/// One instant, on the clock of the time stamps and on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockPair {
    pub ticks: u64,
    pub ns: u64,
}

/// A straight line from ticks to nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClockLine {
    from: ClockPair,
    ns_per_tick: f64,
}

impl ClockLine {
    /// Through two instants; `otherwise` is the slope where they are too near (a microsecond) for one of their own.
    pub(crate) fn through(from: ClockPair, to: ClockPair, otherwise: f64) -> Self {
        let (ticks, ns) = (to.ticks.saturating_sub(from.ticks), to.ns.saturating_sub(from.ns));
        let near = ns < 100_000 || ticks == 0;
        Self { from, ns_per_tick: if near { otherwise } else { ns as f64 / ticks as f64 } }
    }

    pub(crate) fn slope(self) -> f64 {
        self.ns_per_tick
    }

    /// The CLOCK_MONOTONIC nanoseconds of a time stamp.
    pub(crate) fn nanos_at(self, ticks: u64) -> u64 {
        let away = ticks.wrapping_sub(self.from.ticks) as i64;
        self.from.ns.saturating_add_signed((away as f64 * self.ns_per_tick).round() as i64)
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the time-stamp counter has no safe reader")]
#[inline(always)]
fn read_ticks() -> u64 {
    // SAFETY: every x86-64 has the instruction, and it reads nothing but the counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn read_ticks() -> u64 {
    read_monotonic_clock()
}

/// Whether the counter runs at one rate in all states and over all processors: the processor says the first, and the
/// kernel, which watches it, the second.
fn is_counter_steady() -> bool {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(all(target_arch = "x86_64", not(miri)))
        && std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc")
}

/// Nanoseconds of CLOCK_MONOTONIC.
#[expect(unsafe_code, reason = "the standard library hides the number")]
pub(crate) fn read_monotonic_clock() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let line = ClockLine::through(
            ClockPair { ticks: 1000, ns: 5_000 },
            ClockPair { ticks: 3_001_000, ns: 1_005_000 },
            1.0,
        );
        assert_eq!(line.nanos_at(1000), 5_000);
        assert_eq!(line.nanos_at(1_501_000), 505_000);
        assert_eq!(line.nanos_at(700), 4_900);
        let near = ClockLine::through(ClockPair { ticks: 10, ns: 0 }, ClockPair { ticks: 10, ns: 0 }, 2.0);
        assert_eq!(near.nanos_at(20), 20);
    }

    #[test]
    fn both_clocks_go_forward_together() {
        for kind in [ClockKind::cheapest_steady(), ClockKind::Monotonic] {
            let from = kind.read_pair();
            std::thread::sleep(std::time::Duration::from_millis(2));
            let to = kind.read_pair();
            assert!(to.ns - from.ns >= 2_000_000 && to.ticks > from.ticks, "{kind:?} {from:?} {to:?}");
        }
    }
}
