//! From MMTests' logs to the table, beside compare-mmtests.pl: two runs of 200,000 executions of hackbench each (40
//! numbers of groups, 5,000 executions), with `perflab import` and `perflab compare` as people run them.
//!
//! `cargo bench -p perflab --bench mmtests [-- --keep DIR]`; with `$MMTESTS` naming a checkout of MMTests and perl with its
//! modules at hand, compare-mmtests.pl prints its table of the same logs, and the ratio is told: its time over ours for
//! import and table together. Times are of the clock, medians of five; those in brackets are of the processors.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

mod told;
use told::{CommandCost, measure_command, median_value, perflab_command};

const GROUPS: u64 = 40;
const EXECUTIONS: u64 = 5_000;
const RUNS: [&str; 2] = ["base-vanilla", "patch-v1"];
const ROUNDS: usize = 5;

fn main() -> anyhow::Result<()> {
    let temporary = tempfile::tempdir()?;
    let kept = std::env::args().skip_while(|argument| argument != "--keep").nth(1);
    let home = kept.map_or(temporary.path().to_owned(), PathBuf::from);
    RUNS.iter().zip(0..).try_for_each(|(run, seed)| generate_logs(&home.join("logs").join(run), seed))?;
    let ours = measure_perflab(&home)?;
    match std::env::var_os("MMTESTS")
        .map(|mmtests| measure_compare_mmtests(Path::new(&mmtests), &home.join("logs")))
    {
        Some(Some(theirs)) => {
            println!("compare-mmtests.pl: {theirs:.2} s");
            for (what, seconds) in ours {
                println!("ratio to import and {what}: {:.0}", theirs / seconds);
            }
        }
        Some(None) => println!("SKIP compare-mmtests.pl: it failed"),
        None => println!("SKIP compare-mmtests.pl: MMTESTS names no checkout"),
    }
    Ok(())
}

/// What importing and printing costs, for each table.
fn measure_perflab(home: &Path) -> anyhow::Result<[(&'static str, f64); 2]> {
    let archive = home.join("archive");
    let import = || {
        let _ = fs::remove_dir_all(&archive);
        measure_command(perflab_command(&archive).arg("import").arg(home.join("logs")))
    };
    let rounds = |round: &dyn Fn() -> anyhow::Result<CommandCost>| {
        (0..ROUNDS).map(|_| round()).collect::<anyhow::Result<Vec<CommandCost>>>()
    };
    let import = print_medians("import of two runs", rounds(&import)?);
    let table = |name: &'static str, style: &str| -> anyhow::Result<_> {
        let compare =
            || measure_command(perflab_command(&archive).arg("compare").args(RUNS).args(["--style", style]));
        Ok((name, import + print_medians(name, rounds(&compare)?)))
    };
    Ok([table("table", "perflab")?, table("table of --style mmtests", "mmtests")?])
}

/// Prints the medians; gives that of the clock.
fn print_medians(what: &str, rounds: Vec<CommandCost>) -> f64 {
    let of = |of: fn(&CommandCost) -> f64| median_value(rounds.iter().map(of).collect());
    let (clock, processors) = (of(|told| told.seconds), of(|told| told.processors));
    println!("{what}: {:.0} ms ({:.0} ms)", clock * 1e3, processors * 1e3);
    clock
}

/// A run's logs; values scatter by a few percent.
fn generate_logs(run: &Path, seed: u64) -> anyhow::Result<()> {
    let logs = run.join("iter-0/hackbench-process-pipes/logs");
    fs::create_dir_all(&logs)?;
    let bench = "hackbench-process-pipes";
    let stamps = format!("test begin :: {bench} 1700000001\ntest end :: {bench} 1700009999 0\n");
    fs::write(run.join("iter-0/tests-timestamp"), stamps)?;
    let mut state = 88_172_645_463_325_252 + seed;
    for groups in 1..=GROUPS {
        let mut text = String::new();
        for _ in 0..EXECUTIONS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let time = groups as f64 * (0.1 + (state % 1_000) as f64 / 1e5);
            writeln!(text, "# Running 'sched/messaging' benchmark:\n\n     Total time: {time:.3} [sec]")?;
        }
        fs::write(logs.join(format!("hackbench-{groups}")), text)?;
    }
    Ok(())
}

fn measure_compare_mmtests(mmtests: &Path, logs: &Path) -> Option<f64> {
    let begin = Instant::now();
    let mut command = Command::new("perl");
    command.arg(mmtests.join("bin/compare-mmtests.pl")).arg("-d").arg(logs);
    let said = command.args(["-b", "hackbench-process-pipes", "-n", &RUNS.join(",")]).output().ok()?;
    said.status.success().then(|| begin.elapsed().as_secs_f64())
}
