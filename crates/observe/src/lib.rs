//! What the kernel did: monitors on a clock, and what a machine says about itself.
//!
//! This room reads `/proc` and `/sys` below a [`Root`] that is passed in, so that every parser runs on
//! recorded trees, and reads the time from a [`MonotonicClock`] that is passed in. It emits the events of
//! `perflab-model` and refuses to store, to show, to change settings or to start processes.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`monitor`] | one file of the kernel, its columns declared with unit and kind |
//! | [`sampler`] | all monitors of a run on a thread of their own, each with its interval |
//! | [`profile`] | sampled call stacks of kernel and processes |
//! | [`probes`] | functions and USDT probes of any program, told each time a thread comes by |
//! | [`facts`] | what a target says about itself, by family |
//! | [`clock`] | CLOCK_MONOTONIC, its anchor to the calendar, and a wait that can be stopped |
//! | [`io`] | pages and disk requests of a process tree, and their files |
//! | [`own_directories`] | where state and caches lie, and whether nobody else could have written them |
//! | [`realtime`] | a moment in which nothing else may come first |
//! | [`taskstats`] | what processes waited for and read, told when they end |
//! | [`kvm`] | whether /dev/kvm runs guests at speed |
//! | [`readiness_usage_error`] | what perflab itself cost |

pub mod clock;
pub mod error;
pub mod facts;
pub mod io;
pub mod kvm_probe;
mod little_endian;
pub mod monitor;
pub mod mounts;
pub mod overhead;
pub mod own_directories;
mod perf_event;
pub mod probes;
mod process_owner;
mod processes;
pub mod profiler;
pub mod realtime_priority;
pub mod root;
pub mod sampler;
mod scheduled_monitor;
pub mod taskstats;

pub use clock::{MonotonicClock, StopSignal, SystemClock, monotonic_now, read_clock_anchor};
pub use error::ObserveError;
pub use facts::{FactFamily, all_fact_families, collect_facts};
pub use io::file_lookup::{device_of, modified_ns, open_unnoticed};
pub use io::page_residency::{count_resident_pages, resident_page_map};
pub use kvm_probe::{KvmSpeed, probe_kvm_speed};
pub use monitor::{Monitor, MonitorDescriptor, MonitorReading, all_monitors, find_monitor, open_monitor};
pub use mounts::{device_node, disk_below, is_disk_device, is_rotational, partition_of_device};
pub use overhead::{ProcessUsage, explain_absence, process_usage, thread_wait_time};
pub use realtime_priority::RealtimeGuard;
pub use root::{Root, read_boot_id};
pub use sampler::{Sampler, SamplerOverhead};
