//! A profile that another tool recorded, as a run: one case with one iteration, which is what was profiled.

use std::path::Path;

use perflab_model::{Nanos, Outcome, RunEvent, RunEventKind, RunStatus};
use perflab_stacks::{ImportedProfile, ProfileNote};

use crate::benchmark_results::BenchmarkResults;
use crate::imported_run::{RunMetadata, import_manifest};
use crate::importer::{ImportOptions, ImportedEvents};

/// The events of a profile that was read from `path`.
pub fn profile_source(path: &Path, imported: ImportedProfile, options: &ImportOptions) -> ImportedEvents {
    let warnings: Vec<ProfileNote> = profile_warnings(&imported).collect();
    let metadata = profile_metadata(path, &imported);
    let manifest = import_manifest(path, options, &metadata, &[], imported.begun.unwrap_or(Nanos(0)));
    let end = imported.batch.samples.iter().filter_map(|sample| sample.at).max().unwrap_or_default();
    let mut events = vec![
        RunEvent::new(Nanos(0), RunEventKind::Began(Box::new(manifest))),
        RunEvent::new(Nanos(0), RunEventKind::IterationBegan { slot: 0 }),
        RunEvent::new(end, RunEventKind::Stacks(Box::new(imported.batch))),
        RunEvent::new(end, RunEventKind::Profiled(Box::new(imported.about))),
        RunEvent::new(
            end,
            RunEventKind::IterationEnded { slot: 0, outcome: Outcome::Ok, start: Nanos(0), end },
        ),
    ];
    let warning = |ProfileNote { message, advice }| RunEventKind::Warning { message, advice };
    events.extend(warnings.into_iter().map(|note| RunEvent::new(end, warning(note))));
    let ended = RunEventKind::Ended { status: RunStatus::Finished, overhead: Default::default() };
    events.push(RunEvent::new(end, ended));
    ImportedEvents::new(events, Vec::new())
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
