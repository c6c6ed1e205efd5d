//! What perflab itself costs: the CPU time and peak memory of [`perflab_model::Overhead`].

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use perflab_formats::kernel::process::find_peak_rss;
use perflab_model::Nanos;
use rustix::time::ClockId;

use crate::clock;
use crate::root::Root;

/// CPU time and memory of this process, its children left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// CPU time of all threads since the process began (CLOCK_PROCESS_CPUTIME_ID).
    pub cpu: Nanos,
    /// Largest resident set so far in bytes (`VmHWM` of `/proc/self/status`); 0 where unknown.
    pub peak_rss: u64,
}

/// What this process has cost so far.
pub fn process_usage() -> ProcessUsage {
    let status = Root::host().read("/proc/self/status").unwrap_or_default();
    ProcessUsage {
        cpu: clock::read_clock(ClockId::ProcessCPUTime),
        peak_rss: find_peak_rss(&status).unwrap_or(0),
    }
}

/// CPU time of the calling thread so far.
pub fn thread_cpu_time() -> Nanos {
    clock::read_clock(ClockId::ThreadCPUTime)
}

/// CPU time of the monitors' threads so far, those that have ended left out; none where the kernel does not count it by thread.
pub fn monitors_cpu_time() -> Option<Nanos> {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let task = task.ok()?.path();
        let is_monitors =
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == MONITORS);
        if is_monitors {
            // One that has just ended has none any more.
            let schedstat = std::fs::read_to_string(task.join("schedstat")).ok()?;
            sum += schedstat.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
        }
    }
    Some(Nanos(sum))
}

/// What the threads that read monitors are called.
pub(crate) const MONITORS: &str = "monitors";

thread_local! {
    /// Held open, as it is read around every iteration: finding it takes longer than reading it.
    static SCHEDSTAT: Option<File> = File::open("/proc/thread-self/schedstat").ok();
}

/// How long the calling thread has waited for a processor so far, where the kernel counts it.
pub fn thread_wait_time() -> Option<Nanos> {
    // Three numbers of at most 20 digits.
    let mut text = [0; 64];
    let length = SCHEDSTAT.with(|file| file.as_ref()?.read_at(&mut text, 0).ok())?;
    parse_run_delay(std::str::from_utf8(text.get(..length)?).ok()?)
}

/// Why a thread did not run for `length`, of which it waited for a processor for `waited`.
pub fn explain_absence(length: Nanos, waited: Option<Nanos>) -> &'static str {
    match waited {
        Some(waited) if waited.0 < length.0 / 2 => {
            "perflab was stopped (by SIGSTOP, a debugger or a pause of the machine)"
        }
        Some(_) => "the machine gave perflab no processor",
        None => "perflab was stopped or got no processor",
    }
}

/// The second number of a schedstat, `run_delay` in kernel/sched/stats.h: nanoseconds.
fn parse_run_delay(schedstat: &str) -> Option<Nanos> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_for_a_processor_was_not_stopped() {
        assert_eq!(parse_run_delay("81920 4100000000 7\n"), Some(Nanos(4_100_000_000)));
        let second = Nanos(1_000_000_000);
        insta::assert_snapshot!(explain_absence(second, Some(Nanos(20_000_000))), @"perflab was stopped (by SIGSTOP, a debugger or a pause of the machine)");
        insta::assert_snapshot!(explain_absence(second, Some(Nanos(900_000_000))), @"the machine gave perflab no processor");
    }

    #[test]
    fn this_process_costs_something() {
        let usage = process_usage();
        assert!(usage.cpu.0 > 0 && usage.peak_rss > 0);
    }
}
