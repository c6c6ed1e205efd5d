//! Benchmarks of MMTests' public corpus: each value is what MMTests itself prints for the same log.

use std::collections::BTreeMap;
use std::fs;

use perflab_model::{Case, Direction, RunRecord};

use super::bench::ImportTestArchive;
use super::mmtests::{read_record, recorded_mmtests};

/// Values by benchmark and operation.
type OperationValues = BTreeMap<(String, String), Vec<f64>>;

fn read_peer_values() -> OperationValues {
    let text = fs::read_to_string(recorded_mmtests("corpus").join("peer.tsv")).unwrap();
    let mut found = OperationValues::new();
    for line in text.lines() {
        let [bench, operation, value] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let value: f64 = value.parse().unwrap();
        // What is missing is -1 and 0 there.
        let is_missing = bench.starts_with("bonnie") && value < 0.0;
        if !is_missing {
            let operation = match bench.starts_with("bonnie") {
                true => {
                    operation.replace("Char", "char").replace("Block", "block").replace("Rewrite", "rewrite")
                }
                false => operation.to_owned(),
            };
            found.entry((bench.to_owned(), operation)).or_default().push(value);
        }
    }
    found
}

/// What MMTests calls it.
fn peer_operation(case: &Case, metric: &str) -> String {
    let at = |name: &str| case.point[name].to_string();
    match case.workload.as_str() {
        "pft" | "schbench" | "thpscale" | "usemem" => format!("{metric}-{}", at("threads")),
        "reaim" => format!("{}-{}", at("workfile"), at("users")),
        "sockperf-tcp-throughput" => at("size"),
        "sockperf-tcp-under-load" => format!("size-{}-rate-{}", at("size"), at("rate")),
        "unixbench-pipe" | "unixbench-fsbuffer" => format!("{metric}-{}-{}", at("workload"), at("threads")),
        "xfsio" => format!("{}-{metric}", at("testcase")),
        _ => metric.to_owned(),
    }
}

fn our_values(record: &RunRecord) -> OperationValues {
    let mut found = OperationValues::new();
    for sample in &record.samples {
        let case = record.manifest.plan.case(sample.case).unwrap();
        let operation = peer_operation(case, &sample.metric);
        found.entry((case.workload.clone(), operation)).or_default().push(sample.value);
    }
    found
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[test]
fn thirteen_benchmarks_have_the_values_that_mmtests_prints() {
    let bench = ImportTestArchive::new();
    let record = read_record(&bench.import(&recorded_mmtests("corpus")));
    let (ours, peers) = (our_values(&record), read_peer_values());
    for ((benchmark, operation), values) in &peers {
        let own = ours.get(&(benchmark.clone(), operation.clone()));
        let own = sorted(own.unwrap_or_else(|| panic!("{benchmark} {operation} is not read")));
        let is_same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
        let values = sorted(values);
        assert_eq!(own.len(), values.len(), "{benchmark} {operation}");
        assert!(own.iter().zip(&values).all(is_same), "{benchmark} {operation}: {own:?}, {values:?}");
    }
    let benchmarks: std::collections::BTreeSet<&str> = peers.keys().map(|(name, _)| name.as_str()).collect();
    assert_eq!(benchmarks.len(), 17);
}

/// Each metric has a unit and a direction of its own, and what decides is primary.
#[test]
fn rates_and_times_of_the_corpus_have_their_directions() {
    let bench = ImportTestArchive::new();
    let record = read_record(&bench.import(&recorded_mmtests("corpus")));
    let of = |workload: &str, metric: &str| {
        let found = record.samples.iter().find(|sample| {
            let case = record.manifest.plan.case(sample.case).unwrap();
            case.workload == workload && sample.metric == metric
        });
        found.map(|sample| (sample.unit.0.to_string(), sample.direction, sample.primary)).unwrap()
    };
    let (higher, lower) = (Direction::Higher, Direction::Lower);
    assert_eq!(of("schbench", "RPS-50.0th"), ("requests/s".into(), higher, true));
    assert_eq!(of("schbench", "Wakeup-99.9th"), ("us".into(), lower, false));
    assert_eq!(of("thpscale", "huge"), ("%".into(), higher, true));
    assert_eq!(of("unixbench-fsbuffer", "unixbench"), ("KiB/s".into(), higher, true));
    assert_eq!(of("usemem", "Elapsed"), ("s".into(), lower, true));
    assert_eq!(of("bonnie", "latency-SeqOut:block"), ("us".into(), lower, true));
    assert_eq!(of("bonnie", "SeqIn block"), ("KiB/s".into(), higher, true));
    assert_eq!(of("aim9", "disk_cp"), ("ops/s".into(), higher, true));
    let workloads: Vec<&str> = record.manifest.plan.cases.iter().map(|case| case.workload.as_str()).collect();
    assert!(!workloads.contains(&"usemem-time"), "the times of usemem are its results");
    let fs_read = record.samples.iter().filter(|sample| {
        let case = record.manifest.plan.case(sample.case).unwrap();
        case.point.get("workload").is_some_and(|name| name.to_string() == "fsbuffer-r")
    });
    assert_eq!(fs_read.count(), 2, "a program without an index has a result, too");
}
