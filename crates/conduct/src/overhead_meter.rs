//! What perflab itself costs while a run goes on, and the monitors of its study.

use std::sync::mpsc::Sender;

use perflab_model::{Manifest, Nanos, Overhead, RunEvent};
use perflab_observe::{Root, Sampler, SamplerOverhead, monotonic_now, process_usage};

/// Counts what this process uses from when it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverheadMeter {
    started: Nanos,
    cpu_before: Nanos,
}

impl OverheadMeter {
    /// Starts to count.
    pub(crate) fn start() -> Self {
        OverheadMeter { started: monotonic_now(), cpu_before: process_usage().cpu }
    }

    /// When it was started.
    pub(crate) fn started(&self) -> Nanos {
        self.started
    }

    /// What was used until now, the monitors' part of it known. Bytes are the recorder's to count.
    pub(crate) fn overhead(&self, monitors: &SamplerOverhead) -> Overhead {
        let usage = process_usage();
        Overhead {
            cpu: usage.cpu.since(self.cpu_before),
            monitors_cpu: monitors.cpu,
            wall: monotonic_now().since(self.started),
            peak_rss: usage.peak_rss,
            bytes_written: 0,
            ticks: monitors.ticks,
            late_ticks: monitors.late,
            lost_ticks: monitors.lost,
            guest_stops: None,
        }
    }
}

/// Starts the monitors of the run's study.
pub(crate) fn start_monitors(manifest: &Manifest, root: &Root, sink: Sender<RunEvent>) -> Sampler {
    let intervals = manifest.study.monitors.iter().map(|(name, span)| (name.clone(), span.0)).collect();
    Sampler::start(intervals, root.clone(), sink)
}

/// Adds what another perflab of the run used; how long the run lasted, and how guests were stopped, is this one's to say.
pub(crate) fn add_overhead(sum: &mut Overhead, other: &Overhead) {
    sum.cpu.0 = sum.cpu.0.saturating_add(other.cpu.0);
    sum.monitors_cpu.0 = sum.monitors_cpu.0.saturating_add(other.monitors_cpu.0);
    sum.peak_rss = sum.peak_rss.max(other.peak_rss);
    sum.ticks = sum.ticks.saturating_add(other.ticks);
    sum.late_ticks = sum.late_ticks.saturating_add(other.late_ticks);
    sum.lost_ticks = sum.lost_ticks.saturating_add(other.lost_ticks);
}
