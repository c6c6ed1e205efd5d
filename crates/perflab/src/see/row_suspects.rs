//! What goes with the changes of a comparison, a line beneath each of the rows that changed most.

use std::fs;

use perflab_analyze::why::{explain_row, find_first_suspect};
use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, VerdictBasis, VerdictRow};
use perflab_archive::RunDir;

use crate::see::recorded_sides::RecordedSides;

/// So many rows are explained.
const MOST_ROWS: usize = 3;

/// Runs with more on disk, together, are not read again for a line.
const MOST_BYTES: u64 = 8 << 20;

/// Nor are more runs, or runs of more iterations.
const MOST_RUNS: usize = 8;
const MOST_ITERATIONS: usize = 1_000;

/// Adds the first suspect to the rows that changed most. Of runs that would take long to read, or of which something cannot be read,
/// nothing is added: `perflab why` reads any, and says what it left out.
pub fn add_row_suspects(
    comparison: &mut Comparison,
    sides: &[ComparisonSide],
    runs: &[RunDir],
    options: &AnalysisOptions,
) {
    let chosen: Vec<VerdictRow> = changed_rows(comparison).into_iter().take(MOST_ROWS).cloned().collect();
    let iterations: usize =
        sides.iter().flat_map(|side| &side.runs).map(|run| run.manifest.plan.slots.len()).sum();
    let is_small = runs.len() <= MOST_RUNS
        && iterations <= MOST_ITERATIONS
        && runs.iter().map(size_of_run).sum::<u64>() <= MOST_BYTES;
    if chosen.is_empty() || !is_small {
        return;
    }
    let Ok(recorded) = RecordedSides::read(sides, runs) else { return };
    for row in chosen {
        // A row that cannot be explained has no line.
        let found = explain_row(comparison, &row, &recorded.sides, options, &recorded.monitors).ok();
        let suspect = found.as_ref().and_then(find_first_suspect);
        let is_it = |one: &&mut VerdictRow| {
            (&one.subject, &one.metric, &one.candidate_name)
                == (&row.subject, &row.metric, &row.candidate_name)
        };
        comparison.rows.iter_mut().find(is_it).into_iter().for_each(|one| one.suspect.clone_from(&suspect));
    }
}

/// Bytes of the tables that would be read.
fn size_of_run(run: &RunDir) -> u64 {
    let folders = [run.path().to_owned(), run.path().join("series"), run.path().join("edges")];
    let entries = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}

/// The rows that changed, the largest change first; those that decide, or that were named.
pub(super) fn changed_rows(comparison: &Comparison) -> Vec<&VerdictRow> {
    // Where all iterations of a side failed, there is no change, but a verdict.
    let is_changed = |row: &&VerdictRow| {
        matches!(row.verdict_word(), "better" | "worse" | "changed" | "differs")
            && (row.change.is_some() || row.basis == VerdictBasis::Failures)
    };
    let mut rows: Vec<&VerdictRow> = comparison.deciding_rows().into_iter().filter(is_changed).collect();
    let size = |row: &VerdictRow| {
        row.relative_change().map_or(if row.change.is_none() { f64::INFINITY } else { 0.0 }, f64::abs)
    };
    rows.sort_by(|one, other| size(other).total_cmp(&size(one)));
    rows
}
