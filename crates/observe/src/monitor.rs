//! Monitors: each reads one file of the kernel (or one directory of them) into rows.
//!
//! A monitor is one file here: it declares its columns, with unit and kind, beside the parser that fills them,
//! and has one line in the table of [`kind`]. Files are opened once and re-read in place. A monitor knows neither
//! the time nor other monitors, and refuses to guess: what the kernel did not give is `Missing`, and a text that
//! it does not understand is an error that names the line.

mod column;
mod diskstats;
mod kind;
mod kvm;
mod line;
mod loadavg;
mod meminfo;
mod net_dev;
mod one_file;
mod pressure;
mod proc_file;
mod schedstat;
mod slab;
mod slab_caches;
mod slab_exact;
mod slabinfo;
mod stat;
#[cfg(test)]
mod tests;
mod vmstat;
mod wide;

pub use column::DeclaredColumn;
pub use kind::{
    Monitor, MonitorContext, MonitorDescriptor, MonitorReading, all_monitors, find_monitor, open_monitor,
};
