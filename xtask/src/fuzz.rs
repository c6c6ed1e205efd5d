//! `cargo xtask long fuzz`: every target for some time, coverage-guided, with counts.
//!
//! A target is a folder of `fuzz/corpus`: a decoder of `crates/fuzz-decoders`, or a program of `fuzz/fuzz_targets` of that
//! name. What the fuzzer grows stays in `target/fuzz/corpus`, so that an interrupted task goes on with it; the smallest of
//! what it needs for its coverage goes back to `fuzz/corpus`. A target whose row is of this commit and as long is done.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::needs;
use crate::reliability::{self, CORPUS};

const GROWN: &str = "target/fuzz/corpus";
const BUILT: &str = "target/fuzz/x86_64-unknown-linux-gnu/release";
/// Programs of their own; every other target is a decoder, and one program has them all.
const PROGRAMS: [&str; 3] = ["slab_set", "slab_list", "trace_file"];
/// What a target's corpus may weigh in the repository, so that all weigh less than 5 MB.
const MOST_BYTES: u64 = 110 << 10;
/// Seconds of CPU time that a target is fuzzed for, unless something else is said.
const SECONDS: u64 = 600;
const LONGEST_INPUT: u32 = 32 << 10;

/// What is to be fuzzed, and how.
struct FuzzArgs {
    /// Of CPU time: what a busy machine takes away does not count.
    seconds: u64,
    only: Vec<String>,
    /// What is done is done again.
    again: bool,
    table: bool,
}

/// What came of one target.
struct FuzzCounts {
    executions: u64,
    /// Edges of the program that were reached.
    coverage: u64,
    inputs: usize,
    finds: usize,
}

/// Fuzzes all targets, or some; `false` where something was found.
pub fn fuzz_decoders(arguments: &[String]) -> Result<bool> {
    let args = parse_fuzz_arguments(arguments)?;
    let targets = list_targets()?;
    if let Some(name) = args.only.iter().find(|name| !targets.contains(name)) {
        bail!("there is no target `{name}`; there are: {}", targets.join(", "));
    }
    needs::install_cargo_program("cargo-fuzz")?;
    let commit = reliability::tested_commit()?;
    let begun = Instant::now();
    needs::run_command(Command::new("cargo").args([
        "+nightly",
        "fuzz",
        "build",
        "--target-dir",
        "target/fuzz",
    ]))?;
    println!("built in {} s", begun.elapsed().as_secs());
    let mut all_good = true;
    for target in targets.iter().filter(|name| args.only.is_empty() || args.only.contains(name)) {
        if !args.again && args.table && is_done(target, args.seconds, &commit)? {
            println!("=== {target}: done");
            continue;
        }
        println!("=== {target}: {} s", args.seconds);
        let counts = fuzz_target(target, args.seconds)?;
        println!(
            "{target}: {} executions, {} edges, {} inputs, {} finds",
            counts.executions, counts.coverage, counts.inputs, counts.finds
        );
        all_good &= counts.finds == 0;
        if args.table {
            let cells = [
                counts.executions.to_string(),
                counts.coverage.to_string(),
                counts.inputs.to_string(),
                counts.finds.to_string(),
                args.seconds.to_string(),
            ];
            reliability::DECODERS.record_row(target, &cells, &commit)?;
        }
    }
    Ok(all_good)
}

fn parse_fuzz_arguments(arguments: &[String]) -> Result<FuzzArgs> {
    let mut args = FuzzArgs { seconds: SECONDS, only: Vec::new(), again: false, table: true };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                let seconds = arguments.next().context("--seconds needs a number")?;
                args.seconds = seconds.parse().with_context(|| format!("--seconds {seconds}"))?;
            }
            "--only" => {
                args.only.push(arguments.next().context("--only needs the name of a target")?.clone())
            }
            "--again" => args.again = true,
            "--no-table" => args.table = false,
            other => {
                bail!("`{other}` is not known; there are --seconds N, --only TARGET, --again and --no-table")
            }
        }
    }
    Ok(args)
}

fn list_targets() -> Result<Vec<String>> {
    let entries = fs::read_dir(CORPUS).with_context(|| format!("cannot read {CORPUS}"))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Whether the table has a row of this commit and so many seconds.
fn is_done(target: &str, seconds: u64, commit: &str) -> Result<bool> {
    let row = reliability::DECODERS.find_row(target)?;
    let cells: Vec<&str> = row.iter().flat_map(|row| row.split('|').map(str::trim)).collect();
    let [.., done_for, _, of, _] = &cells[..] else { return Ok(false) };
    Ok(*of == commit && done_for.parse::<u64>().is_ok_and(|done| done >= seconds))
}

/// libFuzzer with a target; what follows is its own.
fn libfuzzer_command(target: &str) -> Command {
    let program = if PROGRAMS.contains(&target) { target } else { "decoder" };
    let mut command = Command::new(Path::new(BUILT).join(program));
    command.env("PERFLAB_FUZZ_DECODER", target).stdin(Stdio::null()).stdout(Stdio::null());
    // SQLite's tables of one name within functions pass for one global that is defined twice.
    command.env("ASAN_OPTIONS", "detect_odr_violation=0");
    command
}

/// Fuzzes a target until it has used its CPU time or something is found: again for what is left where others had the CPU.
fn fuzz_target(target: &str, seconds: u64) -> Result<FuzzCounts> {
    let (corpus, grown) = (Path::new(CORPUS).join(target), Path::new(GROWN).join(target));
    let artifacts = PathBuf::from(format!("fuzz/artifacts/{target}/"));
    fs::create_dir_all(&grown)?;
    fs::create_dir_all(&artifacts)?;
    let before = fs::read_dir(&artifacts)?.count();
    let begun = children_cpu_seconds()?;
    let mut counts = FuzzCounts { executions: 0, coverage: 0, inputs: 0, finds: 0 };
    loop {
        let left = seconds.saturating_sub((children_cpu_seconds()? - begun).round() as u64);
        if left == 0 || counts.finds > 0 {
            break;
        }
        let mut command = libfuzzer_command(target);
        command.arg(&grown).arg(&corpus).args([
            &format!("-max_total_time={left}"),
            &format!("-max_len={LONGEST_INPUT}"),
            &format!("-artifact_prefix={}", artifacts.display()),
            "-print_final_stats=1",
            "-timeout=20",
            // By the clock of the wall: on a busy machine, 10 s are soon over.
            "-report_slow_units=20",
            "-rss_limit_mb=2048",
            "-detect_leaks=0",
        ]);
        let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        counts.finds = fs::read_dir(&artifacts)?.count().saturating_sub(before);
        if counts.finds > 0 {
            // What broke, without the fuzzer's counts before it.
            let reason =
                said.lines().skip_while(|line| !line.contains("panicked") && !line.contains("ERROR"));
            reason.take(12).for_each(|line| println!("  {line}"));
        } else if !output.status.success() {
            bail!("{command:?} ended with {}\n{said}", output.status);
        }
        let number = |line: &str, before: &str| -> Option<u64> {
            line.split_once(before)?.1.split_whitespace().next()?.parse().ok()
        };
        counts.executions += said
            .lines()
            .find_map(|line| number(line, "stat::number_of_executed_units:"))
            .with_context(|| format!("{command:?} did not say how many inputs it tried\n{said}"))
            .or_else(|error| if counts.finds > 0 { Ok(0) } else { Err(error) })?;
        counts.coverage =
            said.lines().rev().find_map(|line| number(line, " cov: ")).unwrap_or(counts.coverage);
    }
    if counts.finds == 0 {
        minimise_corpus(target, &grown, &corpus)?;
    }
    counts.inputs = fs::read_dir(&corpus)?.count();
    Ok(counts)
}

/// CPU seconds of the children that have ended, in user and kernel mode.
fn children_cpu_seconds() -> Result<f64> {
    // proc_pid_stat(5): the 16th and the 17th field, in ticks of 10 ms on every Linux; the name before them may have blanks.
    let stat = fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |field: usize| -> Result<f64> {
        Ok(fields.get(field - 3).context("/proc/self/stat ends early")?.parse()?)
    };
    Ok((ticks(16)? + ticks(17)?) / 100.0)
}

/// Replaces the corpus by the fewest inputs with the coverage of all, the small ones first, as many as there is room for.
fn minimise_corpus(target: &str, grown: &Path, corpus: &Path) -> Result<()> {
    let merged = PathBuf::from(format!("target/fuzz/merged-{target}"));
    let _ = fs::remove_dir_all(&merged);
    fs::create_dir_all(&merged)?;
    let mut command = libfuzzer_command(target);
    command.arg("-merge=1").arg(format!("-max_len={LONGEST_INPUT}")).args(["-detect_leaks=0", "-timeout=20"]);
    command.arg(&merged).arg(grown).arg(corpus).stderr(Stdio::null());
    needs::run_command(&mut command)?;
    let mut inputs = Vec::new();
    for entry in fs::read_dir(&merged)? {
        let entry = entry?;
        inputs.push((entry.metadata()?.len(), entry.path()));
    }
    inputs.sort();
    fs::remove_dir_all(corpus)?;
    fs::create_dir_all(corpus)?;
    let mut room = MOST_BYTES;
    for (bytes, path) in inputs {
        let Some(left) = room.checked_sub(bytes) else { break };
        room = left;
        fs::copy(&path, corpus.join(path.file_name().context("an input without a name")?))?;
    }
    Ok(fs::remove_dir_all(&merged)?)
}
