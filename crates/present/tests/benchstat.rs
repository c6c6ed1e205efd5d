//! benchstat's table: the same figures as benchstat prints for the same values.

#![expect(clippy::unwrap_used, reason = "an answer that is missing fails the test")]

use std::path::Path;

use perflab_analyze::{AnalysisOptions, ComparisonSide, benchstat, compare_sides};
use perflab_model::{Case, Direction, Nanos, RunRecord, Sample, Unit};
use perflab_present::comparison::{OutputFormat, render_benchstat};

fn read_recorded_text(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/benchstat").join(name))
        .unwrap()
}

/// The Go results of a file, as a run.
fn read_go_results(name: &str) -> RunRecord {
    let mut record = fixtures::run_builder::RunBuilder::new(name)
        .with(|lab| lab.boot_id = name.into())
        .build_run(|_| Some(1.0));
    record.manifest.plan.cases.clear();
    record.manifest.plan.slots.clear();
    record.samples.clear();
    for line in read_recorded_text(name).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let workload = words[0].trim_start_matches("Benchmark").to_owned();
        let known = record.manifest.plan.cases.iter().position(|case| case.workload == workload);
        let case = known.unwrap_or_else(|| {
            let (uses, point, parameters) = (workload.clone(), Default::default(), Default::default());
            let (environment, levels) = Default::default();
            record.manifest.plan.cases.push(Case { workload, uses, point, parameters, environment, levels });
            record.manifest.plan.cases.len() - 1
        });
        let at = record.samples.len() as u32;
        record.samples.push(Sample {
            target: None,
            boot: 0,
            case: case as u32,
            iteration: at,
            metric: "time".into(),
            value: words[2].parse().unwrap(),
            unit: Unit::new("ns/op"),
            direction: Direction::Lower,
            primary: true,
            start: Nanos(u64::from(at)),
            end: Nanos(u64::from(at)),
        });
    }
    record
}

/// The words of each line that names a benchmark, without footnote marks.
fn benchmark_words(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|line| line.contains('±') || line.starts_with("geomean"));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    lines
        .map(|line| {
            words(line).into_iter().filter(|word| !["¹", "²", "³"].contains(&word.as_str())).collect()
        })
        .collect()
}

#[test]
fn every_figure_is_that_of_benchstat() {
    let side = |name: &str| ComparisonSide { name: name.into(), runs: vec![read_go_results(name)] };
    let comparison =
        compare_sides(&side("old.txt"), &[side("new.txt")], &AnalysisOptions::default()).unwrap();
    let ours = render_benchstat(&benchstat::benchstat_tables(&comparison), OutputFormat::Table).unwrap();
    let theirs = read_recorded_text("table.txt");
    for (ours, theirs) in benchmark_words(&ours).iter().zip(benchmark_words(&theirs)) {
        assert_eq!(*ours, theirs);
    }
    assert_eq!(benchmark_words(&ours).len(), benchmark_words(&theirs).len(), "{ours}");
    for warning in theirs.lines().filter(|line| line.starts_with(['¹', '²', '³'])) {
        assert!(ours.contains(warning), "{warning}\n{ours}");
    }
}
