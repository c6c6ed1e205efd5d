//! docs/format.md keeps its word: its example lines are events. (Its snippets run in crates/perflab/tests/it/newcomer.rs.)

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use perflab_model::{Event, What};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn document() -> String {
    std::fs::read_to_string(project("docs/format.md")).unwrap()
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
