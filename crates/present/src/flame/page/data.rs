//! The JSON that the viewer reads (`web/src/flame/data.ts` is its mirror), and nothing else.
//!
//! Long columns are texts, see [`super::pack`].

use serde::Serialize;

/// Everything in `<script id="flame-data">`: one merged tree, with the sides that can be laid over it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlameViewerData {
    /// What it is of.
    pub title: String,
    /// Functions by number.
    pub functions: FunctionColumns,
    /// What colours mean, by the numbers in [`NodeColumns::category`].
    pub categories: Vec<FlameCategory>,
    /// The boxes.
    pub nodes: NodeColumns,
    /// What was profiled: at least one.
    pub sides: Vec<FlameSide>,
    /// Differences of pairs of sides.
    pub changes: Vec<SideDifference>,
}

/// Names and roles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionColumns {
    /// Normalised names.
    pub name: Vec<String>,
    /// `all`, `command`, `kernel`, `user`, `unknown`, `nothing`; the letter that each begins with, in one text.
    pub role: String,
    /// Numbers of those whose code is part of their callers'.
    pub inlined: String,
}

/// A colour and its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlameCategory {
    /// What the legend says.
    pub name: String,
    /// Which family of colours: `command`, `kernel`, `user`, `unknown`, `nothing`, or `0`, `1`, … for rules.
    pub hue: String,
}

/// Columns of boxes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeColumns {
    /// How many.
    pub count: usize,
    /// Its number less its caller's; 0 for node 0.
    pub up: String,
    /// Its function.
    pub function: String,
    /// Its category.
    pub category: String,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlameSide {
    /// Label, or short id, and the case where there are several.
    pub name: String,
    /// Where the samples come from, the event, the rate.
    pub source: String,
    /// What the event cannot see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hides: Option<String>,
    /// What became of every sample: disjoint, and their sum is all.
    pub parts: Vec<(&'static str, u64)>,
    /// Samples that end in each node.
    pub own: String,
    /// When samples were taken; left out where the source has no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<SampleTimes>,
}

/// Samples over time, in cells of a fiftieth of a second; each stretch begins a second of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleTimes {
    /// Cells in a second.
    pub rows: u32,
    /// Stretches (iterations, runs): name and whole seconds.
    pub stretches: Vec<(String, u32)>,
    /// Cell of each entry less that of the one before.
    pub cell: String,
    /// Node of each entry.
    pub node: String,
    /// Samples of each entry.
    pub count: String,
}

/// Differences between two sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideDifference {
    /// Index into [`FlameViewerData::side_names`].
    pub before: usize,
    /// Index into [`FlameViewerData::side_names`].
    pub after: usize,
    /// What the intervals rest on, in words.
    pub basis: String,
    /// Of boxes, where they could be judged.
    pub nodes: DifferenceColumns,
    /// Of functions.
    pub functions: DifferenceColumns,
}

/// Columns of differences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DifferenceColumns {
    /// Node or function of each entry less that of the one before.
    pub of: String,
    /// Difference of shares in millionths, signed; so are `low` and `high`.
    pub difference: String,
    /// Lower end of the interval.
    pub low: String,
    /// Upper end of the interval.
    pub high: String,
    /// 1 where it is more than noise.
    pub changed: String,
}
