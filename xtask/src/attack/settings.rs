//! Settings, and runs that are killed at any moment: what was there before is there after, or perflab says what is not.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use super::processes::{
    find_survivors, kill_survivors, list_left_files, perflab_command, random_below, send_signal,
};
use crate::needs;

/// kill -9 of a run that changes settings of every kind.
pub const ATTACK: Attack = Attack {
    name: "settings",
    tries: "kill -9 (of perflab alone, of its group) at random moments of runs that change settings of every kind, two at once, also by other spellings of a file, both of a pair, with other homes; by keys that lead out of /proc and /sys; rounded, refused, under a read-only /sys, below a path with a blank; then `undo`",
    brief: 42,
    full: 300,
    carry_out: attack_settings,
};

/// A study, and what it changes.
struct SettingsScene {
    name: &'static str,
    study: &'static str,
    /// What every other run of it carries out instead.
    other: Option<&'static str>,
    /// Files of /proc and /sys that the study changes.
    files: &'static [&'static str],
    /// How many runs of it at once.
    runs: u32,
    /// Whether /sys is read-only for them.
    read_only: bool,
    /// Whether each run, and who undoes it, finds root's state by itself, with another `HOME` than the one before.
    homes: bool,
    /// Whether the folder for temporary files has a name that tables of mounts write in another way.
    blank: bool,
}

impl SettingsScene {
    const fn new(name: &'static str, study: &'static str, files: &'static [&'static str]) -> Self {
        SettingsScene {
            name,
            study,
            other: None,
            files,
            runs: 1,
            read_only: false,
            homes: false,
            blank: false,
        }
    }
}

const SCENES: &[SettingsScene] = &[
    SettingsScene::new("every kind at once", EVERY_KIND, &[PRESSURE, PAGES]),
    SettingsScene::new("a disk of its own", DISK, &[PRESSURE]),
    SettingsScene::new("an emulated disk", EMULATED, &[]),
    SettingsScene::new("a good level, then a refused one", REFUSED, &["/proc/sys/vm/swappiness"]),
    SettingsScene::new("a value that the kernel rounds", ROUNDED, &["/proc/sys/fs/pipe-max-size"]),
    SettingsScene::new(
        "a pair of which one zeroes the other",
        PAIR,
        &["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"],
    ),
    SettingsScene { runs: 2, ..SettingsScene::new("two runs at once", SHARED, &[PRESSURE]) },
    SettingsScene {
        runs: 2,
        other: Some(SPELT_OTHERWISE),
        ..SettingsScene::new("two spellings of one file", SHARED, &[PRESSURE])
    },
    SettingsScene {
        runs: 2,
        other: Some(COUNTERPART),
        ..SettingsScene::new(
            "both of a pair",
            PAIR,
            &["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"],
        )
    },
    SettingsScene { runs: 2, homes: true, ..SettingsScene::new("two homes of root's", SHARED, &[PRESSURE]) },
    SettingsScene {
        blank: true,
        ..SettingsScene::new("a disk below a path with a blank", DISK, &[PRESSURE])
    },
    SettingsScene {
        runs: 2,
        other: Some(OUT_BY_LINK),
        ..SettingsScene::new("keys that lead out of /proc and /sys", OUT_BY_NAME, &[])
    },
    SettingsScene {
        runs: 3,
        ..SettingsScene::new("three runs at once, of every kind", EVERY_KIND, &[PRESSURE, PAGES])
    },
    SettingsScene {
        read_only: true,
        ..SettingsScene::new("a read-only /sys", EVERY_KIND, &[PRESSURE, PAGES])
    },
];

const PRESSURE: &str = "/proc/sys/vm/vfs_cache_pressure";
const PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

const EVERY_KIND: &str = r#"
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
"#;

const DISK: &str = r#"
disk = { kind = "image", size = "64MiB", filesystem = "ext4" }
[workload.context-switches]
[factor.pressure]
kind = "sysctl"
key = "vm.vfs_cache_pressure"
levels = [131, 77]
"#;

const EMULATED: &str = r#"
disk = { kind = "image", size = "64MiB", filesystem = "ext4", model = "nvme" }
[workload.small-files]
parameters = { files = 200, size = 4096, threads = 1 }
"#;

const REFUSED: &str = r#"
[workload.context-switches]
[factor.swappiness]
kind = "sysctl"
key = "vm.swappiness"
levels = [0, 9999]
"#;

const ROUNDED: &str = r#"
[workload.context-switches]
[factor.pipes]
kind = "sysctl"
key = "fs.pipe-max-size"
levels = [262143, 131071]
"#;

const PAIR: &str = r#"
[workload.context-switches]
[factor.dirty]
kind = "sysctl"
key = "vm.dirty_bytes"
levels = [268435456, 134217728]
"#;

const SHARED: &str = r#"
[workload.context-switches]
[factor.pressure]
kind = "sysctl"
key = "vm.vfs_cache_pressure"
levels = [131, 77]
"#;

const SPELT_OTHERWISE: &str = r#"
[workload.context-switches]
[factor.pressure]
kind = "file"
key = "/proc/self/root/proc/sys/kernel/../vm/vfs_cache_pressure"
levels = [133, 79]
"#;

const COUNTERPART: &str = r#"
[workload.context-switches]
[factor.dirty]
kind = "sysctl"
key = "vm.dirty_ratio"
levels = [31, 17]
"#;

/// Keys that name a file outside.
const OUT_BY_NAME: &str = r#"
[workload.context-switches]
[factor.victim]
kind = "file"
key = "/proc/..FOLDER/victim"
levels = ["overwritten"]
[factor.other-victim]
kind = "sysctl"
key = "../..FOLDER/victim"
levels = ["overwritten"]
"#;

/// A link of /proc that leads to it.
const OUT_BY_LINK: &str = r#"
[workload.context-switches]
[factor.victim]
kind = "file"
key = "/proc/self/rootFOLDER/victim"
levels = ["overwritten"]
"#;

/// What the file says that some keys lead to.
const VICTIM: &str = "as it was\n";

/// What all scenes begin with.
const HEAD: &str = "title = \"attack\"\nrun = { iterations = 2, warmup = 0, order = \"sequential\" }\n";

fn attack_settings(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    if !needs::is_root() {
        bail!("settings are root's");
    }
    let mut counts = AttackCounts::default();
    for (number, scene) in (0..count).zip(SCENES.iter().cycle()) {
        counts.count_attempt(attempt_killed_run(ground, scene, number).with_context(|| scene.name)?);
    }
    Ok(counts)
}

/// Runs, killed at a random moment (or not at all, where they are over before), then undone.
fn attempt_killed_run(
    ground: &AttackEnvironment,
    scene: &SettingsScene,
    number: u32,
) -> Result<Option<String>> {
    for (name, study) in [("study.toml", scene.study), ("other.toml", scene.other.unwrap_or(scene.study))] {
        let text = format!("{HEAD}{study}").replace("FOLDER", &ground.folder.display().to_string());
        fs::write(ground.folder.join(name), text)?;
    }
    fs::write(ground.folder.join("victim"), VICTIM)?;
    let before = MachineState::read(ground, scene)?;
    let runs =
        (0..scene.runs).map(|run| start_settings_run(ground, scene, run)).collect::<Result<Vec<_>>>()?;
    // Perflab alone in every other round of all scenes.
    let group = (number / u32::try_from(SCENES.len())?).is_multiple_of(2);
    let mut killed = Vec::new();
    for mut run in runs {
        let moment = Duration::from_millis(random_below(1500)?);
        sleep(moment);
        if kill_run(&mut run, group)? {
            killed.push(moment);
        }
    }
    let left = find_survivors(ground, "");
    kill_survivors(ground, "");
    let undo =
        with_scene_environment(ground, scene, scene.runs, perflab_command(ground, &["undo"])).output()?;
    let after = MachineState::read(ground, scene)?;
    let mut differences = before.differences(&after);
    let victim = fs::read_to_string(ground.folder.join("victim"))?;
    differences.extend((victim != VICTIM).then(|| format!("a file elsewhere says {victim:?}")));
    differences.extend((!left.is_empty()).then(|| format!("processes live on: {}", left.concat())));
    let mut files = list_left_files(ground);
    if scene.blank {
        let strange = fs::read_dir(strange_folder(ground)).into_iter().flatten().flatten();
        files.extend(strange.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    }
    differences.extend((!files.is_empty()).then(|| format!("left behind: {}", files.join(", "))));
    let output_text = String::from_utf8_lossy(&undo.stderr) + String::from_utf8_lossy(&undo.stdout);
    Ok((!differences.is_empty()).then(|| {
        before.restore();
        let who = if group { "its group" } else { "perflab alone" };
        let how = format!("kill of {who}, one after the other after {killed:?}");
        format!("{} ({number}, {how}): {differences:?}; undo said: {}", scene.name, output_text.trim())
    }))
}

/// What a run may leave changed.
#[derive(Debug, PartialEq, Eq)]
struct MachineState {
    files: Vec<(PathBuf, String)>,
    flag: bool,
    mounts: usize,
    loops: usize,
}

impl MachineState {
    fn read(ground: &AttackEnvironment, scene: &SettingsScene) -> Result<Self> {
        let file = |path: &&str| Ok((PathBuf::from(path), fs::read_to_string(path)?));
        let runs = list_run_ids(ground);
        let ours = |text: &str| {
            text.lines()
                .filter(|line| runs.iter().any(|run| line.contains(&format!("perflab-{run}"))))
                .count()
        };
        let loops = Command::new("losetup").arg("--list").output()?;
        Ok(MachineState {
            files: scene.files.iter().map(file).collect::<Result<_>>()?,
            flag: ground.folder.join("flag").exists(),
            mounts: ours(&fs::read_to_string("/proc/self/mounts")?),
            loops: ours(&String::from_utf8_lossy(&loops.stdout)),
        })
    }

    fn differences(&self, after: &MachineState) -> Vec<String> {
        let files = self.files.iter().zip(&after.files).filter(|(before, after)| before != after);
        let mut found: Vec<String> = files
            .map(|((path, before), (_, after))| {
                format!("{} was {} and is {}", path.display(), before.trim(), after.trim())
            })
            .collect();
        let rest = |state: &MachineState| (state.flag, state.mounts, state.loops);
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

/// The ids of the attack's runs, by which mounts and loop devices of others' are distinguished from its own.
fn list_run_ids(ground: &AttackEnvironment) -> Vec<String> {
    let entries = fs::read_dir(ground.folder.join("perflab-archive/runs")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn start_settings_run(ground: &AttackEnvironment, scene: &SettingsScene, number: u32) -> Result<Child> {
    let log = File::create(ground.folder.join("run.log"))?;
    let study = ground.folder.join(if number.is_multiple_of(2) { "study.toml" } else { "other.toml" });
    let own = perflab_command(ground, &["run", &study.display().to_string(), "--no-report"]);
    let own = with_scene_environment(ground, scene, number, own);
    let mut run = if scene.read_only { with_read_only_sys(&own) } else { own };
    run.process_group(0).stdout(log.try_clone()?).stderr(log);
    run.spawn().context("cannot start perflab")
}

/// The command with the variables that the scene gives to the run of this number.
fn with_scene_environment(
    ground: &AttackEnvironment,
    scene: &SettingsScene,
    number: u32,
    mut command: Command,
) -> Command {
    if scene.homes {
        command.env_remove("PERFLAB_STATE").env_remove("XDG_STATE_HOME");
        match number % 2 {
            0 => command.env("HOME", &ground.folder),
            _ => command.env_remove("HOME"),
        };
    }
    if scene.blank {
        // What cannot be made is reported by whoever writes there.
        let _ = fs::create_dir(strange_folder(ground));
        command.env("TMPDIR", strange_folder(ground));
    }
    command
}

fn strange_folder(ground: &AttackEnvironment) -> PathBuf {
    ground.folder.join("a blank\tand \\")
}

/// The command among mounts of its own, of which /sys is read-only.
fn with_read_only_sys(own: &Command) -> Command {
    let mounted = "mount --bind /sys /sys && mount -o remount,bind,ro /sys && exec \"$@\"";
    let mut shut = Command::new("unshare");
    shut.args(["--mount", "--propagation", "private", "sh", "-c", mounted, "sh"]);
    shut.arg(own.get_program()).args(own.get_args());
    shut.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shut.current_dir(own.get_current_dir().unwrap_or(Path::new(".")));
    shut
}

/// Kills a run, alone or with its group; `false` where it had ended by itself.
fn kill_run(run: &mut Child, group: bool) -> Result<bool> {
    let lives = run.try_wait()?.is_none();
    if lives {
        send_signal(run.id(), "KILL", group)?;
        run.wait()?;
    }
    Ok(lives)
}
