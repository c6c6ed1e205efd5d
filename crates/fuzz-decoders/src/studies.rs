//! Files that people write, and what benchmarks print.

use perflab_import::convert_study;
use perflab_model::Nanos;
use perflab_model::study::TomlSource;
use perflab_workload::WorkloadDefinition;

use crate::memory_folder::MemoryFolder;

/// A study.
pub(crate) fn decode_study(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(problems) = TomlSource::new("study.toml", text).parse_study() {
        assert!(!problems.to_string().is_empty());
    }
}

/// A shell configuration of MMTests or a job file of lkp-tests, from which a study is made: each of its lines is accounted for, and
/// the study is one.
pub(crate) fn decode_foreign_study(bytes: &[u8]) {
    let folder = MemoryFolder::new("foreign-study");
    let path = folder.write("config-fuzzed", bytes);
    match convert_study(&path) {
        Ok(study) => {
            let counts = study.account.count();
            let fates = [counts.empty, counts.translated, counts.no_meaning, counts.not_understood];
            assert_eq!(fates.iter().sum::<usize>(), counts.lines);
            let source = TomlSource::new("study.toml", study.text);
            if let Err(problems) = source.parse_study() {
                panic!("{problems}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A workload's definition.
pub(crate) fn decode_workload(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match WorkloadDefinition::read(&TomlSource::new("workload.toml", text)) {
        Ok(definition) => {
            let _ = definition.metrics();
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}

/// Rules of every kind.
const RULES: &str = r#"
title = "all rules"
measures = "nothing"
argv = ["true"]
[[metric]]
name = "a"
unit = "s"
direction = "lower"
primary = true
optional = true
regex = '(?<value>[0-9.eE+-]+)'
aggregate = "mean"
[[metric]]
name = "b"
unit = "s"
direction = "lower"
optional = true
json = "/jobs/0/read/iops"
[[metric]]
name = "c"
unit = "s"
direction = "lower"
optional = true
csv = "rps"
[[metric]]
name = "d"
unit = "s"
direction = "lower"
optional = true
key = "rate"
[[histogram]]
name = "e"
unit = "s"
direction = "lower"
optional = true
percentiles = [50, 99.99]
regex = '^(?<value>\S+) (?<count>.+)$'
[[histogram]]
name = "f"
unit = "s"
direction = "lower"
optional = true
mean = true
json = "/*/clat_ns/*"
[[histogram]]
name = "g"
unit = "s"
direction = "lower"
optional = true
max = true
hdr = '(?<encoded>HIST\S*)'
[[series]]
name = "h"
regex = '^(?<key>\w*) ?(?<time>\S+) (?<value>\S+)$'
columns = { value = "1" }
optional = true
"#;

/// What a benchmark printed, read by rules of every kind.
pub(crate) fn decode_benchmark_output(bytes: &[u8]) {
    let definition = WorkloadDefinition::read(&TomlSource::new("rules.toml", RULES));
    let definition = definition.unwrap_or_else(|problems| panic!("{problems}"));
    let text = String::from_utf8_lossy(bytes);
    let (stdout, stderr) = text.split_once('\0').unwrap_or((&text, ""));
    let second = Nanos(1_000_000_000);
    if let Ok(series) = definition.read_series(stdout, stderr, second) {
        assert!(series.iter().all(|(_, points)| points.iter().all(|point| point.after <= second)));
    }
    if let Ok(values) = definition.parse_metrics(stdout, stderr, Nanos(1_000_000_000)) {
        assert!(values.iter().all(|value| value.value.is_finite()));
    }
}
