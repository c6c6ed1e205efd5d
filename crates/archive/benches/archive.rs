//! What an archive costs: recording an event, closing a run, reading it; 1,000 cases x 30 iterations.
//!
//! `cargo bench -p perflab-archive --bench archive [-- --keep DIR]`; `--keep` leaves the archive for other readers.

#[path = "../tests/fixture/mod.rs"]
#[expect(clippy::unwrap_used, reason = "it is that of the tests")]
mod fixture;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use perflab_archive::{Archive, ArchiveError, RunDir};
use perflab_model::Event;

const CASES: u32 = 1_000;
const ITERATIONS: u32 = 30;
const REPEATS: usize = 11;

type Surprise = Box<dyn std::error::Error>;

fn main() -> Result<(), Surprise> {
    let temporary = tempfile::tempdir()?;
    let kept = std::env::args().skip_while(|argument| argument != "--keep").nth(1);
    let directory = kept.map_or(temporary.path().to_owned(), PathBuf::from);
    let archive = Archive::open(&directory)?;
    let run = write(&archive)?;
    let record = run.record()?;
    println!("{} samples, {} iterations", record.samples.len(), record.iterations.len());
    read("RunDir::record", || run.record().map(drop))?;
    read("RunDir::series", || run.series("vmstat").map(drop))?;
    read("RunDir::output", || run.output(Some(9_000), "stdout").map(drop))?;
    read("Archive::find @latest", || archive.find("@latest").map(drop))?;
    read("Archive::list", || archive.list().map(drop))
}

fn write(archive: &Archive) -> Result<RunDir, Surprise> {
    let manifest = fixture::manifest(CASES, ITERATIONS);
    let events: Vec<Event> = fixture::events(&manifest).collect();
    let mut recorder = archive.begin(&manifest)?;
    let begin = Instant::now();
    events.iter().try_for_each(|event| recorder.record(event))?;
    let each = begin.elapsed() / u32::try_from(events.len())?;
    println!("{} events, {each:?} each, {} bytes of journal", events.len(), recorder.bytes_written());
    let begin = Instant::now();
    let run = recorder.finish()?;
    let took = begin.elapsed();
    let bytes = archive.list()?.first().map_or(0, |run| run.bytes);
    println!("Recorder::finish: {took:?}; closed run: {bytes} bytes");
    Ok(run)
}

/// Prints the median of some repeats, and the slowest.
fn read(what: &str, mut work: impl FnMut() -> Result<(), ArchiveError>) -> Result<(), Surprise> {
    let time = |_| {
        let begin = Instant::now();
        work().map(|()| begin.elapsed())
    };
    let mut times: Vec<Duration> = (0..REPEATS).map(time).collect::<Result<_, _>>()?;
    times.sort();
    println!("{what}: median {:?}, slowest {:?}", times[REPEATS / 2], times[REPEATS - 1]);
    Ok(())
}
