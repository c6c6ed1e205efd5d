//! What the study's `[events]` count, where it happens.

use perflab_model::study::EVENTS_MONITOR;

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// Counts and values of tracepoints, and times between them.
pub const EVENTS: KernelFile = KernelFile {
    name: EVENTS_MONITOR,
    source: "tracepoints",
    about: "how often, how much and how long: tracepoints and pairs of them that [events] names",
    needs: "root",
    without: "",
    provided_by: "CONFIG_BPF_SYSCALL and CONFIG_FTRACE",
    columns: &[],
    layout: KernelFileLayout::Tree,
};

/// Whether a monitor tells of each iteration by itself: its counters begin at nothing where a row is new, and its gauges at the end
/// of an iteration are of that iteration. A target's `events.guest1` does.
pub fn tells_of_iterations(monitor: &str) -> bool {
    monitor.split('.').next() == Some(EVENTS.name)
}
