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

pub use document::{
    DiskKind, DiskModel, LostTargetPolicy, MetricChoice, RunRules, ScratchDisk, SlotOrder, Study,
};
pub use factor::{Factor, FactorKind, FactorLevel, FactorSide};
pub use profiling::{IoTraceSpec, ProfileScope, ProfileSpec};
pub use schema::study_json_schema;
pub use stopping_rule::{StoppingRule, StoppingRuleError};
pub use target::{
    AcceleratorChoice, AgentChannel, DiskCacheMode, GuestDiskSpec, NumaNodeSpec, TargetKind, TargetSpec,
};
pub use workload::WorkloadSpec;

mod check;
mod check_target;
mod read;

pub use read::TomlSource;

#[cfg(test)]
mod tests;
