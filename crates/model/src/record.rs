//! A run as readers hold it in memory: everything but the series, which are read one at a time.

use crate::series::SeriesGap;
use crate::{Manifest, Nanos, Outcome, Sample};

/// One iteration that began, as it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationRecord {
    /// Which target: index into the manifest's targets. Missing for the machine that records.
    pub target: Option<u32>,
    /// Index into the plan's slots.
    pub slot: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When its process was started (CLOCK_MONOTONIC of the machine that records).
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
}

/// A warning that was given during the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWarning {
    /// What.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// One run, read.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Its manifest; the status is `Interrupted` where its process died.
    pub manifest: Manifest,
    /// All samples, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// All iterations that ended, warm-ups included, in order of time.
    pub iterations: Vec<IterationRecord>,
    /// Stretches without rows.
    pub gaps: Vec<SeriesGap>,
    /// Warnings given.
    pub warnings: Vec<RunWarning>,
    /// With targets: to what bound each one's clock was known, at each release.
    pub clock_bounds: Vec<Nanos>,
}
