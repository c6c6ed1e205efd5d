//! What it costs to make a categorised flame graph of a perf.data, in CPU time, against the scripts that people use; and
//! what recording costs hackbench against `perf record`.
//!
//! `cargo bench -p perflab --bench perf_data`. `$PERFLAB_PERF_DATA` is a perf.data of 340,000 samples or so; without it
//! one is recorded of hackbench, which takes about a minute. `$PERFLAB_FLAMEGRAPH` is a folder with stackcollapse-perf.pl and
//! flamegraph.pl; `$PERFLAB_INFERNO` one with inferno-collapse-perf and inferno-flamegraph. What is not there is
//! said to be left out. Interleaved; medians of CPU time (user and system, children included).

mod told;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::ensure;
use told::{children_cpu_seconds, median_value};

const ROUNDS: usize = 3;
const PERFLAB: &str = env!("CARGO_BIN_EXE_perflab");

fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let given = std::env::var_os("PERFLAB_PERF_DATA").map(PathBuf::from);
    let data = given.map_or_else(|| record_perf_data(folder.path()), Ok)?;
    compare_conversions(&data, folder.path())?;
    compare_recorders(folder.path())
}

/// CPU seconds of a shell's command; it must succeed.
fn shell_cpu_seconds(script: &str, folder: &Path) -> anyhow::Result<f64> {
    let before = children_cpu_seconds()?;
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(folder).env("PERFLAB_ARCHIVE", folder.join("archive"));
    let ended = shell.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(ended.success(), "{script}: {ended}");
    Ok(children_cpu_seconds()? - before)
}

fn record_perf_data(folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join("perf.data");
    let script = "perf record -q -F 19999 -a -g -m 4096 -o perf.data -- hackbench -g 10 -l 1500";
    println!("recording: {script}: {:.1} s of CPU", shell_cpu_seconds(script, folder)?);
    Ok(path)
}

fn compare_conversions(data: &Path, folder: &Path) -> anyhow::Result<()> {
    let data = data.canonicalize()?;
    let data = data.display();
    let steps = [
        format!("flame import {data} --label bench"),
        "flame shares @latest".into(),
        "flame svg @latest -o ours.svg".into(),
    ];
    let ours = steps.map(|step| format!("{PERFLAB} {step}")).join(" && ");
    let mut arms = vec![("perflab flame import, shares and svg", ours)];
    if let Ok(peer) = std::env::var("PERFLAB_FLAMEGRAPH") {
        let script = format!(
            "perf script -i {data} | perl {peer}/stackcollapse-perf.pl | perl {peer}/flamegraph.pl > perl.svg"
        );
        arms.push(("perf script | stackcollapse-perf.pl | flamegraph.pl", script));
    }
    if let Ok(peer) = std::env::var("PERFLAB_INFERNO") {
        let script = format!(
            "perf script -i {data} | {peer}/inferno-collapse-perf | {peer}/inferno-flamegraph > inferno.svg"
        );
        arms.push(("perf script | inferno-collapse-perf | inferno-flamegraph", script));
    }
    let mut costs = vec![Vec::new(); arms.len()];
    for _ in 0..ROUNDS {
        for ((_, script), costs) in arms.iter().zip(&mut costs) {
            costs.push(shell_cpu_seconds(script, folder)?);
        }
    }
    let medians: Vec<f64> = costs.into_iter().map(median_value).collect();
    println!("{}", sample_account_text(folder)?);
    for ((name, _), median_cost) in arms.iter().zip(&medians) {
        println!("{name}: {median_cost:.2} s of CPU, {:.1} times perflab", median_cost / medians[0]);
    }
    Ok(())
}

/// What became of the samples, as perflab says.
fn sample_account_text(folder: &Path) -> anyhow::Result<String> {
    let run = Command::new(PERFLAB)
        .args(["flame", "show", "@latest", "--top", "1"])
        .env("PERFLAB_ARCHIVE", folder.join("archive"))
        .output()?;
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    Ok(said.lines().find(|line| line.contains(" samples: ")).unwrap_or("no samples").to_owned())
}

/// User and system seconds that hackbench itself had, under each recorder at 999 Hz.
fn compare_recorders(folder: &Path) -> anyhow::Result<()> {
    const ROUNDS: usize = 7;
    let load = "hackbench -g 4 -l 500";
    // The load writes its own times, and its children's, when it is done.
    let file = folder.join("times.txt");
    let timed = format!("sh -c '{load} > /dev/null; times > {}'", file.display());
    let arms = [
        ("nothing", timed.clone()),
        ("perf record -F 999 -a -g", format!("perf record -q -F 999 -a -g -o rec.data -- {timed}")),
        (
            "perflab flame record -F 999 --system",
            format!("{PERFLAB} flame record -F 999 --system -- {timed}"),
        ),
    ];
    let mut costs = vec![Vec::new(); arms.len()];
    for _ in 0..ROUNDS {
        for ((_, script), costs) in arms.iter().zip(&mut costs) {
            shell_cpu_seconds(script, folder)?;
            costs.push(parse_times_output(&std::fs::read_to_string(&file)?));
        }
    }
    for ((name, _), costs) in arms.iter().zip(costs) {
        println!("{load} under {name}: {:.3} s of CPU (median of {ROUNDS})", median_value(costs));
    }
    Ok(())
}

/// The seconds in what `times` writes: `0m1.23s 0m4.5s` for the shell, then for its children.
fn parse_times_output(text: &str) -> f64 {
    let seconds = |word: &str| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    };
    text.split_whitespace().filter_map(seconds).sum()
}
