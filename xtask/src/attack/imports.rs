//! Other tools' files, damaged by chance or by intent, and what is no file at all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use damage::{MutationRandom, damage_bytes};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use super::trial::{LIMITS, TrialBench, copy_folder, list_files, repeat_trials};

/// Mutants of what other tools wrote, through every importer.
pub const ATTACK: Attack = Attack {
    name: "imports",
    tries: "import of mutated files of all importers' recordings (bits, numbers, truncation, splices, JSON values, control \
            characters), and of pipes, devices, bombs and endless lines, with 1.5 GB and 30 s each",
    brief: 1000,
    full: 5000,
    carry_out: attack_imports,
};

const RECORDED: &str = "crates/import/tests/recorded";
/// Folders that are imported as such, with one of their files mutated.
const FOLDERS: [&str; 8] = [
    "lkp-fsmark",
    "lkp-hackbench",
    "mmtests/current",
    "mmtests/2020",
    "mmtests/streams-current",
    "mmtests/streams-2020",
    "tools/criterion",
    EVIDENCE,
];
/// The folder whose traces, maps and dumps of memory are read together.
const EVIDENCE: &str = "blktrace-2007";

/// A path to import, and the file in it that is mutated.
struct OriginalRecording {
    root: PathBuf,
    file: PathBuf,
}

fn attack_imports(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    let originals = list_original_recordings()?;
    let mut counts = attempt_special_files(ground)?;
    let mutants =
        repeat_trials(ground, &LIMITS, count.saturating_sub(counts.tried), |bench, number, chance| {
            attempt_mutated_import(
                bench,
                originals.get(chance.next_below(originals.len())).context("no recording")?,
                number,
                chance,
            )
        })?;
    counts.tried += mutants.tried;
    counts.held += mutants.held;
    counts.failures.extend(mutants.failures);
    Ok(counts)
}

fn list_original_recordings() -> Result<Vec<OriginalRecording>> {
    let recorded = Path::new(RECORDED).canonicalize()?;
    let mut all = Vec::new();
    for folder in ["tools", "blktrace"] {
        let files = list_files(&recorded.join(folder))?
            .into_iter()
            .filter(|file| !file.starts_with(recorded.join("tools/criterion")));
        all.extend(files.map(|file| OriginalRecording { root: file.clone(), file }));
    }
    for folder in FOLDERS {
        let root = recorded.join(folder);
        all.extend(list_files(&root)?.into_iter().map(|file| OriginalRecording { root: root.clone(), file }));
    }
    all.retain(|one| !one.file.ends_with("PROVENANCE") && !one.file.ends_with("make.py"));
    Ok(all)
}

fn attempt_mutated_import(
    bench: &TrialBench<'_>,
    original: &OriginalRecording,
    number: u32,
    chance: &mut MutationRandom,
) -> Result<Option<String>> {
    bench.empty_archive(number)?;
    let name = original.root.file_name().unwrap_or_default();
    let (room, inner) = (bench.folder.join("room"), original.file.strip_prefix(&original.root)?);
    if room.exists() {
        fs::remove_dir_all(&room)?;
    }
    fs::create_dir(&room)?;
    let root = room.join(name);
    copy_folder(&original.root, &root)?;
    let place = if inner.as_os_str().is_empty() { root.clone() } else { root.join(inner) };
    let mutant = damage_bytes(&fs::read(&place)?, chance);
    fs::write(&place, &mutant)?;
    let failure = match name == EVIDENCE {
        true => attempt_coverage(bench, &root, inner)?,
        false => bench.try_command(&["import", &root.display().to_string()])?,
    };
    failure
        .map(|failure| bench.keep_mutant(&inner.display().to_string(), number, &mutant, &failure))
        .transpose()
}

/// Imports a trace with its map, and compares it with what was in memory; one of the files is the mutant.
fn attempt_coverage(bench: &TrialBench<'_>, folder: &Path, mutant: &Path) -> Result<Option<String>> {
    let mutant = mutant.to_string_lossy();
    let place = |kind: &str, usual: &str| {
        folder.join(if mutant.contains(kind) { &*mutant } else { usual }).display().to_string()
    };
    let trace = place("blktrace", "partition.blktrace.0");
    let map = place(if mutant.ends_with("times") { "times" } else { "map" }, "partition.map");
    let dump = place("prefetch-trace", "prefetch-trace.64");
    let import = bench.try_command(&["io", "import", &trace, "--map", &map, "--label", "old"])?;
    match import {
        Some(failure) => Ok(Some(failure)),
        None => bench.try_command(&["io", "coverage", "old", "--trace", &dump]),
    }
}

/// What is no file, or one that is made to cost more than it has.
fn attempt_special_files(ground: &AttackEnvironment) -> Result<AttackCounts> {
    let bench = TrialBench::new(ground, "special", &LIMITS)?;
    let at = |name: &str| bench.folder.join(name);
    make_endless_files(&bench.folder)?;
    make_costly_files(&bench.folder)?;
    let mut counts = AttackCounts::default();
    let plain = [
        "fifo",
        "kmsg",
        "loop",
        "result",
        "deep.xml",
        "deep.json",
        "bomb.xml",
        "xxe.xml",
        "line.json",
        "line.log",
    ];
    let paths = plain.into_iter().chain(["bomb.log.gz", "bomb.json.gz", "sparse.blktrace.0"]).map(at);
    for path in
        paths.chain(["/dev/zero", "/dev/full", "/proc/kcore", "/proc/self/pagemap"].map(PathBuf::from))
    {
        let path = path.display().to_string();
        for words in [
            &["import", &path][..],
            &["import", "--kind", "fio", &path],
            &["import", "--kind", "phoronix", &path],
            &["import", "--kind", "dump", &path],
            &["import", "--kind", "blktrace", &path],
            &["import", "--kind", "optrace", &path],
            &["import", "--kind", "perf.data", &path],
            &["import", "--kind", "pprof", &path],
            &["import", "--kind", "folded", &path],
            &["import", "--kind", "sysfs", &path],
            &["io", "import", &path],
        ] {
            counts.count_attempt(bench.try_command(words)?);
        }
    }
    fs::remove_dir_all(&bench.folder)?;
    Ok(counts)
}

/// Pipes, devices and logs of the kernel, by themselves and among files.
fn make_endless_files(room: &Path) -> Result<()> {
    let at = |name: &str| room.join(name);
    let made = Command::new("mkfifo").arg(at("fifo")).status()?;
    ensure!(made.success(), "mkfifo failed");
    symlink("/proc/kmsg", at("kmsg"))?;
    symlink(at("loop"), at("loop"))?;
    let folder = at("result");
    fs::create_dir(&folder)?;
    fs::write(
        folder.join("slabinfo"),
        "slabinfo - version: 2.1\ndentry 10 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n",
    )?;
    symlink("/proc/kmsg", folder.join("meminfo"))?;
    symlink(at("fifo"), folder.join("fsmark"))?;
    symlink("/dev/zero", folder.join("job.yaml"))?;
    Ok(())
}

/// Depth, entities, lines and bombs.
fn make_costly_files(room: &Path) -> Result<()> {
    let at = |name: &str| room.join(name);
    let suite = "<?xml version=\"1.0\"?><PhoronixTestSuite>";
    fs::write(at("deep.xml"), format!("{suite}{}", "<a>".repeat(300_000)))?;
    fs::write(at("deep.json"), format!("{{\"fio version\": {}", "[".repeat(1_000_000)))?;
    let entities: String =
        (1..20).map(|n| format!("<!ENTITY e{n} \"{}\">", format!("&e{};", n - 1).repeat(10))).collect();
    fs::write(
        at("bomb.xml"),
        format!(
            "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e0 \"aaaaaaaaaa\">{entities}]><PhoronixTestSuite>&e19;</PhoronixTestSuite>"
        ),
    )?;
    fs::write(
        at("xxe.xml"),
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><PhoronixTestSuite>&e;</PhoronixTestSuite>",
    )?;
    fs::write(at("line.json"), format!("{{\"results\":[{{\"command\":\"{}\"", "x".repeat(100 << 20)))?;
    fs::write(at("line.log"), format!("slabinfo - version: 2.1\n{}", "y".repeat(100 << 20)))?;
    let bomb = format!(
        "(echo 'slabinfo - version: 2.1'; head -c 1G /dev/zero) | gzip > {0}; (printf '{{\"fio version\": \"'; head -c 600M /dev/zero) | gzip > {1}",
        at("bomb.log.gz").display(),
        at("bomb.json.gz").display()
    );
    ensure!(Command::new("sh").args(["-c", &bomb]).status()?.success(), "the bombs cannot be made");
    let sparse = fs::File::create(at("sparse.blktrace.0"))?;
    std::io::Write::write_all(&mut &sparse, &0x6561_7407_u32.to_le_bytes())?;
    sparse.set_len(8 << 30)?;
    Ok(())
}
