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
//! | [`usage`] | what perflab itself cost |

pub mod clock;
pub mod error;
pub mod facts;
pub mod io;
pub mod kvm;
pub mod monitor;
pub mod own_directories;
pub mod probes;
mod process_owner;
pub mod profile;
pub mod realtime;
pub mod root;
pub mod sampler;
pub mod taskstats;
pub mod usage;
mod words;

pub use clock::{MonotonicClock, StopSignal, SystemClock, monotonic_now, read_clock_anchor};
pub use error::ObserveError;
pub use facts::{FactFamily, all_fact_families, collect_facts};
pub use kvm::{KvmSpeed, probe_kvm_speed};
pub use monitor::{Monitor, MonitorDescriptor, MonitorReading, all_monitors, find_monitor, open_monitor};
pub use realtime::RealtimeGuard;
pub use root::{Root, read_boot_id};
pub use sampler::{Sampler, SamplerOverhead};
pub use usage::{ProcessUsage, explain_absence, process_usage, thread_wait_time};
