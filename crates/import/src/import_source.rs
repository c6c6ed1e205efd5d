//! What an importer gives: the events of a run, and auxiliary files.

use perflab_model::RunEvent;

use crate::error::ImportError;
use crate::import_report::FileReport;

/// Somebody else's results as the events of a run, in order: `Began` first, `Ended` last.
///
/// Times count from the manifest's anchor, whose realtime is the first time that the files give.
pub trait ImportSource: Iterator<Item = Result<RunEvent, ImportError>> {
    /// What was taken of each file so far; complete once the events are over.
    fn file_reports(&self) -> Vec<FileReport>;
}

/// A source whose events are all there from the beginning.
#[derive(Debug)]
pub struct ImportedEvents {
    events: std::vec::IntoIter<RunEvent>,
    reports: Vec<FileReport>,
}

impl ImportedEvents {
    pub(crate) fn new(events: Vec<RunEvent>, reports: Vec<FileReport>) -> Self {
        ImportedEvents { events: events.into_iter(), reports }
    }
}

impl Iterator for ImportedEvents {
    type Item = Result<RunEvent, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.events.next().map(Ok)
    }
}

impl ImportSource for ImportedEvents {
    fn file_reports(&self) -> Vec<FileReport> {
        self.reports.clone()
    }
}
