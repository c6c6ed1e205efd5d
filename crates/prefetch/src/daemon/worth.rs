//! Whether a start waited long enough for disks to be worth learning. Where the kernel accounts for delays, the time that was
//! waited decides; else bytes that were read and page faults that waited, which both are always counted.

use perflab_model::{Bytes, Nanos};
use perflab_observe::taskstats::ThreadUsage;

/// From where on a start is worth learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnThreshold {
    /// waiting for disks, summed over all threads
    pub wait: Nanos,
    /// bytes that were read from disks
    pub read: u64,
    /// major page faults
    pub faults: u64,
}

impl Default for LearnThreshold {
    /// What a person notices, and what a disk that turns needs about as long for.
    fn default() -> Self {
        LearnThreshold { wait: Nanos(100_000_000), read: 4 << 20, faults: 200 }
    }
}

impl LearnThreshold {
    /// Whether a start was; `delays` says whether the kernel accounts for them.
    pub fn is_reached(&self, used: ThreadUsage, delays: bool) -> bool {
        match is_judged_by_delay(used, delays) {
            true => used.waited >= self.wait,
            false => used.read >= self.read || used.faults >= self.faults,
        }
    }

    /// What a start waited for, beside what would be worth it.
    pub fn explain(&self, used: ThreadUsage, delays: bool) -> String {
        match is_judged_by_delay(used, delays) {
            true => format!("it waited {} for disks; {} are worth it", used.waited, self.wait),
            false => format!(
                "it read {} with {} major faults; {} or {} are worth it",
                Bytes(used.read),
                used.faults,
                Bytes(self.read),
                self.faults
            ),
        }
    }

    /// By what starts are judged.
    pub fn measure_name(delays: bool) -> &'static str {
        match delays {
            true => "what they wait for disks",
            false => "bytes read and major faults (kernel.task_delayacct is 0)",
        }
    }
}

/// Whether it is judged by what it waited.
fn is_judged_by_delay(used: ThreadUsage, delays: bool) -> bool {
    delays && used.is_waiting_counted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_decides_where_it_is_known() {
        let worth = LearnThreshold::default();
        let used = |waited, read, faults| ThreadUsage { waited: Nanos(waited), read, faults };
        assert!(worth.is_reached(used(100_000_000, 0, 0), true));
        assert!(!worth.is_reached(used(99_999_999, 1 << 30, 9999), true));
        assert!(worth.is_reached(used(0, 4 << 20, 0), false) && worth.is_reached(used(0, 0, 200), false));
        assert!(!worth.is_reached(used(u64::MAX, 4095, 199), false));
        assert!(worth.explain(used(0, 4096, 3), false).contains("3 major faults"));
        assert!(worth.is_reached(used(0, 4 << 20, 0), true), "who read that much did wait: nobody counted");
        assert!(!worth.is_reached(used(0, 4096, 3), true) && !worth.is_reached(used(0, 0, 0), true));
        assert!(worth.explain(used(0, 4096, 3), true).contains("3 major faults"));
    }
}
