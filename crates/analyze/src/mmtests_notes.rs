//! Where MMTests' own tables would say something else, as values: whoever shows a table has the sentences.

use indexmap::IndexMap;
use perflab_model::Direction;
use perflab_stats::BetterDirection;

use crate::compare::comparison::Comparison;
use crate::compare::diagnostic::RowFlag;
use crate::mmtests_benchmarks::{
    MmtestsBenchmark, MmtestsOperation, MmtestsTableKind, band_distance, has_star,
};

/// What was left out of a table, and what MMTests itself would print.
#[derive(Debug, Clone, PartialEq)]
pub enum MmtestsNote {
    /// What a star on the row of the mean stands for.
    StarMeaning {
        /// q is below this.
        limit: f64,
        /// There is one boot a side.
        one_boot: bool,
    },
    /// MMTests has one direction a report, and these operations the other one.
    OtherDirection {
        /// The operations.
        operations: Vec<String>,
        /// Which way is better to MMTests.
        theirs: Direction,
        /// The benchmark.
        benchmark: String,
    },
    /// Operations without a known direction.
    NoDirection {
        /// The operations.
        operations: Vec<String>,
        /// Their changes have signs as if this were better.
        signs: Direction,
    },
    /// Metrics that its table does not have.
    UnreadMetrics {
        /// The metrics.
        metrics: Vec<String>,
    },
    /// redis-benchmark fills a list before it reads it, and prints that under the name of the test that writes lists.
    PreparedLists {
        /// The operations.
        operations: Vec<String>,
    },
    /// Its reader of netperf's UDP logs ends at the first loss.
    LostPackets,
    /// What operations lack, for one reason.
    Omission {
        /// The operations.
        operations: Vec<String>,
        /// The reason.
        reason: MmtestsOmission,
    },
    /// A star of ours that MMTests' rule of bands would not set.
    OwnStar {
        /// The operation.
        operation: String,
        /// Name of the side.
        side: String,
        /// Distance of the bands, in half-bands.
        distance: f64,
    },
    /// A star that MMTests' rule of bands would set, and ours does not.
    TheirStar {
        /// The operation.
        operation: String,
        /// Name of the side.
        side: String,
        /// Distance of the bands, in half-bands.
        distance: f64,
        /// Values of the side.
        values: usize,
    },
    /// Ratios of operations of the other direction are turned round.
    TurnedRatios {
        /// The operations.
        operations: Vec<String>,
    },
    /// Operations that the geometric mean of a side lacks.
    GeomeanWithout {
        /// Name of the side.
        side: String,
        /// Operations that it has.
        members: usize,
        /// Operations that there are.
        operations: usize,
        /// Those that it lacks.
        missing: Vec<String>,
    },
    /// A duration is the mean of several iterations.
    MeanDuration {
        /// How many.
        iterations: usize,
    },
    /// The table of the tool vmstat.
    VmstatToolTable,
    /// The table of the tool iostat.
    IostatTable,
    /// The table of the tool mpstat.
    MpstatTable,
    /// The table of `perf stat` over time.
    PerfTimeStatTable,
    /// The table of /proc/vmstat.
    VmstatTable,
}

/// Why an operation lacks a value, a deviation or iterations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MmtestsOmission {
    /// A side has no value.
    NoValue {
        /// Name of the side.
        side: String,
    },
    /// Values that are not above zero have no harmonic mean.
    NoHarmonicMean {
        /// Name of the side.
        side: String,
        /// So many are not above zero.
        zeros: usize,
        /// Of so many.
        values: usize,
    },
    /// From a baseline that is not above zero there is no change.
    NoChange {
        /// Name of the side.
        side: String,
        /// So many values are not above zero.
        zeros: usize,
        /// Of so many.
        values: usize,
    },
    /// One value has no deviation.
    OneValue {
        /// Name of the side.
        side: String,
    },
    /// Iterations failed.
    FailedIterations {
        /// Name of the side.
        side: String,
        /// How many.
        failed: usize,
    },
    /// A report of single values shows the first in its order and drops the others.
    BestOnly {
        /// Values that there are.
        values: usize,
    },
}

/// Notes of the main table.
pub(crate) fn table_differences(
    benchmark: &MmtestsBenchmark,
    comparison: &Comparison,
    limit: f64,
) -> Vec<MmtestsNote> {
    let sides: Vec<&String> = std::iter::once(&comparison.baseline).chain(&comparison.candidates).collect();
    let one_boot = comparison.rows.iter().any(|row| row.flags.contains(&RowFlag::OneBoot));
    let mut notes = vec![MmtestsNote::StarMeaning { limit, one_boot }];
    notes.extend(direction_difference(benchmark));
    notes.extend(undirected_metrics_difference(benchmark));
    let unread: Vec<String> = benchmark.unknown.iter().map(ToString::to_string).collect();
    notes.extend((!unread.is_empty()).then_some(MmtestsNote::UnreadMetrics { metrics: unread }));
    let prepared = operation_labels(benchmark, |operation| operation.metric.contains("-prepare-"));
    notes.extend((!prepared.is_empty()).then_some(MmtestsNote::PreparedLists { operations: prepared }));
    let received = benchmark.operations.iter().any(|operation| operation.metric == "udpstream-recv");
    notes.extend(received.then_some(MmtestsNote::LostPackets));
    let mut folded: IndexMap<MmtestsOmission, Vec<String>> = IndexMap::new();
    for operation in &benchmark.operations {
        let of_sides =
            sides.iter().enumerate().filter_map(|(side, name)| side_omission(operation, side, name));
        for reason in of_sides.chain(best_only_omission(benchmark, operation)) {
            folded.entry(reason).or_default().push(operation.label.clone());
        }
    }
    notes.extend(folded.into_iter().map(|(reason, operations)| MmtestsNote::Omission { operations, reason }));
    for operation in &benchmark.operations {
        notes.extend(
            sides.iter().enumerate().filter_map(|(side, name)| star_difference(operation, side, name, limit)),
        );
    }
    notes
}

pub(crate) fn operation_labels(
    benchmark: &MmtestsBenchmark,
    is_meant: impl Fn(&MmtestsOperation) -> bool,
) -> Vec<String> {
    benchmark.operations.iter().filter(|one| is_meant(one)).map(|one| one.label.clone()).collect()
}

fn metric_direction(better: BetterDirection) -> Direction {
    match better {
        BetterDirection::Lower => Direction::Lower,
        BetterDirection::Higher => Direction::Higher,
    }
}

fn direction_difference(benchmark: &MmtestsBenchmark) -> Option<MmtestsNote> {
    let theirs = benchmark.report.direction?;
    let operations = operation_labels(benchmark, |one| one.has_direction && one.better != theirs);
    let (benchmark, theirs) = (benchmark.name.clone(), metric_direction(theirs));
    (!operations.is_empty()).then_some(MmtestsNote::OtherDirection { operations, theirs, benchmark })
}

fn undirected_metrics_difference(benchmark: &MmtestsBenchmark) -> Option<MmtestsNote> {
    let operations = operation_labels(benchmark, |one| !one.has_direction);
    let signs = metric_direction(benchmark.report.direction.unwrap_or(BetterDirection::Lower));
    (!operations.is_empty()).then_some(MmtestsNote::NoDirection { operations, signs })
}

/// What a side lacks.
fn side_omission(operation: &MmtestsOperation, side: usize, name: &str) -> Option<MmtestsOmission> {
    let values = operation.sides.get(side)?;
    let failed = operation.failed.get(side).copied().unwrap_or(0);
    let (is_baseline, side) = (side == 0, name.to_owned());
    let zeros = values.iter().filter(|value| **value <= 0.0).count();
    match values.len() {
        0 => Some(MmtestsOmission::NoValue { side }),
        values if zeros > 0 && operation.better == BetterDirection::Higher => {
            Some(MmtestsOmission::NoHarmonicMean { side, zeros, values })
        }
        values if zeros > 0 && is_baseline => Some(MmtestsOmission::NoChange { side, zeros, values }),
        1 => Some(MmtestsOmission::OneValue { side }),
        _ => (failed > 0).then_some(MmtestsOmission::FailedIterations { side, failed }),
    }
}

/// A report of single values shows the best iteration and drops the others.
fn best_only_omission(benchmark: &MmtestsBenchmark, operation: &MmtestsOperation) -> Option<MmtestsOmission> {
    let values = operation.sides.iter().map(Vec::len).max()?;
    (benchmark.report.kind == MmtestsTableKind::Singleops && values > 1)
        .then_some(MmtestsOmission::BestOnly { values })
}

/// Where MMTests' band rule marks something else than the test.
fn star_difference(operation: &MmtestsOperation, side: usize, name: &str, limit: f64) -> Option<MmtestsNote> {
    let distance = if side == 0 { None } else { band_distance(operation, side) }?;
    let (ours, theirs) = (has_star(operation, side, limit), distance.abs() > 1.0);
    let values = operation.sides.get(side)?.len();
    let (operation, side) = (operation.label.clone(), name.to_owned());
    match (ours, theirs) {
        (true, false) => Some(MmtestsNote::OwnStar { operation, side, distance }),
        (false, true) => Some(MmtestsNote::TheirStar { operation, side, distance, values }),
        _ => None,
    }
}

/// Where MMTests' own table of a monitor differs.
pub(crate) fn monitor_table_difference(monitor: &str) -> Option<MmtestsNote> {
    Some(match monitor {
        "vmstat-tool" => MmtestsNote::VmstatToolTable,
        "iostat" => MmtestsNote::IostatTable,
        "mpstat" => MmtestsNote::MpstatTable,
        "perf-time-stat" => MmtestsNote::PerfTimeStatTable,
        "vmstat" => MmtestsNote::VmstatTable,
        _ => return None,
    })
}
