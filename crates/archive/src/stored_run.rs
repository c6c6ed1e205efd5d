//! A run of an archive as analyses and sections of a report read it.

use std::cell::OnceCell;

use perflab_model::io_trace::IoRecording;
use perflab_model::operation::{OPERATION_TRACER, OperationColumns, OperationTraceSummary, TracedIteration};
use perflab_model::series::RowRuns;
use perflab_model::{Outcome, Profile, RunData, RunDataError, RunNote, RunRecord};

use crate::error::ArchiveError;
use crate::run_dir::RunDir;

/// The log in which targets' output beside their streams is kept.
pub const TARGET_OUTPUT: &str = "agent";

/// A run's directory with its record; the other parts are read when they are asked for.
#[derive(Debug)]
pub struct StoredRun {
    directory: RunDir,
    record: RunRecord,
    series: OnceCell<Vec<RowRuns>>,
}

impl StoredRun {
    /// Reads the record with its documents.
    ///
    /// # Errors
    /// As [`RunDir::read_record`] and [`RunDir::read_documents`].
    pub fn read(directory: &RunDir) -> Result<Self, ArchiveError> {
        let record = RunRecord { documents: directory.read_documents()?, ..directory.read_record()? };
        Ok(StoredRun { directory: directory.clone(), record, series: OnceCell::new() })
    }

    fn read_series(&self) -> Result<Vec<RowRuns>, ArchiveError> {
        let monitors = self.directory.list_monitors()?;
        let mut all = Vec::new();
        for monitor in monitors {
            all.push(self.directory.read_series_spans(&monitor)?);
        }
        all.retain(|runs| !runs.ticks.is_empty() || runs.series.schema.interval.0 > 0);
        Ok(all)
    }
}

impl RunData for StoredRun {
    fn record(&self) -> &RunRecord {
        &self.record
    }

    fn series(&self) -> Result<&[RowRuns], RunDataError> {
        if let Some(read) = self.series.get() {
            return Ok(read);
        }
        let read = self.read_series().map_err(RunDataError::new)?;
        Ok(self.series.get_or_init(|| read))
    }

    fn notes(&self) -> Result<Vec<RunNote>, RunDataError> {
        self.directory.read_notes().map_err(RunDataError::new)
    }

    fn target_output(&self) -> Result<Option<String>, RunDataError> {
        if self.record.iterations.iter().all(|one| one.outcome == Outcome::Ok) {
            return Ok(None);
        }
        self.directory.read_output(None, TARGET_OUTPUT).map_err(RunDataError::new)
    }

    fn profiled_cases(&self) -> Result<Vec<u32>, RunDataError> {
        self.directory.profiled_cases().map_err(RunDataError::new)
    }

    fn profile(&self, case: u32) -> Result<Profile, RunDataError> {
        self.directory.read_profile(case).map_err(RunDataError::new)
    }

    fn traced_iterations(&self) -> Result<Vec<OperationTraceSummary>, RunDataError> {
        if self.directory.list_tracers().map_err(RunDataError::new)?.is_empty() {
            return Ok(Vec::new());
        }
        self.directory.read_trace_summaries(OPERATION_TRACER).map_err(RunDataError::new)
    }

    fn operations(&self, iteration: TracedIteration) -> Result<OperationColumns, RunDataError> {
        self.directory.read_operations(OPERATION_TRACER, iteration).map_err(RunDataError::new)
    }

    fn io_recordings(&self) -> Result<Vec<(TracedIteration, IoRecording)>, RunDataError> {
        match self.directory.read_io_recordings() {
            Err(ArchiveError::NoIo { .. }) => Ok(Vec::new()),
            read => read.map_err(RunDataError::new),
        }
    }
}
