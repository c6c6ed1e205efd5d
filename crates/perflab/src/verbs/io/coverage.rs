//! `perflab io coverage`

use perflab_analyze;
use perflab_analyze::{BlockStatus, PublishedCoverage};
use perflab_model::Bytes;
use perflab_model::io_trace::IoRecording;
use perflab_present::chart::Scene;
use perflab_present::io::{
    CoverageNames, blocks_grid, coverage_grid, published_grid, read_classes_chart, read_positions_chart,
};

use super::evidence::{CoverageEvidence, read_evidence};
use crate::arguments::io::{CoverageArgs, CoverageMethod, IoSceneKind};
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::verbs::slab::output;

/// Holds a recording against a prefetch trace.
pub fn show_coverage(context: &App, wanted: &CoverageArgs) -> anyhow::Result<Exit> {
    let recording = super::count_reads_once(context, super::read_io_recording(context, &wanted.which)?);
    if wanted.method == CoverageMethod::Published && (wanted.blocks || wanted.plot.is_some()) {
        let what = "the figures of 2007 are sums: they have neither --blocks nor --plot";
        return Err(UsageError::new(what, "leave --method published out").into());
    }
    let evidence = read_evidence(context, &wanted.trace)?;
    let published = match wanted.method {
        CoverageMethod::Blocks => None,
        CoverageMethod::Published => Some(published_figures(&recording, &evidence)?),
    };
    let found = perflab_analyze::trace_coverage(&recording, &evidence.into_known_pages(context, &recording));
    if let Some(published) = published {
        context.print_grid(&published_grid(&published, &found))?;
        note_file_coverage(context, &published, &found);
        published
            .reasons
            .iter()
            .for_each(|reason| context.note(format!("why it differs from ours: {reason}")));
        return Ok(Exit::Fine);
    }
    context.print_grid(&if wanted.blocks { blocks_grid(&found) } else { coverage_grid(&found) })?;
    output::write_scene(context, wanted.plot.as_ref(), || coverage_scene(&found, wanted))?;
    note_coverage_checks(context, &found, recording.told.lost);
    note_unrecorded_uses(context, &found);
    Ok(Exit::Fine)
}

/// The figures of 2007 for the same files.
fn published_figures(
    recording: &IoRecording,
    evidence: &CoverageEvidence,
) -> anyhow::Result<PublishedCoverage> {
    let CoverageEvidence::Dump(ranges) = evidence else {
        let hint = "name a dump of /proc/prefetch with --trace, or leave --method out";
        return Err(
            UsageError::new("the comparison of 2007 is of dumps of its own prefetch module", hint).into()
        );
    };
    let hint = "import the trace with its map: `perflab io import TRACE --map MAP`";
    perflab_analyze::published_coverage(recording, ranges)
        .map_err(|error| UsageError::new(error.to_string(), hint).into())
}

/// How much was found of what belongs to files, which is what a list of their pages could have had.
fn note_file_coverage(context: &App, published: &PublishedCoverage, found: &perflab_analyze::TraceCoverage) {
    let bytes = |statuses: &[BlockStatus]| -> u64 {
        statuses.iter().filter_map(|status| found.bytes.get(status)).sum()
    };
    let ours =
        bytes(&[BlockStatus::Found, BlockStatus::Missing, BlockStatus::NotInTrace, BlockStatus::ReadAround]);
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64 * 100.0;
    context.note(format!(
        "of what belongs to files, {:.1} % of the requests are found as 2007 counted, {:.1} % of the bytes by block",
        share(published.found, published.found + published.missing),
        share(bytes(&[BlockStatus::Found]), ours)
    ));
}

/// What cannot be told apart where uses of pages were not recorded.
fn note_unrecorded_uses(context: &App, found: &perflab_analyze::TraceCoverage) {
    if found.bytes.get(&BlockStatus::NotInTrace).is_some_and(|bytes| *bytes > 0) {
        context.note(
            "not in trace: which pages were needed was not recorded, so what was missing and what was only read around stand \
             together",
        );
    }
}

fn coverage_scene(found: &perflab_analyze::TraceCoverage, wanted: &CoverageArgs) -> Scene {
    let title = format!("Reads held against {}", wanted.trace.display());
    match wanted.drawn {
        IoSceneKind::Places => read_positions_chart(found, &title, CoverageNames::Trace),
        IoSceneKind::Classes => read_classes_chart(found, &title, CoverageNames::Trace),
    }
}

/// The check of the analysis on itself.
fn note_coverage_checks(context: &App, found: &perflab_analyze::TraceCoverage, lost: u64) {
    let sum: u64 = found.bytes.values().sum();
    let answers = &found.answers;
    context.note(match answers.contradiction(sum) {
        0 => format!(
            "the classes sum to the {} that disks delivered, but for {} asked for before and {} under way at the end",
            Bytes(answers.completed),
            Bytes(answers.before_start),
            Bytes(answers.in_flight)
        ),
        apart => format!(
            "warning: the classes sum to {}, and disks delivered {}: {} are not accounted for ({lost} events were lost)",
            Bytes(sum),
            Bytes(answers.completed),
            Bytes(apart)
        ),
    });
}
