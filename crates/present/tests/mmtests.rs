//! MMTests' tables: the same text as compare-mmtests.pl prints for the same values, but for its faults.

#![expect(clippy::unwrap_used, reason = "an answer that is missing fails the test")]

use std::path::Path;

use indexmap::IndexMap;
use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, compare_sides, mmtests};
use perflab_model::{Case, Direction, Nanos, RunRecord, Sample, Scalar, Unit};
use perflab_present::comparison::OutputFormat;
use perflab_present::comparison::mmtests::{render_mmtests, render_mmtests_ratios};

/// Label, direction and values of a side.
type SideValues<'a> = (&'a str, Direction, Vec<f64>);

fn run_of_values(id: &str, benchmark: &str, given: &[SideValues]) -> RunRecord {
    let mut record = fixtures::run_builder::RunBuilder::new(id)
        .with(|lab| lab.boot_id = id.into())
        .build_run(|_| Some(1.0));
    let plan = &mut record.manifest.plan;
    (plan.cases, plan.slots) = (Vec::new(), Vec::new());
    record.samples.clear();
    for (label, direction, values) in given {
        let (metric, point) =
            label.split_once('-').map_or((*label, None), |(metric, point)| (metric, Some(point)));
        let point = point.map(|point| ("n".to_owned(), Scalar::Int(point.parse().unwrap_or(0))));
        let number = u32::try_from(record.manifest.plan.cases.len()).unwrap();
        record.manifest.plan.cases.push(benchmark_case(benchmark, point));
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

fn benchmark_case(benchmark: &str, point: Option<(String, Scalar)>) -> Case {
    Case {
        workload: benchmark.into(),
        uses: benchmark.into(),
        point: point.into_iter().collect(),
        parameters: IndexMap::new(),
        environment: IndexMap::new(),
        levels: IndexMap::new(),
    }
}

fn compare_values(benchmark: &str, sides: &[(&str, Vec<SideValues>)]) -> Comparison {
    let side = |(name, given): &(&str, Vec<SideValues>)| ComparisonSide {
        name: (*name).into(),
        runs: vec![run_of_values(name, benchmark, given)],
    };
    let sides: Vec<ComparisonSide> = sides.iter().map(side).collect();
    compare_sides(&sides[0], &sides[1..], &AnalysisOptions::default()).unwrap()
}

/// `values.json`
#[derive(serde::Deserialize)]
struct RecordedValues {
    sides: Vec<String>,
    benchmarks: IndexMap<String, IndexMap<String, Vec<Vec<f64>>>>,
}

fn mmtests_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mmtests")
}

/// The recorded values, lined up.
fn recorded_comparison(benchmark: &str, direction: Direction) -> Comparison {
    let text = std::fs::read_to_string(mmtests_folder().join("values.json")).unwrap();
    let RecordedValues { sides: names, benchmarks } = serde_json::from_str(&text).unwrap();
    let labels = &benchmarks[benchmark];
    let given = |side: usize| -> Vec<SideValues> {
        labels.iter().map(|(label, sides)| (move_point_last(label), direction, sides[side].clone())).collect()
    };
    compare_values(
        benchmark,
        &names.iter().enumerate().map(|(at, name)| (name.as_str(), given(at))).collect::<Vec<_>>(),
    )
}

/// `usecs-op` has no parameter.
fn move_point_last(label: &str) -> &str {
    if label == "usecs-op" { "usecs/op" } else { label }
}

/// A table without its notes, and with marks taken off: those are ours.
fn strip_notes(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.is_empty());
    let plain = lines.map(|line| line.replace(['*', '(', ')'], "|") + "\n");
    plain.collect::<String>().replace("usecs/op", "usecs-op")
}

fn read_golden_file(name: &str) -> String {
    strip_notes(&std::fs::read_to_string(mmtests_folder().join(name)).unwrap())
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
        let comparison = recorded_comparison(benchmark, direction);
        let tables = mmtests::mmtests_tables(&comparison, &[]);
        let plain = render_mmtests(&tables, false, OutputFormat::Table).unwrap();
        assert_equal_lines(&strip_notes(&plain), &read_golden_file(&format!("{benchmark}.txt")));
        if benchmark == "perfpipe" {
            continue; // MMTests loses the format of the last columns where runs outnumber operations
        }
        let ratios =
            render_mmtests_ratios(&mmtests::mmtests_ratio_tables(&comparison), OutputFormat::Table).unwrap();
        assert_equal_lines(&strip_notes(&ratios), &read_golden_file(&format!("{benchmark}-ratio.txt")));
    }
}

fn assert_equal_lines(ours: &str, theirs: &str) {
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

/// The distances are MMTests'; whether a mean is marked is not.
#[test]
fn the_rows_of_significance_have_the_same_distances() {
    let tables = mmtests::mmtests_tables(&recorded_comparison("stream", Direction::Higher), &[]);
    let ours = strip_notes(&render_mmtests(&tables, true, OutputFormat::Table).unwrap());
    let without_flags = |text: &str| text.replace("1.00 |", "0.00 |");
    assert_equal_lines(&without_flags(&ours), &without_flags(&read_golden_file("stream-significance.txt")));
}

#[test]
fn a_star_comes_from_a_test_and_the_note_says_what_mmtests_would_mark() {
    let text = render_mmtests(
        &mmtests::mmtests_tables(&recorded_comparison("stream", Direction::Higher), &[]),
        false,
        OutputFormat::Table,
    );
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
    let comparison = compare_values("sysbenchcpu", &[("before", base), ("after", new)]);
    let stats =
        render_mmtests(&mmtests::mmtests_tables(&comparison, &[]), false, OutputFormat::Table).unwrap();
    let ratios =
        render_mmtests_ratios(&mmtests::mmtests_ratio_tables(&comparison), OutputFormat::Table).unwrap();
    insta::assert_snapshot!(format!("{stats}\n{ratios}"));
}

#[test]
fn every_iteration_of_a_single_value_report_counts() {
    let side = |values: [f64; 3]| vec![("GET_RPS-1", Direction::Higher, values.to_vec())];
    let comparison = compare_values(
        "redis",
        &[("before", side([90.0, 100.0, 110.0])), ("after", side([95.0, 105.0, 115.0]))],
    );
    insta::assert_snapshot!(
        render_mmtests(&mmtests::mmtests_tables(&comparison, &[]), false, OutputFormat::Table).unwrap()
    );
}
