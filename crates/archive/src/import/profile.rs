//! A profile that another tool recorded, as a run: one case with one iteration, which is what was profiled.

use std::path::Path;

use perflab_model::record::Advice;
use perflab_model::{Event, Nanos, Outcome, Status, What};
use perflab_stacks::{Imported, Note};

use super::Options;
use super::results::Results;
use super::story::{Story, manifest};
use crate::at_once::AtOnce;
use crate::{Archive, ArchiveError, RunDir};

/// Makes a run in `archive` of a profile that was read from `path`.
///
/// # Errors
/// What recording a run may fail with; no run is left behind then.
pub fn import_profile(
    archive: &Archive,
    path: &Path,
    imported: Imported,
    label: Option<String>,
) -> Result<(RunDir, Vec<Advice>), ArchiveError> {
    let warnings: Vec<Advice> =
        warnings(&imported).map(|note| Advice { message: note.message, advice: note.advice }).collect();
    let story = story(path, &imported);
    let options = Options { label, ..Options::default() };
    let manifest = manifest(path, &options, &story, &[], imported.begun.unwrap_or(Nanos(0)));
    let mut recorder = AtOnce::begin(&archive.runs(), &manifest)?;
    let mut tell = |at: Nanos, what: What| recorder.record(&Event::new(at, what));
    let end = imported.batch.samples.iter().filter_map(|sample| sample.at).max().unwrap_or_default();
    tell(Nanos(0), What::Began(Box::new(manifest)))?;
    tell(Nanos(0), What::IterationBegan { slot: 0 })?;
    tell(end, What::Stacks(Box::new(imported.batch)))?;
    tell(end, What::Profiled(Box::new(imported.about)))?;
    tell(end, What::IterationEnded { slot: 0, outcome: Outcome::Ok, start: Nanos(0), end })?;
    for Advice { message, advice } in warnings.iter().cloned() {
        tell(end, What::Warning { message, advice })?;
    }
    tell(end, What::Ended { status: Status::Finished, overhead: Default::default() })?;
    Ok((recorder.finish(&archive.runs())?, warnings))
}

fn story(path: &Path, imported: &Imported) -> Story {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut facts = imported.facts.clone();
    facts.add("import.kind", imported.about.source.as_str(), "perflab");
    facts.add("import.path", path.to_string_lossy().as_ref(), "perflab");
    let mut results = Results::default();
    let case = results.case("profile", Default::default());
    results.execution(case, 0, None);
    Story {
        title: format!("Profile {name}"),
        description: format!("Call stacks that another tool recorded ({})", imported.about.source),
        facts,
        results,
        ..Story::default()
    }
}

fn warnings(imported: &Imported) -> impl Iterator<Item = Note> + '_ {
    let unreadable = (imported.about.unreadable > 0).then(|| {
        let first = imported.remarks.first();
        let first = first
            .map(|first| format!(", the first at {}: {}", first.place, first.reason))
            .unwrap_or_default();
        Note {
            message: format!("{} samples of the file could not be read{first}", imported.about.unreadable),
            advice: "shares are of all samples, these included; look at the file there".into(),
        }
    });
    imported.notes.iter().cloned().chain(unreadable)
}
