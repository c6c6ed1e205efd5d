//! A run whose archive had no room for it: what is kept, and how it goes on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use perflab_archive::RunDir;
use perflab_model::RunStatus;
use perflab_model::error_class::{Classify, ErrorClass};

use crate::app::App;
use crate::measure::repeatable_run::check_study_resumable;

/// The disk of the archive was full: the run was stopped, or could not be closed.
#[derive(Debug, thiserror::Error)]
#[error("the disk of the archive {} is full: {rest}", archive.display())]
pub struct DiskFullError {
    archive: PathBuf,
    /// What is kept, and what to do.
    rest: String,
}

impl DiskFullError {
    /// What to say of the run in that directory; none where it was not the disk that ended it.
    pub fn of_run(context: &App, path: &Path) -> Option<Self> {
        let run = RunDir::open(path).ok()?;
        if run.status().ok()? != RunStatus::DiskFull {
            return None;
        }
        let record = run.read_record().ok()?;
        // One of several targets ends for each of them.
        let ended: BTreeSet<u32> = record.iterations.iter().map(|one| one.slot).collect();
        let (ended, planned, short) = (ended.len(), record.manifest.plan.slots.len(), run.short_id());
        let (kept, does) = match ended == planned {
            true => (
                format!("all {planned} iterations were measured and are kept, but not yet in tables"),
                "makes these",
            ),
            false => {
                let kept = format!("{ended} of {planned} iterations are kept");
                (format!("the run was stopped, and its settings undone; {kept}"), "measures the rest")
            }
        };
        let rest = match check_study_resumable(&run, &record.manifest) {
            Ok(()) => format!("{kept}; make room, then `perflab resume {short}` {does}"),
            Err(_) => format!("{kept}: `perflab show {short}`"),
        };
        Some(DiskFullError { archive: context.archive_path().to_owned(), rest })
    }
}

impl Classify for DiskFullError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Environment
    }
}
