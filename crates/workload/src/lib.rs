//! The benchmark catalogue: what can be run, how it is installed, how it is run, and how its output
//! becomes metrics.
//!
//! This room owns the files under `workloads/` and everything that follows from one of them alone.
//! It refuses to repeat, to order, to judge or to store: those are `conduct`'s, `analyze`'s and
//! `archive`'s. Nothing here needs root by itself.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`catalogue`] | all workloads by name: the embedded ones and those of `--workloads DIR` |
//! | [`definition`] | one TOML file: parameters, argv, needs, metrics |
//! | [`resolve`] | parameters as a study gives them, made typed values in range |
//! | [`invocation`] | argv, environment and directory with everything filled in |
//! | [`check_requirements`] | is it installed, may we run it, which version is it |
//! | [`mod@run`] | one execution, stopped with all its descendants at its time limit |
//! | [`parse_metrics`] | from output to measured values |
//! | [`install`] | packages or a source archive |
//! | [`load`] | the built-in loads behind `perflab load NAME` |

pub mod catalogue;
pub mod definition;
mod descendants;
pub mod error;
pub mod execution;
mod execution_guard;
pub mod install;
pub mod invocation;
pub mod load;
pub mod metric_rule;
pub mod parameter;
pub mod requirements;

pub use catalogue::{Catalogue, CatalogueError};
pub use definition::{Requirements, WorkloadDefinition};
pub use descendants::{ExecutionOwner, end_process_tree, find_unknown_executions};
pub use error::WorkloadError;
pub use execution::{ExecutionEnd, WorkloadExecution, execute_invocation, execute_invocation_at};
pub use execution_guard::{ExecutionGuard, guard_executions};
pub use invocation::{HostPaths, Invocation};
pub use load::run_load;
pub use metric_rule::{MetricAggregate, MetricParseError, MetricRule, MetricValue};
/// The variable that tells a program where to write its trace.
pub use optrace::ENVIRONMENT as TRACE_VARIABLE;
pub use parameter::{ParameterKind, WorkloadParameter};
