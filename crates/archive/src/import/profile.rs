//! A profile that another tool recorded, as a run: one case with one iteration, which is what was profiled.

use std::path::Path;

use perflab_model::run::RunWarning;
use perflab_model::{Nanos, Outcome, RunEvent, RunEventKind, RunStatus};
use perflab_stacks::{ImportedProfile, ProfileNote};

use super::ImportOptions;
use crate::import::benchmark_results::BenchmarkResults;
use crate::import::imported_run::{RunMetadata, import_manifest};
use crate::recorder::BulkRecorder;
use crate::{Archive, ArchiveError, RunDir};

/// Makes a run in `archive` of a profile that was read from `path`.
///
/// # Errors
/// What recording a run may fail with; no run is left behind then.
pub fn import_profile_run(
    archive: &Archive,
    path: &Path,
    imported: ImportedProfile,
    label: Option<String>,
) -> Result<(RunDir, Vec<RunWarning>), ArchiveError> {
    let warnings: Vec<RunWarning> = profile_warnings(&imported)
        .map(|note| RunWarning { message: note.message, advice: note.advice })
        .collect();
    let metadata = profile_metadata(path, &imported);
    let options = ImportOptions { label, ..ImportOptions::default() };
    let manifest = import_manifest(path, &options, &metadata, &[], imported.begun.unwrap_or(Nanos(0)));
    let mut recorder = BulkRecorder::begin(&archive.runs_directory(), &manifest)?;
    let mut tell = |at: Nanos, what: RunEventKind| recorder.record(&RunEvent::new(at, what));
    let end = imported.batch.samples.iter().filter_map(|sample| sample.at).max().unwrap_or_default();
    tell(Nanos(0), RunEventKind::Began(Box::new(manifest)))?;
    tell(Nanos(0), RunEventKind::IterationBegan { slot: 0 })?;
    tell(end, RunEventKind::Stacks(Box::new(imported.batch)))?;
    tell(end, RunEventKind::Profiled(Box::new(imported.about)))?;
    tell(end, RunEventKind::IterationEnded { slot: 0, outcome: Outcome::Ok, start: Nanos(0), end })?;
    for RunWarning { message, advice } in warnings.iter().cloned() {
        tell(end, RunEventKind::Warning { message, advice })?;
    }
    tell(end, RunEventKind::Ended { status: RunStatus::Finished, overhead: Default::default() })?;
    Ok((recorder.finish(&archive.runs_directory())?, warnings))
}

fn profile_metadata(path: &Path, imported: &ImportedProfile) -> RunMetadata {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut facts = imported.facts.clone();
    facts.add("import.kind", imported.about.source.as_str(), "perflab");
    facts.add("import.path", path.to_string_lossy().as_ref(), "perflab");
    let mut results = BenchmarkResults::default();
    let case = results.find_or_add_case("profile", Default::default());
    results.next_execution(case, 0, None);
    RunMetadata {
        title: format!("Profile {name}"),
        description: format!("Call stacks that another tool recorded ({})", imported.about.source),
        facts,
        results,
        ..RunMetadata::default()
    }
}

fn profile_warnings(imported: &ImportedProfile) -> impl Iterator<Item = ProfileNote> + '_ {
    let unreadable = (imported.about.unreadable > 0).then(|| {
        let first = imported.remarks.first();
        let first = first
            .map(|first| format!(", the first at {}: {}", first.place, first.reason))
            .unwrap_or_default();
        ProfileNote {
            message: format!("{} samples of the file could not be read{first}", imported.about.unreadable),
            advice: "shares are of all samples, these included; look at the file there".into(),
        }
    });
    imported.notes.iter().cloned().chain(unreadable)
}
