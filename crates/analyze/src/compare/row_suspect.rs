//! The first suspect of why a row changed, for the line beneath it.

use perflab_model::Unit;
use schemars::JsonSchema;
use serde::Serialize;

/// What goes with a change beyond chance, and can carry most of it; `perflab why` has the others, and all evidence.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RowSuspect {
    /// what people call the cause
    pub cause: String,
    /// the quantity that measures it; absent of a line of the kernel's log
    pub series: Option<String>,
    /// its mean in an iteration of the baseline; of a line of the kernel's log, iterations with it
    pub before: f64,
    /// the same of the candidate
    pub after: f64,
    /// unit of both
    pub series_unit: Unit,
    /// what of the change it carries by its slope, in [`unit`](RowSuspect::unit); absent where that is not known
    pub carries: Option<f64>,
    /// what of the change it can carry at most, where its slope is not known; absent where nothing limits it either
    pub at_most: Option<f64>,
    /// the change of the mean, in the same unit; absent where a side has no value
    pub change: Option<f64>,
    /// `s` where the metric is the time of an iteration, or work a second
    pub unit: Unit,
}
