//! Ticks that were all read at once, of a document.

use std::collections::VecDeque;

use perflab_model::Column;

use super::format::{Tick, Ticks};
use super::took::Took;
use crate::ArchiveError;

/// A series that is in memory.
pub(crate) struct Given {
    series: &'static str,
    source: &'static str,
    columns: Vec<Column>,
    ticks: VecDeque<Tick>,
    took: Took,
}

impl Given {
    pub(crate) fn new(
        series: &'static str,
        source: &'static str,
        columns: Vec<Column>,
        ticks: Vec<Tick>,
        mut took: Took,
    ) -> Self {
        took.ticks = ticks.len() as u64;
        Given { series, source, columns, ticks: ticks.into(), took }
    }
}

impl Ticks for Given {
    fn series(&self) -> &'static str {
        self.series
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn columns(&self) -> Vec<Column> {
        self.columns.clone()
    }

    fn page_size(&self) -> Option<u64> {
        None
    }

    fn next_tick(&mut self) -> Result<Option<Tick>, ArchiveError> {
        Ok(self.ticks.pop_front())
    }

    fn took(&mut self) -> &mut Took {
        &mut self.took
    }

    fn took_so_far(&self) -> &Took {
        &self.took
    }
}
