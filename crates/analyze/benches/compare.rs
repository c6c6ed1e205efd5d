//! How long `perflab compare` takes for two runs of 1,000 cases x 30 iterations, with one metric and with three:
//! reading both from an archive, and comparing them.
//!
//! `cargo bench -p perflab-analyze` prints milliseconds, the median of five. Half of the rows do not change, half do;
//! the noise leaves many unclear, which is the slowest verdict. The goal is under a second for both together.

use std::error::Error;
use std::time::Instant;

use perflab_analyze::{Comparison, Options, Side, compare};
use perflab_archive::Archive;
use perflab_model::{Direction, Event, Nanos, Overhead, RunRecord, Status, What};

#[path = "../tests/it/build.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "made for tests, of which this uses a part")]
mod build;

use build::{Lab, Measured, Noise, primary};

const LEVELS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const IDS: [&str; 2] = ["01JDAAAAAAAAAAAAAAAAAAAAAA", "01JDBBBBBBBBBBBBBBBBBBBBBB"];
const NAMES: [&str; 3] = ["time", "latency", "jitter"];

fn main() -> Result<(), Box<dyn Error>> {
    for metrics in [1, 3] {
        let directory = tempfile::tempdir()?;
        let archive = Archive::open(directory.path())?;
        for id in IDS {
            store(&archive, run(id, metrics))?;
        }
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(measure(&archive)?);
        }
        times.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
        let Some((read, compared, found)) = times.get(2) else { continue };
        println!(
            "2 runs x 1,000 cases x 30 iterations x {metrics} metrics: read {read:.0} ms, compare {compared:.0} ms, \
             together {:.0} ms ({} rows, {} unclear)",
            read + compared,
            found.rows.len(),
            found.rows.iter().filter(|row| row.word() == "unclear").count(),
        );
    }
    Ok(())
}

/// Milliseconds to read both runs, and to compare them.
fn measure(archive: &Archive) -> Result<(f64, f64, Comparison), Box<dyn Error>> {
    let begin = Instant::now();
    let [baseline, candidate] = [read(archive, IDS[0])?, read(archive, IDS[1])?];
    let read = begin.elapsed();
    let begin = Instant::now();
    let found = compare(&baseline, &[candidate], &Options::default())?;
    Ok((read.as_secs_f64() * 1e3, begin.elapsed().as_secs_f64() * 1e3, found))
}

fn read(archive: &Archive, id: &str) -> Result<Side, Box<dyn Error>> {
    let runs = archive.find(id)?;
    let runs = runs.iter().map(|run| run.record()).collect::<Result<Vec<RunRecord>, _>>()?;
    Ok(Side { name: id.into(), runs })
}

fn run(id: &str, metrics: usize) -> RunRecord {
    let mut noise = Noise(metrics as u64 + u64::from(id == IDS[1]));
    let lab = Lab::new(id).with(|lab| {
        lab.factors = ["x", "y", "z"].map(|factor| (factor, LEVELS.to_vec())).to_vec();
        lab.iterations = 30;
        let metric = |name: &&'static str| -> Measured { primary(name, "s", Direction::Lower) };
        lab.metrics = NAMES.iter().take(metrics).map(metric).collect();
    });
    lab.run(|spot| {
        let changed = id == IDS[1] && spot.level("x") >= "5";
        Some(noise.around(if changed { 10.5 } else { 10.0 }, 0.1))
    })
}

fn store(archive: &Archive, run: RunRecord) -> Result<(), Box<dyn Error>> {
    let mut recorder = archive.begin(&run.manifest)?;
    let mut record = |what| recorder.record(&Event::new(Nanos(1), what));
    record(What::Began(Box::new(run.manifest)))?;
    for sample in run.samples {
        record(What::Sample(sample))?;
    }
    for iteration in run.iterations {
        let (slot, outcome) = (iteration.slot, iteration.outcome);
        record(What::IterationEnded { slot, outcome, start: iteration.start, end: iteration.end })?;
    }
    record(What::Ended { status: Status::Finished, overhead: Overhead::default() })?;
    recorder.finish()?;
    Ok(())
}
