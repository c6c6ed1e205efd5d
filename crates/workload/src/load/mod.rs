//! The built-in loads: what `perflab load NAME --key value …` does, with nothing to install.
//!
//! Each load measures and prints one JSON object; its parameters, ranges and metrics are declared in its definition
//! under `workloads/`, as for any other workload, and `docs/loads.md` says what each is made after. What needs `unsafe` is in
//! `crate::system_calls`.
//!
//! | module | what a reader finds |
//! |---|---|
//! | `registry` | the loads by name; running one |
//! | `args` | `NAME --key value …` of a load, and why a load did not measure |
//! | `context_switches`, `drv_rand_ops`, `huge_faults`, `map_churn`, `memory_bandwidth`, `memory_sweep`, `memory_use`, `net`, `page_faults`, `processes`, `reclaim_latency`, `scaling`, `semaphores`, `small_files`, `unmap` (and truncate), `uring_nops`, `wakeups` | a load each |
//! | `scaling_case` | what a task of `scaling` does over and over |
//! | `tasks` | threads or forked processes that do the same, counted while a window of time is open |
//! | `latency` | latencies by how often they occurred, and their percentiles |
//! | `arrivals` | when requests are due in an open loop, and what they took from then on |
//! | `latency_log` | latencies as a log of HdrHistogram |
//! | `page_buffer`, `random_order` | memory of a chosen kind of pages; random numbers and orders from a seed |

mod args;
mod arrivals;
mod context_switches;
mod drv_rand_ops;
mod huge_faults;
mod latency;
mod latency_log;
mod map_churn;
mod memory_bandwidth;
mod memory_sweep;
mod memory_use;
mod net;
mod page_buffer;
mod page_faults;
mod processes;
mod random_order;
mod reclaim_latency;
mod registry;
mod scaling;
mod scaling_case;
mod semaphores;
mod small_files;
mod tasks;
mod unmap;
mod uring_nops;
mod wakeups;

pub use args::LoadError;
pub use registry::{measure_load, run_load};
