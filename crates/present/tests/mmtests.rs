//! MMTests' tables: the same text as compare-mmtests.pl prints for the same values, but for its faults.

#![expect(clippy::unwrap_used, reason = "an answer that is missing fails the test")]

use std::path::Path;

use indexmap::IndexMap;
use perflab_analyze::{Comparison, Options, Side, compare, mmtests};
use perflab_model::{Case, Direction, Nanos, RunRecord, Sample, Unit, Value};
use perflab_present::table::Format;
use perflab_present::table::mmtests::{render_ratios, render_stats};

#[path = "../../analyze/tests/it/build.rs"]
#[expect(dead_code, reason = "only the manifest is wanted")]
mod build;

/// Label, direction and values of a side.
type Given<'a> = (&'a str, Direction, Vec<f64>);

fn run(id: &str, benchmark: &str, given: &[Given]) -> RunRecord {
    let mut record = build::Lab::new(id).with(|lab| lab.boot_id = id.into()).run(|_| Some(1.0));
    let plan = &mut record.manifest.plan;
    (plan.cases, plan.slots) = (Vec::new(), Vec::new());
    record.samples.clear();
    for (label, direction, values) in given {
        let (metric, point) =
            label.split_once('-').map_or((*label, None), |(metric, point)| (metric, Some(point)));
        let point = point.map(|point| ("n".to_owned(), Value::Int(point.parse().unwrap_or(0))));
        let number = u32::try_from(record.manifest.plan.cases.len()).unwrap();
        record.manifest.plan.cases.push(case(benchmark, point));
        for (at, value) in (0_u32..).zip(values) {
            let time = Nanos(u64::from(at) * 1_000);
            record.samples.push(Sample {
                target: None,
                boot: 0,
                case: number,
                iteration: at,
                metric: metric.into(),
                value: *value,
                unit: Unit::new("s"),
                direction: *direction,
                primary: true,
                start: time,
                end: time,
            });
        }
    }
    record
}

fn case(benchmark: &str, point: Option<(String, Value)>) -> Case {
    Case {
        workload: benchmark.into(),
        uses: benchmark.into(),
        point: point.into_iter().collect(),
        parameters: IndexMap::new(),
        environment: IndexMap::new(),
        levels: IndexMap::new(),
    }
}

fn compared(benchmark: &str, sides: &[(&str, Vec<Given>)]) -> Comparison {
    let side = |(name, given): &(&str, Vec<Given>)| Side {
        name: (*name).into(),
        runs: vec![run(name, benchmark, given)],
    };
    let sides: Vec<Side> = sides.iter().map(side).collect();
    compare(&sides[0], &sides[1..], &Options::default()).unwrap()
}

/// `values.json`
#[derive(serde::Deserialize)]
struct Recorded {
    sides: Vec<String>,
    benchmarks: IndexMap<String, IndexMap<String, Vec<Vec<f64>>>>,
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mmtests")
}

/// The recorded values, lined up.
fn recorded(benchmark: &str, direction: Direction) -> Comparison {
    let text = std::fs::read_to_string(folder().join("values.json")).unwrap();
    let Recorded { sides: names, benchmarks } = serde_json::from_str(&text).unwrap();
    let labels = &benchmarks[benchmark];
    let given = |side: usize| -> Vec<Given> {
        labels.iter().map(|(label, sides)| (point_last(label), direction, sides[side].clone())).collect()
    };
    compared(
        benchmark,
        &names.iter().enumerate().map(|(at, name)| (name.as_str(), given(at))).collect::<Vec<_>>(),
    )
}

/// `usecs-op` has no parameter.
fn point_last(label: &str) -> &str {
    if label == "usecs-op" { "usecs/op" } else { label }
}

/// A table without its notes, and with marks taken off: those are ours.
fn figures(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.is_empty());
    let plain = lines.map(|line| line.replace(['*', '(', ')'], "|") + "\n");
    plain.collect::<String>().replace("usecs/op", "usecs-op")
}

fn golden(name: &str) -> String {
    figures(&std::fs::read_to_string(folder().join(name)).unwrap())
}

#[test]
fn every_figure_is_that_of_compare_mmtests() {
    let benchmarks = [
        ("hackbench-thread-pipes", Direction::Lower),
        ("stream", Direction::Higher),
        ("perfpipe", Direction::Lower),
        ("tbench", Direction::Lower),
    ];
    for (benchmark, direction) in benchmarks {
        let comparison = recorded(benchmark, direction);
        let tables = mmtests::tables(&comparison, &[]);
        let plain = render_stats(&tables, false, Format::Table).unwrap();
        pretty_equal(&figures(&plain), &golden(&format!("{benchmark}.txt")));
        if benchmark == "perfpipe" {
            continue; // MMTests loses the format of the last columns where runs outnumber operations
        }
        let ratios = render_ratios(&mmtests::ratios(&comparison), Format::Table).unwrap();
        pretty_equal(&figures(&ratios), &golden(&format!("{benchmark}-ratio.txt")));
    }
}

fn pretty_equal(ours: &str, theirs: &str) {
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

/// The distances are MMTests'; whether a mean is marked is not.
#[test]
fn the_rows_of_significance_have_the_same_distances() {
    let tables = mmtests::tables(&recorded("stream", Direction::Higher), &[]);
    let ours = figures(&render_stats(&tables, true, Format::Table).unwrap());
    let without_flags = |text: &str| text.replace("1.00 |", "0.00 |");
    pretty_equal(&without_flags(&ours), &without_flags(&golden("stream-significance.txt")));
}

#[test]
fn a_star_comes_from_a_test_and_the_note_says_what_mmtests_would_mark() {
    let text =
        render_stats(&mmtests::tables(&recorded("stream", Direction::Higher), &[]), false, Format::Table);
    insta::assert_snapshot!(text.unwrap());
}

#[test]
fn what_mmtests_prints_wrongly_is_right_here_and_named() {
    use Direction::{Higher, Lower, Neither};
    let base = vec![
        ("events-1", Higher, vec![100.0, 101.0, 99.0, 100.5, 99.5]),
        ("events-2", Higher, vec![200.0, 201.0, 199.0, 200.0, 200.0]),
        ("events-4", Higher, vec![400.0, 401.0, 399.0, 400.0, 400.0]),
        ("events-8", Higher, vec![800.0, 801.0, 799.0, 800.0, 800.0]),
        ("pause-1", Lower, vec![5.0; 5]),
        ("wakeups-1", Neither, vec![7.0]),
    ];
    let new = vec![
        ("events-1", Higher, vec![110.0, 111.0, 109.0, 110.5, 109.5]),
        ("events-2", Higher, vec![220.0, 0.0, 219.0, 220.0, 220.0]),
        ("events-8", Higher, vec![0.0; 5]),
        ("pause-1", Lower, vec![5.0; 5]),
        ("wakeups-1", Neither, vec![8.0]),
    ];
    let comparison = compared("sysbenchcpu", &[("before", base), ("after", new)]);
    let stats = render_stats(&mmtests::tables(&comparison, &[]), false, Format::Table).unwrap();
    let ratios = render_ratios(&mmtests::ratios(&comparison), Format::Table).unwrap();
    insta::assert_snapshot!(format!("{stats}\n{ratios}"));
}

#[test]
fn every_iteration_of_a_single_value_report_counts() {
    let side = |values: [f64; 3]| vec![("GET_RPS-1", Direction::Higher, values.to_vec())];
    let comparison =
        compared("redis", &[("before", side([90.0, 100.0, 110.0])), ("after", side([95.0, 105.0, 115.0]))]);
    insta::assert_snapshot!(render_stats(&mmtests::tables(&comparison, &[]), false, Format::Table).unwrap());
}
