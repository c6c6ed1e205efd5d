//! A profile that another tool recorded, as a run: one case with one iteration, which is what was profiled.

use std::path::Path;

use perflab_model::fact_table;
use perflab_model::{Nanos, Outcome, RunEvent, RunEventKind, RunStatus};
use perflab_stacks::{ImportedProfile, ProfileFormat, ProfileNote, ProfilePosition, ProfileRemark};

use crate::benchmark_results::BenchmarkResults;
use crate::error::ImportError;
use crate::import_report::{FileReport, LineRemark};
use crate::imported_run::{RunMetadata, content_hash_event, import_manifest};
use crate::importer::{ImportOptions, ImportSource, ImportedEvents, Importer, Recognition};

/// What `perf record` writes.
pub(crate) const PERF_DATA: Importer = Importer {
    name: "perf.data",
    about: "call stacks that perf record wrote",
    knows_boots: false,
    recognises: Recognition::File(|input| ProfileFormat::PerfData.recognises(input.beginning())),
    open: |path, options| open_profile(ProfileFormat::PerfData, path, options),
};

/// The text of `perf script`.
pub(crate) const PERF_SCRIPT: Importer = Importer {
    name: "perf-script",
    about: "call stacks as perf script prints them",
    knows_boots: false,
    recognises: Recognition::File(|input| ProfileFormat::Script.recognises(input.beginning())),
    open: |path, options| open_profile(ProfileFormat::Script, path, options),
};

/// A protobuf of pprof's, packed or not.
pub(crate) const PPROF: Importer = Importer {
    name: "pprof",
    about: "call stacks in pprof's protobuf",
    knows_boots: false,
    recognises: Recognition::File(|input| ProfileFormat::Pprof.recognises(input.unpacked_beginning())),
    open: |path, options| open_profile(ProfileFormat::Pprof, path, options),
};

/// A line a stack.
pub(crate) const FOLDED: Importer = Importer {
    name: "folded",
    about: "folded call stacks, `command;outer;inner 42` a line",
    knows_boots: false,
    recognises: Recognition::File(|input| ProfileFormat::Folded.recognises(input.beginning())),
    open: |path, options| open_profile(ProfileFormat::Folded, path, options),
};

fn open_profile(
    format: ProfileFormat,
    path: &Path,
    options: &ImportOptions,
) -> Result<Box<dyn ImportSource>, ImportError> {
    let imported = perflab_stacks::read_profile_file(path, Some(format), &options.symbols)?;
    Ok(Box::new(profile_source(path, imported, options)))
}

/// The events of a profile that was read from `path`.
pub fn profile_source(path: &Path, imported: ImportedProfile, options: &ImportOptions) -> ImportedEvents {
    let warnings: Vec<ProfileNote> = profile_warnings(&imported).collect();
    let report = profile_report(path, &imported);
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
    events.extend(content_hash_event(path).map(|hash| RunEvent::new(end, hash)));
    let ended = RunEventKind::Ended { status: RunStatus::Finished, overhead: Default::default() };
    events.push(RunEvent::new(end, ended));
    ImportedEvents::new(events, vec![report])
}

/// What became of every sample of the file.
fn profile_report(path: &Path, imported: &ImportedProfile) -> FileReport {
    let counts = imported.sample_parts();
    let remark = |ProfileRemark { place, reason }: &ProfileRemark| match place {
        ProfilePosition::Line(line) => LineRemark { line: *line, reason: reason.clone() },
        place => LineRemark { line: 0, reason: format!("{place}: {reason}") },
    };
    FileReport {
        rows_read: counts.in_profile().saturating_add(counts.unreadable),
        rows_used: counts.in_profile(),
        rows_unusable: counts.unreadable,
        unusable: imported.remarks.iter().map(remark).collect(),
        ..FileReport::new(path, "call stacks")
    }
}

fn profile_metadata(path: &Path, imported: &ImportedProfile) -> RunMetadata {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut facts = imported.facts.clone();
    facts.add(fact_table::IMPORT_KIND, imported.about.source.as_str(), "perflab");
    facts.add(fact_table::IMPORT_PATH, path.to_string_lossy().as_ref(), "perflab");
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
