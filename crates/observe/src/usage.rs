//! What perflab itself costs: the numbers for `perflab_model::manifest::Overhead`.

use perflab_model::Nanos;
use rustix::time::ClockId;

use crate::{Root, clock};

/// CPU time and memory of this process, its children left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all threads since the process began (CLOCK_PROCESS_CPUTIME_ID).
    pub cpu: Nanos,
    /// Largest resident set so far in bytes (`VmHWM` of `/proc/self/status`); 0 where unknown.
    pub peak_rss: u64,
}

/// What this process has cost so far.
pub fn own_usage() -> Usage {
    let status = Root::host().read("/proc/self/status").unwrap_or_default();
    Usage { cpu: clock::read(ClockId::ProcessCPUTime), peak_rss: peak_rss(&status).unwrap_or(0) }
}

/// CPU time of the calling thread so far.
pub(crate) fn own_thread() -> Nanos {
    clock::read(ClockId::ThreadCPUTime)
}

fn peak_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(peak_rss("VmPeak:\t 9 kB\nVmHWM:\t    1648 kB\n"), Some(1648 * 1024));
        assert_eq!(peak_rss(""), None);
    }

    #[test]
    fn this_process_costs_something() {
        let usage = own_usage();
        assert!(usage.cpu.0 > 0 && usage.peak_rss > 0);
    }
}
