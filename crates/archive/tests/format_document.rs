//! docs/format.md keeps its word: its example lines are events. (Its snippets run in crates/perflab/tests/it/newcomer.rs.)

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use perflab_model::{RunEvent, RunEventKind};

fn project_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read_format_document() -> String {
    std::fs::read_to_string(project_path("docs/format.md")).unwrap()
}

/// The name of an event in a line. A new kind of event does not compile here until it has one.
fn event_name(what: &RunEventKind) -> &'static str {
    match what {
        RunEventKind::Began(_) => "began",
        RunEventKind::Phase(_) => "phase",
        RunEventKind::Facts(_) => "facts",
        RunEventKind::Document(_) => "document",
        RunEventKind::SettingApplied { .. } => "setting-applied",
        RunEventKind::SettingUndone { .. } => "setting-undone",
        RunEventKind::SettingOverwritten { .. } => "setting-overwritten",
        RunEventKind::Triggered(_) => "triggered",
        RunEventKind::IterationBegan { .. } => "iteration-began",
        RunEventKind::IterationEnded { .. } => "iteration-ended",
        RunEventKind::Sample(_) => "sample",
        RunEventKind::SeriesOpened(_) => "series-opened",
        RunEventKind::Rows { .. } => "rows",
        RunEventKind::Changed { .. } => "changed",
        RunEventKind::Edge(_) => "edge",
        RunEventKind::Gap(_) => "gap",
        RunEventKind::Output { .. } => "output",
        RunEventKind::Warning { .. } => "warning",
        RunEventKind::Progress { .. } => "progress",
        RunEventKind::Standing(_) => "standing",
        RunEventKind::Stacks(_) => "stacks",
        RunEventKind::Profiled(_) => "profiled",
        RunEventKind::Traced { .. } => "traced",
        RunEventKind::Released { .. } => "released",
        RunEventKind::Clock(_) => "clock",
        RunEventKind::VariantBegan(_) => "variant-began",
        RunEventKind::DuetChecked(_) => "duet-checked",
        RunEventKind::TargetLost { .. } => "target-lost",
        RunEventKind::Ended { .. } => "ended",
    }
}

#[test]
fn every_kind_of_event_has_an_example_that_is_written_just_so() {
    let document = read_format_document();
    let block = document.split("```jsonl\n").nth(1).unwrap().split("```").next().unwrap();
    let mut shown = BTreeSet::from(["began"]);
    for line in block.lines() {
        let event: RunEvent = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        shown.insert(event_name(&event.what));
    }
    assert_eq!(shown.len(), 28, "{shown:?}");
    shown.iter().for_each(|name| assert!(document.contains(&format!("`{name}`")), "{name} is not described"));
}
