//! The study: a TOML file that says what to run, what to vary and what to record.
//!
//! This module owns the file's shape and everything that can be checked from the text alone.
//! Whether a workload exists and takes such a parameter is the planner's question (`conduct`).

mod document;
mod factor;
mod profiling;
mod schema;
mod stopping_rule;
mod target;
mod workload;

pub use document::{Disk, DiskKind, DiskModel, MetricChoice, OnLost, Order, RunRules, Study};
pub use factor::{Factor, FactorKind, Level, Side};
pub use profiling::{IoTracing, ProfileScope, Profiling};
pub use schema::json_schema;
pub use stopping_rule::{NotARule, StoppingRule};
pub use target::{AcceleratorUse, CacheMode, ChannelUse, DiskUse, NodeUse, TargetKind, TargetUse};
pub use workload::WorkloadUse;

mod check;
mod check_target;
mod read;

pub use read::Source;

#[cfg(test)]
mod tests;
