//! What an archive costs: recording an event, closing a run, reading it; 1,000 cases x 30 iterations.
//!
//! `cargo bench -p perflab-archive --bench archive [-- --keep DIR]`; `--keep` leaves the archive for other readers.

#![expect(clippy::unwrap_used, reason = "a bench may die of a surprise")]

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use perflab_archive::{Archive, RunDir};
use perflab_model::Event;

const CASES: u32 = 1_000;
const ITERATIONS: u32 = 30;
const REPEATS: usize = 11;

fn main() {
    let temporary = tempfile::tempdir().unwrap();
    let kept = std::env::args().skip_while(|argument| argument != "--keep").nth(1);
    let directory = kept.map_or(temporary.path().to_owned(), PathBuf::from);
    let archive = Archive::open(&directory).unwrap();
    let run = write(&archive);
    let record = run.record().unwrap();
    println!("{} samples, {} iterations", record.samples.len(), record.iterations.len());
    read("RunDir::record", || drop(run.record().unwrap()));
    read("RunDir::series", || drop(run.series("vmstat").unwrap()));
    read("RunDir::output", || drop(run.output(Some(9_000), "stdout").unwrap()));
    read("Archive::find @latest", || drop(archive.find("@latest").unwrap()));
    read("Archive::list", || drop(archive.list().unwrap()));
}

fn write(archive: &Archive) -> RunDir {
    let manifest = fixture::manifest(CASES, ITERATIONS);
    let events: Vec<Event> = fixture::events(&manifest).collect();
    let mut recorder = archive.begin(&manifest).unwrap();
    let begin = Instant::now();
    events.iter().for_each(|event| recorder.record(event).unwrap());
    let each = begin.elapsed() / u32::try_from(events.len()).unwrap();
    println!("{} events, {each:?} each, {} bytes of journal", events.len(), recorder.bytes_written());
    let begin = Instant::now();
    let run = recorder.finish().unwrap();
    println!(
        "Recorder::finish: {:?}; closed run: {} bytes",
        begin.elapsed(),
        archive.list().unwrap()[0].bytes
    );
    run
}

/// Prints the median of some repeats, and the slowest.
fn read(what: &str, mut work: impl FnMut()) {
    let time = |_| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    };
    let mut times: Vec<Duration> = (0..REPEATS).map(time).collect();
    times.sort();
    println!("{what}: median {:?}, slowest {:?}", times[REPEATS / 2], times[REPEATS - 1]);
}
