//! What an importer gives: the events of a run, and auxiliary files.

use perflab_model::RunEvent;

use crate::error::ArchiveError;
use crate::import::import_report::FileReport;

/// Somebody else's results as the events of a run, in order: `Began` first, `Ended` last.
///
/// Times count from the manifest's anchor, whose realtime is the first time that the files give.
pub trait ImportSource: Iterator<Item = Result<RunEvent, ArchiveError>> {
    /// What was taken of each file so far; complete once the events are over.
    fn file_reports(&self) -> Vec<FileReport>;
}
