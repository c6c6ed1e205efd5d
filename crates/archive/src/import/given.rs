//! Ticks that were all read at once, of a document.

use std::collections::VecDeque;

use perflab_model::ColumnSpec;

use super::format::{LoggedReading, ReadingSource};
use super::took::FileReport;
use crate::ArchiveError;

/// A series that is in memory.
pub(crate) struct FixedReadings {
    series: &'static str,
    source: &'static str,
    columns: Vec<ColumnSpec>,
    ticks: VecDeque<LoggedReading>,
    took: FileReport,
}

impl FixedReadings {
    pub(crate) fn new(
        series: &'static str,
        source: &'static str,
        columns: Vec<ColumnSpec>,
        ticks: Vec<LoggedReading>,
        mut took: FileReport,
    ) -> Self {
        took.ticks = ticks.len() as u64;
        FixedReadings { series, source, columns, ticks: ticks.into(), took }
    }
}

impl ReadingSource for FixedReadings {
    fn series_name(&self) -> &'static str {
        self.series
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        self.columns.clone()
    }

    fn page_size(&self) -> Option<u64> {
        None
    }

    fn next_reading(&mut self) -> Result<Option<LoggedReading>, ArchiveError> {
        Ok(self.ticks.pop_front())
    }

    fn report_mut(&mut self) -> &mut FileReport {
        &mut self.took
    }

    fn file_report(&self) -> &FileReport {
        &self.took
    }
}
