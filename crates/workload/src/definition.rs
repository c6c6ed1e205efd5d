//! One workload: a TOML file that says what it measures, how it is installed and run, and how its
//! output becomes metrics.
//!
//! This module owns the file's shape and whatever can be checked from its text alone, so that a
//! mistake in a definition is found when it is read and not after an hour of measuring.

mod argument;
mod check;
mod document;
mod metric;
mod parameter;

pub use argument::ArgvElement;
pub use document::{InstallSpec, Requirements, SourceArchive, WorkloadDefinition};
pub use metric::{ExtractionRule, MetricAggregate, MetricRule, OutputStream};
pub use parameter::{ParameterKind, WorkloadParameter};

#[cfg(test)]
mod tests;
