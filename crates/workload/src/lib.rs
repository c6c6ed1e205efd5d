//! The benchmark catalogue: what can be run, how it is installed, how it is run, and which rules find
//! metrics in its output (`perflab-formats` carries them out).
//!
//! Here is everything that follows from one file under `workloads/` alone. Repeating and ordering belong to
//! `perflab-conduct`, verdicts to `perflab-analyze`, storing to `perflab-archive`. Nothing here needs root by
//! itself.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`catalogue`] | all workloads by name: the embedded ones and those of `--workloads DIR` |
//! | [`definition`] | one TOML file: parameters, argv, needs, metrics |
//! | `inline_definition` | a command that stands in a study, as a definition |
//! | [`parameter`] | a parameter's kind, default and range, and how a given value is resolved |
//! | [`requirements`] | whether a workload is installed and permitted here, and which version it is |
//! | [`install`] | packages, or a source archive of known checksum |
//! | [`invocation`] | argv, environment and directory with everything filled in |
//! | [`execution`] | one execution, stopped with all its descendants at its time limit |
//! | `background_execution`, `beside_loop` | a program that runs beside an execution, once or again and again |
//! | `data_spec`, `data_set` | `[data]`: made once, restored before each iteration |
//! | `server`, `running_server` | `[server]`, and when it is ready |
//! | [`argv_element`] | one element of a command |
//! | `trial` | one execution with everything around it |
//! | `reap` | the end of a process, with what it used |
//! | `system_calls` | what the kernel does for us and no library offers as safe: the one file with `unsafe` |
//! | `descendants`, `execution_guard` | every process of an execution; a process that ends them when perflab is killed |
//! | `delayed_calls` | programs whose system calls are delayed |
//! | `clock` | the clock of executions |
//! | `fixed_addresses` | programs that are started without randomised addresses |
//! | `placed_start`, `memory_policy` | programs that are started on given CPUs, with memory of given nodes |
//! | [`load`] | the built-in loads behind `perflab load NAME` |
//! | [`error`] | why a workload cannot be run, and what to do |

pub mod argv_element;
mod background_execution;
mod beside_loop;
pub mod catalogue;
mod clock;
mod data_set;
mod data_spec;
pub mod definition;
mod delayed_calls;
mod descendants;
pub mod error;
pub mod execution;
mod execution_guard;
mod fixed_addresses;
mod inline_definition;
pub mod install;
pub mod invocation;
pub mod load;
mod memory_policy;
pub mod parameter;
mod placed_start;
mod reap;
pub mod requirements;
mod running_server;
mod server;
mod system_calls;
mod trial;

pub use background_execution::{BackgroundEnd, BackgroundExecution};
pub use beside_loop::{BesideLoop, BesideRecord};
pub use catalogue::{Catalogue, CatalogueError};
pub use data_set::{DATA_SET_PREFIX, DataSet, DataSetError, DataSetState, KnownDataSets};
pub use definition::{Requirements, UntimedPhase, WorkloadDefinition, definition_parts};
pub use delayed_calls::{DelayRecord, find_delay_refusal, refuse_syscall_name};
pub use descendants::{ExecutionOwner, end_process_tree, end_with_perflab, find_unknown_executions};
pub use error::WorkloadError;
pub use execution::{ExecutionEnd, WorkloadExecution, execute_invocation, execute_invocation_at};
pub use execution_guard::{ExecutionGuard, guard_executions};
pub use fixed_addresses::FixedAddresses;
pub use invocation::{HostPaths, Invocation};
pub use load::run_load;
/// The variable that tells a program where to write its trace.
pub use optrace::ENVIRONMENT as TRACE_VARIABLE;
pub use parameter::{ParameterKind, WorkloadParameter};
/// What its outputs give, and why they do not.
pub use perflab_formats::metric_extraction::{MetricParseError, MetricValue};
pub use perflab_formats::metric_rules::{MetricAggregate, MetricRule};
pub use perflab_formats::series_rules::{SeriesPoint, SeriesRule};
pub use placed_start::{PlacedStart, list_allowed_cpus};
pub use running_server::{RunningServer, ServerInvocation, find_free_port};
pub use trial::{TrialError, try_workload};
