//! A metric: a named quantity with a unit and a direction, declared once where it is produced.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::SharedStr;

/// The unit of a metric or a column, as printed: `MB/s`, `s`, `bytes`, `ops/s`, `1` for a bare count.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Unit(pub SharedStr);

impl Unit {
    /// The unit of that name.
    pub fn new(name: &str) -> Self {
        Unit(name.into())
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which way is good.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// more is better: throughput
    Higher,
    /// less is better: time
    Lower,
    /// a change is neither better nor worse: a count
    Neither,
}

impl Direction {
    /// As it is stored and printed: `higher`, `lower`, `neither`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
            Direction::Neither => "neither",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a workload declares of one of its metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Unique within the workload: `triad`, `time`.
    pub name: String,
    /// The unit of its samples.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Primary metrics decide; the others explain.
    #[serde(default)]
    pub primary: bool,
}
