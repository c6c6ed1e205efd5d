//! Ticks that are told as what changed: whole again in tables and in a journal, and left out where something is missing.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use perflab_archive::{Archive, RunDir, RunRecorder};
use perflab_model::{CellRow, Nanos, RunEvent, RunEventKind, TableCell};

fn vmstat_row(node: &str, faults: i64) -> CellRow {
    vec![TableCell::Text(node.into()), TableCell::Int(faults), TableCell::Missing, TableCell::Float(0.5)]
}

/// Six ticks of two nodes; the fifth is told whole.
fn vmstat_ticks() -> Vec<RunEvent> {
    let monitor = || "vmstat".to_owned();
    let whole = |a, b| RunEventKind::Rows {
        monitor: monitor(),
        rows: vec![vmstat_row("0", a), vmstat_row("1", b)],
        took: Nanos(20),
    };
    let changed = |step, rows| RunEventKind::Changed { monitor: monitor(), step, rows, took: Nanos(30) };
    let whats = [
        whole(10, 20),
        changed(1, vec![(1, vmstat_row("1", 21))]),
        changed(2, Vec::new()),
        changed(3, vec![(0, vmstat_row("0", 11)), (1, vmstat_row("1", 22))]),
        whole(12, 23),
        changed(1, vec![(0, vmstat_row("0", 13))]),
    ];
    whats.into_iter().zip(10..).map(|(what, at)| RunEvent::new(Nanos(at), what)).collect()
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

fn record_run(runs: &std::path::Path) -> (std::path::PathBuf, RunRecorder) {
    let manifest = fixtures::run_events::make_manifest(1, 1);
    let mut recorder = Archive::open(runs).unwrap().begin_run(&manifest).unwrap();
    let events = fixtures::run_events::head_events(&manifest)
        .into_iter()
        .chain(vmstat_ticks())
        .chain([fixtures::run_events::ended_event()]);
    events.for_each(|event| recorder.record(&event).unwrap());
    (recorder.path().into(), recorder)
}

fn read_faults(run: &RunDir) -> Vec<(u64, i64)> {
    let series = run.read_series("vmstat").unwrap();
    let faults = series.table.column_at::<i64>(1).unwrap();
    let spans = run.read_series_spans("vmstat").unwrap().to_series();
    assert_eq!((&spans.schema, &spans.at, &spans.table), (&series.schema, &series.at, &series.table));
    series.at.iter().zip(faults.iter()).map(|(at, faults)| (at.0, faults.unwrap())).collect()
}

#[test]
fn a_closed_run_and_an_open_one_have_every_row_of_every_tick() {
    let directory = tempfile::tempdir().unwrap();
    let (path, recorder) = record_run(directory.path());
    drop(recorder);
    assert_eq!(read_faults(&RunDir::open(&path).unwrap()), WHOLE);
    let closed = RunRecorder::recover(&path).unwrap();
    assert_eq!(read_faults(&closed), WHOLE);
    // That of damaged lines would stand beside it.
    let warnings = closed.read_record().unwrap().warnings;
    insta::assert_snapshot!(warnings.iter().map(|one| one.message.as_str()).collect::<Vec<_>>().join("\n"), @"governor is powersave");
    let journal = std::fs::read_to_string(path.join("journal.jsonl")).unwrap();
    assert!(!journal.contains("\"changed\""), "the tables hold them");
}

#[test]
fn what_follows_a_damaged_line_is_left_out_until_the_next_whole_tick_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (path, recorder) = record_run(directory.path());
    drop(recorder);
    let journal = path.join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replace("\"step\":2", "\"step\":~")).unwrap();
    let left: Vec<_> = WHOLE.into_iter().filter(|(at, _)| ![12, 13].contains(at)).collect();
    assert_eq!(read_faults(&RunDir::open(&path).unwrap()), left);
    let closed = RunRecorder::recover(&path).unwrap();
    assert_eq!(read_faults(&closed), left);
    let warnings = closed.read_record().unwrap().warnings;
    assert!(
        warnings.iter().any(|warning| warning.message.starts_with("2 torn or damaged lines")),
        "{warnings:?}"
    );
}
