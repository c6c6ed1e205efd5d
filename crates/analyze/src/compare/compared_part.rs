//! The parts of a distribution that a row compares beside its middle.

use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::change::MetricChange;

/// A part of the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparedPart {
    /// the mean, for which values far beyond the rest count as the fence: how many there are is the tail's question
    Mean,
    /// one in twenty is worse, where more is worse
    P95,
    /// one in a hundred is worse, where more is worse
    P99,
    /// one in twenty is worse, where less is worse
    P5,
    /// one in a hundred is worse, where less is worse
    P1,
}

impl ComparedPart {
    /// Its name, in tables and in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ComparedPart::Mean => "mean",
            ComparedPart::P95 => "p95",
            ComparedPart::P99 => "p99",
            ComparedPart::P5 => "p5",
            ComparedPart::P1 => "p1",
        }
    }

    /// The share of values below it; none of the mean.
    pub(crate) fn fraction(self) -> Option<f64> {
        match self {
            ComparedPart::Mean => None,
            ComparedPart::P95 => Some(0.95),
            ComparedPart::P99 => Some(0.99),
            ComparedPart::P5 => Some(0.05),
            ComparedPart::P1 => Some(0.01),
        }
    }
}

/// A part of both distributions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PartComparison {
    /// Which.
    pub part: ComparedPart,
    /// Of the baseline's values, in the row's unit.
    pub baseline: f64,
    /// Of the candidate's.
    pub candidate: f64,
    /// From one to the other, on the scale of the row's change.
    pub change: MetricChange,
    /// Two-sided p-value of "no change", which the interval inverts.
    pub p: f64,
    /// The p-value adjusted for the parts of the row (Holm), and for all rows of the family (Benjamini and Hochberg).
    pub q: f64,
}
