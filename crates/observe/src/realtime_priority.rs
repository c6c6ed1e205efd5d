//! Real-time priority: for a moment in which nothing else may run first, and for the monitors' thread while it is
//! modest.
//!
//! What is given to a thread is not inherited by what it starts.
//!
//! A monitor on a short interval loses ticks on a busy machine, where a thread that wakes up waits for others:
//! measured with a tick every 10 ms, two CPUs and six runnable tasks, 135 of 4000 were more than 10 ms late, 6 with
//! a nice value of -15, none at real-time priority. Longer intervals do not need it.

use perflab_model::Nanos;

use crate::overhead;

/// The lowest real-time priority, held by the thread that took it until this is dropped.
#[derive(Debug)]
pub struct RealtimeGuard {
    is_raised: bool,
}

impl RealtimeGuard {
    /// Takes it for the calling thread, where it may (root).
    pub fn acquire() -> Self {
        RealtimeGuard { is_raised: set_scheduling_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1) }
    }
}

impl Drop for RealtimeGuard {
    fn drop(&mut self) {
        if self.is_raised {
            set_scheduling_policy(libc::SCHED_OTHER, 0);
        }
    }
}

/// Says whether the calling thread got that policy.
#[expect(unsafe_code, reason = "rustix has no sched_setscheduler")]
fn set_scheduling_policy(policy: i32, priority: i32) -> bool {
    let wanted = libc::sched_param { sched_priority: priority };
    // SAFETY: `wanted` outlives the call, which only reads it; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const wanted) == 0 }
}

/// Monitors on clocks faster than this are worth it.
const FAST: Nanos = Nanos(100_000_000);

/// A thread that takes more than this of a CPU, in percent, is not one that only looks,
const MOST: u64 = 50;

/// once it has taken so much.
const AT_LEAST: Nanos = Nanos(50_000_000);

/// Whether a monitor read that often is.
pub(crate) fn is_fast_clock(interval: Nanos) -> bool {
    interval < FAST
}

/// The priority that the calling thread was given.
#[derive(Debug)]
pub(crate) struct MonitorThreadPriority {
    raised: bool,
    since: Nanos,
    cpu: Nanos,
}

impl MonitorThreadPriority {
    /// Gives the calling thread the lowest real-time priority where its fastest monitor is on a fast clock and we may
    /// (root); what it takes from the workload is its CPU time, which is in the run's own overhead. It ends with the
    /// thread.
    pub(crate) fn raise(fastest: Option<Nanos>, now: Nanos) -> Self {
        let raised = fastest.is_some_and(is_fast_clock) && set_scheduling_policy(libc::SCHED_FIFO, 1);
        MonitorThreadPriority { raised, since: now, cpu: overhead::thread_cpu_time() }
    }

    /// Takes it back from a thread whose ticks take so long that it would leave the CPU to no other thread.
    pub(crate) fn lower_if_greedy(&mut self, now: Nanos) {
        if self.raised && self.is_greedy(now, overhead::thread_cpu_time()) {
            self.raised = !set_scheduling_policy(libc::SCHED_OTHER, 0);
        }
    }

    fn is_greedy(&self, now: Nanos, cpu: Nanos) -> bool {
        let (cpu, wall) = (cpu.since(self.cpu), now.since(self.since));
        cpu > AT_LEAST && cpu.0 > wall.0 / 100 * MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_root_a_fast_clock_gets_real_time_and_a_slow_one_does_not() {
        let policy = |fastest| {
            std::thread::spawn(move || {
                MonitorThreadPriority::raise(fastest, Nanos(0));
                let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
                // Field 41 of proc_pid_stat(5), 39 after the name.
                stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(38).unwrap().to_owned()
            })
        };
        assert_eq!(policy(Some(FAST)).join().unwrap(), "0");
        assert_eq!(policy(None).join().unwrap(), "0");
        let fast = policy(Some(Nanos(10_000_000))).join().unwrap();
        if rustix::process::geteuid().is_root() && fast == "1" {
            return;
        }
        let name = "needs_root_a_fast_clock_gets_real_time_and_a_slow_one_does_not";
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{name}: refused");
        eprintln!("SKIP {name}: not root, or refused in this container");
    }

    #[test]
    fn a_thread_that_does_more_than_look_is_greedy() {
        let priority = MonitorThreadPriority { raised: true, since: Nanos(0), cpu: Nanos(0) };
        let second = Nanos(1_000_000_000);
        assert!(!priority.is_greedy(second, Nanos(400_000_000)));
        assert!(priority.is_greedy(second, Nanos(600_000_000)));
        assert!(!priority.is_greedy(Nanos(1), Nanos(40_000_000)), "the first ticks are slow");
    }
}
