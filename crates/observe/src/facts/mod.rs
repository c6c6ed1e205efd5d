//! Facts: what a target says about itself, by family, as flat keys with the path each was read from.
//!
//! A family is a function of one of these files and one line in the table of `families`. What a machine does not
//! have is simply not a fact; the only error is an unknown family. Sizes are in bytes, times in nanoseconds,
//! frequencies in Hz.

pub(crate) mod cgroup;
pub(crate) mod collector;
pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod documents;
pub(crate) mod families;
pub(crate) mod firmware;
pub(crate) mod idle_states;
pub(crate) mod kernel;
pub(crate) mod memory;
pub(crate) mod services;

pub use documents::collect_fact_documents;
pub use families::{FactFamily, all_fact_families, collect_facts};
pub use kernel::KernelConfig;
pub use memory::read_available_memory;
