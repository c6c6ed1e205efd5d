//! What importing MMTests' logs costs: two runs of 200,000 executions of hackbench each (40 numbers of groups, 5,000
//! executions), from logs to closed runs, and reading one back.
//!
//! `cargo bench -p perflab-archive --bench import_mmtests [-- --keep DIR]`; with `$MMTESTS` naming a checkout of MMTests and
//! perl with its modules at hand, compare-mmtests.pl prints its table of the same logs, and the ratio is told.

#![expect(clippy::unwrap_used, reason = "a bench may die of a surprise")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use perflab_archive::{Archive, Kind, Options, import_foreign};

const GROUPS: u64 = 40;
const EXECUTIONS: u64 = 5_000;
const RUNS: [&str; 2] = ["base-vanilla", "patch-v1"];

fn main() {
    let temporary = tempfile::tempdir().unwrap();
    let kept = std::env::args().skip_while(|argument| argument != "--keep").nth(1);
    let home = kept.map_or(temporary.path().to_owned(), PathBuf::from);
    RUNS.iter().zip(0..).for_each(|(run, seed)| generate(&home.join("logs").join(run), seed));
    let ours = import(&home);
    match std::env::var_os("MMTESTS").map(|mmtests| theirs(Path::new(&mmtests), &home.join("logs"))) {
        Some(Some(theirs)) => {
            println!(
                "compare-mmtests.pl: {theirs:?}; ratio {:.0}",
                theirs.as_secs_f64() / ours.as_secs_f64()
            );
        }
        Some(None) => println!("SKIP compare-mmtests.pl: it failed"),
        None => println!("SKIP compare-mmtests.pl: MMTESTS names no checkout"),
    }
}

/// A run's logs; values scatter by a few percent.
fn generate(run: &Path, seed: u64) {
    let logs = run.join("iter-0/hackbench-process-pipes/logs");
    fs::create_dir_all(&logs).unwrap();
    let bench = "hackbench-process-pipes";
    let stamps = format!("test begin :: {bench} 1700000001\ntest end :: {bench} 1700009999 0\n");
    fs::write(run.join("iter-0/tests-timestamp"), stamps).unwrap();
    let mut state = 88_172_645_463_325_252 + seed;
    for groups in 1..=GROUPS {
        let mut text = String::new();
        for _ in 0..EXECUTIONS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let time = groups as f64 * (0.1 + (state % 1_000) as f64 / 1e5);
            writeln!(text, "# Running 'sched/messaging' benchmark:\n\n     Total time: {time:.3} [sec]")
                .unwrap();
        }
        fs::write(logs.join(format!("hackbench-{groups}")), text).unwrap();
    }
}

/// Imports both runs; gives the time of it.
fn import(home: &Path) -> Duration {
    let archive = Archive::open(&home.join("archive")).unwrap();
    let begin = Instant::now();
    let imported: Vec<_> = Kind::results(&home.join("logs"))
        .unwrap()
        .into_iter()
        .map(|(kind, path)| {
            import_foreign(&archive, &path, &Options { kind: Some(kind), ..Options::default() }).unwrap()
        })
        .collect();
    let took = begin.elapsed();
    println!("import of {} runs: {took:?}", imported.len());
    for one in &imported {
        let begin = Instant::now();
        let record = one.run.record().unwrap();
        println!("reading {} samples: {:?}", record.samples.len(), begin.elapsed());
    }
    took
}

fn theirs(mmtests: &Path, logs: &Path) -> Option<Duration> {
    let begin = Instant::now();
    let mut command = Command::new("perl");
    command.arg(mmtests.join("bin/compare-mmtests.pl")).arg("-d").arg(logs);
    let said = command.args(["-b", "hackbench-process-pipes", "-n", &RUNS.join(",")]).output().ok()?;
    said.status.success().then(|| begin.elapsed())
}
