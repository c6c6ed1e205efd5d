//! What is read of each recording: every metric with its unit, its direction, how often it was found and its first values;
//! every series with its columns and rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use perflab_archive::RunDir;
use perflab_import::IMPORTERS;
use perflab_model::{Direction, RunRecord, Sample};

use super::bench::ImportTestArchive;

/// A recording below `tests/recorded`, and the importer that reads it.
const RECORDINGS: [(&str, &str); 27] = [
    ("tools/fio.json", "fio"),
    ("tools/perf-stat.json", "perf-stat"),
    ("tools/perf-stat.csv", "perf-stat"),
    ("tools/perf-stat-colon.csv", "perf-stat"),
    ("tools/perf-stat-space.csv", "perf-stat"),
    ("tools/perf-stat-repeat.csv", "perf-stat"),
    ("tools/perf-stat-interval.csv", "perf-stat"),
    ("tools/perf-stat-interval.json", "perf-stat"),
    ("tools/hyperfine.json", "hyperfine"),
    ("tools/gbench.json", "google-benchmark"),
    ("tools/gbench-aggregates.json", "google-benchmark"),
    ("tools/pyperf.json", "pyperf"),
    ("tools/go.txt", "go-bench"),
    ("tools/go.jsonl", "go-bench"),
    ("tools/phoronix.xml", "phoronix"),
    ("tools/composite.xml", "phoronix"),
    ("tools/sar.json", "sar"),
    ("tools/tagged.hlog", "hdr-log"),
    ("tools/matrix.json", "lkp-stats"),
    ("tools/stats.json", "lkp-stats"),
    ("tools/criterion", "criterion"),
    ("lkp-fsmark", "lkp"),
    ("lkp-hackbench", "lkp"),
    ("mmtests/current", "mmtests"),
    ("mmtests/2020", "mmtests"),
    ("mmtests/streams-current", "mmtests"),
    ("mmtests/streams-2020", "mmtests"),
];

/// Importers of events, of which tests of their own hold what is read.
const OF_EVENTS: [&str; 9] =
    ["blktrace", "blkparse", "optrace", "perf.data", "perf-script", "folded", "pprof", "sysfs", "dump"];

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Lower => "lower is better",
        Direction::Higher => "higher is better",
        Direction::Neither => "neither",
    }
}

/// `case | metric | unit | direction | n | first values`, a row each.
fn describe_samples(record: &RunRecord) -> String {
    let mut groups: BTreeMap<(String, &str), Vec<&Sample>> = BTreeMap::new();
    for sample in &record.samples {
        let case = record.manifest.plan.case(sample.case).unwrap().label();
        groups.entry((case, &*sample.metric)).or_default().push(sample);
    }
    let mut text = String::new();
    for ((case, metric), samples) in groups {
        let (unit, direction) = (&samples[0].unit.0, direction_name(samples[0].direction));
        let values: Vec<String> = samples.iter().take(3).map(|sample| sample.value.to_string()).collect();
        let (n, values) = (samples.len(), values.join(" "));
        writeln!(text, "{case} | {metric} | {unit} | {direction} | {n} | {values}").unwrap();
    }
    text
}

/// `monitor | rows | columns`, a row each.
fn describe_series(run: &RunDir) -> String {
    let mut text = String::new();
    for monitor in run.list_monitors().unwrap() {
        let series = run.read_series(&monitor).unwrap();
        let names: Vec<&str> = series.table.columns().iter().map(|column| column.name.as_str()).collect();
        let (rows, first) =
            (series.table.row_count(), names.iter().take(6).copied().collect::<Vec<_>>().join(" "));
        writeln!(text, "series {monitor} | {rows} rows | {} columns: {first}", names.len()).unwrap();
    }
    text
}

#[test]
fn recordings_are_read_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    for (recording, importer) in RECORDINGS {
        let bench = ImportTestArchive::new();
        let imported = bench.import(&folder.join(recording));
        assert_eq!(imported.kind, importer, "{recording}");
        let record = imported.run.read_record().unwrap();
        let read = describe_samples(&record) + &describe_series(&imported.run);
        assert!(!read.is_empty(), "{recording}");
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_snapshot_path("../snapshots");
        settings.bind(|| insta::assert_snapshot!(recording.replace(['/', '.'], "-"), read));
    }
}

#[test]
fn every_importer_of_results_has_a_recording() {
    for importer in IMPORTERS {
        let is_recorded = RECORDINGS.iter().any(|(_, name)| *name == importer.name);
        assert!(is_recorded || OF_EVENTS.contains(&importer.name), "{} has none", importer.name);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/tools");
    for file in fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let is_read = RECORDINGS.iter().any(|(recording, _)| *recording == format!("tools/{name}"));
        assert!(is_read || name == "PROVENANCE", "{name} is not in the table");
    }
}
