//! Owns the notes below MMTests' tables: what was left out and why, and where MMTests itself would print something
//! else. It refuses to repeat what the table says.

use indexmap::IndexMap;
use perflab_stats::BetterDirection;

use super::operation::{MmtestsBenchmark, MmtestsOperation};
use super::ratio::MmtestsRatioRow;
use super::report::MmtestsTableKind;
use super::{band, table};
use crate::comparison::Comparison;

/// Notes of the main table.
pub(super) fn table_differences(
    benchmark: &MmtestsBenchmark,
    comparison: &Comparison,
    limit: f64,
) -> Vec<String> {
    let sides: Vec<&String> = std::iter::once(&comparison.baseline).chain(&comparison.candidates).collect();
    let mut notes = vec![star_meaning(comparison, limit)];
    notes.extend(direction_difference(benchmark));
    notes.extend(undirected_metrics_difference(benchmark));
    notes.extend(unread_metrics_difference(benchmark));
    notes.extend(prepared_list_difference(benchmark));
    notes.extend(lost_packets_difference(benchmark));
    let mut folded: IndexMap<String, Vec<&str>> = IndexMap::new();
    for operation in &benchmark.operations {
        let of_sides = sides
            .iter()
            .enumerate()
            .filter_map(|(side, name)| missing_values_difference(operation, side, name));
        for reason in of_sides.chain(best_only_difference(benchmark, operation)) {
            folded.entry(reason).or_default().push(&operation.label);
        }
    }
    notes.extend(folded.into_iter().map(|(reason, labels)| format!("{}: {reason}", list_labels(&labels))));
    for operation in &benchmark.operations {
        notes.extend(
            sides.iter().enumerate().filter_map(|(side, name)| star_difference(operation, side, name, limit)),
        );
    }
    notes
}

/// As many names are listed.
const MOST_NAMES: usize = 6;

fn list_labels(labels: &[&str]) -> String {
    let first = labels.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    let more = labels.len().saturating_sub(MOST_NAMES);
    if more > 0 { format!("{first} and {more} more") } else { first }
}

fn star_meaning(comparison: &Comparison, limit: f64) -> String {
    let one_boot = comparison.rows.iter().any(|row| row.flags.contains(&crate::RowFlag::OneBoot));
    let boots = if one_boot {
        "; one boot a side: a star tells these two boots apart, the luck of a boot included"
    } else {
        ""
    };
    format!("* on the row of the mean: more than chance, q of perflab's rank test below {limit:.3}{boots}")
        .replace("0.050", "0.05")
}

/// MMTests has one direction a report.
fn direction_difference(benchmark: &MmtestsBenchmark) -> Option<String> {
    let theirs = benchmark.report.direction?;
    let wrong = |operation: &&MmtestsOperation| operation.has_direction && operation.better != theirs;
    let names: Vec<&str> = benchmark.operations.iter().filter(wrong).map(|one| one.label.as_str()).collect();
    let word = if theirs == BetterDirection::Lower { "lower" } else { "higher" };
    (!names.is_empty()).then(|| {
        format!(
            "{}: MMTests takes {word} for better in all of {}, and would print these changes with the other sign and \
             the other kind of mean",
            list_labels(&names),
            benchmark.name,
        )
    })
}

fn undirected_metrics_difference(benchmark: &MmtestsBenchmark) -> Option<String> {
    let names: Vec<&str> =
        benchmark.operations.iter().filter(|one| !one.has_direction).map(|one| one.label.as_str()).collect();
    let word = if benchmark.report.direction == Some(BetterDirection::Higher) { "higher" } else { "lower" };
    (!names.is_empty())
        .then(|| format!("{}: no better or worse is known; signs as if {word} were better", names.join(", ")))
}

/// Metrics that its table does not have.
fn unread_metrics_difference(benchmark: &MmtestsBenchmark) -> Option<String> {
    let names: Vec<&str> = benchmark.unknown.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: left out, as MMTests reads no such metric; shown without --style mmtests",
            list_labels(&names)
        )
    })
}

/// redis-benchmark fills a list before it reads it, and prints that under the name of the test that writes lists.
fn prepared_list_difference(benchmark: &MmtestsBenchmark) -> Option<String> {
    let is_prepared = |operation: &&MmtestsOperation| operation.metric.contains("-prepare-");
    let names: Vec<&str> =
        benchmark.operations.iter().filter(is_prepared).map(|one| one.label.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: what another test needed; MMTests pools it with the test of that name",
            list_labels(&names)
        )
    })
}

/// Its reader of netperf's UDP logs ends at the first loss.
fn lost_packets_difference(benchmark: &MmtestsBenchmark) -> Option<String> {
    let is_received = |operation: &MmtestsOperation| operation.metric == "udpstream-recv";
    benchmark.operations.iter().any(is_received).then(|| {
        "udpstream: MMTests prints what was sent for what was received and for what was lost, and of an iteration that \
         lost more than a tenth nothing further"
            .into()
    })
}

/// What a side lacks.
fn missing_values_difference(operation: &MmtestsOperation, side: usize, name: &str) -> Option<String> {
    let values = operation.sides.get(side)?;
    let failed = operation.failed.get(side).copied().unwrap_or(0);
    if values.is_empty() {
        return Some(format!("{name} has no value; MMTests would print 0.00 (0.00%) and a ratio of 1.00"));
    }
    let zeros = values.iter().filter(|value| **value <= 0.0).count();
    if zeros > 0 && operation.better == BetterDirection::Higher {
        let text = "MMTests would drop the whole column, or take the loss for no change";
        return Some(format!(
            "{name} has {zeros} of {} values that are not above zero, so no harmonic mean and no ratio; {text}",
            values.len()
        ));
    }
    if zeros > 0 && side == 0 {
        return Some(format!(
            "{name} has {zeros} of {} values that are not above zero, from which no change is told; MMTests would \
             print -99.00% for a zero",
            values.len()
        ));
    }
    if values.len() == 1 {
        return Some(format!(
            "{name} has one value, so no deviation and no star; MMTests would print a Stddev of 0"
        ));
    }
    (failed > 0).then(|| format!("{name} lost {failed} iterations that failed; MMTests would not say so"))
}

/// Where MMTests' band rule marks something else than the test.
fn star_difference(operation: &MmtestsOperation, side: usize, name: &str, limit: f64) -> Option<String> {
    let distance = if side == 0 { None } else { band::band_distance(operation, side) };
    let (ours, theirs) = (table::has_star(operation, side, limit), distance?.abs() > 1.0);
    let n = operation.sides.get(side)?.len();
    let label = &operation.label;
    match (ours, theirs) {
        (true, false) => Some(format!(
            "{label} ({name}): MMTests would not mark it: its bands of ± 1.96 standard deviations touch ({:+.2}s), however \
             many samples there are",
            distance?,
        )),
        (false, true) => Some(format!(
            "{label} ({name}): MMTests would mark it ({:+.2}s); {n} values do not suffice",
            distance?,
        )),
        _ => None,
    }
}

/// A report of single values shows the best iteration and drops the others.
fn best_only_difference(benchmark: &MmtestsBenchmark, operation: &MmtestsOperation) -> Option<String> {
    let most = operation.sides.iter().map(Vec::len).max()?;
    (benchmark.report.kind == MmtestsTableKind::Singleops && most > 1).then(|| {
        format!("the mean of {most} values; MMTests would print one of them, the first in its order")
    })
}

/// Notes of the ratio table.
pub(super) fn ratio_differences(
    benchmark: &MmtestsBenchmark,
    main: BetterDirection,
    rows: &[MmtestsRatioRow],
    sides: &[String],
) -> Vec<String> {
    let turned: Vec<&str> = benchmark
        .operations
        .iter()
        .filter(|operation| operation.better != main)
        .map(|operation| operation.label.as_str())
        .collect();
    let mut notes: Vec<String> = Vec::new();
    if !turned.is_empty() {
        let list = turned.join(", ");
        notes.push(format!(
            "{list}: turned round (baseline / candidate), so that all ratios mean the same; MMTests would not"
        ));
    }
    for (side, name) in sides.iter().enumerate() {
        notes.extend(ratio_members_difference(rows, side, name));
    }
    notes
}

/// Operations that the geometric mean of a side lacks.
fn ratio_members_difference(rows: &[MmtestsRatioRow], side: usize, name: &str) -> Option<String> {
    let is_there = |row: &&MmtestsRatioRow| row.cells.get(side).is_some_and(Option::is_some);
    let missing: Vec<&str> =
        rows.iter().filter(|row| !is_there(row)).map(|row| row.operation.as_str()).collect();
    let members = rows.len() - missing.len();
    (side > 0 && !missing.is_empty()).then(|| {
        format!(
            "{name}: Gmean over {members} of {} operations, without {} (no value, or none above zero); MMTests would count \
             each of them as 1.00",
            rows.len(),
            missing.join(", "),
        )
    })
}
