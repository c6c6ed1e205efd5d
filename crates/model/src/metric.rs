//! A metric: a named quantity with a unit and a direction, declared once where it is produced; and one sample of
//! it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::SharedStr;
use crate::quantity::Nanos;

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

    /// The unit of what grows in it, each second: `pages/s` of `pages`.
    #[must_use]
    pub fn per_second(&self) -> Self {
        Unit(format!("{self}/s").into())
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
    /// Unique within the workload: `triad`, `time`. As a workload declares it, a `*` stands for what the output calls it.
    pub name: String,
    /// The unit of its samples.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Primary metrics decide; the others explain.
    #[serde(default)]
    pub primary: bool,
}

impl Metric {
    /// Whether samples of that name are of this declared metric.
    pub fn covers(&self, name: &str) -> bool {
        match self.name.split_once('*') {
            None => self.name == name,
            Some((begin, end)) => {
                let named = name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
                named.is_some_and(|named| !named.is_empty())
            }
        }
    }
}

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
    pub metric: crate::shared_str::SharedStr,
    /// The value, in `unit`.
    pub value: f64,
    /// The unit.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// When the iteration began: CLOCK_MONOTONIC of the machine that records; in what an agent sends, of its own.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_covers_whatever_the_output_names() {
        let metric = |name: &str| Metric {
            name: name.into(),
            unit: Unit::new("ms"),
            direction: Direction::Lower,
            primary: false,
        };
        assert!(metric("time").covers("time") && !metric("time").covers("times"));
        let named = metric("op-*-ms");
        assert!(named.covers("op-Close-ms"));
        assert!(!named.covers("op--ms") && !named.covers("op-ms") && !named.covers("op-Close"));
    }
}
