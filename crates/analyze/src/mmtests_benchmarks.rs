//! What MMTests knows of each benchmark, and a comparison's rows gathered into its operations.
//!
//! For each benchmark: which rows its table has, which direction is good, how many decimals it prints. Facts from the
//! `shellpack.yaml` files at 638401e; benchmarks that are not listed are shown as `Multiops`, lower being better there
//! as in MMTests.

use BetterDirection::{Higher, Lower};
use MmtestsTableKind::{LeftSkew, Multiops, Normalisedops, Singleops};
use indexmap::IndexMap;
use perflab_model::Direction;
use perflab_stats::BetterDirection;

use crate::compare::comparison::{Comparison, SideSummary, VerdictRow};
use crate::statistic::SampleStatistic;

/// The workload under which imports keep durations; its parameter `of` names the benchmark.
pub(crate) const DURATION_WORKLOAD: &str = "duration";

/// The rows of a table, by the name that MMTests gives the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MmtestsTableKind {
    Multiops,
    Normalisedops,
    LeftSkew,
    Singleops,
}

/// What MMTests knows of one benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MmtestsReport {
    pub(crate) kind: MmtestsTableKind,
    /// The direction that it takes for every metric of the benchmark; absent where it knows no such benchmark.
    pub(crate) direction: Option<BetterDirection>,
    pub(crate) decimals: Option<usize>,
}

/// Beginning of the benchmark's name, kind, direction, decimals; the longest beginning decides.
#[rustfmt::skip]
const REPORTS: &[(&str, MmtestsTableKind, BetterDirection, usize)] = &[
    ("aim9", Multiops, Higher, 2), ("apachebench", Multiops, Lower, 2), ("autonumabench", Multiops, Lower, 2),
    ("blogbench", Multiops, Higher, 2), ("bonnie", Multiops, Lower, 4), ("coremark", Multiops, Higher, 2),
    ("cyclictest", Multiops, Lower, 2), ("dbench", LeftSkew, Lower, 4), ("easywave", Multiops, Lower, 2),
    ("ebizzy", Multiops, Higher, 2), ("fio", Multiops, Higher, 6), ("fsmark", Multiops, Higher, 2),
    ("futexbench", Multiops, Lower, 2), ("gitcheckout", Multiops, Lower, 2), ("gitsource", Multiops, Lower, 2),
    ("hackbench", Multiops, Lower, 4), ("io_uring", Multiops, Higher, 2), ("iperf3", Multiops, Higher, 2),
    ("kernbench", Multiops, Lower, 2), ("kvmstart", Multiops, Lower, 2), ("libmicro", Singleops, Lower, 5),
    ("ltp", Singleops, Lower, 2), ("nas", Multiops, Lower, 2), ("netperf", Multiops, Higher, 2),
    ("pedsort", Multiops, Lower, 2), ("perffutexwake", Multiops, Lower, 2), ("perfnuma", Multiops, Lower, 4),
    ("perfpipe", Normalisedops, Lower, 4), ("perfsyscall", Multiops, Lower, 4), ("pgbench", Multiops, Higher, 2),
    ("pistress", Singleops, Lower, 2), ("pmqtest", Multiops, Lower, 2), ("poundsyscall", Multiops, Lower, 2),
    ("redis", Singleops, Lower, 2), ("redis-memtier", Multiops, Lower, 2), ("rtmigration", Multiops, Lower, 2),
    ("saladfork", Multiops, Lower, 2), ("schbench", Normalisedops, Lower, 2), ("sembench", Multiops, Higher, 2),
    ("siege", Multiops, Higher, 2), ("simoop", Multiops, Lower, 2), ("specjbb", Singleops, Higher, 2),
    ("sqlite", Multiops, Higher, 2), ("sstartup", Multiops, Lower, 2), ("stockfish", Multiops, Lower, 2),
    ("stream", Multiops, Higher, 2), ("stressng", Multiops, Lower, 2), ("stutterp", Multiops, Lower, 4),
    ("sysbench", Multiops, Higher, 2), ("sysbenchcpu", Multiops, Lower, 2), ("sysbenchmutex", Multiops, Lower, 2),
    ("sysjitter", Singleops, Lower, 2), ("tbench", LeftSkew, Lower, 4), ("thpchallenge", Multiops, Lower, 2),
    ("time_unmap", Multiops, Lower, 2), ("trunc", Multiops, Lower, 4), ("unixbenchd", Multiops, Higher, 2),
    ("usemem", Multiops, Lower, 2), ("wis", Multiops, Higher, 2), ("xfsrepair", Multiops, Lower, 2),
    ("xfstests", Singleops, Lower, 2), ("xsbench", Multiops, Higher, 2),
];

/// Endings that imports give to what MMTests prints on demand only (`-a exectime`, `-a latency`): beginning, ending,
/// decimals. Lower is better in all of them.
const ON_DEMAND: &[(&str, &str, usize)] = &[("", "-time", 2), ("fio", "-latency", 4)];

/// What the geometric mean of ratios is over, where its parsers say so: the benchmark's beginning, what the metric holds.
const DECIDING_METRICS: &[(&str, &str)] =
    &[("dbench", "loadfile"), ("tbench", "loadfile"), ("redis-memtier", "ops/sec"), ("redis", "-RPS")];

/// Metrics that perflab reads and MMTests does not: the benchmark's beginning, what the metric holds.
const UNREAD_METRICS: &[(&str, &str)] = &[
    ("sysbenchmutex", "events/sec"),
    ("sysbenchcpu", "latency"),
    ("sysbench", "events/sec"),
    ("sysbench", "latency"),
    ("redis", "-lat50"),
];

/// Benchmarks whose rows MMTests leaves in the order of the logs; those of others are by metric.
const UNSORTED_BENCHMARKS: [&str; 2] = ["netperf", "stream"];

/// The longest of these beginnings that a benchmark's name has: that one decides.
fn longest_prefix<'a>(beginnings: impl Iterator<Item = &'a str>, benchmark: &str) -> Option<&'a str> {
    beginnings.filter(|beginning| benchmark.starts_with(beginning)).max_by_key(|beginning| beginning.len())
}

fn entries_of_benchmark<'a>(
    table: &'a [(&'a str, &'a str)],
    benchmark: &str,
) -> impl Iterator<Item = &'a str> {
    let longest = longest_prefix(table.iter().map(|(name, _)| *name), benchmark);
    table.iter().filter(move |(name, _)| Some(*name) == longest).map(|(_, metric)| *metric)
}

/// Whether MMTests' ratios are over this metric, where they are not over all.
pub(crate) fn is_deciding_metric(benchmark: &str, metric: &str) -> bool {
    entries_of_benchmark(DECIDING_METRICS, benchmark).any(|part| metric.contains(part))
}

/// Whether MMTests reads no such metric of the benchmark.
pub(crate) fn is_unread_metric(benchmark: &str, metric: &str) -> bool {
    entries_of_benchmark(UNREAD_METRICS, benchmark).any(|part| metric.contains(part))
}

impl MmtestsReport {
    /// Whether its rows are by metric.
    fn is_sorted_by_metric(self, benchmark: &str) -> bool {
        self.direction.is_some() && !UNSORTED_BENCHMARKS.iter().any(|name| benchmark.starts_with(name))
    }

    /// What MMTests knows of the benchmark of this name.
    pub(crate) fn for_benchmark(benchmark: &str) -> Self {
        let on_demand =
            |(begin, end, _): &&(&str, &str, usize)| benchmark.starts_with(begin) && benchmark.ends_with(end);
        if let Some((.., decimals)) = ON_DEMAND.iter().find(on_demand) {
            return MmtestsReport { kind: Multiops, direction: Some(Lower), decimals: Some(*decimals) };
        }
        let longest = longest_prefix(REPORTS.iter().map(|(name, ..)| *name), benchmark);
        match REPORTS.iter().find(|(name, ..)| Some(*name) == longest) {
            Some((_, kind, direction, decimals)) => {
                MmtestsReport { kind: *kind, direction: Some(*direction), decimals: Some(*decimals) }
            }
            None => MmtestsReport { kind: Multiops, direction: None, decimals: None },
        }
    }
}

impl MmtestsTableKind {
    /// The statistics of its rows, in order, for a metric of this direction.
    pub(crate) fn statistics(self, better: BetterDirection) -> Vec<SampleStatistic> {
        use SampleStatistic::{Best, BestPercentile, Max, Min};
        let [mean, sd, variation] = moment_statistics(better);
        match self {
            Multiops => vec![Min, mean, sd, variation, Max, Best(95.0)],
            Normalisedops => vec![Min, mean, Best(95.0), BestPercentile(95.0), sd, variation, Max],
            LeftSkew => {
                let best = [50.0, 75.0, 90.0, 99.0].map(|percent| [Best(percent), BestPercentile(percent)]);
                [Min, mean]
                    .into_iter()
                    .chain(best.into_iter().flatten())
                    .chain([sd, variation, Max])
                    .collect()
            }
            Singleops => vec![mean],
        }
    }
}

/// Mean, standard deviation and variation: harmonic for rates, arithmetic for times.
fn moment_statistics(better: BetterDirection) -> [SampleStatistic; 3] {
    use SampleStatistic::{Harmonic, HarmonicSd, HarmonicVariation, Mean, Sd, Variation};
    match better {
        Lower => [Mean, Sd, Variation],
        Higher => [Harmonic, HarmonicSd, HarmonicVariation],
    }
}

/// One metric at one point of a benchmark, on every side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MmtestsOperation {
    /// `time-4`: the metric, then the matrix parameters.
    pub(crate) label: String,
    pub(crate) metric: String,
    unit: String,
    /// The metric's own direction; MMTests' where the metric has none.
    pub(crate) better: BetterDirection,
    pub(crate) has_direction: bool,
    /// Values of the baseline, then of each candidate; empty where a side has none.
    pub(crate) sides: Vec<Vec<f64>>,
    /// The q of each side's change from the baseline (the first has none).
    pub(crate) q: Vec<Option<f64>>,
    /// Failed iterations of each side.
    pub(crate) failed: Vec<usize>,
}

/// A benchmark's operations in the order of the rows.
#[derive(Debug)]
pub(crate) struct MmtestsBenchmark {
    pub(crate) name: String,
    pub(crate) report: MmtestsReport,
    pub(crate) operations: Vec<MmtestsOperation>,
    /// Labels of what perflab read and MMTests does not read.
    pub(crate) unknown: Vec<String>,
}

/// All benchmarks of a comparison.
pub(crate) fn mmtests_benchmarks(comparison: &Comparison) -> Vec<MmtestsBenchmark> {
    // Values of different units are never of one operation.
    let mut found: IndexMap<&str, IndexMap<(String, &str), MmtestsOperation>> = IndexMap::new();
    for row in comparison.rows.iter().filter(|row| row.workload != DURATION_WORKLOAD) {
        let report = MmtestsReport::for_benchmark(&row.workload);
        let operations = found.entry(row.workload.as_str()).or_default();
        let label = operation_label(row);
        let operation = operations
            .entry((label.clone(), row.unit.0.as_ref()))
            .or_insert_with(|| empty_operation(label, row, report, comparison));
        operation.add_row(row, comparison);
    }
    found.into_iter().map(|(name, operations)| mmtests_benchmark(name, operations.into_values())).collect()
}

/// The rows that MMTests has, in its order; what it does not read stays only where there is nothing else.
fn mmtests_benchmark(name: &str, operations: impl Iterator<Item = MmtestsOperation>) -> MmtestsBenchmark {
    let report = MmtestsReport::for_benchmark(name);
    let (unknown, mut known): (Vec<_>, Vec<_>) =
        operations.partition(|operation| is_unread_metric(name, &operation.metric));
    if known.is_empty() {
        return MmtestsBenchmark { name: name.into(), report, operations: unknown, unknown: Vec::new() };
    }
    if report.is_sorted_by_metric(name) {
        known.sort_by(|a, b| a.metric.cmp(&b.metric));
    }
    append_units(&mut known);
    let unknown = unknown.into_iter().map(|operation| operation.label).collect();
    MmtestsBenchmark { name: name.into(), report, operations: known, unknown }
}

/// Operations of one label that differ in their units say them.
fn append_units(operations: &mut [MmtestsOperation]) {
    let mut labels: IndexMap<String, usize> = IndexMap::new();
    operations.iter().for_each(|operation| *labels.entry(operation.label.clone()).or_default() += 1);
    for operation in operations.iter_mut().filter(|operation| labels.get(&operation.label) > Some(&1)) {
        operation.label = format!("{} [{}]", operation.label, operation.unit);
    }
}

fn operation_label(row: &VerdictRow) -> String {
    row.point.values().fold(row.metric.clone(), |label, value| format!("{label}-{value}"))
}

fn empty_operation(
    label: String,
    row: &VerdictRow,
    report: MmtestsReport,
    comparison: &Comparison,
) -> MmtestsOperation {
    let sides = comparison.candidates.len() + 1;
    let (better, has_direction) = match row.direction {
        Direction::Higher => (BetterDirection::Higher, true),
        Direction::Lower => (BetterDirection::Lower, true),
        Direction::Neither => (report.direction.unwrap_or(BetterDirection::Lower), false),
    };
    let (values, q, failed) = (vec![Vec::new(); sides], vec![None; sides], vec![0; sides]);
    let (metric, unit) = (row.metric.clone(), row.unit.to_string());
    MmtestsOperation { label, metric, unit, better, has_direction, sides: values, q, failed }
}

impl MmtestsOperation {
    fn add_row(&mut self, row: &VerdictRow, comparison: &Comparison) {
        let at =
            comparison.candidates.iter().position(|name| *name == row.candidate_name).map_or(0, |i| i + 1);
        self.fill_side(0, row.baseline.as_ref());
        self.fill_side(at, row.candidate.as_ref());
        if let Some(q) = self.q.get_mut(at) {
            *q = row.q;
        }
    }

    fn fill_side(&mut self, side: usize, summary: Option<&SideSummary>) {
        let Some(summary) = summary else { return };
        if let (Some(values), Some(failed)) = (self.sides.get_mut(side), self.failed.get_mut(side)) {
            *values = summary.values.iter().map(|point| point.value).collect();
            *failed = summary.failed;
        }
    }
}

/// Quantile of the normal distribution at 97.5 %.
const Z: f64 = 1.959_963_984_540_054;

/// Whether a side differs from the baseline by more than chance.
pub(crate) fn has_star(operation: &MmtestsOperation, side: usize, limit: f64) -> bool {
    operation.q.get(side).copied().flatten().is_some_and(|q| q < limit)
}

/// The difference of a side to the baseline in sums of both half-bands: MMTests' `s`, and a star beyond ± 1. Absent
/// where a band is not known or both have no width.
pub(crate) fn band_distance(operation: &MmtestsOperation, side: usize) -> Option<f64> {
    let of = |side: usize| band_moments(operation.sides.get(side)?, operation.better);
    let ((base, base_sd), (new, new_sd)) = (of(0)?, of(side)?);
    let width = Z * (base_sd + new_sd);
    // Rounding leaves constant values a width that is none.
    let is_wide = width > 1e-12 * base.abs().max(new.abs());
    is_wide.then(|| (new - base) / width)
}

/// The mean of MMTests and its standard deviation.
fn band_moments(values: &[f64], better: BetterDirection) -> Option<(f64, f64)> {
    let (mean, sd) = match better {
        BetterDirection::Lower => (SampleStatistic::Mean, SampleStatistic::Sd),
        BetterDirection::Higher => (SampleStatistic::Harmonic, SampleStatistic::HarmonicSd),
    };
    Some((mean.compute(values, better).ok()?, sd.compute(values, better).ok()?))
}
