//! Settings, and runs that are killed at any moment: what was there before is there after, or perflab says what is not.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Attack, Counts, Ground, random};
use crate::needs;

/// kill -9 of a run that changes settings of every kind.
pub const ATTACK: Attack = Attack {
    name: "settings",
    tries: "kill -9 at random moments of runs that change settings; good, then refused levels; then `undo`",
    brief: 20,
    full: 300,
    carry_out,
};

/// A study, and what it changes.
struct Scene {
    name: &'static str,
    study: &'static str,
    /// Files of /proc and /sys that the study changes.
    files: &'static [&'static str],
}

const SCENES: &[Scene] = &[
    Scene {
        name: "every kind at once",
        study: r#"
[workload.context-switches]
[factor.pressure]
kind = "sysctl"
key = "vm.vfs_cache_pressure"
levels = [131, 77]
[factor.pages]
kind = "file"
key = "/sys/kernel/mm/transparent_hugepage/enabled"
levels = ["never", "always"]
[factor.flag]
kind = "commands"
levels = [{ name = "on", apply = ["touch", "FOLDER/flag"], undo = ["rm", "-f", "FOLDER/flag"] }, { name = "off", apply = [], undo = [] }]
[factor.caches]
kind = "drop-caches"
levels = [0, 1]
"#,
        files: &["/proc/sys/vm/vfs_cache_pressure", "/sys/kernel/mm/transparent_hugepage/enabled"],
    },
    Scene {
        name: "a disk of its own",
        study: r#"
disk = { kind = "image", size = "64MiB", filesystem = "ext4" }
[workload.context-switches]
[factor.pressure]
kind = "sysctl"
key = "vm.vfs_cache_pressure"
levels = [131, 77]
"#,
        files: &["/proc/sys/vm/vfs_cache_pressure"],
    },
    Scene {
        name: "a good level, then a refused one",
        study: r#"
[workload.context-switches]
[factor.swappiness]
kind = "sysctl"
key = "vm.swappiness"
levels = [0, 9999]
"#,
        files: &["/proc/sys/vm/swappiness"],
    },
];

/// What all scenes begin with.
const HEAD: &str = "title = \"attack\"\nrun = { iterations = 2, warmup = 0, order = \"sequential\" }\n";

fn carry_out(ground: &Ground, count: u32) -> Result<Counts> {
    if !needs::is_root() {
        bail!("settings are root's");
    }
    let mut counts = Counts::default();
    for (number, scene) in (0..count).zip(SCENES.iter().cycle()) {
        counts.add(attempt(ground, scene, number).with_context(|| scene.name)?);
    }
    Ok(counts)
}

/// One run, killed at a random moment (or not at all, where it is over before), then undone.
fn attempt(ground: &Ground, scene: &Scene, number: u32) -> Result<Option<String>> {
    let study = ground.folder.join("study.toml");
    let text = format!("{HEAD}{}", scene.study);
    fs::write(&study, text.replace("FOLDER", &ground.folder.display().to_string()))?;
    let before = State::read(ground, scene)?;
    let mut run = start(ground, &study)?;
    let moment = Duration::from_millis(random(1500)?);
    sleep(moment);
    let killed = kill(&mut run)?;
    let undo = perflab(ground, &["undo"])?;
    let after = State::read(ground, scene)?;
    let differences = before.differences(&after);
    let said = String::from_utf8_lossy(&undo.stderr) + String::from_utf8_lossy(&undo.stdout);
    Ok((!differences.is_empty()).then(|| {
        before.restore();
        let how = if killed { format!("killed after {moment:?}") } else { "ended by itself".into() };
        format!("{} ({number}, {how}): {differences:?}; undo said: {}", scene.name, said.trim())
    }))
}

/// What a run may leave changed.
#[derive(Debug, PartialEq, Eq)]
struct State {
    files: Vec<(PathBuf, String)>,
    flag: bool,
    mounts: usize,
    loops: usize,
}

impl State {
    fn read(ground: &Ground, scene: &Scene) -> Result<Self> {
        let file = |path: &&str| Ok((PathBuf::from(path), fs::read_to_string(path)?));
        let ours = |text: &str| text.lines().filter(|line| line.contains("perflab")).count();
        let loops = Command::new("losetup").arg("--list").output()?;
        Ok(State {
            files: scene.files.iter().map(file).collect::<Result<_>>()?,
            flag: ground.folder.join("flag").exists(),
            mounts: ours(&fs::read_to_string("/proc/self/mounts")?),
            loops: ours(&String::from_utf8_lossy(&loops.stdout)),
        })
    }

    fn differences(&self, after: &State) -> Vec<String> {
        let files = self.files.iter().zip(&after.files).filter(|(before, after)| before != after);
        let mut found: Vec<String> = files
            .map(|((path, before), (_, after))| {
                format!("{} was {} and is {}", path.display(), before.trim(), after.trim())
            })
            .collect();
        let rest = |state: &State| (state.flag, state.mounts, state.loops);
        if rest(self) != rest(after) {
            found.push(format!("flag, mounts, loops were {:?} and are {:?}", rest(self), rest(after)));
        }
        found
    }

    /// Puts files back that perflab did not, so that the next attempt counts for itself.
    fn restore(&self) {
        for (path, text) in &self.files {
            let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
            let _ = fs::write(path, chosen.map_or(text.trim(), |(chosen, _)| chosen));
        }
    }
}

fn start(ground: &Ground, study: &Path) -> Result<Child> {
    let log = File::create(ground.folder.join("run.log"))?;
    let mut command = command(ground, &["run", &study.display().to_string(), "--no-report"]);
    command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().context("cannot start perflab")
}

/// Kills the whole group of a run; `false` where it had ended by itself.
fn kill(run: &mut Child) -> Result<bool> {
    let lives = run.try_wait()?.is_none();
    if lives {
        Command::new("kill").args(["-9", "--", &format!("-{}", run.id())]).status()?;
        run.wait()?;
    }
    Ok(lives)
}

fn perflab(ground: &Ground, arguments: &[&str]) -> Result<Output> {
    command(ground, arguments).output().context("cannot start perflab")
}

fn command(ground: &Ground, arguments: &[&str]) -> Command {
    let mut command = Command::new(&ground.perflab);
    command.args(arguments).current_dir(&ground.folder);
    command.env("PERFLAB_STATE", ground.folder.join("state")).env("TMPDIR", &ground.folder);
    command
}
