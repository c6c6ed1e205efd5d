//! Owns what MMTests knows of each benchmark: which rows its table has, which way it takes as good, how many decimals it
//! prints. It refuses results. Facts from the `shellpack.yaml` files at 638401e; benchmarks that are not listed are
//! shown as `Multiops`, lower being better there as in MMTests.

use perflab_stats::BetterDirection;

use crate::statistic::SampleStatistic;

/// The rows of a table, by the name that MMTests gives the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MmtestsTableKind {
    Multiops,
    Normalisedops,
    LeftSkew,
    Singleops,
}

/// What MMTests knows of one benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MmtestsReport {
    pub(super) kind: MmtestsTableKind,
    /// The direction that it takes for every metric of the benchmark; absent where it knows no such benchmark.
    pub(super) direction: Option<BetterDirection>,
    pub(super) decimals: Option<usize>,
}

use BetterDirection::{Higher, Lower};
use MmtestsTableKind::{LeftSkew, Multiops, Normalisedops, Singleops};

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
pub(super) fn is_deciding_metric(benchmark: &str, metric: &str) -> bool {
    entries_of_benchmark(DECIDING_METRICS, benchmark).any(|part| metric.contains(part))
}

/// Whether MMTests reads no such metric of the benchmark.
pub(super) fn is_unread_metric(benchmark: &str, metric: &str) -> bool {
    entries_of_benchmark(UNREAD_METRICS, benchmark).any(|part| metric.contains(part))
}

impl MmtestsReport {
    /// Whether its rows are by metric.
    pub(super) fn is_sorted_by_metric(self, benchmark: &str) -> bool {
        self.direction.is_some() && !UNSORTED_BENCHMARKS.iter().any(|name| benchmark.starts_with(name))
    }

    /// What MMTests knows of the benchmark of this name.
    pub(super) fn for_benchmark(benchmark: &str) -> Self {
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
    pub(super) fn statistics(self, better: BetterDirection) -> Vec<SampleStatistic> {
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
