//! A trace file that a program wrote by itself becomes a run of one iteration. The file stays where it is.

use std::path::Path;

use perflab_model::{Event, Nanos, Outcome, Status, What};

use super::Options;
use super::results::Results;
use super::story::{Story, manifest};
use crate::at_once::AtOnce;
use crate::{Archive, ArchiveError, RunDir};

/// Makes a run in `archive` of a trace file.
///
/// # Errors
/// [`ArchiveError::Trace`] for a file that is none or of another version; else what recording a run may fail with.
pub fn import_trace(archive: &Archive, path: &Path, label: Option<String>) -> Result<RunDir, ArchiveError> {
    // Looked at first: no run is to be left behind for what is no trace.
    optrace::File::open(path).map_err(ArchiveError::Trace)?;
    let options = Options { label, ..Options::default() };
    let manifest = manifest(path, &options, &story(path), &[], Nanos(0));
    let mut recorder = AtOnce::begin(&archive.runs(), &manifest)?;
    let copy = tempfile::NamedTempFile::new().map_err(ArchiveError::io("create", path))?;
    std::fs::copy(path, copy.path()).map_err(ArchiveError::io("read", path))?;
    let file = copy.into_temp_path().keep().map_err(|error| ArchiveError::io("write", path)(error.error))?;
    let events = [
        What::Began(Box::new(manifest)),
        What::IterationBegan { slot: 0 },
        What::Traced { slot: 0, tracer: "optrace".into(), file },
        What::IterationEnded { slot: 0, outcome: Outcome::Ok, start: Nanos(0), end: Nanos(0) },
        What::Ended { status: Status::Finished, overhead: Default::default() },
    ];
    events.into_iter().try_for_each(|what| recorder.record(&Event::new(Nanos(0), what)))?;
    recorder.finish(&archive.runs())
}

fn story(path: &Path) -> Story {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut results = Results::default();
    let case = results.case("program", Default::default());
    results.execution(case, 0, None);
    let mut story = Story {
        title: format!("Operations {name}"),
        description: "Operations that a program recorded of itself".into(),
        results,
        ..Story::default()
    };
    story.facts.add("import.kind", "optrace", "perflab");
    story.facts.add("import.path", path.to_string_lossy().as_ref(), "perflab");
    story
}
