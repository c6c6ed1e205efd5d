//! How often a case failed on both sides, and what a verdict stands on.

use perflab_stats::{EventCount, fisher_exact};
use serde::Serialize;

use crate::compare::compared_part::ComparedPart;

/// How often a case failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FailureCount {
    /// Iterations that failed or ran out of time.
    pub failed: usize,
    /// Iterations that were measured.
    pub of: usize,
}

impl FailureCount {
    /// The share of the iterations that failed.
    #[must_use]
    pub fn share(self) -> f64 {
        self.failed as f64 / self.of.max(1) as f64
    }
}

impl From<FailureCount> for EventCount {
    fn from(count: FailureCount) -> Self {
        EventCount { events: count.failed as u64, trials: count.of as u64 }
    }
}

/// How often a case failed on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FailureComparison {
    /// In the baseline.
    pub baseline: FailureCount,
    /// In the candidate.
    pub candidate: FailureCount,
    /// Two-sided p-value of "both fail as often" (Fisher's exact test).
    pub p: f64,
    /// The p-value adjusted for all cases in which something failed (Benjamini and Hochberg).
    pub q: f64,
}

/// What a verdict stands on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictBasis {
    /// the values
    #[default]
    Values,
    /// one side fails more than chance explains
    Failures,
    /// nothing: iterations that failed could have turned what the values say
    MissingValues,
    /// values far beyond the rest, of which one side has more
    Tail,
    /// the mean
    Mean,
    /// the value that one in twenty exceeds
    P95,
    /// the value that one in a hundred exceeds
    P99,
    /// the value that one in twenty falls short of, where less is worse
    P5,
    /// the value that one in a hundred falls short of, where less is worse
    P1,
}

impl VerdictBasis {
    /// Of a part of the distribution.
    pub(crate) fn of_part(part: ComparedPart) -> Self {
        match part {
            ComparedPart::Mean => VerdictBasis::Mean,
            ComparedPart::P95 => VerdictBasis::P95,
            ComparedPart::P99 => VerdictBasis::P99,
            ComparedPart::P5 => VerdictBasis::P5,
            ComparedPart::P1 => VerdictBasis::P1,
        }
    }

    /// Whether the values decide, as they mostly do.
    #[must_use]
    pub fn is_values(&self) -> bool {
        *self == VerdictBasis::Values
    }

    /// Its name in JSON and CSV.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            VerdictBasis::Values => "values",
            VerdictBasis::Failures => "failures",
            VerdictBasis::MissingValues => "missing-values",
            VerdictBasis::Tail => "tail",
            VerdictBasis::Mean => "mean",
            VerdictBasis::P95 => "p95",
            VerdictBasis::P99 => "p99",
            VerdictBasis::P5 => "p5",
            VerdictBasis::P1 => "p1",
        }
    }
}

impl FailureComparison {
    /// Of these counts. q is p until the family is known; a side without an iteration says nothing.
    pub(crate) fn from_counts(baseline: FailureCount, candidate: FailureCount) -> Self {
        let p = fisher_exact(baseline.into(), candidate.into()).map_or(1.0, |found| found.p);
        FailureComparison { baseline, candidate, p, q: p }
    }
}
