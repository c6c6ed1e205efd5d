//! Profiles and traces, damaged by chance or by intent: perflab refuses them or reads what is sound, in bounded memory
//! and time.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use damage::{MutationRandom, mutate_bytes};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use super::trial::{TrialBench, TrialLimits, repeat_trials};

/// Mutants of perf.data, pprof and optrace files.
pub const ATTACK: Attack = Attack {
    name: "profiles",
    tries: "import of mutated perf.data (7 of 9: stacks, system, dwarf, compressed, pipe, groups, several events), pprof and \
            optrace files, with 2 GB and 60 s each",
    brief: 1500,
    full: 6000,
    carry_out: attack_profiles,
};

/// An import's memory: its own, the kernel's symbols and hundreds of times the file. It reads, or refuses what is damaged.
const LIMITS: TrialLimits =
    TrialLimits { memory: 2_000_000, patience: Duration::from_secs(60), codes: &[0, 2] };
/// What a sampled command does: some time in user space, some in the kernel.
const WORK: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; cat /proc/kallsyms > /dev/null";

/// How perf records the files that are mutated.
const RECORDINGS: &[(&str, &[&str])] = &[
    ("stacks", &["-F", "499", "-g"]),
    ("system", &["-F", "499", "-a", "-g", "--buildid-mmap"]),
    ("dwarf", &["-F", "199", "--call-graph", "dwarf,4096"]),
    ("compressed", &["-F", "999", "-g", "-z"]),
    ("group", &["-e", "{cpu-clock,page-faults}:S", "-g"]),
    ("events", &["-e", "cpu-clock,page-faults", "-g"]),
];

/// A file to mutate, and the words that import it.
struct OriginalProfile {
    name: String,
    bytes: Vec<u8>,
    import: &'static [&'static str],
}

fn attack_profiles(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    let originals = record_original_profiles(&TrialBench::new(ground, "originals", &LIMITS)?)?;
    repeat_trials(ground, &LIMITS, count, |bench, number, chance| {
        bench.empty_archive(number)?;
        attempt_mutated_profile(
            bench,
            originals.get(number as usize % originals.len()).context("no files")?,
            number,
            chance,
        )
    })
}

fn record_original_profiles(bench: &TrialBench<'_>) -> Result<Vec<OriginalProfile>> {
    let flame = &["flame", "import"];
    let mut all = Vec::new();
    for (name, options) in RECORDINGS {
        let path = bench.folder.join(format!("{name}.perf.data"));
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-o"]).arg(&path).args(*options).args(["--", "sh", "-c", WORK]);
        capture_stdout(&mut perf, "perf (apt install linux-perf, and as root)")?;
        all.push(OriginalProfile { name: (*name).into(), bytes: fs::read(path)?, import: flame });
    }
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-g", "-o", "-", "--", "sh", "-c", WORK]);
    let bytes = capture_stdout(&mut perf, "perf")?;
    all.push(OriginalProfile { name: "pipe".into(), bytes, import: flame });
    let pprof = bench.folder.join("pprof.pb");
    capture_stdout(&mut bench.limited_command(&["flame", "import", "stacks.perf.data"]), "flame import")?;
    capture_stdout(
        &mut bench.limited_command(&["flame", "export", "--to", "pprof", "-o", "pprof.pb"]),
        "flame export",
    )?;
    all.push(OriginalProfile { name: "pprof".into(), bytes: fs::read(pprof)?, import: flame });
    let trace = bench.folder.join("trace.optrace");
    let mut load = bench.limited_command(&["load", "drv_rand_ops", "2000", "intsrt"]);
    capture_stdout(load.env("OPTRACE_FILE", &trace), "the load")?;
    all.push(OriginalProfile {
        name: "optrace".into(),
        bytes: fs::read(trace)?,
        import: &["import", "--kind", "optrace"],
    });
    Ok(all)
}

fn capture_stdout(command: &mut Command, what: &str) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot run {what}"))?;
    if !output.status.success() {
        bail!("{what}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// Imports one mutant.
fn attempt_mutated_profile(
    bench: &TrialBench<'_>,
    original: &OriginalProfile,
    number: u32,
    chance: &mut MutationRandom,
) -> Result<Option<String>> {
    let mutant = mutate_bytes(&original.bytes, chance);
    fs::write(bench.folder.join("mutant"), &mutant)?;
    let failure = bench.try_command(&[original.import, &["mutant"]].concat())?;
    failure.map(|failure| bench.keep_mutant(&original.name, number, &mutant, &failure)).transpose()
}
