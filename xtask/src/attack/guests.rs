//! Guests that are killed, frozen, made to panic or replaced by liars, and perflab killed above them: nothing is left
//! behind, the run can be read, and a value is there only where all targets that it covers were at work.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use super::fake_guest;
use super::processes::{random_below, send_signal};
use crate::needs;

/// Real guests under TCG or KVM, and liars in their place.
pub const ATTACK: Attack = Attack {
    name: "guests",
    tries: "runs in two guests: QEMU killed, stopped, panicking or a liar; perflab killed or interrupted above them",
    brief: 22,
    full: 100,
    carry_out: attack_guests,
};

/// What happens to a run.
#[derive(Debug, Clone, Copy)]
enum GuestHarm {
    /// kill -9 of the second guest's QEMU
    Kill,
    /// its QEMU is stopped for good,
    Freeze,
    /// or for a second
    Pause,
    /// an interrupt that its kernel does not know, where it was made to panic then
    Panic,
    /// kill -9 of perflab
    KillPerflab,
    /// ^C
    Interrupt,
    /// another program in the place of its QEMU, and ^C some time later
    Lie(&'static str),
}

const STUDY: &str = "\
title = \"attack\"
[run]
warmup = 0
iterations = 3
time-limit = \"20s\"
lost-after = \"4s\"
on-lost-target = \"continue\"
[workload.memory-sweep]
parameters = { size = \"1MiB\", passes = 20 }
[factor.guests]
kind = \"targets\"
levels = [2, 1]
[target.guest]
kind = \"vm\"
count = 2
kernel = \"debian-cloud\"
root = \"bare\"
memory = \"256MiB\"
boot-within = \"15s\"
append = [\"unknown_nmi_panic\"]
[monitors]
stat = \"200ms\"
";

/// What a run may take after it was disturbed: two boots that are late, and iterations.
const END: Duration = Duration::from_secs(90);
/// How long the second guest's QEMU may take to start.
const COMING: Duration = Duration::from_secs(30);
/// What may go on after perflab has ended: a process that gives back its memory.
const LINGER: Duration = Duration::from_secs(10);

fn attack_guests(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    if !needs::is_root() {
        bail!("guests are root's");
    }
    let fetched = run_guest_perflab(ground, &["kernel", "fetch", "debian-cloud"])?;
    if !fetched.status.success() {
        bail!("no kernel: {}", String::from_utf8_lossy(&fetched.stderr));
    }
    let real = [
        GuestHarm::Kill,
        GuestHarm::Freeze,
        GuestHarm::Panic,
        GuestHarm::KillPerflab,
        GuestHarm::Pause,
        GuestHarm::Interrupt,
    ];
    // By turns, so that a brief attack has some of each.
    let liars: Vec<GuestHarm> = fake_guest::fake_guest_kinds().map(GuestHarm::Lie).collect();
    let turns = real.iter().cycle().zip(liars.iter().cycle()).flat_map(|(real, liar)| [*real, *liar]);
    let mut counts = AttackCounts::default();
    for harm in turns.take(count as usize) {
        counts.count_attempt(attempt_guest_run(ground, harm).with_context(|| format!("{harm:?}"))?);
    }
    Ok(counts)
}

/// One run and what is left of it; what went wrong, in words.
fn attempt_guest_run(ground: &AttackEnvironment, harm: GuestHarm) -> Result<Option<String>> {
    for folder in ["run", "tmp", "archive", "bin"] {
        let path = ground.folder.join(folder);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    }
    let study = ground.folder.join("guests.toml");
    fs::write(&study, STUDY)?;
    if let GuestHarm::Lie(kind) = harm {
        install_fake_qemu(ground, kind)?;
    }
    let mut run = start_guest_run(ground, &study)?;
    let after = disturb_run(ground, harm, &mut run)?;
    let ended = wait_until_ended(&mut run, END)?;
    let mut wrong = Vec::new();
    if !ended {
        send_signal(run.id(), "KILL", false)?;
        run.wait()?;
        wrong.push(format!("it did not end within {END:?}"));
    }
    let output = fs::read_to_string(ground.folder.join("run.log"))?;
    wrong.extend(find_leftovers(ground, &output)?);
    wrong.extend(find_unreadable_runs(
        ground,
        !matches!(harm, GuestHarm::KillPerflab | GuestHarm::Interrupt | GuestHarm::Lie(_)),
    )?);
    if output.contains("panicked at") {
        wrong.push("perflab itself panicked".into());
    }
    let last: Vec<&str> = output.lines().rev().take(4).collect();
    Ok((!wrong.is_empty()).then(|| format!("{harm:?} after {after:?}: {}; said: {last:?}", wrong.join("; "))))
}

/// Puts a program that lies in the place of the second guest's QEMU.
fn install_fake_qemu(ground: &AttackEnvironment, kind: &str) -> Result<()> {
    let real = String::from_utf8(Command::new("which").arg("qemu-system-x86_64").output()?.stdout)?;
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *guest2,process*) exec {} fake-guest '{kind}' \"$@\";; esac\nexec {} \"$@\"\n",
        ground.xtask.display(),
        real.trim()
    );
    let path = ground.folder.join("bin/qemu-system-x86_64");
    fs::write(&path, script)?;
    Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
}

/// Waits for the second guest, then for a random moment, and does it. Gives that moment.
fn disturb_run(ground: &AttackEnvironment, harm: GuestHarm, run: &mut Child) -> Result<Duration> {
    let begun = Instant::now();
    while find_second_guest(ground).is_none() {
        let has_ended = run.try_wait()?.is_some() || begun.elapsed() > COMING;
        let output = fs::read_to_string(ground.folder.join("run.log"))?;
        // A liar may be found out between two looks.
        if matches!(harm, GuestHarm::Lie(_)) && output.contains("guest2 ") {
            break;
        }
        if has_ended {
            bail!("the second guest never came, and what is not there cannot be attacked: {output}");
        }
        sleep(Duration::from_millis(10));
    }
    let moment = Duration::from_millis(random_below(7000)?);
    sleep(moment);
    let perflab = run.id();
    let has_ended = run.try_wait()?.is_some();
    let qemu = find_second_guest(ground);
    match (harm, qemu) {
        _ if has_ended => {}
        (GuestHarm::KillPerflab, _) => send_signal(perflab, "KILL", false)?,
        (GuestHarm::Interrupt | GuestHarm::Lie(_), _) => send_signal(perflab, "INT", false)?,
        (GuestHarm::Kill, Some((pid, _))) => send_signal(pid, "KILL", false)?,
        (GuestHarm::Freeze, Some((pid, _))) => send_signal(pid, "STOP", false)?,
        (GuestHarm::Pause, Some((pid, _))) => {
            send_signal(pid, "STOP", false)?;
            sleep(Duration::from_secs(1));
            send_signal(pid, "CONT", false)?;
        }
        // A guest that is gone by now has no monitor.
        (GuestHarm::Panic, Some((_, folder))) => drop(inject_nmi(&folder)),
        (_, None) => {}
    }
    Ok(moment)
}

/// QEMU's process of the second guest, and its folder, once it was noted.
fn find_second_guest(ground: &AttackEnvironment) -> Option<(u32, PathBuf)> {
    let folders = fs::read_dir(ground.folder.join("run/perflab")).ok()?.flatten();
    let mut folders = folders.filter(|folder| folder.file_name().to_string_lossy().starts_with("guest2-"));
    let folder = folders.next()?.path();
    let note = fs::read_to_string(folder.join("guest.json")).ok()?;
    let pid = note.split("\"pid\":").nth(1)?.split([',', '\n']).next()?.trim().parse().ok()?;
    Some((pid, folder))
}

fn inject_nmi(folder: &Path) -> Result<()> {
    let mut monitor = UnixStream::connect(folder.join("qmp"))?;
    for order in ["qmp_capabilities", "inject-nmi"] {
        writeln!(monitor, "{{\"execute\": \"{order}\"}}")?;
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn wait_until_ended(run: &mut Child, longest: Duration) -> Result<bool> {
    let begun = Instant::now();
    while run.try_wait()?.is_none() {
        if begun.elapsed() > longest {
            return Ok(false);
        }
        sleep(Duration::from_millis(50));
    }
    Ok(true)
}

/// What is left that should not be: processes, mounts, folders of guests, and temporary folders that were not reported.
fn find_leftovers(ground: &AttackEnvironment, output: &str) -> Result<Vec<String>> {
    let begun = Instant::now();
    while !list_attack_processes(ground)?.is_empty() && begun.elapsed() < LINGER {
        sleep(Duration::from_millis(50));
    }
    let mut left: Vec<String> =
        list_attack_processes(ground)?.iter().map(|line| format!("left: process {line}")).collect();
    let mark = ground.folder.display().to_string();
    let mounts = fs::read_to_string("/proc/mounts")?;
    left.extend(mounts.lines().filter(|line| line.contains(&mark)).map(|line| format!("left: mount {line}")));
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let guests = ground.folder.join("run/perflab");
    loop {
        // A brand-new folder may belong to a guest that is about to begin.
        let old = SystemTime::now() - Duration::from_secs(60);
        for guest in entries(&guests) {
            File::open(guest)?.set_modified(old)?;
        }
        run_guest_perflab(ground, &["vm", "list"])?;
        run_guest_perflab(ground, &["undo"])?;
        // A QEMU that is being killed has no command line any more when its socket still answers.
        if entries(&guests).next().is_none() || begun.elapsed() > LINGER {
            break;
        }
        sleep(Duration::from_millis(200));
    }
    left.extend(entries(&guests).map(|path| format!("left: {}", path.display())));
    let untold =
        entries(&ground.folder.join("tmp")).filter(|path| !output.contains(&*path.to_string_lossy()));
    left.extend(untold.map(|path| format!("left: {}", path.display())));
    Ok(left)
}

/// Processes that have the attack's folder in their command line.
fn list_attack_processes(ground: &AttackEnvironment) -> Result<Vec<String>> {
    let mark = format!("{}/run", ground.folder.display());
    let all = fs::read_dir("/proc")?.flatten();
    let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    Ok(lines.filter(|line| line.contains(&mark)).map(|line| line.chars().take(120).collect()).collect())
}

/// Why a run that has begun cannot be read, or what values it has that it should not; where `is_whole`, each value has the company
/// that its level says (an interrupted one may be reported in part).
fn find_unreadable_runs(ground: &AttackEnvironment, is_whole: bool) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let runs = fs::read_dir(ground.folder.join("archive/runs")).into_iter().flatten().flatten();
    for run in runs.filter(|run| !run.file_name().to_string_lossy().starts_with('.')) {
        let name = run.file_name().to_string_lossy().into_owned();
        let shown = run_guest_perflab(ground, &["show", &name])?;
        let table = run_guest_perflab(ground, &["export", &name, "--to", "csv"])?;
        if !shown.status.success() || !table.status.success() {
            wrong.push(format!("run {name} cannot be read: {}", String::from_utf8_lossy(&shown.stderr)));
            continue;
        }
        for ((level, iteration, metric), count) in count_values(&String::from_utf8_lossy(&table.stdout)) {
            let company: usize = level.parse().unwrap_or_default();
            if count > company || is_whole && count < company {
                wrong.push(format!(
                    "{metric} of iteration {iteration} with guests={level} has {count} values"
                ));
            }
        }
    }
    Ok(wrong)
}

/// How many values there are of each level, iteration and metric, in a table of samples.
fn count_values(table: &str) -> BTreeMap<(String, String, String), usize> {
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let head = lines.next().unwrap_or_default();
    let column = |name: &str| head.iter().position(|title| *title == name).unwrap_or(usize::MAX);
    let columns = ["factor.guests", "iteration", "metric"].map(column);
    let mut counts = BTreeMap::new();
    for line in lines {
        let [level, iteration, metric] =
            columns.map(|at| line.get(at).copied().unwrap_or_default().to_owned());
        *counts.entry((level, iteration, metric)).or_default() += 1;
    }
    counts
}

fn start_guest_run(ground: &AttackEnvironment, study: &Path) -> Result<Child> {
    let log = File::create(ground.folder.join("run.log"))?;
    let mut command = guest_perflab_command(ground, &["run", &study.display().to_string(), "--no-report"]);
    command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().context("cannot start perflab")
}

fn run_guest_perflab(ground: &AttackEnvironment, arguments: &[&str]) -> Result<Output> {
    guest_perflab_command(ground, arguments).output().context("cannot start perflab")
}

fn guest_perflab_command(ground: &AttackEnvironment, arguments: &[&str]) -> Command {
    let folder = |name: &str| ground.folder.join(name);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(&ground.perflab);
    command.args(arguments).current_dir(&ground.folder);
    command.env("PERFLAB_STATE", folder("state")).env("PERFLAB_ARCHIVE", folder("archive"));
    // Its own kernel, which nobody fetches anew in the meantime.
    command.env("PERFLAB_CACHE", folder("cache"));
    command.env("XDG_RUNTIME_DIR", folder("run")).env("TMPDIR", folder("tmp"));
    command.env("PATH", format!("{}:{path}", folder("bin").display()));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_by_level_iteration_and_metric() {
        let table = "run,target,factor.guests,iteration,metric,value\nR,guest1,2,0,access,1.5\nR,guest2,2,0,access,1.6\nR,guest1,1,0,access,1\n";
        let counted: Vec<usize> = count_values(table).into_values().collect();
        assert_eq!(counted, [1, 2]);
    }
}
