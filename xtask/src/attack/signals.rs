//! Wishes to stop, and whoever goes away, in each phase of what perflab does: it ends, nothing stays changed or left behind, and
//! what was kept can be read.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::processes::{command, kill_survivors, left_files, perflab, random, signal, survivors, wait};
use super::{Attack, Counts, Ground};
use crate::needs;

/// Signals, terminals and readers that go.
pub const ATTACK: Attack = Attack {
    name: "signals",
    tries: "^C, ^C twice, TERM, HUP, QUIT, a closed terminal, a closed stdout, a full stderr, a stop of 3 s, at random moments of run, slab record, flame record, report, import",
    brief: 45,
    full: 200,
    carry_out,
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

/// What perflab does meanwhile.
const PHASES: &[&[&str]] = &[
    &["run", "study.toml"],
    &["slab", "record", "--", "sleep", "1"],
    &["flame", "record", "--", "sleep", "1"],
    &["report", "@latest", "-o", "report.html"],
    &["import", "bench.txt"],
];

/// What happens to it.
#[derive(Debug, Clone, Copy)]
enum Event {
    Signals(&'static [&'static str], Duration),
    ClosedTerminal,
    ClosedOutput,
    FullErrors,
}

const EVENTS: &[Event] = &[
    Event::Signals(&["INT"], Duration::ZERO),
    Event::Signals(&["INT", "INT"], Duration::from_millis(10)),
    Event::Signals(&["INT", "INT"], Duration::from_millis(400)),
    Event::Signals(&["TERM"], Duration::ZERO),
    Event::Signals(&["HUP"], Duration::ZERO),
    Event::Signals(&["QUIT"], Duration::ZERO),
    Event::Signals(&["STOP", "CONT"], Duration::from_secs(3)),
    Event::ClosedTerminal,
    Event::ClosedOutput,
    Event::FullErrors,
];

fn carry_out(ground: &Ground, count: u32) -> Result<Counts> {
    if !needs::is_root() {
        bail!("settings are root's");
    }
    let mut counts = Counts::default();
    // Every phase meets every event before one comes again: the two numbers have no common divisor but 5.
    let pairs = EVENTS.iter().flat_map(|event| PHASES.iter().map(move |phase| (*event, *phase)));
    let pairs: Vec<_> = pairs.collect();
    for (number, (event, phase)) in (0..count as usize).zip(pairs.iter().cycle()) {
        // Runs are not piled up: each is listed after every attempt.
        if number.is_multiple_of(pairs.len()) {
            prepare(ground)?;
        }
        let failure = attempt(ground, phase, *event).with_context(|| format!("{event:?} in {phase:?}"))?;
        counts.add(failure.map(|failure| format!("{event:?} in `{}`: {failure}", phase.join(" "))));
    }
    Ok(counts)
}

/// A study, an archive with a run for reports, and a file to import.
fn prepare(ground: &Ground) -> Result<()> {
    let archive = ground.folder.join("perflab-archive");
    if archive.exists() {
        fs::remove_dir_all(&archive)?;
    }
    fs::write(ground.folder.join("study.toml"), STUDY)?;
    let lines = (0..20_000).map(|number| format!("BenchmarkX{}-2 \t 1000 \t {number} ns/op\n", number % 50));
    fs::write(ground.folder.join("bench.txt"), format!("goos: linux\n{}", lines.collect::<String>()))?;
    let made = perflab(ground, &["run", "study.toml", "--no-report"])?;
    if !made.status.success() {
        bail!("no run for reports: {}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(())
}

fn attempt(ground: &Ground, phase: &[&str], event: Event) -> Result<Option<String>> {
    let before = fs::read_to_string(SETTING)?;
    let mut child = start(ground, phase, event)?;
    sleep(Duration::from_millis(50 + random(900)?));
    match event {
        Event::Signals(names, pause) => {
            for (index, name) in names.iter().enumerate() {
                if index > 0 {
                    sleep(pause);
                }
                if child.try_wait()?.is_none() {
                    signal(child.id(), name, false)?;
                }
            }
        }
        // The terminal goes with who holds its other end.
        Event::ClosedTerminal => signal(child.id(), "KILL", false)?,
        Event::ClosedOutput => drop(child.stdout.take()),
        Event::FullErrors => {}
    }
    let ended = wait(&mut child)?;
    let left = survivors(ground, "");
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
    is_whole(ground)
}

/// Nothing is left after the next start, and what was kept is read.
fn is_whole(ground: &Ground) -> Result<Option<String>> {
    for words in [&["undo"][..], &["list"], &["show", "@latest"]] {
        let told = perflab(ground, words)?;
        if !told.status.success() {
            return Ok(Some(format!(
                "{}: {}",
                words.join(" "),
                String::from_utf8_lossy(&told.stderr).trim()
            )));
        }
    }
    let files = left_files(ground);
    Ok((!files.is_empty()).then(|| format!("left behind: {}", files.join(", "))))
}

fn start(ground: &Ground, phase: &[&str], event: Event) -> Result<Child> {
    let own = command(ground, phase);
    let mut started = match event {
        Event::ClosedTerminal => terminal(&own),
        _ => own,
    };
    let log = || File::create(ground.folder.join("log"));
    started.stderr(match event {
        Event::FullErrors => File::options().write(true).open("/dev/full")?,
        _ => log()?,
    });
    match event {
        Event::ClosedOutput => started.stdout(Stdio::piped()),
        _ => started.stdout(Stdio::null()),
    };
    started.process_group(0).spawn().context("cannot start perflab")
}

/// The command in a terminal of its own, held by script(1).
fn terminal(own: &Command) -> Command {
    let words = [own.get_program()].into_iter().chain(own.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &format!("exec {}", line.join(" ")), "/dev/null"]);
    script.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.current_dir(own.get_current_dir().map_or_else(|| PathBuf::from("."), PathBuf::from));
    script.stdin(Stdio::null());
    script
}
