//! Ten thousand nightly runs (two cases, two metrics each, ten iterations, some hundred facts), listed, judged and
//! looked at as a whole. Goals: `list` 50 ms, `history` and `guard` 300 ms.
//!
//! `cargo bench -p perflab --bench index [-- --runs N] [--keep DIR] [--before PERFLAB]`: with another build of perflab
//! both do the same work in turn, and the ratio of their times is printed; a kept archive is used again. Times are of
//! the clock, medians of five.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::ensure;
use fixtures::run_builder::{RunBuilder, SplitMixNoise, explanatory_metric, primary_metric};
use perflab_archive::{Archive, new_run_id};
use perflab_model::fact_table;
use perflab_model::{Direction, Nanos, Overhead, RunEvent, RunEventKind, RunRecord, RunStatus};

mod told;
use told::median_value;

const ROUNDS: usize = 5;

/// An hour.
const BETWEEN_RUNS: u64 = 3_600_000_000_000;

fn main() -> anyhow::Result<()> {
    let option = |name: &str| std::env::args().skip_while(|argument| argument != name).nth(1);
    let runs: u64 = option("--runs").map_or(Ok(10_000), |runs| runs.parse())?;
    let temporary = tempfile::tempdir()?;
    let folder = option("--keep").map_or_else(|| temporary.path().join("archive"), PathBuf::from);
    let archive = Archive::open(&folder)?;
    let begin = Instant::now();
    let there = archive.list_runs()?.len() as u64;
    (there..runs).try_for_each(|number| record_night(&archive, number))?;
    println!("{} runs recorded in {:.1} s", runs.saturating_sub(there), begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    archive.rebuild_index()?;
    let bytes = fs::metadata(folder.join("index.sqlite"))?.len();
    println!(
        "index made anew in {:.2} s: {:.1} MiB",
        begin.elapsed().as_secs_f64(),
        bytes as f64 / 1048576.0
    );
    let ours = PathBuf::from(env!("CARGO_BIN_EXE_perflab"));
    let before = option("--before").map(PathBuf::from);
    for verb in [&["list"][..], &["list", "--last", "20"], &["history"], &["history", "time"], &["guard"]] {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            times[0].push(measure_verb(&ours, &folder, verb)?);
            if let Some(before) = &before {
                times[1].push(measure_verb(before, &folder, verb)?);
            }
        }
        let [ours, theirs] = times;
        let (ours, verb) = (median_value(ours), verb.join(" "));
        match theirs.is_empty() {
            true => println!("{verb}: {:.0} ms", 1e3 * ours),
            false => {
                let theirs = median_value(theirs);
                println!(
                    "{verb}: {:.0} ms, before {:.0} ms, ratio {:.0}",
                    1e3 * ours,
                    1e3 * theirs,
                    theirs / ours
                );
            }
        }
    }
    Ok(())
}

/// Seconds that a verb takes; the guard may find something.
fn measure_verb(perflab: &Path, archive: &Path, verb: &[&str]) -> anyhow::Result<f64> {
    let mut command = Command::new(perflab);
    command.arg("--archive").arg(archive).args(verb).stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let status = command.status()?;
    ensure!([Some(0), Some(5)].contains(&status.code()), "{command:?} ended with {status}");
    Ok(begin.elapsed().as_secs_f64())
}

/// The run of one night. Its level moves by 4 % every thousand runs.
fn record_night(archive: &Archive, number: u64) -> anyhow::Result<()> {
    let mut noise = SplitMixNoise(number);
    let level = 1.0 + 0.04 * ((number / 1_000) % 2) as f64;
    let builder = RunBuilder::new(&new_run_id()).with(|builder| {
        builder.boot_id = format!("boot-{number}");
        builder.workloads = vec!["sweep", "walk"];
        builder.metrics = vec![
            primary_metric("time", "s", Direction::Lower),
            explanatory_metric("faults", "1", Direction::Neither),
        ];
    });
    let mut run = builder.build_run(|point| {
        let level = if point.metric == "time" { level } else { 1e6 };
        Some(noise.lognormal_around(level, 0.02))
    });
    run.manifest.label = Some("nightly".into());
    run.manifest.anchor.realtime.0 += number * BETWEEN_RUNS;
    add_facts(&mut run, number);
    record_run(archive, &run)
}

fn add_facts(run: &mut RunRecord, number: u64) {
    let facts = &mut run.manifest.facts;
    facts.add(fact_table::KERNEL_RELEASE, format!("6.{}", number / 50).as_str(), "uname");
    facts.add(fact_table::CPU_MODEL, "made up", "/proc/cpuinfo");
    facts.add(fact_table::MEMORY_TOTAL, 17_179_869_184_i64, "/proc/meminfo");
    facts.add(fact_table::LOAD_1, number as i64 % 7, "/proc/loadavg");
    for setting in 0..120 {
        facts.add(
            fact_table::SYSCTL.key(format_args!("vm.setting_{setting}")),
            i64::from(setting),
            "/proc/sys/vm",
        );
    }
}

fn record_run(archive: &Archive, run: &RunRecord) -> anyhow::Result<()> {
    let mut recorder = archive.begin_bulk_run(&run.manifest)?;
    let whats = [RunEventKind::Began(Box::new(run.manifest.clone()))].into_iter();
    let samples = run.samples.iter().cloned().map(RunEventKind::Sample);
    let iterations = run.iterations.iter().map(|one| RunEventKind::IterationEnded {
        slot: one.slot,
        outcome: one.outcome.clone(),
        start: one.start,
        end: one.end,
    });
    let ended = RunEventKind::Ended { status: RunStatus::Finished, overhead: Overhead::default() };
    for what in whats.chain(samples).chain(iterations).chain([ended]) {
        recorder.record(&RunEvent::new(Nanos(1_000_000_000), what))?;
    }
    recorder.finish()?;
    Ok(())
}
