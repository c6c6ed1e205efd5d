//! Fifty runs of 2,000 metrics each (matrix.json of lkp-tests, one and ten values a metric), compared as people do: one
//! run against 49 others, one half against the other half, one metric over all of them. Goals: 2 s, 300 MiB.
//!
//! `cargo bench -p perflab --bench many_runs`

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

mod told;
use told::{measure_command, median_value, perflab_command};

const RUNS: usize = 50;
const METRICS: usize = 2_000;
const ROUNDS: usize = 3;

fn main() -> anyhow::Result<()> {
    for values in [1, 10] {
        let home = tempfile::tempdir()?;
        let archive = home.path().join("archive");
        (0..RUNS).try_for_each(|run| import_runs(home.path(), &archive, run, values))?;
        let ids = list_run_ids(&archive)?;
        let told = |what: &str, arguments: &[&str]| -> anyhow::Result<()> {
            let round = |_| measure_command(perflab_command(&archive).args(arguments));
            let rounds: Vec<_> = (0..ROUNDS).map(round).collect::<Result<_, _>>()?;
            let seconds = median_value(rounds.iter().map(|told| told.seconds).collect());
            let peak = rounds.iter().map(|told| told.peak_mib).fold(0.0, f64::max);
            println!(
                "{RUNS} runs x {METRICS} metrics x {values} values, {what}: {seconds:.2} s, {peak:.0} MiB"
            );
            Ok(())
        };
        let all: Vec<&str> = std::iter::once("compare").chain(ids.iter().map(String::as_str)).collect();
        told("one against 49", &all)?;
        told("half against half", &["compare", "even", "odd"])?;
        told("half against half, --style mmtests", &["compare", "even", "odd", "--style", "mmtests"])?;
        told("history of one metric", &["history", "metric-0"])?;
    }
    Ok(())
}

fn import_runs(home: &Path, archive: &Path, run: usize, values: usize) -> anyhow::Result<()> {
    let mut state = 88_172_645_463_325_252 + run as u64;
    let mut value = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        100.0 + (state % 1_000) as f64 / 100.0
    };
    let matrix: BTreeMap<String, Vec<f64>> = (0..METRICS)
        .map(|metric| (format!("bench.metric-{metric}"), (0..values).map(|_| value()).collect()))
        .collect();
    let file = home.join("matrix.json");
    fs::write(&file, serde_json::to_vec(&matrix)?)?;
    let label = if run.is_multiple_of(2) { "even" } else { "odd" };
    measure_command(perflab_command(archive).arg("import").arg(&file).args([
        "--kind",
        "lkp-stats",
        "--label",
        label,
    ]))
    .map(drop)
}

fn list_run_ids(archive: &Path) -> io::Result<Vec<String>> {
    let name = |run: io::Result<fs::DirEntry>| Ok(run?.file_name().to_string_lossy().into_owned());
    let mut ids = fs::read_dir(archive.join("runs"))?.map(name).collect::<io::Result<Vec<String>>>()?;
    ids.sort();
    Ok(ids)
}
