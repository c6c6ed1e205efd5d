//! `--fail-if`: what a gate lets through.

use fixtures::run_builder::{RunBuilder, explanatory_metric, primary_metric};
use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, Gate, compare_sides};
use perflab_model::Direction;

/// `time` is 1 % worse with a margin of 0.1 %, `faults` doubles, `extra` is missing.
fn gated_comparison() -> Comparison {
    let lab = |id: &str| {
        RunBuilder::new(id).with(|lab| {
            lab.metrics = vec![
                primary_metric("time", "s", Direction::Lower),
                explanatory_metric("faults", "1", Direction::Lower),
            ];
            if id == "a" {
                lab.metrics.push(primary_metric("extra", "s", Direction::Lower));
            }
        })
    };
    let run = |id: &str, time: f64, faults: f64| {
        let mut run = lab(id).build_run(|spot| {
            let wobble = f64::from(spot.iteration) / 100_000.0;
            Some(wobble + if spot.metric == "faults" { faults } else { time })
        });
        run.manifest.plan.margins.insert("time".into(), 0.001);
        ComparisonSide { name: id.into(), runs: vec![run] }
    };
    compare_sides(&run("a", 10.0, 100.0), &[run("b", 10.1, 200.0)], &AnalysisOptions::default()).unwrap()
}

fn violations_of(gate: &str) -> Vec<String> {
    let gate: Gate = gate.parse().unwrap();
    gated_comparison().violations(&gate.counting_differing()).iter().map(|row| row.metric.clone()).collect()
}

#[test]
fn what_differs_between_two_single_runs_counts_only_on_request() {
    let gate: Gate = "worse".parse().unwrap();
    assert!(gated_comparison().violations(&gate).is_empty());
    assert_eq!(gated_comparison().violations(&gate.counting_differing()).len(), 1);
}

#[test]
fn only_primary_metrics_decide_and_size_counts() {
    assert_eq!(violations_of("worse"), ["time"]);
    assert_eq!(violations_of("worse:0.5%"), ["time"]);
    assert!(violations_of("worse:2%").is_empty());
    assert!(violations_of("better").is_empty() && violations_of("unclear").is_empty());
}

#[test]
fn missing_rows_are_a_condition_of_their_own() {
    assert_eq!(violations_of("missing"), ["extra"]);
    assert_eq!(violations_of("worse:2%, missing"), ["extra"]);
}

#[test]
fn rubbish_is_refused_with_examples() {
    let texts =
        ["", "worse:", "worse:x", "slower", "unclear:2%", "worse:-1%", "worse:3", "worse:0.02", "worse:2%,"];
    let errors: Vec<String> =
        texts.iter().map(|text| text.parse::<Gate>().unwrap_err().to_string()).collect();
    let named: Vec<&str> = errors.iter().filter_map(|error| error.split('`').nth(1)).collect();
    assert_eq!(named, texts, "each names what was written");
}
