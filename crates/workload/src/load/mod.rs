//! The built-in loads: what `perflab load NAME --key value …` does, with nothing to install.
//!
//! Each load measures and prints one JSON object; its parameters, ranges and metrics are declared in its definition
//! under `workloads/`, as for any other workload. All code is safe: the one thing that needs the kernel's help, the
//! kind of pages, is asked of memmap2.
//!
//! | module | what a reader finds |
//! |---|---|
//! | `registry` | the loads by name; running one |
//! | `args` | `NAME --key value …` of a load, and why a load did not measure |
//! | `context_switches`, `drv_rand_ops`, `memory_bandwidth`, `memory_sweep`, `page_faults`, `small_files` | a load each |
//! | `page_buffer`, `random_order` | memory of a chosen kind of pages; random numbers and orders from a seed |

mod args;
mod context_switches;
mod drv_rand_ops;
mod memory_bandwidth;
mod memory_sweep;
mod page_buffer;
mod page_faults;
mod random_order;
mod registry;
mod small_files;

pub use args::LoadError;
pub use registry::{measure_load, run_load};
