//! docs/format.md keeps its word: other people's readers run its snippets on an archive that we wrote,
//! its example lines are events, its column tables are the columns.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

mod fixture;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use perflab_archive::{Archive, RunDir};
use perflab_model::{Event, What};
use serde_json::Value;

const CASES: u32 = 4;
const ITERATIONS: u32 = 5;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn document() -> String {
    std::fs::read_to_string(project("docs/format.md")).unwrap()
}

fn recorded(directory: &Path) -> RunDir {
    let manifest = fixture::manifest(CASES, ITERATIONS);
    let mut recorder = Archive::open(directory).unwrap().begin(&manifest).unwrap();
    fixture::events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    recorder.finish().unwrap()
}

/// The name of an event in a line. A new kind of event does not compile here until it has one.
fn name(what: &What) -> &'static str {
    match what {
        What::Began(_) => "began",
        What::Phase(_) => "phase",
        What::Facts(_) => "facts",
        What::SettingApplied { .. } => "setting-applied",
        What::SettingUndone { .. } => "setting-undone",
        What::IterationBegan { .. } => "iteration-began",
        What::IterationEnded { .. } => "iteration-ended",
        What::Sample(_) => "sample",
        What::SeriesOpened(_) => "series-opened",
        What::Rows { .. } => "rows",
        What::Changed { .. } => "changed",
        What::Gap(_) => "gap",
        What::Output { .. } => "output",
        What::Warning { .. } => "warning",
        What::Progress { .. } => "progress",
        What::Standing(_) => "standing",
        What::Stacks(_) => "stacks",
        What::Profiled(_) => "profiled",
        What::Traced { .. } => "traced",
        What::Released { .. } => "released",
        What::Clock(_) => "clock",
        What::TargetLost { .. } => "target-lost",
        What::Ended { .. } => "ended",
    }
}

#[test]
fn every_kind_of_event_has_an_example_that_is_written_just_so() {
    let document = document();
    let block = document.split("```jsonl\n").nth(1).unwrap().split("```").next().unwrap();
    let mut shown = BTreeSet::from(["began"]);
    for line in block.lines() {
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        shown.insert(name(&event.what));
    }
    assert_eq!(shown.len(), 22, "{shown:?}");
    shown.iter().for_each(|name| assert!(document.contains(&format!("`{name}`")), "{name} is not described"));
}

/// The interpreter of `target/test-venv`, which `cargo xtask test` makes.
fn python() -> Option<PathBuf> {
    Some(project("target/test-venv/bin/python")).filter(|path| path.exists())
}

fn foreign_readings(python: &Path, run: &RunDir) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign_reader.py");
    let mut command = Command::new(python);
    let output = command.args([&script, &project("docs/format.md"), run.path()]).args(["duckdb", "pyarrow"]);
    let output = output.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    eprint!("{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn foreign_readers_find_what_was_recorded() {
    let Some(python) = python() else {
        return fixture::skip("foreign_readers", "no target/test-venv (cargo xtask test makes it)");
    };
    let directory = tempfile::tempdir().unwrap();
    let run = recorded(directory.path());
    let found = foreign_readings(&python, &run);
    for (reader, reading) in found.as_object().unwrap() {
        check_medians(reader, &reading["medians"]);
        // Each slot takes a millisecond and brings ten faults.
        assert_eq!(reading["rate"], 10_000.0, "{reader}");
        if let Some(units) = reading["units"].as_array() {
            let column =
                |at: usize| (units[at]["name"].as_str().unwrap(), units[at]["unit"].as_str().unwrap());
            assert_eq!(
                [column(0), column(3), column(4)],
                [("time_ns", "ns"), ("nr_free", "pages"), ("pressure", "%")]
            );
            assert_eq!((&units[2]["kind"], &units[3]["kind"]), (&"counter".into(), &"gauge".into()));
        }
    }
}

/// The fixture's values are known without reading anything: slot / 7, slots in blocks after the warm-ups.
fn check_medians(reader: &str, medians: &Value) {
    let mut medians = medians.as_array().unwrap().clone();
    medians.sort_by_key(|row| (row[1].as_str().unwrap().to_owned(), row[2] == "huge"));
    assert_eq!(medians.len(), CASES as usize, "{reader}");
    for (case, row) in (0..CASES).zip(&medians) {
        let level = if case % 2 == 0 { "small" } else { "huge" };
        let point = format!("size={}", case / 2);
        let slot = CASES + CASES * (ITERATIONS / 2) + case;
        let expected = serde_json::json!(["sweep", point, level, "time", "s", f64::from(slot) / 7.0]);
        assert_eq!(row, &expected, "{reader}");
    }
}
