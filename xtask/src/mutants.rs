//! `cargo xtask long mutants`: cargo-mutants over a random sample, and the share that the tests catch.
//!
//! The sample is drawn by a seed, which is printed, from all mutants of some files, and tested in shards in a clone of the
//! repository under `target/mutants`: a shard that was tested is not tested again while commit, seed and count are the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use damage::MutationRandom;

use crate::{needs, reliability};

/// What is sampled together.
struct MutantSample {
    name: &'static str,
    files: &'static [&'static str],
}

const SAMPLES: &[MutantSample] = &[
    MutantSample { name: "stats", files: &["crates/stats/src/**"] },
    MutantSample {
        name: "analyze and parsers",
        files: &[
            "crates/analyze/src/**",
            "crates/stacks/src/**",
            "crates/formats/src/**",
            "crates/import/src/**",
            "crates/observe/src/monitor/**",
        ],
    },
];

/// Mutants that are tested by one call of cargo-mutants: what is lost at most when the task is interrupted.
const SHARD: usize = 10;
/// Mutants of a sample unless something else is said.
const COUNT: usize = 200;
/// The share that is to be caught.
const WANTED_PERCENT: f64 = 85.0;
/// One function changes at a time: crates that are optimised for the tests are built in as many units as others, so that little
/// is built again.
const SMALL_UNITS: [&str; 3] = [
    "profile.dev.package.perflab-analyze.codegen-units=256",
    "profile.dev.package.perflab-stats.codegen-units=256",
    "profile.dev.package.perflab-workload.codegen-units=256",
];
/// Simulations that take longer than all other tests together: what they alone would notice counts as missed.
const LEFT_OUT: [&str; 8] = [
    "plan_power::",
    "flags::flags_are_rare_on_clean_samples",
    "tails::",
    "run_level::a_few_iterations_against_thousands_seldom_differ",
    "why_placebo::",
    "machines::",
    "pooled_noise::",
    "word_and_interval::",
];
/// A test that runs longer is one that a mutant made endless.
const TIMEOUT: &str = "120";

/// What became of mutants.
#[derive(Default)]
struct MutantCounts {
    caught: usize,
    missed: Vec<String>,
    timed_out: usize,
    /// Those that do not compile.
    unviable: usize,
}

impl MutantCounts {
    /// Per cent of those that compile; a test that never ends has noticed, too.
    fn percent_caught(&self) -> f64 {
        let noticed = self.caught + self.timed_out;
        100.0 * noticed as f64 / (noticed + self.missed.len()).max(1) as f64
    }
}

/// Tests all samples, or some; `false` where less than the wanted share is caught.
pub fn test_mutants(arguments: &[String]) -> Result<bool> {
    let (mut count, mut only, mut seed) = (COUNT, Vec::new(), MutationRandom::new()?.next() >> 1);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--count" => count = value.parse().with_context(|| format!("--count {value}"))?,
            "--seed" => seed = value.parse().with_context(|| format!("--seed {value}"))?,
            "--only" => only.push(value.clone()),
            other => bail!("`{other}` is not known; there are --count N, --seed N and --only SAMPLE"),
        }
    }
    if let Some(name) = only.iter().find(|name| !SAMPLES.iter().any(|sample| sample.name == name.as_str())) {
        let names: Vec<&str> = SAMPLES.iter().map(|sample| sample.name).collect();
        bail!("there is no sample `{name}`; there are: {}", names.join(", "));
    }
    needs::install_cargo_program("cargo-mutants")?;
    let commit = reliability::tested_commit()?;
    println!("seed {seed}: --seed {seed} goes on where this is interrupted");
    let tree = clone_repository()?;
    let mut all_good = true;
    for sample in
        SAMPLES.iter().filter(|sample| only.is_empty() || only.iter().any(|name| name == sample.name))
    {
        let counts = test_sample(sample, count, seed, &tree, &commit)?;
        let share = counts.percent_caught();
        println!("{}: {share:.1} % caught; missed:", sample.name);
        counts.missed.iter().for_each(|mutant| println!("  {mutant}"));
        let tested = counts.caught + counts.missed.len() + counts.timed_out + counts.unviable;
        let cells = [
            tested.to_string(),
            counts.unviable.to_string(),
            counts.caught.to_string(),
            counts.timed_out.to_string(),
            counts.missed.len().to_string(),
            format!("{share:.1} %, seed {seed}"),
        ];
        reliability::MUTANTS.record_row(sample.name, &cells, &commit)?;
        all_good &= share >= WANTED_PERCENT;
    }
    Ok(all_good)
}

/// A clone of what is committed, whose files cargo-mutants may change; its build directory stays from one time to the next.
fn clone_repository() -> Result<PathBuf> {
    let tree = std::env::current_dir()?.join("target/mutants/tree");
    if !tree.join(".git").exists() {
        needs::run_command(Command::new("git").args(["clone", "--quiet", "--local", "."]).arg(&tree))?;
    }
    let git =
        |arguments: &[&str]| needs::run_command(Command::new("git").arg("-C").arg(&tree).args(arguments));
    let here = std::env::current_dir()?.display().to_string();
    git(&["fetch", "--quiet", &here, "HEAD"])?;
    git(&["reset", "--quiet", "--hard", "FETCH_HEAD"])?;
    Ok(tree)
}

fn test_sample(
    sample: &MutantSample,
    count: usize,
    seed: u64,
    tree: &Path,
    commit: &str,
) -> Result<MutantCounts> {
    let files: Vec<String> = sample.files.iter().map(|file| format!("--file={file}")).collect();
    let chosen = draw_mutants(list_mutants(&files, tree)?, count, seed);
    let name = sample.name.replace(' ', "-");
    let mut counts = MutantCounts::default();
    for (number, shard) in chosen.chunks(SHARD).enumerate() {
        let output =
            std::env::current_dir()?.join(format!("target/mutants/{name}-{commit}-{seed}-{count}/{number}"));
        let done = output.join("done");
        if !done.exists() {
            println!("=== {}: shard {number} of {}", sample.name, chosen.len().div_ceil(SHARD));
            test_shard(shard, tree, &output)?;
            fs::write(&done, "")?;
        }
        let read = |name: &str| -> Vec<String> {
            let text = fs::read_to_string(output.join("mutants.out").join(name)).unwrap_or_default();
            text.lines().map(str::to_owned).filter(|mutant| shard.contains(mutant)).collect()
        };
        counts.caught += read("caught.txt").len();
        counts.timed_out += read("timeout.txt").len();
        counts.unviable += read("unviable.txt").len();
        counts.missed.extend(read("missed.txt"));
    }
    Ok(counts)
}

/// The mutants that cargo-mutants would test with these arguments.
fn list_mutants(arguments: &[String], tree: &Path) -> Result<Vec<String>> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--workspace", "--list", "--dir"]).arg(tree).args(arguments);
    let output = command.output().context("cannot run cargo mutants")?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// So many of all, each as likely as every other, the same for the same seed.
fn draw_mutants(mut all: Vec<String>, count: usize, seed: u64) -> Vec<String> {
    all.sort();
    let mut random = MutationRandom::from_seed(seed);
    let mut drawn = Vec::new();
    while drawn.len() < count && !all.is_empty() {
        drawn.push(all.swap_remove(random.next_below(all.len())));
    }
    drawn
}

/// Tests these mutants, each by the tests of its crate.
fn test_shard(mutants: &[String], tree: &Path, output: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(output);
    fs::create_dir_all(output.join("mutants.out"))?;
    let names: Vec<String> = mutants.iter().map(|name| escape_regex(name)).collect();
    let mut chosen: Vec<String> = vec!["--re".into(), format!("^({})$", names.join("|"))];
    let mut files: Vec<&str> = mutants.iter().filter_map(|name| name.split(':').next()).collect();
    files.sort_unstable();
    files.dedup();
    chosen.extend(files.iter().flat_map(|file| ["--file".to_owned(), (*file).to_owned()]));
    // Mutants of the kind "delete field" are taken whatever `--re` says. What was caught before is not tested again.
    let others = list_mutants(&chosen, tree)?.into_iter().filter(|name| !mutants.contains(name));
    let others: String = others.map(|name| name + "\n").collect();
    fs::write(output.join("mutants.out/caught.txt"), others)?;
    let mut command = Command::new("cargo");
    command.args(["mutants", "--workspace", "--in-place", "--iterate", "--baseline", "skip"]);
    command.args(["--timeout", TIMEOUT, "--dir"]).arg(tree).arg("--output").arg(output).args(&chosen);
    for setting in SMALL_UNITS {
        command.arg(format!("--cargo-arg=--config={setting}"));
    }
    command.args(["--", "--"]);
    for test in LEFT_OUT {
        command.args(["--skip", test]);
    }
    command.env("CARGO_TARGET_DIR", tree.join("target")).env("CARGO_INCREMENTAL", "1");
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    // 0: all caught; 2: some missed; 3: some took too long. Anything else is cargo-mutants' own failure.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// The name as a regular expression that matches it alone.
fn escape_regex(text: &str) -> String {
    let escape = |sign: char| match sign {
        'a'..='z'
        | 'A'..='Z'
        | '0'..='9'
        | ' '
        | '_'
        | '/'
        | ':'
        | '"'
        | '\''
        | ','
        | '<'
        | '>'
        | '='
        | '!'
        | ';' => sign.to_string(),
        _ => format!("\\{sign}"),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_mutants_each_once() {
        let all: Vec<String> = (0..50).map(|number| number.to_string()).collect();
        let mut drawn = draw_mutants(all.clone(), 20, 7);
        assert_eq!(drawn, draw_mutants(all.iter().rev().cloned().collect(), 20, 7));
        assert_ne!(drawn, draw_mutants(all.clone(), 20, 8));
        drawn.sort();
        drawn.dedup();
        assert_eq!((drawn.len(), draw_mutants(all, 99, 7).len()), (20, 50));
    }

    #[test]
    fn what_never_ends_is_noticed_and_what_does_not_compile_counts_for_nothing() {
        let counts = MutantCounts { caught: 7, missed: vec!["one".into()], timed_out: 2, unviable: 5 };
        assert!((counts.percent_caught() - 90.0).abs() < 1e-9);
    }

    #[test]
    fn names_are_matched_as_they_stand() {
        assert_eq!(
            escape_regex("a.rs:1:2: replace + with * in f(x)"),
            "a\\.rs:1:2: replace \\+ with \\* in f\\(x\\)"
        );
    }
}
