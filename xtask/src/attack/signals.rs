//! Stop requests, and peers that go away, in each phase of what perflab does: it ends, nothing stays changed or left
//! behind, and what was kept can be read.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use super::processes::{
    find_survivors, kill_survivors, list_left_files, perflab_command, random_below, run_perflab, send_signal,
    wait_for_process,
};
use crate::needs;

/// Signals, terminals and readers that go.
pub const ATTACK: Attack = Attack {
    name: "signals",
    tries: "^C, ^C twice, TERM, HUP, QUIT, a closed terminal, a closed stdout, a full stderr, a stop of 3 s, at random moments of run, slab record, flame record, report, import",
    brief: 45,
    full: 200,
    carry_out: attack_with_signals,
};

/// The setting that the study changes.
const SETTING: &str = "/proc/sys/vm/vfs_cache_pressure";

const STUDY: &str = r#"title = "attack"
run = { iterations = 2, warmup = 0, order = "sequential" }
monitors = { meminfo = "50ms" }
[workload.context-switches]
parameters = { rounds = 20000 }
[factor.pressure]
kind = "sysctl"
key = "vm.vfs_cache_pressure"
levels = [131, 77]
"#;

/// What perflab does in the meantime.
const PHASES: &[&[&str]] = &[
    &["run", "study.toml"],
    &["slab", "record", "--", "sleep", "1"],
    &["flame", "record", "--", "sleep", "1"],
    &["report", "@latest", "-o", "report.html"],
    &["import", "bench.txt"],
];

/// What happens to it.
#[derive(Debug, Clone, Copy)]
enum PhaseDisturbance {
    Signals(&'static [&'static str], Duration),
    ClosedTerminal,
    ClosedOutput,
    FullErrors,
}

const EVENTS: &[PhaseDisturbance] = &[
    PhaseDisturbance::Signals(&["INT"], Duration::ZERO),
    PhaseDisturbance::Signals(&["INT", "INT"], Duration::from_millis(10)),
    PhaseDisturbance::Signals(&["INT", "INT"], Duration::from_millis(400)),
    PhaseDisturbance::Signals(&["TERM"], Duration::ZERO),
    PhaseDisturbance::Signals(&["HUP"], Duration::ZERO),
    PhaseDisturbance::Signals(&["QUIT"], Duration::ZERO),
    PhaseDisturbance::Signals(&["STOP", "CONT"], Duration::from_secs(3)),
    PhaseDisturbance::ClosedTerminal,
    PhaseDisturbance::ClosedOutput,
    PhaseDisturbance::FullErrors,
];

fn attack_with_signals(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    if !needs::is_root() {
        bail!("settings are root's");
    }
    let mut counts = AttackCounts::default();
    // Every phase meets every event before one comes again: the two numbers have no common divisor but 5.
    let pairs = EVENTS.iter().flat_map(|event| PHASES.iter().map(move |phase| (*event, *phase)));
    let pairs: Vec<_> = pairs.collect();
    for (number, (event, phase)) in (0..count as usize).zip(pairs.iter().cycle()) {
        // Runs are not piled up: each is listed after every attempt.
        if number.is_multiple_of(pairs.len()) {
            prepare_inputs(ground)?;
        }
        let failure = attempt_disturbed_phase(ground, phase, *event)
            .with_context(|| format!("{event:?} in {phase:?}"))?;
        counts.count_attempt(failure.map(|failure| format!("{event:?} in `{}`: {failure}", phase.join(" "))));
    }
    Ok(counts)
}

/// A study, an archive with a run for reports, and a file to import.
fn prepare_inputs(ground: &AttackEnvironment) -> Result<()> {
    let archive = ground.folder.join("perflab-archive");
    if archive.exists() {
        fs::remove_dir_all(&archive)?;
    }
    fs::write(ground.folder.join("study.toml"), STUDY)?;
    let lines = (0..20_000).map(|number| format!("BenchmarkX{}-2 \t 1000 \t {number} ns/op\n", number % 50));
    fs::write(ground.folder.join("bench.txt"), format!("goos: linux\n{}", lines.collect::<String>()))?;
    let made = run_perflab(ground, &["run", "study.toml", "--no-report"])?;
    if !made.status.success() {
        bail!("no run for reports: {}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(())
}

fn attempt_disturbed_phase(
    ground: &AttackEnvironment,
    phase: &[&str],
    event: PhaseDisturbance,
) -> Result<Option<String>> {
    let before = fs::read_to_string(SETTING)?;
    let mut child = start_phase(ground, phase, event)?;
    sleep(Duration::from_millis(50 + random_below(900)?));
    match event {
        PhaseDisturbance::Signals(names, pause) => {
            for (index, name) in names.iter().enumerate() {
                if index > 0 {
                    sleep(pause);
                }
                if child.try_wait()?.is_none() {
                    send_signal(child.id(), name, false)?;
                }
            }
        }
        // The terminal goes with who holds its other end.
        PhaseDisturbance::ClosedTerminal => send_signal(child.id(), "KILL", false)?,
        PhaseDisturbance::ClosedOutput => drop(child.stdout.take()),
        PhaseDisturbance::FullErrors => {}
    }
    let ended = wait_for_process(&mut child)?;
    let left = find_survivors(ground, "");
    kill_survivors(ground, "");
    let after = fs::read_to_string(SETTING)?;
    if after != before {
        fs::write(SETTING, &before)?;
        return Ok(Some(format!("{SETTING} was {} and is {}", before.trim(), after.trim())));
    }
    // 101 is a panic, 134 an abort.
    if matches!(ended.code, None | Some(101 | 134 | 139)) {
        return Ok(Some(format!("it ended with {:?}", ended.code)));
    }
    if !left.is_empty() {
        return Ok(Some(format!("processes live on: {}", left.concat())));
    }
    find_remaining_damage(ground)
}

/// Nothing is left after the next start, and what was kept is read.
fn find_remaining_damage(ground: &AttackEnvironment) -> Result<Option<String>> {
    for words in [&["undo"][..], &["list"], &["show", "@latest"]] {
        let output = run_perflab(ground, words)?;
        if !output.status.success() {
            return Ok(Some(format!(
                "{}: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            )));
        }
    }
    let files = list_left_files(ground);
    Ok((!files.is_empty()).then(|| format!("left behind: {}", files.join(", "))))
}

fn start_phase(ground: &AttackEnvironment, phase: &[&str], event: PhaseDisturbance) -> Result<Child> {
    let own = perflab_command(ground, phase);
    let mut started = match event {
        PhaseDisturbance::ClosedTerminal => with_terminal(&own),
        _ => own,
    };
    let log = || File::create(ground.folder.join("log"));
    started.stderr(match event {
        PhaseDisturbance::FullErrors => File::options().write(true).open("/dev/full")?,
        _ => log()?,
    });
    match event {
        PhaseDisturbance::ClosedOutput => started.stdout(Stdio::piped()),
        _ => started.stdout(Stdio::null()),
    };
    started.process_group(0).spawn().context("cannot start perflab")
}

/// The command in a terminal of its own, held by script(1).
fn with_terminal(own: &Command) -> Command {
    let words = [own.get_program()].into_iter().chain(own.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &format!("exec {}", line.join(" ")), "/dev/null"]);
    script.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.current_dir(own.get_current_dir().map_or_else(|| PathBuf::from("."), PathBuf::from));
    script.stdin(Stdio::null());
    script
}
