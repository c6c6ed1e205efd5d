//! What a report says about the I/O that a run traced: sums by kind, every read at its place, and how they added up. Where a
//! prefetch trace of the program is remembered here, it is held against that.

use perflab_analyze::io::{Coverage, count_once, coverage};
use perflab_archive::{ArchiveError, RunDir};
use perflab_model::Bytes;
use perflab_model::io::{IoKind, IoRecording};
use perflab_present::io::{Names, classes, places};
use perflab_present::trace::TraceSection;

/// The parts of a report about a run's I/O; none for a run without any. The first traced iteration stands for all.
pub fn sections(run: &RunDir) -> anyhow::Result<Vec<TraceSection>> {
    let traced = match run.io() {
        Err(ArchiveError::NoIo { .. }) => return Ok(Vec::new()),
        traced => traced?,
    };
    let first = traced.into_iter().next();
    Ok(first.map(|(_, recording)| section(&count_once(recording).0)).into_iter().collect())
}

fn section(recording: &IoRecording) -> TraceSection {
    let program = recording.events.iter().find(|event| event.kind == IoKind::Exec);
    let program = program.and_then(|event| event.name.as_deref());
    let trace = program.and_then(|program| crate::verbs::prefetch::known(program.as_ref()).ok());
    let names = if trace.is_some() { Names::Trace } else { Names::Program };
    let found = coverage(recording, &trace.unwrap_or_default());
    let pictures = [
        places(&found, "Reads of the disk: when, and where", names),
        classes(&found, "Reads of the disk: how much of which kind", names),
    ];
    let heading = format!("I/O of `{}`", program.unwrap_or("the system"));
    TraceSection::new(&heading, lines(&found, names), &pictures)
}

fn lines(found: &Coverage, names: Names) -> Vec<String> {
    let sum: u64 = found.bytes.values().sum();
    let parts = found.bytes.iter().filter(|(_, bytes)| **bytes > 0);
    let parts: Vec<String> =
        parts.map(|(status, bytes)| format!("{} {}", Bytes(*bytes), names.name(*status))).collect();
    let against = match names {
        Names::Trace => "held against the prefetch trace that is remembered of it",
        Names::Program => "no prefetch trace of it is remembered here",
    };
    vec![
        format!("Disks were asked for {}: {} ({against}).", Bytes(sum), parts.join(", ")),
        format!(
            "They delivered {} meanwhile, {} of it asked for before; {} were under way at the end.",
            Bytes(found.answers.delivered),
            Bytes(found.answers.early),
            Bytes(found.answers.under_way)
        ),
    ]
}
