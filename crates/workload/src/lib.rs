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
//! | [`ready`] | is it installed, may we run it, which version is it |
//! | [`mod@run`] | one execution, stopped with all its descendants at its time limit |
//! | [`parse`] | from output to measured values |
//! | [`install`] | packages or a source archive |
//! | [`load`] | the built-in loads behind `perflab load NAME` |

pub mod catalogue;
pub mod definition;
pub mod error;
pub mod install;
pub mod invocation;
pub mod load;
pub mod parse;
pub mod ready;
pub mod resolve;
pub mod run;

pub use catalogue::{Catalogue, CatalogueError};
pub use definition::{MetricRule, ParameterKind, Requirements, WorkloadDefinition, WorkloadParameter};
pub use error::WorkloadError;
pub use invocation::{HostPaths, Invocation};
pub use load::run_load;
/// The variable that tells a program where to write its trace.
pub use optrace::ENVIRONMENT as TRACE_VARIABLE;
pub use parse::{MetricParseError, MetricValue};
pub use run::{ExecutionEnd, WorkloadExecution, execute_invocation, execute_invocation_at};
