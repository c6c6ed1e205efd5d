//! What is recorded is what is read: while it is recorded, after a death, and from the tables.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::path::Path;

use perflab_archive::{Archive, ArchiveError, RunDir, RunRecorder};
use perflab_model::fact_table;
use perflab_model::series::SeriesGap;
use perflab_model::{Manifest, Nanos, Outcome, RunEvent, RunEventKind, RunRecord, RunStatus, Sample};

fn record_run(archive: &Archive, manifest: &Manifest) -> RunRecorder {
    let mut recorder = archive.begin_run(manifest).unwrap();
    fixtures::run_events::run_events(manifest).for_each(|event| recorder.record(&event).unwrap());
    recorder
}

fn find_only_run(archive: &Archive) -> RunDir {
    archive.find_runs("@latest").unwrap().pop().unwrap()
}

fn open_archive(directory: &Path) -> Archive {
    Archive::open(&directory.join("archive")).unwrap()
}

fn expected_samples(manifest: &Manifest) -> Vec<Sample> {
    let sample =
        |event: RunEvent| if let RunEventKind::Sample(sample) = event.what { Some(sample) } else { None };
    fixtures::run_events::run_events(manifest).filter_map(sample).collect()
}

fn check_run(run: &RunDir, manifest: &Manifest, status: RunStatus) -> RunRecord {
    let record = run.read_record().unwrap();
    assert_eq!(record.manifest.status, status);
    assert_eq!(run.status().unwrap(), status);
    assert_eq!(record.manifest.plan, manifest.plan);
    assert_eq!(record.samples, expected_samples(manifest));
    assert_eq!(record.iterations.len(), manifest.plan.slots.len());
    assert_eq!(record.gaps.len(), 1);
    assert_eq!(record.warnings[0].message, "governor is powersave");
    assert!(record.manifest.facts.value(&fact_table::CPU_MODEL).is_some());
    assert_eq!(run.list_monitors().unwrap(), ["vmstat"]);
    check_series(run, manifest.plan.slots.len());
    assert_eq!(run.read_output(Some(3), "stdout").unwrap().as_deref(), Some("slot 3\n"));
    assert_eq!(run.read_output(None, "mkfs").unwrap().as_deref(), Some("made"));
    assert_eq!(run.read_output(None, "stdout").unwrap(), None);
    record
}

fn check_series(run: &RunDir, slots: usize) {
    let series = run.read_series("vmstat").unwrap();
    assert_eq!(series.schema, fixtures::run_events::vmstat_schema());
    assert_eq!(series.at.len(), 2 * slots);
    assert_eq!(series.at[..3], [1, 1, 2].map(|ms| Nanos(ms * fixtures::run_events::MILLISECOND)));
    let free = series.named_column::<i64>("nr_free");
    assert_eq!([0, 1, 2].map(|row| free.get(row)), [Some(i64::MAX), None, Some(i64::MAX - 1)]);
    assert_eq!(series.named_column::<str>("node").get(1), Some("1"));
}

#[test]
fn a_run_reads_the_same_living_dead_and_closed() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open_archive(directory.path()), fixtures::run_events::make_manifest(4, 3));
    let recorder = record_run(&archive, &manifest);
    check_run(&find_only_run(&archive), &manifest, RunStatus::Running);
    drop(recorder);
    let dead = check_run(&find_only_run(&archive), &manifest, RunStatus::Interrupted);
    let run = RunRecorder::recover(&archive.path().join("runs").join(&manifest.id)).unwrap();
    let closed = check_run(&run, &manifest, RunStatus::Finished);
    assert_eq!(closed.samples, dead.samples);
    assert_eq!(closed.iterations, dead.iterations);
    assert_eq!(closed.manifest.overhead.cpu, Nanos(42));
}

#[test]
fn closing_moves_rows_and_outputs_out_of_the_journal_and_leaves_no_rubbish() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open_archive(directory.path()), fixtures::run_events::make_manifest(4, 3));
    let recorder = record_run(&archive, &manifest);
    assert!(recorder.bytes_written() > 1000);
    let run = recorder.finish().unwrap();
    let bulk =
        |event: &RunEvent| matches!(event.what, RunEventKind::Rows { .. } | RunEventKind::Output { .. });
    let events: Vec<RunEvent> = run.read_events().unwrap().map(Result::unwrap).collect();
    assert!(matches!(events[0].what, RunEventKind::Began(_)) && !events.iter().any(bulk));
    assert_eq!(run.count_damaged_lines().unwrap(), 0);
    let mut names: Vec<_> = std::fs::read_dir(run.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    let expected = [
        "SHA256SUMS",
        "facts",
        "iterations.parquet",
        "journal.jsonl",
        "logs",
        "run.json",
        "samples.parquet",
        "series",
        "stacks",
    ];
    assert_eq!(names, expected);
    RunRecorder::recover(run.path()).unwrap();
    check_run(&find_only_run(&archive), &manifest, RunStatus::Finished);
}

#[test]
fn every_outcome_survives() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open_archive(directory.path()), fixtures::run_events::make_manifest(2, 2));
    let outcomes = [
        Outcome::Ok,
        Outcome::Failed { reason: "exit code 3".into() },
        Outcome::TimedOut { limit: Nanos(7) },
        Outcome::Interrupted,
    ];
    let mut recorder = archive.begin_run(&manifest).unwrap();
    for (slot, outcome) in (0..).zip(outcomes.clone()) {
        let what = RunEventKind::IterationEnded { slot, outcome, start: Nanos(1), end: Nanos(2) };
        recorder.record(&RunEvent::new(Nanos(2), what)).unwrap();
    }
    let record = recorder.finish().unwrap().read_record().unwrap();
    assert_eq!(record.iterations.into_iter().map(|i| i.outcome).collect::<Vec<_>>(), outcomes);
    assert_eq!(record.manifest.status, RunStatus::Interrupted, "nothing said how it ended");
}

#[test]
fn a_torn_last_line_is_dropped_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open_archive(directory.path()), fixtures::run_events::make_manifest(4, 3));
    drop(record_run(&archive, &manifest));
    let run = find_only_run(&archive);
    let journal = run.path().join("journal.jsonl");
    let bytes = std::fs::read(&journal).unwrap();
    let torn = bytes.len() - 3;
    std::fs::write(&journal, &bytes[..torn]).unwrap();
    assert_eq!(run.count_damaged_lines().unwrap(), 1);
    check_run(&run, &manifest, RunStatus::Interrupted);
    let run = RunRecorder::recover(run.path()).unwrap();
    let record = run.read_record().unwrap();
    assert_eq!(
        record.manifest.status,
        RunStatus::Interrupted,
        "the torn line was the one that said finished"
    );
    insta::assert_snapshot!(record.warnings[1].message, @"1 torn or damaged lines of the journal were left out");
}

#[test]
fn a_value_that_is_no_number_becomes_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open_archive(directory.path()), fixtures::run_events::make_manifest(1, 1));
    let mut recorder = archive.begin_run(&manifest).unwrap();
    let sample = Sample { value: f64::NAN, ..expected_samples(&manifest)[0].clone() };
    recorder.record(&RunEvent::new(Nanos(1), RunEventKind::Sample(sample))).unwrap();
    let record = recorder.finish().unwrap().read_record().unwrap();
    assert!(record.samples.is_empty());
    insta::assert_snapshot!(record.warnings[0].message, @"metric time of case 0, iteration 0, came out as NaN: not stored");
}

#[test]
fn rows_that_do_not_fit_leave_a_gap_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open_archive(directory.path()), fixtures::run_events::make_manifest(1, 1));
    let mut recorder = record_run(&archive, &manifest);
    let what = RunEventKind::Rows { monitor: "vmstat".into(), rows: vec![Vec::new()], took: Nanos(0) };
    recorder.record(&RunEvent::new(Nanos(77), what)).unwrap();
    let gaps = recorder.finish().unwrap().read_record().unwrap().gaps;
    let SeriesGap { monitor, from, reason, .. } = &gaps[1];
    assert_eq!((monitor.as_str(), *from), ("vmstat", Nanos(77)));
    insta::assert_snapshot!(reason, @"1 rows had another number of cells than the schema has columns");
}

#[test]
fn one_run_is_begun_once_and_not_recovered_alive() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open_archive(directory.path()), fixtures::run_events::make_manifest(1, 1));
    let recorder = archive.begin_run(&manifest).unwrap();
    assert!(matches!(archive.begin_run(&manifest), Err(ArchiveError::Exists { .. })));
    assert!(matches!(RunRecorder::recover(recorder.path()), Err(ArchiveError::Live { .. })));
    assert!(matches!(archive.remove_run(&manifest.id), Err(ArchiveError::Live { .. })));
    let escape = Manifest { id: "../../x".into(), ..manifest };
    assert!(matches!(archive.begin_run(&escape), Err(ArchiveError::Refused { .. })));
}
