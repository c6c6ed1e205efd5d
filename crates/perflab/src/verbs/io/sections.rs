//! What a report says about the I/O that a run traced: sums by kind, every read at its place, and how they added up. Where a
//! prefetch trace of the program is remembered here, it is held against that.

use perflab_analyze::{TraceCoverage, remove_stacked_requests, trace_coverage};
use perflab_archive::{ArchiveError, RunDir};
use perflab_model::Bytes;
use perflab_model::io_trace::{IoEventKind, IoRecording};
use perflab_present::io::{CoverageNames, read_classes_chart, read_positions_chart};
use perflab_present::operations::TraceSection;

/// The parts of a report about a run's I/O; none for a run without any. The first traced iteration stands for all.
pub fn io_sections(run: &RunDir) -> anyhow::Result<Vec<TraceSection>> {
    let traced = match run.read_io_recordings() {
        Err(ArchiveError::NoIo { .. }) => return Ok(Vec::new()),
        traced => traced?,
    };
    let first = traced.into_iter().next();
    Ok(first.map(|(_, recording)| io_section(&remove_stacked_requests(recording).0)).into_iter().collect())
}

fn io_section(recording: &IoRecording) -> TraceSection {
    let program = recording.events.iter().find(|event| event.kind == IoEventKind::Exec);
    let program = program.and_then(|event| event.name.as_deref());
    let trace = program.and_then(|program| crate::verbs::prefetch::read_known_pages(program.as_ref()).ok());
    let names = if trace.is_some() { CoverageNames::Trace } else { CoverageNames::Program };
    let found = trace_coverage(recording, &trace.unwrap_or_default());
    let pictures = [
        read_positions_chart(&found, "Reads of the disk: when, and where", names),
        read_classes_chart(&found, "Reads of the disk: how much of which kind", names),
    ];
    let heading = format!("I/O of `{}`", program.unwrap_or("the system"));
    TraceSection::new(&heading, coverage_sentences(&found, names), &pictures)
}

fn coverage_sentences(found: &TraceCoverage, names: CoverageNames) -> Vec<String> {
    let sum: u64 = found.bytes.values().sum();
    let parts = found.bytes.iter().filter(|(_, bytes)| **bytes > 0);
    let parts: Vec<String> =
        parts.map(|(status, bytes)| format!("{} {}", Bytes(*bytes), names.status_name(*status))).collect();
    let against = match names {
        CoverageNames::Trace => "held against the prefetch trace that is remembered of it",
        CoverageNames::Program => "no prefetch trace of it is remembered here",
    };
    vec![
        format!("Disks were asked for {}: {} ({against}).", Bytes(sum), parts.join(", ")),
        format!(
            "They delivered {} meanwhile, {} of it asked for before; {} were under way at the end.",
            Bytes(found.answers.completed),
            Bytes(found.answers.before_start),
            Bytes(found.answers.in_flight)
        ),
    ]
}
