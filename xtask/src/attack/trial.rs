//! One trial of a command on hostile input: limited in memory and time, and judged by how it ended and what it printed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use damage::MutationRandom;

use super::attempts::{AttackCounts, AttackEnvironment};

/// What a command may take, and how it may end.
pub struct TrialLimits {
    /// memory, in KiB
    pub memory: u32,
    /// time
    pub patience: Duration,
    /// exit codes
    pub codes: &'static [i32],
}

/// Limits of most commands.
pub const LIMITS: TrialLimits =
    TrialLimits { memory: 1_500_000, patience: Duration::from_secs(30), codes: &[0, 1, 2, 3, 4, 5, 6, 7] };
/// Attempts after which a worker's archive is emptied: each import is looked for among those before.
const EMPTIED: u32 = 20;
/// Bytes that a command may print: a message is cut, a table is as long as what it is of.
const MOST_PRINTED: u64 = 4 << 20;

/// Where a worker tries: a folder of its own, with an archive in it.
pub struct TrialBench<'a> {
    ground: &'a AttackEnvironment,
    limits: &'a TrialLimits,
    /// the folder
    pub folder: PathBuf,
}

impl<'a> TrialBench<'a> {
    pub fn new(ground: &'a AttackEnvironment, name: &str, limits: &'a TrialLimits) -> Result<Self> {
        let folder = ground.folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(TrialBench { ground, limits, folder })
    }

    pub fn archive_path(&self) -> PathBuf {
        self.folder.join("archive")
    }

    /// Empties the archive before every few attempts.
    pub fn empty_archive(&self, number: u32) -> Result<()> {
        if number.is_multiple_of(EMPTIED) && self.archive_path().exists() {
            fs::remove_dir_all(self.archive_path())?;
        }
        Ok(())
    }

    /// Keeps a mutant that perflab did not stand beside the attack's folder, and says so.
    pub fn keep_mutant(&self, name: &str, number: u32, mutant: &[u8], failure: &str) -> Result<String> {
        let kept = std::env::temp_dir().join(format!("perflab-mutant-{}-{number}", std::process::id()));
        fs::write(&kept, mutant)?;
        Ok(format!("{name} (kept as {}): {failure}", kept.display()))
    }

    /// perflab with the bench's archive and limited memory.
    pub fn limited_command(&self, words: &[&str]) -> Command {
        let limited = format!("ulimit -v {}; exec \"$@\"", self.limits.memory);
        let mut command = Command::new("sh");
        command.args(["-c", &limited, "sh"]).arg(&self.ground.perflab).args(words).current_dir(&self.folder);
        command.env("PERFLAB_ARCHIVE", self.archive_path()).env("PERFLAB_STATE", self.folder.join("state"));
        command.env("TMPDIR", &self.folder).stdin(Stdio::null());
        command
    }

    /// Runs perflab; says what was wrong with how it ended, if something was.
    pub fn try_command(&self, words: &[&str]) -> Result<Option<String>> {
        let (out, err) = (self.folder.join("out"), self.folder.join("err"));
        let mut command = self.limited_command(words);
        let mut child = command.stdout(File::create(&out)?).stderr(File::create(&err)?).spawn()?;
        let since = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if since.elapsed() > self.limits.patience {
                child.kill()?;
                child.wait()?;
                return Ok(Some(format!("{words:?}: it was still at it after {:?}", self.limits.patience)));
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        let printed = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        if printed(&out).max(printed(&err)) > MOST_PRINTED {
            return Ok(Some(format!("{words:?}: it printed more than {MOST_PRINTED} bytes")));
        }
        let output = String::from_utf8_lossy(&[fs::read(&out)?, fs::read(&err)?].concat()).into_owned();
        let end: String = output.chars().rev().take(200).collect::<Vec<_>>().into_iter().rev().collect();
        // clap's own refusal, which nothing that is imported can cause: the attack would hold without having tried.
        ensure!(!output.contains("\nUsage: perflab"), "{words:?} is no command of perflab: {end}");
        if !status.code().is_some_and(|code| self.limits.codes.contains(&code)) {
            return Ok(Some(format!("{words:?}: {status}: {end:?}")));
        }
        let commands = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\t' | '\r');
        // What is exported is data; messages are not.
        let is_data = words.first() == Some(&"export");
        Ok((output.contains(commands) && !is_data)
            .then(|| format!("{words:?}: it printed a control character: {end:?}")))
    }
}

/// Does `attempt` so many times, as many at once as there are processors.
pub fn repeat_trials(
    ground: &AttackEnvironment,
    limits: &TrialLimits,
    count: u32,
    attempt: impl Fn(&TrialBench<'_>, u32, &mut MutationRandom) -> Result<Option<String>> + Sync,
) -> Result<AttackCounts> {
    let (counts, next) = (Mutex::new(AttackCounts::default()), AtomicU32::new(0));
    let work = |worker: usize| -> Result<()> {
        let (bench, mut chance) =
            (TrialBench::new(ground, &format!("worker-{worker}"), limits)?, MutationRandom::new()?);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let failure = attempt(&bench, number, &mut chance)?;
            counts.lock().map_err(|_| anyhow::anyhow!("a thread died"))?.count_attempt(failure);
        }
    };
    let work = &work;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        all.into_iter().try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("a thread died"))?)
    })?;
    counts.into_inner().map_err(|_| anyhow::anyhow!("a thread died"))
}

/// All files under a folder, sorted.
pub fn list_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => found.extend(list_files(&entry.path())?),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    Ok(found)
}

/// Copies a folder.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let done = Command::new("cp").arg("-r").arg(from).arg(to).status()?;
    anyhow::ensure!(done.success(), "cannot copy {}", from.display());
    Ok(())
}
