//! Profiles and traces that were damaged, by chance or by intent: perflab refuses them or reads what is sound, in bounded
//! memory and time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Attack, Counts, Ground};

/// Mutants of perf.data, pprof and optrace files.
pub const ATTACK: Attack = Attack {
    name: "profiles",
    tries: "import of mutated perf.data (stacks, dwarf, compressed, pipe, groups, several events), pprof and optrace files, \
            with 2 GB and 60 s each",
    brief: 1500,
    full: 6000,
    carry_out,
};

/// Memory of an import, in KiB: its own, the kernel's symbols and hundreds of times the file.
const MEMORY: u32 = 2_000_000;
const PATIENCE: Duration = Duration::from_secs(60);
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
    let originals = originals(ground)?;
    let counts = Mutex::new(Counts::default());
    let next = AtomicU32::new(0);
    let work = |worker: usize| -> Result<()> {
        let mut chance = Chance::new()?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let original = originals.get(number as usize % originals.len()).context("no files")?;
            let failure = attempt(ground, worker, original, &mut chance)?;
            counts.lock().map_err(|_| anyhow::anyhow!("a thread died"))?.add(failure);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        all.into_iter().try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("a thread died"))?)
    })?;
    counts.into_inner().map_err(|_| anyhow::anyhow!("a thread died"))
}

fn originals(ground: &Ground) -> Result<Vec<Original>> {
    let flame = ["flame", "import"];
    let mut all = Vec::new();
    for (name, options) in RECORDINGS {
        let path = ground.folder.join(format!("{name}.perf.data"));
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-o"]).arg(&path).args(*options).args(["--", "sh", "-c", WORK]);
        done(&mut perf, "perf (apt install linux-perf, and as root)")?;
        all.push(Original { name: (*name).into(), bytes: fs::read(path)?, import: flame });
    }
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-g", "-o", "-", "--", "sh", "-c", WORK]);
    let bytes = done(&mut perf, "perf")?;
    all.push(Original { name: "pipe".into(), bytes, import: flame });
    let (run, pprof) = (ground.folder.join("stacks.perf.data"), ground.folder.join("pprof.pb"));
    done(perflab(ground, 0).args(["flame", "import"]).arg(run), "flame import")?;
    done(perflab(ground, 0).args(["flame", "export", "--to", "pprof", "-o"]).arg(&pprof), "flame export")?;
    all.push(Original { name: "pprof".into(), bytes: fs::read(pprof)?, import: flame });
    let trace = ground.folder.join("trace.optrace");
    let mut load = perflab(ground, 0);
    done(load.args(["load", "drv_rand_ops", "2000", "intsrt"]).env("OPTRACE_FILE", &trace), "the load")?;
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

fn perflab(ground: &Ground, worker: usize) -> Command {
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v {MEMORY}; exec \"$@\"");
    command.args(["-c", &limited, "sh"]).arg(&ground.perflab).current_dir(&ground.folder);
    command.env("PERFLAB_ARCHIVE", ground.folder.join(format!("archive-{worker}")));
    command.env("PERFLAB_STATE", ground.folder.join("state")).env("TMPDIR", &ground.folder);
    command
}

/// Imports one mutant. One that perflab did not stand is kept beside the attack's folder.
fn attempt(
    ground: &Ground,
    worker: usize,
    original: &Original,
    chance: &mut Chance,
) -> Result<Option<String>> {
    let path = ground.folder.join(format!("mutant-{worker}-{}", original.name));
    let said = ground.folder.join(format!("said-{worker}"));
    let mutant = mutated(&original.bytes, chance);
    fs::write(&path, &mutant)?;
    let mut import = perflab(ground, worker);
    import.args(original.import).arg(&path).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = import.stderr(fs::File::create(&said)?).spawn().context("cannot start perflab")?;
    let since = Instant::now();
    let how = loop {
        match child.try_wait()? {
            // Read, or refused as what it is.
            Some(status) if matches!(status.code(), Some(0 | 2)) => return Ok(None),
            Some(status) => break status.to_string(),
            None if since.elapsed() > PATIENCE => {
                child.kill()?;
                child.wait()?;
                break format!("it was still at it after {PATIENCE:?}");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let kept = keep(&path, &original.name, since)?;
    let said = String::from_utf8_lossy(&fs::read(said)?).into_owned();
    let end: String = said.trim().chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect();
    Ok(Some(format!("{}: {how}; it is kept as {}: {end}", original.name, kept.display())))
}

fn keep(path: &Path, name: &str, since: Instant) -> Result<PathBuf> {
    let unique = format!("{}-{}", std::process::id(), since.elapsed().subsec_nanos());
    let kept = std::env::temp_dir().join(format!("perflab-mutant-{unique}-{name}"));
    fs::copy(path, &kept)?;
    Ok(kept)
}

/// A file with a few changes of one kind, most of them where sizes and counts are: near its ends.
pub(super) fn mutated(original: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let changes = [1, 1, 1, 2, 4, 16][chance.below(6)];
    let kind = chance.below(6);
    for _ in 0..changes {
        let length = bytes.len().max(1);
        let at = match chance.below(3) {
            0 => chance.below(length.min(400)),
            1 => length - 1 - chance.below(length.min(9000)),
            _ => chance.below(length),
        };
        match kind {
            0 => overwrite(&mut bytes, at, |old| vec![old ^ 1 << chance.below(8)]),
            1 => overwrite(&mut bytes, at, |_| vec![chance.next() as u8]),
            2 => {
                let numbers = [0, 1, 1 << 31, 1 << 40, 1 << 63, u64::MAX, length as u64, chance.next()];
                let number = numbers[chance.below(numbers.len())];
                overwrite(&mut bytes, at & !7, |_| number.to_le_bytes().to_vec());
            }
            3 => {
                let numbers = [0, 1, 1 << 31, u32::MAX, 65_535, chance.next() as u32];
                let number = numbers[chance.below(numbers.len())];
                overwrite(&mut bytes, at & !3, |_| number.to_le_bytes().to_vec());
            }
            4 => bytes.truncate(at),
            _ => {
                let (from, most) = (chance.below(length), 1 + chance.below(4096));
                let piece = bytes.iter().skip(from).take(most).copied().collect();
                overwrite(&mut bytes, at, |_| piece);
            }
        }
    }
    bytes
}

fn overwrite(bytes: &mut [u8], at: usize, new: impl FnOnce(u8) -> Vec<u8>) {
    let Some(old) = bytes.get(at).copied() else { return };
    for (to, new) in bytes.iter_mut().skip(at).zip(new(old)) {
        *to = new;
    }
}

/// Chance, by xorshift: fast, and begun by the kernel's.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new() -> Result<Self> {
        let mut bytes = [0; 8];
        std::io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
        Ok(Chance(u64::from_le_bytes(bytes) | 1))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}
