//! Monitors: each reads one file of the kernel (or one directory of them) on a clock.
//!
//! What such a file means is declared in `perflab-formats`: a monitor of a text needs nothing here. Those that do more
//! than to read a file again have a file each. Files are opened once and re-read in place. A monitor knows neither the
//! time nor other monitors, and does not guess: what the kernel did not give is `Missing`, and a text that it does
//! not understand is an error that names the line.

pub(crate) mod blocked;
pub(crate) mod cgroup;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod cpu_state;
pub(crate) mod delays;
pub(crate) mod energy;
pub(crate) mod events;
pub(crate) mod filesystems;
pub(crate) mod folder;
pub(crate) mod gpu;
pub(crate) mod guarded;
pub(crate) mod interrupts;
pub(crate) mod kvm_stats;
pub(crate) mod net_protocols;
pub(crate) mod online_cpus;
pub(crate) mod parsed_text;
pub(crate) mod registry;
pub(crate) mod slab_caches;
pub(crate) mod slab_exact;
pub(crate) mod slab_tree;
pub(crate) mod slabinfo;
pub(crate) mod smaps;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod text_file;
pub(crate) mod wide_row;
pub(crate) mod workload_tree;
pub(crate) mod writeback;

pub use context::{Monitor, MonitorContext, MonitorReading, MonitoredMachine};
pub use registry::{all_monitors, find_monitor, is_read_at_edges, open_monitor, open_run_monitor};
