//! Profiles and traces that were damaged, by chance or by intent: perflab refuses them or reads what is sound, in bounded
//! memory and time.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::mutants::{Chance, mutated};
use super::trial::{Bench, Limits, repeat};
use super::{Attack, Counts, Ground};

/// Mutants of perf.data, pprof and optrace files.
pub const ATTACK: Attack = Attack {
    name: "profiles",
    tries: "import of mutated perf.data (7 of 9: stacks, system, dwarf, compressed, pipe, groups, several events), pprof and \
            optrace files, with 2 GB and 60 s each",
    brief: 1500,
    full: 6000,
    carry_out,
};

/// An import's memory: its own, the kernel's symbols and hundreds of times the file. It reads, or refuses what is damaged.
const LIMITS: Limits = Limits { memory: 2_000_000, patience: Duration::from_secs(60), codes: &[0, 2] };
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
struct Original {
    name: String,
    bytes: Vec<u8>,
    import: [&'static str; 2],
}

fn carry_out(ground: &Ground, count: u32) -> Result<Counts> {
    let originals = originals(&Bench::new(ground, "originals", &LIMITS)?)?;
    repeat(ground, &LIMITS, count, |bench, number, chance| {
        bench.empty_archive(number)?;
        attempt(bench, originals.get(number as usize % originals.len()).context("no files")?, number, chance)
    })
}

fn originals(bench: &Bench<'_>) -> Result<Vec<Original>> {
    let flame = ["flame", "import"];
    let mut all = Vec::new();
    for (name, options) in RECORDINGS {
        let path = bench.folder.join(format!("{name}.perf.data"));
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-o"]).arg(&path).args(*options).args(["--", "sh", "-c", WORK]);
        done(&mut perf, "perf (apt install linux-perf, and as root)")?;
        all.push(Original { name: (*name).into(), bytes: fs::read(path)?, import: flame });
    }
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-g", "-o", "-", "--", "sh", "-c", WORK]);
    let bytes = done(&mut perf, "perf")?;
    all.push(Original { name: "pipe".into(), bytes, import: flame });
    let pprof = bench.folder.join("pprof.pb");
    done(&mut bench.command(&["flame", "import", "stacks.perf.data"]), "flame import")?;
    done(&mut bench.command(&["flame", "export", "--to", "pprof", "-o", "pprof.pb"]), "flame export")?;
    all.push(Original { name: "pprof".into(), bytes: fs::read(pprof)?, import: flame });
    let trace = bench.folder.join("trace.optrace");
    let mut load = bench.command(&["load", "drv_rand_ops", "2000", "intsrt"]);
    done(load.env("OPTRACE_FILE", &trace), "the load")?;
    all.push(Original { name: "optrace".into(), bytes: fs::read(trace)?, import: ["trace", "import"] });
    Ok(all)
}

fn done(command: &mut Command, what: &str) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot run {what}"))?;
    if !output.status.success() {
        bail!("{what}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// Imports one mutant.
fn attempt(
    bench: &Bench<'_>,
    original: &Original,
    number: u32,
    chance: &mut Chance,
) -> Result<Option<String>> {
    let mutant = mutated(&original.bytes, chance);
    fs::write(bench.folder.join("mutant"), &mutant)?;
    let [noun, verb] = original.import;
    let failure = bench.try_out(&[noun, verb, "mutant"])?;
    failure.map(|failure| bench.keep(&original.name, number, &mutant, &failure)).transpose()
}
