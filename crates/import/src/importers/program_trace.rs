//! A trace file as a run of one iteration: one that a program wrote by itself, or one of probes in a program that knows
//! nothing of it. The file stays where it is.

use std::path::Path;

use perflab_model::fact_table;
use perflab_model::operation::OPERATION_TRACER;
use perflab_model::{Nanos, Outcome, RunEvent, RunEventKind, RunStatus};

use crate::benchmark_results::BenchmarkResults;
use crate::error::ImportError;
use crate::imported_run::{RunMetadata, content_hash_event, import_manifest};
use crate::importer::{ImportOptions, ImportedEvents, Importer, Recognition};

/// A trace file of optrace's.
pub(crate) const IMPORTER: Importer = Importer {
    name: "optrace",
    about: "operations that a program recorded with optrace",
    knows_boots: false,
    recognises: Recognition::File(|input| input.beginning().starts_with(b"OPTRACE\0")),
    open: |path, options| Ok(Box::new(program_trace_source(path, options)?)),
};

/// The events of a trace file.
///
/// # Errors
/// [`ImportError::Trace`] for a file that is none or of another version; one that cannot be copied.
fn program_trace_source(path: &Path, options: &ImportOptions) -> Result<ImportedEvents, ImportError> {
    let changed = std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let dated = Nanos(since.map_or(0, |since| since.as_nanos() as u64));
    trace_events(path, options, program_trace_metadata(path), dated, content_hash_event(path))
}

/// What a trace of probes was of.
#[derive(Debug, Clone, Default)]
pub struct ProbedRun {
    /// The command, or the process.
    pub command: String,
    /// The begins and ends that were watched, as they were asked for.
    pub places: String,
    /// Nanoseconds that an event costs: the larger, what it cost before and what it cost at the end.
    pub event_costs: [f64; 3],
    /// Of each name of an operation or span: nanoseconds that an entry and an exit cost, the larger of before and the end.
    pub costs: Vec<(String, f64, f64)>,
    /// Of each name: what became of its entries, in words.
    pub entries: Vec<(String, String)>,
    /// When watching began.
    pub began: Nanos,
    /// How the program ended, if it did while it was watched.
    pub ended: Option<String>,
    /// How much slower it became, in words.
    pub slowdown: String,
    /// The share of the time that it was watched; none where that was all of it.
    pub share: Option<f64>,
}

/// The events of a trace of probes.
///
/// # Errors
/// The file is no trace of operations, or a damaged one.
pub fn probed_program_source(
    path: &Path,
    options: &ImportOptions,
    watched: &ProbedRun,
) -> Result<ImportedEvents, ImportError> {
    let mut metadata = program_trace_metadata(path);
    metadata.title = format!("Operations of `{}`", watched.command);
    metadata.description = "Operations reported by probes in a program".into();
    metadata.facts = Default::default();
    metadata.facts.add(fact_table::TRACE_COMMAND, watched.command.as_str(), "perflab");
    metadata.facts.add(fact_table::TRACE_PLACES, watched.places.as_str(), "perflab");
    let moments = [
        fact_table::TRACE_EVENT_COST,
        fact_table::TRACE_EVENT_COST_BEFORE,
        fact_table::TRACE_EVENT_COST_AT_END,
    ];
    for (key, cost) in moments.into_iter().zip(watched.event_costs) {
        metadata.facts.add(key, cost.round() as i64, "perflab");
    }
    for (name, entry, exit) in &watched.costs {
        metadata.facts.add(fact_table::TRACE_COST_ENTRY.key(name), entry.round() as i64, "perflab");
        metadata.facts.add(fact_table::TRACE_COST_EXIT.key(name), exit.round() as i64, "perflab");
    }
    for (name, entries) in &watched.entries {
        metadata.facts.add(fact_table::TRACE_ENTRIES.key(name), entries.as_str(), "perflab");
    }
    metadata.facts.add(fact_table::TRACE_SLOWDOWN, watched.slowdown.as_str(), "perflab");
    if let Some(share) = watched.share {
        metadata.facts.add(fact_table::TRACE_WATCHED_PERCENT, (share * 100.0).round() as i64, "perflab");
    }
    if let Some(ended) = &watched.ended {
        metadata.facts.add(fact_table::TRACE_ENDED, ended.as_str(), "perflab");
    }
    trace_events(path, options, metadata, watched.began, None)
}

fn trace_events(
    path: &Path,
    options: &ImportOptions,
    metadata: RunMetadata,
    began: Nanos,
    hash: Option<RunEventKind>,
) -> Result<ImportedEvents, ImportError> {
    // Looked at first: no run is to be left behind for what is no trace.
    optrace::TraceFile::open(path).map_err(ImportError::Trace)?;
    let manifest = import_manifest(path, options, &metadata, &[], began);
    let copy = tempfile::NamedTempFile::new().map_err(ImportError::io("create", path))?;
    std::fs::copy(path, copy.path()).map_err(ImportError::io("read", path))?;
    let file = copy.into_temp_path().keep().map_err(|error| ImportError::io("write", path)(error.error))?;
    let ended = RunEventKind::Ended { status: RunStatus::Finished, overhead: Default::default() };
    let events = [
        RunEventKind::Began(Box::new(manifest)),
        RunEventKind::IterationBegan { slot: 0 },
        RunEventKind::Traced { slot: 0, tracer: OPERATION_TRACER.into(), file },
        RunEventKind::IterationEnded { slot: 0, outcome: Outcome::Ok, start: Nanos(0), end: Nanos(0) },
    ];
    let events =
        events.into_iter().chain(hash).chain([ended]).map(|what| RunEvent::new(Nanos(0), what)).collect();
    Ok(ImportedEvents::new(events, Vec::new()))
}

fn program_trace_metadata(path: &Path) -> RunMetadata {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut results = BenchmarkResults::default();
    let case = results.find_or_add_case("program", Default::default());
    results.next_execution(case, 0, None);
    let mut metadata = RunMetadata {
        title: format!("Operations {name}"),
        description: "Operations that a program recorded of itself".into(),
        results,
        ..RunMetadata::default()
    };
    metadata.facts.add(fact_table::IMPORT_KIND, "optrace", "perflab");
    metadata.facts.add(fact_table::IMPORT_PATH, path.to_string_lossy().as_ref(), "perflab");
    metadata
}
