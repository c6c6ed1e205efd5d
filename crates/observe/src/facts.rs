//! Facts: what a target says about itself, by family, as flat keys with the place each was read from.
//!
//! A family is one file here and one line in the table of [`family`]. It only reads: what a machine does not have is
//! simply no fact, and nothing here is an error but an unknown family. Sizes are in bytes, times in nanoseconds,
//! frequencies in Hz.

mod cgroup;
mod clocksource;
mod config;
mod cpu;
mod disk;
mod distribution;
mod family;
mod hypervisor;
mod kernel;
mod load;
mod memory;
mod mitigations;
mod notes;
mod numa;
mod reclaim;
mod sysctl;
mod thp;

pub use family::{FactFamily, all_fact_families, collect_facts};
pub use memory::read_available_memory;
