//! Programs that leave their functions in every possible way, watched by `perflab trace attach`: their results are what
//! they are without it, and every entry is reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use crate::needs;

/// Each victim is watched again and again for so many seconds: started by perflab, and attached to while it runs. Groups
/// of them are watched beside one another.
pub const ATTACK: Attack = Attack {
    name: "attach",
    tries: "programs that throw, jump, unwind, fork, exec, grow and switch stacks, or are interpreted, watched by probes \
            for so many seconds each: the same result, and every entry told",
    brief: 8,
    full: 600,
    carry_out: attack_probed_programs,
};

/// How many groups: of 15 victims three follow one another, which at 600 seconds each is half an hour.
const GROUPS: usize = 5;

/// A program under probes.
struct VictimProgram {
    name: &'static str,
    /// in `xtask/victims`
    source: &'static str,
    flags: &'static [&'static str],
    operation: &'static str,
    /// so that it runs for about a second by itself
    calls: &'static str,
}

const fn declare_victim(
    name: &'static str,
    source: &'static str,
    flags: &'static [&'static str],
    operation: &'static str,
    calls: &'static str,
) -> VictimProgram {
    VictimProgram { name, source, flags, operation, calls }
}

/// Neighbours are in one group: those that watch the C library's `malloc`, which all processes share, follow one another.
const VICTIMS: &[VictimProgram] = &[
    declare_victim("longjmp", "jumps.c", &[], "jumper", "20000000"),
    declare_victim("recursion", "jumps.c", &[], "deep", "20000000"),
    declare_victim("static", "jumps.c", &["-static"], "deep", "20000000"),
    declare_victim("stripped", "jumps.c", &["-s"], "ADDRESS", "20000000"),
    declare_victim("C++ exceptions", "throws.cc", &[], "tree::insert", "20000000"),
    declare_victim("Rust panics", "panics.rs", &["--crate-name=panics"], "panics::insert", "20000000"),
    declare_victim("Go, stacks that grow", "stacks.go", &[], "main.Deep", "1000000"),
    declare_victim("Go, goroutines that move", "stacks.go", &[], "main.Work", "1000000"),
    declare_victim("makecontext", "coroutines.c", &[], "step", "2000000"),
    declare_victim("setjmp coroutines", "fibers.c", &[], "step", "30000000"),
    declare_victim("cancelled threads, fork", "cancels.c", &[], "work", "60000"),
    declare_victim("exec", "execs.c", &[], "work", "50000000"),
    declare_victim("the C library", "cancels.c", &[], "libc.so.6:malloc", "60000"),
    declare_victim("Python", "calls.py", &[], "malloc", "1000000"),
    declare_victim("Java", "Calls.java", &[], "libc.so.6:malloc", "3000000"),
];

fn attack_probed_programs(ground: &AttackEnvironment, seconds: u32) -> Result<AttackCounts> {
    if !needs::is_root() {
        bail!("uprobes are root's");
    }
    let counts = Mutex::new(AttackCounts::default());
    let watch = &|(number, group): (usize, &[VictimProgram])| -> Result<()> {
        let folder = ground.folder.join(format!("group-{number}"));
        fs::create_dir_all(&folder)?;
        let ground =
            AttackEnvironment { perflab: ground.perflab.clone(), xtask: ground.xtask.clone(), folder };
        for victim in group {
            let attempts =
                watch_victim_repeatedly(&ground, victim, seconds, &counts).with_context(|| victim.name)?;
            println!("  {}: {attempts} times", victim.name);
        }
        Ok(())
    };
    let groups = VICTIMS.chunks(VICTIMS.len().div_ceil(GROUPS)).enumerate();
    thread::scope(|scope| {
        let all: Vec<_> = groups.map(|group| scope.spawn(move || watch(group))).collect();
        all.into_iter().try_for_each(|one| one.join().map_err(|_| anyhow!("a thread died"))?)
    })?;
    counts.into_inner().map_err(|_| anyhow!("a thread died"))
}

/// The victim watched again and again; how often that was.
fn watch_victim_repeatedly(
    ground: &AttackEnvironment,
    victim: &VictimProgram,
    seconds: u32,
    counts: &Mutex<AttackCounts>,
) -> Result<u32> {
    let (program, operation) = build_victim(ground, victim)?;
    let alone = collect_output(Command::new(&program[0]).args(&program[1..]).arg(victim.calls))?;
    let since = Instant::now();
    let mut attempts = 0;
    // Once each way at least.
    while attempts < 2 || since.elapsed().as_secs() < u64::from(seconds) {
        let (watched, output) = if attempts % 2 == 0 {
            watch_from_start(ground, victim, &program, &operation)?
        } else {
            attach_while_running(ground, victim, &program, &operation)?
        };
        let failure = describe_watch_failure(victim, &alone, &watched, &output);
        counts.lock().map_err(|_| anyhow!("a thread died"))?.count_attempt(failure);
        attempts += 1;
    }
    Ok(attempts)
}

/// What perflab starts: its output holds the program's.
fn watch_from_start(
    ground: &AttackEnvironment,
    victim: &VictimProgram,
    program: &[String],
    operation: &str,
) -> Result<(Output, Output)> {
    let asked = format!("op={operation}");
    let mut command = attach_command(ground, &["trace", "attach", "--operation", &asked, "--"]);
    let output = collect_output(command.args(program).arg(victim.calls))?;
    Ok((output.clone(), output))
}

/// What runs already: watched for a part of its time, then left alone.
fn attach_while_running(
    ground: &AttackEnvironment,
    victim: &VictimProgram,
    program: &[String],
    operation: &str,
) -> Result<(Output, Output)> {
    let mut command = Command::new(&program[0]);
    command
        .args(&program[1..])
        .arg(victim.calls)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child: Child = command.spawn().context("cannot start a victim")?;
    sleep(Duration::from_millis(100));
    let asked = format!("op={operation}");
    let pid = child.id().to_string();
    let arguments = ["trace", "attach", "--operation", &asked, "--for", "500ms", "--pid", &pid];
    let output = collect_output(&mut attach_command(ground, &arguments))?;
    Ok((child.wait_with_output()?, output))
}

/// What was not as it should be.
fn describe_watch_failure(
    victim: &VictimProgram,
    alone: &Output,
    watched: &Output,
    output: &Output,
) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (requested, found, reported) = (text(&alone.stdout), text(&watched.stdout), text(&output.stderr));
    let name = victim.name;
    if watched.status.code() != alone.status.code() || !found.contains(requested.trim()) {
        return Some(format!(
            "{name}: {} and `{}`, alone {} and `{}`; {reported}",
            watched.status,
            found.trim(),
            alone.status,
            requested.trim()
        ));
    }
    // The process may have ended before it was attached to, or never have come there.
    if ["there is no process", "no event came from"].iter().any(|harmless| reported.contains(harmless)) {
        return None;
    }
    if output.status.code() != Some(0) {
        return Some(format!("{name}: perflab ended with {}: {reported}", output.status));
    }
    match reported.lines().find(|line| line.starts_with("op: ")).map(has_balanced_entries) {
        Some(Some(true)) => None,
        _ => Some(format!("{name}: the entries do not add up: {reported}")),
    }
}

/// Whether `op: 10 entries = 8 ended + 2 abandoned; …` is so.
fn has_balanced_entries(line: &str) -> Option<bool> {
    let (entered, kinds) = line.split(';').next()?.strip_prefix("op: ")?.split_once(" entries = ")?;
    let counts = kinds.split(" + ").map(|kind| kind.split(' ').next()?.parse::<u64>().ok());
    let sum: u64 = counts.collect::<Option<Vec<u64>>>()?.iter().sum();
    Some(sum == entered.parse::<u64>().ok()?)
}

/// The command that is the victim, and its operation.
fn build_victim(ground: &AttackEnvironment, victim: &VictimProgram) -> Result<(Vec<String>, String)> {
    let source = Path::new("xtask/victims").join(victim.source).canonicalize()?;
    let source = source.display().to_string();
    let folder = ground.folder.join(victim.name.replace([' ', ',', '+'], "-"));
    fs::create_dir_all(&folder)?;
    let program = folder.join("victim").display().to_string();
    let (compiler, arguments): (&str, Vec<&str>) = match victim.source.rsplit('.').next() {
        Some("c") => ("cc", vec!["-O1", "-pthread", "-o", &program, &source]),
        Some("cc") => ("c++", vec!["-O1", "-o", &program, &source]),
        Some("rs") => {
            ("rustc", vec!["-O", "--edition=2021", "-Csymbol-mangling-version=v0", "-o", &program, &source])
        }
        Some("go") => ("go", vec!["build", "-o", &program, &source]),
        Some("java") => ("javac", vec!["-d", folder.to_str().context("a strange folder")?, &source]),
        _ => return Ok((vec!["/usr/bin/python3".into(), source], victim.operation.into())),
    };
    let run = |flags: &[&str]| -> Result<()> {
        let built = Command::new(compiler)
            .args(&arguments)
            .args(flags)
            .env("GOCACHE", ground.folder.join("go"))
            .status();
        match built.with_context(|| format!("cannot run {compiler}"))?.success() {
            true => Ok(()),
            false => bail!("{compiler} does not compile {source}"),
        }
    };
    if victim.operation == "ADDRESS" {
        run(&[])?;
        let symbols = collect_output(Command::new("nm").arg(&program))?;
        let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
        let line = symbols.lines().find(|line| line.ends_with(" deep")).context("no function `deep`")?;
        let address = line.split(' ').next().unwrap_or_default().trim_start_matches('0').to_owned();
        run(victim.flags)?;
        let operation = format!("{program}:0x{address}");
        return Ok((vec![program], operation));
    }
    run(victim.flags)?;
    if compiler == "javac" {
        let java = ["java".into(), "-cp".into(), folder.display().to_string(), "Calls".into()];
        return Ok((java.to_vec(), victim.operation.into()));
    }
    Ok((vec![program], victim.operation.into()))
}

fn collect_output(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {:?}", command.get_program()))
}

fn attach_command(ground: &AttackEnvironment, arguments: &[&str]) -> Command {
    let archive: PathBuf = ground.folder.join("archive");
    let mut command = Command::new(&ground.perflab);
    command.arg("--archive").arg(archive).args(arguments);
    command.env("PERFLAB_STATE", ground.folder.join("state")).env("TMPDIR", &ground.folder);
    command
}

#[cfg(test)]
mod tests {
    use super::has_balanced_entries;

    #[test]
    fn an_account_adds_up_or_does_not() {
        let lines = [
            "op: 10 entries = 7 ended + 2 abandoned + 1 still open",
            "op: 0 entries = 0 ended; 5 ends without a begin",
            "op: 10 entries = 9 ended",
        ];
        assert_eq!(lines.map(has_balanced_entries), [Some(true), Some(true), Some(false)]);
        assert_eq!(has_balanced_entries("something else"), None);
    }
}
