//! Ticks that are told as what changed: whole again in tables and in a journal, and left out where something is missing.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

mod fixture;

use perflab_archive::{Archive, Recorder, RunDir};
use perflab_model::series::ColumnData;
use perflab_model::{Cell, Event, Nanos, Row, What};

fn row(node: &str, faults: i64) -> Row {
    vec![Cell::Text(node.into()), Cell::Int(faults), Cell::Missing, Cell::Float(0.5)]
}

/// Six ticks of two nodes; the fifth is told whole.
fn ticks() -> Vec<Event> {
    let monitor = || "vmstat".to_owned();
    let whole = |a, b| What::Rows { monitor: monitor(), rows: vec![row("0", a), row("1", b)] };
    let changed = |step, rows| What::Changed { monitor: monitor(), step, rows };
    let whats = [
        whole(10, 20),
        changed(1, vec![(1, row("1", 21))]),
        changed(2, Vec::new()),
        changed(3, vec![(0, row("0", 11)), (1, row("1", 22))]),
        whole(12, 23),
        changed(1, vec![(0, row("0", 13))]),
    ];
    whats.into_iter().zip(10..).map(|(what, at)| Event::new(Nanos(at), what)).collect()
}

const WHOLE: [(u64, i64); 12] = [
    (10, 10),
    (10, 20),
    (11, 10),
    (11, 21),
    (12, 10),
    (12, 21),
    (13, 11),
    (13, 22),
    (14, 12),
    (14, 23),
    (15, 13),
    (15, 23),
];

fn recorded(runs: &std::path::Path) -> (std::path::PathBuf, Recorder) {
    let manifest = fixture::manifest(1, 1);
    let mut recorder = Archive::open(runs).unwrap().begin(&manifest).unwrap();
    let events = fixture::head_events(&manifest).into_iter().chain(ticks()).chain([fixture::ended()]);
    events.for_each(|event| recorder.record(&event).unwrap());
    (recorder.path().into(), recorder)
}

fn told(run: &RunDir) -> Vec<(u64, i64)> {
    let series = run.series("vmstat").unwrap();
    let ColumnData::Int(faults) = &series.columns[1] else { panic!("faults are integers") };
    assert_eq!(run.spans("vmstat").unwrap().whole(), series);
    series.at.iter().zip(faults).map(|(at, faults)| (at.0, faults.unwrap())).collect()
}

#[test]
fn a_closed_run_and_an_open_one_have_every_row_of_every_tick() {
    let directory = tempfile::tempdir().unwrap();
    let (path, recorder) = recorded(directory.path());
    drop(recorder);
    assert_eq!(told(&RunDir::open(&path).unwrap()), WHOLE);
    let closed = Recorder::recover(&path).unwrap();
    assert_eq!(told(&closed), WHOLE);
    assert!(closed.record().unwrap().warnings.iter().all(|warning| !warning.message.contains("damaged")));
    let journal = std::fs::read_to_string(path.join("journal.jsonl")).unwrap();
    assert!(!journal.contains("\"changed\""), "the tables hold them");
}

#[test]
fn what_follows_a_damaged_line_is_left_out_until_the_next_whole_tick_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (path, recorder) = recorded(directory.path());
    drop(recorder);
    let journal = path.join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replace("\"step\":2", "\"step\":~")).unwrap();
    let left: Vec<_> = WHOLE.into_iter().filter(|(at, _)| ![12, 13].contains(at)).collect();
    assert_eq!(told(&RunDir::open(&path).unwrap()), left);
    let closed = Recorder::recover(&path).unwrap();
    assert_eq!(told(&closed), left);
    let warnings = closed.record().unwrap().warnings;
    assert!(
        warnings.iter().any(|warning| warning.message.starts_with("2 torn or damaged lines")),
        "{warnings:?}"
    );
}
