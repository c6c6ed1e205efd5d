//! Every definition's rules against a real output, recorded once (see workloads/recorded/README.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use perflab_model::Nanos;
use perflab_workload::{Catalogue, WorkloadDefinition};

fn recorded_output_path(definition: &WorkloadDefinition, ending: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../workloads/recorded");
    folder.join(format!("{}.{ending}", definition.name))
}

fn read_recorded_output(definition: &WorkloadDefinition) -> (String, String) {
    let stdout = fs::read_to_string(recorded_output_path(definition, "stdout")).unwrap_or_else(|error| {
        panic!(
            "workloads/{0}.toml has no recording ({error}); make one with `cargo run -p perflab-workload --example record {0}`",
            definition.name
        )
    });
    (stdout, fs::read_to_string(recorded_output_path(definition, "stderr")).unwrap_or_default())
}

#[test]
fn every_definition_understands_its_recording() {
    for definition in Catalogue::embedded().iter() {
        let (stdout, stderr) = read_recorded_output(definition);
        let measured = definition.parse_metrics(&stdout, &stderr, Nanos(1_000_000_000));
        let measured = measured.unwrap_or_else(|error| panic!("{}: {error}", definition.name));
        let found: BTreeMap<String, f64> =
            measured.into_iter().map(|one| (one.metric.name, one.value)).collect();
        let text = fs::read_to_string(recorded_output_path(definition, "expected.json")).unwrap();
        let expected: BTreeMap<String, f64> = serde_json::from_str(&text).unwrap();
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>(),
            "{}",
            definition.name
        );
        for (metric, value) in &expected {
            let error = (found[metric] - value).abs();
            assert!(
                error <= 1e-12 * value.abs(),
                "{} {metric}: {} is not {value}",
                definition.name,
                found[metric]
            );
        }
    }
}

#[test]
fn rubbish_is_an_error_that_names_metric_and_rule() {
    for definition in Catalogue::embedded().iter() {
        for rubbish in ["", "Segmentation fault\n", "{\"hello\": [1, 2", "\u{0}\u{1}\n\n,,,\n"] {
            let error =
                definition.parse_metrics(rubbish, "", Nanos(1)).expect_err(&definition.name).to_string();
            let rule = &definition.rules[0];
            assert!(error.contains(&rule.metric.name), "{error}");
            assert!(error.contains(&rule.rule.to_string()), "{error}");
        }
    }
}

#[test]
fn an_output_cut_short_never_passes_for_another() {
    for definition in Catalogue::embedded().iter() {
        let (stdout, stderr) = read_recorded_output(definition);
        let whole = definition.parse_metrics(&stdout, &stderr, Nanos(1)).unwrap();
        // Whatever is left of it after a cut at a line's end: an error, or nothing but true values.
        let cuts = stdout.match_indices('\n').map(|(at, _)| &stdout[..at]);
        for text in cuts {
            for one in definition.parse_metrics(text, &stderr, Nanos(1)).unwrap_or_default() {
                // Of fewer finds there is another mean and another maximum.
                let aggregated = definition.rules.iter().any(|rule| {
                    use perflab_workload::MetricAggregate::{Max, Mean};
                    rule.metric == one.metric && matches!(rule.aggregate, Mean | Max)
                });
                assert!(aggregated || whole.contains(&one), "{}: {one:?}", definition.name);
            }
        }
    }
}
