//! The JSON that the front end reads (`web/src/data.ts` is its mirror), and nothing else.
//!
//! Times are microseconds since the run's first moment. Long columns are delta coded, see [`PackedColumn`].

use indexmap::IndexMap;
use serde::Serialize;

/// Everything in `<script id="data">`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunViewerData {
    /// The runs, as given.
    pub runs: Vec<ViewerRun>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerRun {
    /// Label, or short id.
    pub name: String,
    /// Microseconds from first to last thing recorded.
    pub length: i64,
    /// The plan's cases.
    pub cases: Vec<ViewerCase>,
    /// Iterations that began, in order of time.
    pub iterations: Vec<ViewerIteration>,
    /// Samples, one entry a metric.
    pub metrics: Vec<ViewerMetric>,
    /// Monitors, one entry each.
    pub monitors: Vec<ViewerMonitor>,
}

/// One case of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerCase {
    /// The whole case in one line.
    pub label: String,
    /// Workload and point, without factors.
    pub subject: String,
    /// Factor -> level.
    pub levels: IndexMap<String, String>,
}

/// One iteration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerIteration {
    /// Index into [`ViewerRun::recorded_cases`].
    pub case: u32,
    /// Which of its case, from 0.
    pub iteration: u32,
    /// Run, but not measured.
    pub warmup: bool,
    /// Why it gave no sample; left out where it went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// When it began.
    pub start: i64,
    /// When it ended.
    pub end: i64,
}

/// The samples of one metric of one run, column by column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerMetric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// "higher", "lower" or "neither".
    pub direction: String,
    /// Whether it decides.
    pub primary: bool,
    /// Case of each sample.
    pub case: Vec<u32>,
    /// Iteration of each sample.
    pub iteration: Vec<u32>,
    /// When its iteration began.
    pub start: Vec<i64>,
    /// The values, in the unit.
    pub value: Vec<f64>,
}

/// One monitor's series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerMonitor {
    /// Its name.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// Wanted time between ticks, microseconds.
    pub interval: i64,
    /// Tick times, microseconds, shared by all tracks.
    pub at: PackedColumn,
    /// Whether ticks were thinned to the extremes of each bucket of time.
    pub thinned: bool,
    /// One line of the chart each.
    pub tracks: Vec<MonitorTrack>,
    /// Stretches without rows.
    pub gaps: Vec<ViewerGap>,
}

/// One column of one subject (a cache, a CPU, a device).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MonitorTrack {
    /// The subject; empty where the monitor has only one.
    pub key: String,
    /// The column's name.
    pub column: String,
    /// The column's unit, without `/s` for counters.
    pub unit: String,
    /// What [`MonitorTrack::values`] are.
    pub kind: TrackKind,
    /// The numbers.
    pub values: PackedColumn,
    /// How much it varies, from 0 (not at all); the picker's order.
    pub liveliness: f64,
}

/// What a track's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackKind {
    /// Values.
    Gauge,
    /// Growth since the tick before; divided by the time between them it is a rate.
    Growth,
    /// Rates, in the unit per second.
    Rate,
}

/// A stretch without rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerGap {
    /// Since when.
    pub from: i64,
    /// Until when; the run's end where it never came back.
    pub to: i64,
    /// Why.
    pub reason: String,
}

/// A column of numbers, in integers divided by `scale`.
///
/// Each item is the difference from the number before (from 0 at first); `[n]` stands for the same number
/// `n` times more; `null` is a missing number, which leaves the number before as it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PackedColumn {
    /// What to divide by.
    pub scale: f64,
    /// The items.
    pub items: Vec<PackedItem>,
}

/// One item of a [`PackedColumn`] column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PackedItem {
    /// Difference from the number before.
    Step(i64),
    /// The same number so often.
    Repeat([u32; 1]),
    /// Missing.
    Missing(()),
}
