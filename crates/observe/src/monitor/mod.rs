//! Monitors: each reads one file of the kernel (or one directory of them) into rows.
//!
//! A monitor is one file here: it declares its columns, with unit and kind, beside the parser that fills them, and
//! has one line in the table of `registry`. Files are opened once and re-read in place. A monitor knows neither the
//! time nor other monitors, and does not guess: what the kernel did not give is `Missing`, and a text that it does
//! not understand is an error that names the line.

pub(crate) mod diskstats;
pub(crate) mod kvm_stats;
pub(crate) mod loadavg;
pub(crate) mod meminfo;
pub(crate) mod net_dev;
pub(crate) mod pressure;
pub(crate) mod registry;
pub(crate) mod schedstat;
pub(crate) mod slab_caches;
pub(crate) mod slab_counts;
pub(crate) mod slab_exact;
pub(crate) mod slab_tree;
pub(crate) mod slabinfo;
pub(crate) mod stat;
#[cfg(test)]
mod tests;
pub(crate) mod text_file;
pub(crate) mod text_format;
pub(crate) mod vmstat;

pub use registry::{
    Monitor, MonitorContext, MonitorDescriptor, MonitorReading, all_monitors, find_monitor, open_monitor,
};
pub use text_format::DeclaredColumn;
