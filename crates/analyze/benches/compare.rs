//! How long `perflab compare` takes for two runs of 1,000 cases x 30 iterations, with one metric, three and ten:
//! reading both from an archive, and comparing them.
//!
//! `cargo bench -p perflab-analyze` prints milliseconds, the median of five, and beside those of the clock those of the processor, which
//! other programs hardly change. Half of the rows do not change, half do;
//! the noise leaves many unclear, which is the slowest verdict. The goals: 1,000 rows in 0.6 s with reading, 10,000
//! rows compared in 2 s on one core (`taskset -c 0`).

use std::error::Error;
use std::time::Instant;

use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, compare_sides};
use perflab_archive::Archive;
use perflab_model::{Direction, Nanos, Overhead, RunEvent, RunEventKind, RunRecord, RunStatus};

use fixtures::run_builder::{MeasuredMetric, RunBuilder, SplitMixNoise, primary_metric};

const LEVELS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const IDS: [&str; 2] = ["01JDAAAAAAAAAAAAAAAAAAAAAA", "01JDBBBBBBBBBBBBBBBBBBBBBB"];
const NAMES: [&str; 10] =
    ["time", "latency", "jitter", "wait", "wake", "spin", "copy", "flush", "seek", "send"];

fn main() -> Result<(), Box<dyn Error>> {
    for metrics in [1, 3, 10] {
        let directory = tempfile::tempdir()?;
        let archive = Archive::open(directory.path())?;
        for id in IDS {
            store_run(&archive, make_run(id, metrics))?;
        }
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(measure_comparison(&archive)?);
        }
        times.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
        let Some((read, compared, cpu, found)) = times.get(2) else { continue };
        println!(
            "2 runs x 1,000 cases x 30 iterations x {metrics} metrics: read {read:.0} ms, compare {compared:.0} ms, \
             together {:.0} ms, of the processor {cpu:.0} ms ({} rows, {} unclear)",
            read + compared,
            found.rows.len(),
            found.rows.iter().filter(|row| row.verdict_word() == "unclear").count(),
        );
    }
    Ok(())
}

/// Milliseconds to read both runs, and to compare them, and those of the processor for both together.
fn measure_comparison(archive: &Archive) -> Result<(f64, f64, f64, Comparison), Box<dyn Error>> {
    let cpu = processor_milliseconds()?;
    let begin = Instant::now();
    let [baseline, candidate] = [read_side(archive, IDS[0])?, read_side(archive, IDS[1])?];
    let read = begin.elapsed();
    let begin = Instant::now();
    let found = compare_sides(&baseline, &[candidate], &AnalysisOptions::default())?;
    let compared = begin.elapsed();
    let cpu = processor_milliseconds()? - cpu;
    Ok((read.as_secs_f64() * 1e3, compared.as_secs_f64() * 1e3, cpu, found))
}

/// Milliseconds of the processor that all threads took so far: ticks of 10 ms.
fn processor_milliseconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let ticks = fields.split_ascii_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? * 10.0)
}

fn read_side(archive: &Archive, id: &str) -> Result<ComparisonSide, Box<dyn Error>> {
    let runs = archive.find_runs(id)?;
    let runs = runs.iter().map(|run| run.read_record()).collect::<Result<Vec<RunRecord>, _>>()?;
    Ok(ComparisonSide { name: id.into(), runs })
}

fn make_run(id: &str, metrics: usize) -> RunRecord {
    let mut noise = SplitMixNoise(metrics as u64 + u64::from(id == IDS[1]));
    let lab = RunBuilder::new(id).with(|lab| {
        lab.factors = ["x", "y", "z"].map(|factor| (factor, LEVELS.to_vec())).to_vec();
        lab.iterations = 30;
        let metric = |name: &&'static str| -> MeasuredMetric { primary_metric(name, "s", Direction::Lower) };
        lab.metrics = NAMES.iter().take(metrics).map(metric).collect();
    });
    lab.build_run(|spot| {
        let changed = id == IDS[1] && spot.level("x") >= "5";
        Some(noise.lognormal_around(if changed { 10.5 } else { 10.0 }, 0.1))
    })
}

fn store_run(archive: &Archive, run: RunRecord) -> Result<(), Box<dyn Error>> {
    let mut recorder = archive.begin_run(&run.manifest)?;
    let mut record = |what| recorder.record(&RunEvent::new(Nanos(1), what));
    record(RunEventKind::Began(Box::new(run.manifest)))?;
    for sample in run.samples {
        record(RunEventKind::Sample(sample))?;
    }
    for iteration in run.iterations {
        let (slot, outcome) = (iteration.slot, iteration.outcome);
        record(RunEventKind::IterationEnded { slot, outcome, start: iteration.start, end: iteration.end })?;
    }
    record(RunEventKind::Ended { status: RunStatus::Finished, overhead: Overhead::default() })?;
    recorder.finish()?;
    Ok(())
}
