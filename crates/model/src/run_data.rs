//! A run as analyses and sections of a report read it, wherever it lies.

use std::error::Error;

use crate::error_class::{Classify, ErrorClass};
use crate::io_trace::IoRecording;
use crate::operation::{OperationColumns, OperationTraceSummary, TracedIteration};
use crate::profile::Profile;
use crate::run::RunRecord;
use crate::run_note::RunNote;
use crate::series::RowRuns;

/// A run's parts, each read when it is asked for. A part that was not recorded is empty, never an error.
pub trait RunData {
    /// Its manifest, samples, iterations, gaps and warnings.
    fn record(&self) -> &RunRecord;

    /// What its monitors recorded, sorted by name.
    ///
    /// # Errors
    /// Tables that are missing or damaged.
    fn series(&self) -> Result<&[RowRuns], RunDataError>;

    /// What people wrote about it, the oldest first.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn notes(&self) -> Result<Vec<RunNote>, RunDataError> {
        Ok(Vec::new())
    }

    /// What its targets printed beside their streams (errors, consoles), where an iteration failed.
    ///
    /// # Errors
    /// A log that is damaged.
    fn target_output(&self) -> Result<Option<String>, RunDataError> {
        Ok(None)
    }

    /// The cases that have samples of call stacks, by their index in the plan.
    ///
    /// # Errors
    /// Tables that are damaged.
    fn profiled_cases(&self) -> Result<Vec<u32>, RunDataError> {
        Ok(Vec::new())
    }

    /// The sampled call stacks of one of [`RunData::profiled_cases`].
    ///
    /// # Errors
    /// Tables that are missing or damaged.
    fn profile(&self, case: u32) -> Result<Profile, RunDataError> {
        let _ = case;
        Ok(Profile::default())
    }

    /// What was reported about each iteration whose operations were traced, in order of time.
    ///
    /// # Errors
    /// Tables that are damaged.
    fn traced_iterations(&self) -> Result<Vec<OperationTraceSummary>, RunDataError> {
        Ok(Vec::new())
    }

    /// Every operation of one of [`RunData::traced_iterations`].
    ///
    /// # Errors
    /// Tables that are missing or damaged.
    fn operations(&self, iteration: TracedIteration) -> Result<OperationColumns, RunDataError> {
        let _ = iteration;
        Ok(OperationColumns::default())
    }

    /// The I/O of each iteration in which it was traced, with which iteration it was.
    ///
    /// # Errors
    /// Tables that are damaged.
    fn io_recordings(&self) -> Result<Vec<(TracedIteration, IoRecording)>, RunDataError> {
        Ok(Vec::new())
    }
}

/// Why a part of a run cannot be read: the error of whoever holds the run.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunDataError {
    error: Box<dyn Error + Send + Sync>,
    class: ErrorClass,
}

impl Classify for RunDataError {
    fn class(&self) -> ErrorClass {
        self.class
    }
}

impl RunDataError {
    /// The error of whoever holds the run.
    pub fn new(error: impl Classify + Send + Sync + 'static) -> Self {
        RunDataError { class: error.class(), error: Box::new(error) }
    }
}
