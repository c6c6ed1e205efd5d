//! What reading a monitor costs on this machine, measured: CPU time and duration of a reading, and what it says each time.
//!
//! All of them are read in turn with a pause before each round, as a run does: back to back, what the kernel walks would still
//! lie in the CPU's caches, and a reading would seem up to five times as cheap.

use std::time::Duration;

use perflab_model::{Nanos, RunEvent, RunEventKind};

use crate::clock::monotonic_now;
use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorReading};
use crate::monitor::registry::{find_monitor, open_monitor};
use crate::overhead::thread_cpu_time;
use crate::root::Root;

/// What one reading of a monitor costs: medians of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingCost {
    /// CPU time of the reading thread: the kernel's part, and parsing.
    pub cpu: Nanos,
    /// How long a reading takes.
    pub took: Nanos,
    /// Rows of a whole reading.
    pub rows: usize,
    /// Of a reading's event, as the caller measures it.
    pub bytes: u64,
}

impl ReadingCost {
    /// The share of one CPU that it takes, read at this interval.
    pub fn share(&self, interval: Nanos) -> f64 {
        self.cpu.0 as f64 / interval.0.max(1) as f64
    }
}

/// Of each monitor of these names, what a reading costs, or why there is none.
///
/// Each is read once before, and `rounds` times after that, a `pause` before each round. `bytes` says what an event
/// takes where it is kept.
pub fn measure_reading_costs(
    names: &[&str],
    root: &Root,
    (rounds, pause): (usize, Duration),
    bytes: impl Fn(&RunEvent) -> u64,
) -> Vec<Result<ReadingCost, ObserveError>> {
    let mut all: Vec<Result<MeasuredMonitor, ObserveError>> =
        names.iter().map(|name| MeasuredMonitor::open(name, root)).collect();
    for _ in 0..rounds {
        std::thread::sleep(pause);
        for slot in &mut all {
            let Ok(measured) = slot else { continue };
            if let Err(error) = measured.read(&bytes) {
                *slot = Err(error);
            }
        }
    }
    all.into_iter().map(|measured| measured.map(MeasuredMonitor::finish)).collect()
}

struct MeasuredMonitor {
    name: String,
    monitor: Box<dyn Monitor>,
    rows: usize,
    cpu: Vec<u64>,
    took: Vec<u64>,
    bytes: Vec<u64>,
}

impl MeasuredMonitor {
    fn open(name: &str, root: &Root) -> Result<Self, ObserveError> {
        let mut monitor = open_monitor(find_monitor(name)?, root, Nanos(1_000_000_000))?;
        let mut rows = Vec::new();
        monitor.read_rows(&mut rows)?;
        let (name, rows) = (name.to_owned(), rows.len());
        Ok(MeasuredMonitor { name, monitor, rows, cpu: Vec::new(), took: Vec::new(), bytes: Vec::new() })
    }

    fn read(&mut self, bytes: impl Fn(&RunEvent) -> u64) -> Result<(), ObserveError> {
        let at = monotonic_now();
        let cpu = thread_cpu_time();
        let reading = self.monitor.read_changes()?;
        self.cpu.push(thread_cpu_time().since(cpu).0);
        let took = monotonic_now().since(at);
        self.took.push(took.0);
        let monitor = self.name.clone();
        let what = match reading {
            MonitorReading::Whole(rows) => RunEventKind::Rows { monitor, rows, took },
            MonitorReading::Changed(rows) => RunEventKind::Changed { monitor, step: 1, rows, took },
        };
        self.bytes.push(bytes(&RunEvent::new(at, what)));
        Ok(())
    }

    fn finish(self) -> ReadingCost {
        let middle = |mut all: Vec<u64>| {
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or(0)
        };
        ReadingCost {
            cpu: Nanos(middle(self.cpu)),
            took: Nanos(middle(self.took)),
            rows: self.rows,
            bytes: middle(self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_costs_something_and_what_is_not_there_says_so() {
        let pace = (3, Duration::ZERO);
        let costs = measure_reading_costs(&["vmstat", "vmstta"], &Root::host(), pace, |_| 7);
        let [Ok(cost), Err(error)] = costs.as_slice() else { panic!("{costs:?}") };
        // The two clocks tick apart by what NTP corrects, so that no comparison of them is exact.
        assert!(cost.cpu.0 > 0 && cost.took.0 > cost.cpu.0 / 2, "{cost:?}");
        assert_eq!((cost.rows, cost.bytes), (1, 7));
        assert!(matches!(error, ObserveError::Unknown { .. }));
        let cost = ReadingCost { cpu: Nanos(1_000_000), ..*cost };
        assert_eq!(cost.share(Nanos(100_000_000)), 0.01);
    }
}
