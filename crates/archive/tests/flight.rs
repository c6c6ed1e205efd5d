//! A ring's events as a run: nothing on disk before, and read like any other, with what triggered it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::path::Path;

use fixtures::run_events::{make_manifest, vmstat_schema};
use perflab_archive::flight_recording::FlightCost;
use perflab_archive::{Archive, EventRing, FlightRecording, RunDir};
use perflab_model::{
    Bytes, CellRow, Manifest, Nanos, Outcome, RunEvent, RunEventKind, RunStatus, SeriesSchema, TableCell,
    Trigger, TriggerFinding, Unit,
};

const SECOND: u64 = 1_000_000_000;

fn schema() -> SeriesSchema {
    SeriesSchema { interval: Nanos(SECOND), ..vmstat_schema() }
}

fn number_row(number: u64) -> CellRow {
    let faults = TableCell::Int(number as i64);
    vec![TableCell::Text("node0".into()), faults, TableCell::Missing, TableCell::Missing]
}

/// Ticks each second, every tenth of them whole.
fn tick(number: u64) -> RunEvent {
    let (monitor, took) = ("vmstat".to_owned(), Nanos(1000));
    let what = match (number % 10) as u32 {
        0 => RunEventKind::Rows { monitor, rows: vec![number_row(number)], took },
        step => RunEventKind::Changed { monitor, step, rows: vec![(0, number_row(number))], took },
    };
    RunEvent::new(Nanos(number * SECOND), what)
}

fn trigger() -> Trigger {
    let found = TriggerFinding::Value { row: None, value: 7.0, unit: Unit::new("pages/s") };
    Trigger { condition: "vmstat.pgscan_direct > 5/s".into(), found }
}

/// Waits for 95 s with a ring of 20 s, records what is triggered then, and three ticks more.
fn record_flight(archive: &Archive, manifest: &Manifest) -> FlightRecording {
    let mut ring = EventRing::new(Nanos(20 * SECOND), Bytes(1 << 20));
    ring.push(RunEvent::new(Nanos(0), RunEventKind::SeriesOpened(schema())));
    (0..=95).for_each(|number| ring.push(tick(number)));
    assert!(!archive.path().join("runs").exists(), "nothing is written before");
    let at = Nanos(95 * SECOND);
    let mut recording = FlightRecording::begin(archive, manifest, &ring, at).unwrap();
    recording.record_trigger(at, &trigger()).unwrap();
    for number in 96..=98 {
        let event = tick(number);
        recording.record(&ring, &event).unwrap();
        ring.push(event);
    }
    recording
}

fn read_ticks(run: &RunDir) -> Vec<(u64, i64)> {
    let series = run.read_series("vmstat").unwrap();
    let values = series.named_column::<i64>("pgfault");
    series.at.iter().map(|at| at.0 / SECOND).zip(values.iter().flatten()).collect()
}

fn open_archive(folder: &Path) -> Archive {
    Archive::open(&folder.join("archive")).unwrap()
}

#[test]
fn a_recording_is_a_run_with_the_time_before_its_trigger_and_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open_archive(folder.path());
    let recording = record_flight(&archive, &make_manifest(1, 1));
    let cost = FlightCost { cpu: Nanos(9), monitors_cpu: Nanos(5), peak_rss: 77 };
    let run = recording.finish(Nanos(98 * SECOND), cost).unwrap();
    let ticks: Vec<(u64, i64)> = (75..=98).map(|number| (number, number as i64)).collect();
    assert_eq!(read_ticks(&run), ticks);
    let record = run.read_record().unwrap();
    assert_eq!(record.manifest.status, RunStatus::Finished);
    let [iteration] = record.iterations.as_slice() else { panic!("{:?}", record.iterations) };
    assert_eq!(
        (iteration.start, iteration.end, &iteration.outcome),
        (Nanos(75 * SECOND), Nanos(98 * SECOND), &Outcome::Ok)
    );
    let triggers: Vec<_> = record.triggers.iter().map(|one| (one.at, one.trigger.clone())).collect();
    assert_eq!(triggers, [(Nanos(95 * SECOND), trigger())]);
    let own = record.manifest.overhead;
    assert_eq!((own.cpu, own.monitors_cpu, own.wall), (Nanos(9), Nanos(5), Nanos(23 * SECOND)));
    assert_eq!((own.ticks, own.lost_ticks, own.late_ticks), (24, 0, 0));
}

#[test]
fn a_recording_whose_process_died_has_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open_archive(folder.path());
    drop(record_flight(&archive, &make_manifest(1, 1)));
    let runs = archive.find_runs("@latest").unwrap();
    let record = runs[0].read_record().unwrap();
    assert_eq!((record.manifest.status, record.triggers.len()), (RunStatus::Interrupted, 1));
    assert_eq!(read_ticks(&runs[0]).first(), Some(&(75, 75)));
}
