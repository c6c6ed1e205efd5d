//! A sample: one measured value of one metric in one iteration.

use serde::{Deserialize, Serialize};

use crate::{Direction, Nanos, SharedStr, Unit};

/// One row of `samples.parquet`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Which boot of the target within the run, from 0. The unit of comparison where boots repeat.
    pub boot: u32,
    /// Which target: index into the manifest's targets. Missing for the machine that records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// Index into the plan's cases.
    pub case: u32,
    /// Which iteration of that case, from 0, warm-ups not counted. Equals the block under complete blocks.
    pub iteration: u32,
    /// The metric's name.
    pub metric: SharedStr,
    /// The value, in `unit`.
    pub value: f64,
    /// The unit.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// When the iteration began: CLOCK_MONOTONIC of its target.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
}
