//! What the kernel did: monitors on a clock, tracers, and what a machine says about itself.
//!
//! This crate reads `/proc` and `/sys` below a [`Root`] that is passed in, so that everything runs on recorded
//! trees, and reads the time from a [`MonotonicClock`] that is passed in. It emits the events of `perflab-model`;
//! storing, showing, changing settings and starting processes belong to other crates.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`monitor`] | files of the kernel on a clock; what they mean is in `perflab-formats` |
//! | [`sampler`], `scheduled_monitor` | all monitors of a run on their threads, each with its interval; one of them on its grid of ticks |
//! | [`monitor_cost`], [`monitor_budget`] | what reading a monitor costs on this machine; how often they are read so that all stay within a share of a CPU |
//! | `monitor_switch` | monitors that are not read for a while |
//! | `edge_reader` | monitors when iterations begin and end ([`EdgeReader`]) |
//! | [`profiler`], `perf_event`, `processes` | sampled call stacks of kernel and processes; one ring buffer; what was mapped before |
//! | [`events`], `tracepoint` | tracepoints that the kernel counts where they happen; one of them as tracefs describes it |
//! | `run_counters`, `perf_counter` | what a study counts ([`RunCounters`]); one event that is counted |
//! | [`probes`] | functions and USDT probes of any program, reported each time a thread hits them |
//! | [`io`], [`mounts`] | pages and disk requests of a process tree, and their files; file systems and the disks below them |
//! | `network_offload` | switches of network devices, read and set ([`NetworkOffload`]) |
//! | [`taskstats`] | what threads waited for and read, reported when they end |
//! | [`facts`] | what a target says about itself, by family |
//! | [`kvm_probe`] | whether /dev/kvm runs guests at the processor's speed |
//! | [`cpu_topology`] | which CPUs share a core, a cache and a node, and which of them a placement means |
//! | [`clock`] | CLOCK_MONOTONIC, its anchor to the calendar, and a wait that can be stopped |
//! | [`realtime_priority`] | moments in which nothing else may run first |
//! | [`overhead`] | what perflab itself costs |
//! | [`own_directories`], `process_owner` | where state and caches lie, and whether nobody else could have written them; which process owns a kernel object |
//! | [`mod@root`], `little_endian` | the folder that stands for `/`; integers in foreign bytes |
//! | [`child_process`] | processes that end with their parent |
//! | [`error`] | why a file of the kernel could not be read |

pub mod child_process;
pub mod clock;
pub mod cpu_topology;
mod edge_reader;
pub mod error;
pub mod events;
pub mod facts;
pub mod io;
mod kernel_log;
pub mod kvm_probe;
mod little_endian;
pub mod monitor;
pub mod monitor_budget;
pub mod monitor_cost;
mod monitor_switch;
pub mod mounts;
mod network_offload;
pub mod overhead;
pub mod own_directories;
mod perf_counter;
mod perf_event;
pub mod probes;
mod process_owner;
mod processes;
pub mod profiler;
pub mod realtime_priority;
pub mod root;
mod run_counters;
pub mod sampler;
mod scheduled_monitor;
pub mod taskstats;
mod tracepoint;

pub use child_process::{ChildOptions, child_command, end_with_parent, exec_child, spawn_child};
pub use clock::{MonotonicClock, StopSignal, SystemClock, monotonic_now, read_clock_anchor};
pub use cpu_topology::CpuTopology;
pub use edge_reader::EdgeReader;
pub use error::ObserveError;
pub use events::event_program::EventFault;
pub use events::run_events::{EventShortfalls, RunTracepoints, find_event_fault, find_event_refusal};
pub use facts::{FactFamily, KernelConfig, all_fact_families, collect_fact_documents, collect_facts};
pub use io::file_description::{device_of, modified_ns, open_unnoticed};
pub use io::page_residency::{count_resident_pages, resident_page_map};
pub use kernel_log::{KernelLog, KernelLogFollower, NewKernelRecords};
pub use kvm_probe::{KvmSpeed, probe_kvm_speed};
pub use monitor::{
    Monitor, MonitorReading, MonitoredMachine, all_monitors, find_monitor, is_read_at_edges, open_monitor,
};
pub use monitor_switch::MonitorSwitch;
pub use mounts::{device_node, disk_below, is_disk_device, is_rotational, partition_of_device};
pub use network_offload::NetworkOffload;
pub use overhead::{
    ProcessUsage, explain_absence, monitors_cpu_time, process_usage, thread_cpu_time, thread_wait_time,
};
pub use perflab_formats::kernel::counter_event::CounterEvent;
pub use perflab_formats::kernel::{MONITOR_PRESETS, MonitorPreset, find_monitor_preset};
pub use realtime_priority::RealtimeGuard;
pub use root::{Root, read_boot_id};
pub use run_counters::{RunCounters, UncountedEvent, find_counter_refusal, list_counter_events};
pub use sampler::Sampler;
pub use scheduled_monitor::SamplerOverhead;
