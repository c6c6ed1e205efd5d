//! What is recorded is what is read: while it is recorded, after a death, and from the tables.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

mod fixture;

use std::path::Path;

use perflab_archive::{Archive, ArchiveError, Recorder, RunDir};
use perflab_model::series::{ColumnData, Gap};
use perflab_model::{Event, Manifest, Nanos, Outcome, RunRecord, Sample, Status, What};

fn recorded(archive: &Archive, manifest: &Manifest) -> Recorder {
    let mut recorder = archive.begin(manifest).unwrap();
    fixture::events(manifest).for_each(|event| recorder.record(&event).unwrap());
    recorder
}

fn only(archive: &Archive) -> RunDir {
    archive.find("@latest").unwrap().pop().unwrap()
}

fn open(directory: &Path) -> Archive {
    Archive::open(&directory.join("archive")).unwrap()
}

fn samples(manifest: &Manifest) -> Vec<Sample> {
    let sample = |event: Event| if let What::Sample(sample) = event.what { Some(sample) } else { None };
    fixture::events(manifest).filter_map(sample).collect()
}

fn check(run: &RunDir, manifest: &Manifest, status: Status) -> RunRecord {
    let record = run.record().unwrap();
    assert_eq!(record.manifest.status, status);
    assert_eq!(run.status().unwrap(), status);
    assert_eq!(record.manifest.plan, manifest.plan);
    assert_eq!(record.samples, samples(manifest));
    assert_eq!(record.iterations.len(), manifest.plan.slots.len());
    assert_eq!(record.gaps.len(), 1);
    assert_eq!(record.warnings[0].message, "governor is powersave");
    assert!(record.manifest.facts.get("cpu.model").is_some());
    assert_eq!(run.monitors().unwrap(), ["vmstat"]);
    check_series(run, manifest.plan.slots.len());
    assert_eq!(run.output(Some(3), "stdout").unwrap().as_deref(), Some("slot 3\n"));
    assert_eq!(run.output(None, "mkfs").unwrap().as_deref(), Some("made"));
    assert_eq!(run.output(None, "stdout").unwrap(), None);
    record
}

fn check_series(run: &RunDir, slots: usize) {
    let series = run.series("vmstat").unwrap();
    assert_eq!(series.schema, fixture::schema());
    assert_eq!(series.at.len(), 2 * slots);
    assert_eq!(series.at[..3], [1, 1, 2].map(|ms| Nanos(ms * fixture::MILLISECOND)));
    let ColumnData::Int(free) = &series.columns[2] else { panic!("nr_free is an integer") };
    assert_eq!(free[..3], [Some(i64::MAX), None, Some(i64::MAX - 1)]);
    let ColumnData::Text(node) = &series.columns[0] else { panic!("node is a text") };
    assert_eq!(node[1].as_deref(), Some("1"));
}

#[test]
fn a_run_reads_the_same_living_dead_and_closed() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open(directory.path()), fixture::manifest(4, 3));
    let recorder = recorded(&archive, &manifest);
    check(&only(&archive), &manifest, Status::Running);
    drop(recorder);
    let dead = check(&only(&archive), &manifest, Status::Interrupted);
    let run = Recorder::recover(&archive.path().join("runs").join(&manifest.id)).unwrap();
    let closed = check(&run, &manifest, Status::Finished);
    assert_eq!(closed.samples, dead.samples);
    assert_eq!(closed.iterations, dead.iterations);
    assert_eq!(closed.manifest.overhead.cpu, Nanos(42));
}

#[test]
fn closing_moves_rows_and_outputs_out_of_the_journal_and_leaves_no_rubbish() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open(directory.path()), fixture::manifest(4, 3));
    let recorder = recorded(&archive, &manifest);
    assert!(recorder.bytes_written() > 1000);
    let run = recorder.finish().unwrap();
    let bulk = |event: &Event| matches!(event.what, What::Rows { .. } | What::Output { .. });
    let events: Vec<Event> = run.events().unwrap().map(Result::unwrap).collect();
    assert!(matches!(events[0].what, What::Began(_)) && !events.iter().any(bulk));
    assert_eq!(run.damage().unwrap(), 0);
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
    Recorder::recover(run.path()).unwrap();
    check(&only(&archive), &manifest, Status::Finished);
}

#[test]
fn every_outcome_survives() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open(directory.path()), fixture::manifest(2, 2));
    let outcomes = [
        Outcome::Ok,
        Outcome::Failed { reason: "exit code 3".into() },
        Outcome::TimedOut { limit: Nanos(7) },
        Outcome::Interrupted,
    ];
    let mut recorder = archive.begin(&manifest).unwrap();
    for (slot, outcome) in (0..).zip(outcomes.clone()) {
        let what = What::IterationEnded { slot, outcome, start: Nanos(1), end: Nanos(2) };
        recorder.record(&Event::new(Nanos(2), what)).unwrap();
    }
    let record = recorder.finish().unwrap().record().unwrap();
    assert_eq!(record.iterations.into_iter().map(|i| i.outcome).collect::<Vec<_>>(), outcomes);
    assert_eq!(record.manifest.status, Status::Interrupted, "nothing said how it ended");
}

#[test]
fn a_torn_last_line_is_dropped_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open(directory.path()), fixture::manifest(4, 3));
    drop(recorded(&archive, &manifest));
    let run = only(&archive);
    let journal = run.path().join("journal.jsonl");
    let bytes = std::fs::read(&journal).unwrap();
    let torn = bytes.len() - 3;
    std::fs::write(&journal, &bytes[..torn]).unwrap();
    assert_eq!(run.damage().unwrap(), 1);
    check(&run, &manifest, Status::Interrupted);
    let run = Recorder::recover(run.path()).unwrap();
    let record = run.record().unwrap();
    assert_eq!(record.manifest.status, Status::Interrupted, "the torn line was the one that said finished");
    assert!(record.warnings[1].message.contains("1 torn or damaged"), "{:?}", record.warnings);
}

#[test]
fn a_value_that_is_no_number_becomes_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open(directory.path()), fixture::manifest(1, 1));
    let mut recorder = archive.begin(&manifest).unwrap();
    let sample = Sample { value: f64::NAN, ..samples(&manifest)[0].clone() };
    recorder.record(&Event::new(Nanos(1), What::Sample(sample))).unwrap();
    let record = recorder.finish().unwrap().record().unwrap();
    assert!(record.samples.is_empty());
    assert!(record.warnings[0].message.contains("came out as NaN"), "{:?}", record.warnings);
}

#[test]
fn rows_that_do_not_fit_leave_a_gap_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open(directory.path()), fixture::manifest(1, 1));
    let mut recorder = recorded(&archive, &manifest);
    let what = What::Rows { monitor: "vmstat".into(), rows: vec![Vec::new()] };
    recorder.record(&Event::new(Nanos(77), what)).unwrap();
    let gaps = recorder.finish().unwrap().record().unwrap().gaps;
    let Gap { monitor, from, reason, .. } = &gaps[1];
    assert_eq!((monitor.as_str(), *from), ("vmstat", Nanos(77)));
    assert!(reason.contains("1 rows"), "{reason}");
}

#[test]
fn one_run_is_begun_once_and_not_recovered_alive() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, manifest) = (open(directory.path()), fixture::manifest(1, 1));
    let recorder = archive.begin(&manifest).unwrap();
    assert!(matches!(archive.begin(&manifest), Err(ArchiveError::Exists { .. })));
    assert!(matches!(Recorder::recover(recorder.path()), Err(ArchiveError::Live { .. })));
    assert!(matches!(archive.remove(&manifest.id), Err(ArchiveError::Live { .. })));
    let escape = Manifest { id: "../../x".into(), ..manifest };
    assert!(matches!(archive.begin(&escape), Err(ArchiveError::Refused { .. })));
}
