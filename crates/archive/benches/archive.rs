//! What an archive costs: recording an event, closing a run, reading it; 1,000 cases x 30 iterations.
//!
//! `cargo bench -p perflab-archive --bench archive [-- --keep DIR]`; `--keep` leaves the archive for other readers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use perflab_archive::{Archive, ArchiveError, RunDir};
use perflab_model::RunEvent;

const CASES: u32 = 1_000;
const ITERATIONS: u32 = 30;
const REPEATS: usize = 11;

type ArchiveBenchError = Box<dyn std::error::Error>;

fn main() -> Result<(), ArchiveBenchError> {
    let temporary = tempfile::tempdir()?;
    let kept = std::env::args().skip_while(|argument| argument != "--keep").nth(1);
    let directory = kept.map_or(temporary.path().to_owned(), PathBuf::from);
    let archive = Archive::open(&directory)?;
    let run = bench_write(&archive)?;
    let record = run.read_record()?;
    println!("{} samples, {} iterations", record.samples.len(), record.iterations.len());
    bench_read("RunDir::record", || run.read_record().map(drop))?;
    bench_read("RunDir::series", || run.read_series("vmstat").map(drop))?;
    bench_read("RunDir::output", || run.read_output(Some(9_000), "stdout").map(drop))?;
    bench_read("Archive::find @latest", || archive.find_runs("@latest").map(drop))?;
    bench_read("Archive::list", || archive.list_runs().map(drop))
}

fn bench_write(archive: &Archive) -> Result<RunDir, ArchiveBenchError> {
    let manifest = fixtures::run_events::make_manifest(CASES, ITERATIONS);
    let events: Vec<RunEvent> = fixtures::run_events::run_events(&manifest).collect();
    let mut recorder = archive.begin_run(&manifest)?;
    let begin = Instant::now();
    events.iter().try_for_each(|event| recorder.record(event))?;
    let each = begin.elapsed() / u32::try_from(events.len())?;
    println!("{} events, {each:?} each, {} bytes of journal", events.len(), recorder.bytes_written());
    let begin = Instant::now();
    let run = recorder.finish()?;
    let took = begin.elapsed();
    let bytes = archive.list_runs()?.first().map_or(0, |run| run.bytes);
    println!("Recorder::finish: {took:?}; closed run: {bytes} bytes");
    Ok(run)
}

/// Prints the median of some repeats, and the slowest.
fn bench_read(
    what: &str,
    mut work: impl FnMut() -> Result<(), ArchiveError>,
) -> Result<(), ArchiveBenchError> {
    let time = |_| {
        let begin = Instant::now();
        work().map(|()| begin.elapsed())
    };
    let mut times: Vec<Duration> = (0..REPEATS).map(time).collect::<Result<_, _>>()?;
    times.sort();
    println!("{what}: median {:?}, slowest {:?}", times[REPEATS / 2], times[REPEATS - 1]);
    Ok(())
}
