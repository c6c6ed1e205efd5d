//! What `perflab prefetch daemon` costs: an exec of which it knows nothing, by turns with and without it; itself, when nothing
//! happens and it knows 1,000 programs; and a storm. As root:
//!
//!     cargo bench -p perflab --bench daemon [-- --execs 5000] [--idle 60]
//!
//! Only a file system of the bench's own is watched. An exec is timed from fork to the end of a program of three instructions.
#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_prefetch::daemon::program::{Ahead, Measured};
use perflab_prefetch::daemon::scout::Identity;
use perflab_prefetch::daemon::{Program, Standing, Status, status};
use perflab_prefetch::{Source, Start, Store};

#[path = "../tests/it/tiny.rs"]
mod tiny;

/// Programs that the idle daemon knows.
const KNOWN: usize = 1000;
/// Execs of one turn.
const TURN: usize = 250;

fn main() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIP daemon: it needs root");
    }
    let execs = argument("--execs", 5000);
    let idle = argument("--idle", 60);
    let home = tempfile::tempdir().unwrap();
    let place = mount(home.path());
    let tiny = place.join("tiny");
    tiny::write(&tiny);
    delays(home.path(), &place, &tiny, execs);
    storm(home.path(), &place, &tiny);
    rest(home.path(), &place, Duration::from_secs(idle as u64));
    Command::new("umount").arg(&place).status().unwrap();
}

fn argument(name: &str, default: usize) -> usize {
    let all: Vec<String> = std::env::args().collect();
    let at = all.iter().position(|one| one == name);
    at.and_then(|at| all.get(at + 1)).map_or(default, |value| value.parse().unwrap())
}

/// A small ext4 in a file.
fn mount(home: &Path) -> PathBuf {
    let (file, place) = (home.join("disk"), home.join("mnt"));
    fs::create_dir(&place).unwrap();
    fs::File::create(&file).unwrap().set_len(32 << 20).unwrap();
    let run = |command: &mut Command| assert!(command.status().unwrap().success());
    run(Command::new("mkfs.ext4").arg("-q").arg(&file));
    run(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(&place));
    place
}

struct Daemon {
    child: Child,
    socket: PathBuf,
}

impl Daemon {
    fn start(home: &Path, place: &Path) -> Self {
        let socket = home.join("socket");
        let child = Command::new(env!("CARGO_BIN_EXE_perflab"))
            .args(["prefetch", "--store"])
            .arg(home.join("store"))
            .args(["daemon", "--on"])
            .arg(place)
            .arg("--socket")
            .arg(&socket)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let daemon = Daemon { child, socket };
        while !status::ask(&daemon.socket).is_ok_and(|status| !status.watched.is_empty()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon
    }

    fn status(&self) -> Status {
        status::ask(&self.socket).unwrap()
    }

    /// CPU time of all its threads.
    fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).unwrap_or_default();
        assert!(!stat.is_empty(), "the daemon lives");
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |thread: fs::DirEntry| {
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
        };
        Duration::from_nanos(threads.flatten().map(of).sum())
    }

    fn memory(&self, line: &str) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let found = text.lines().find_map(|one| one.strip_prefix(line)).unwrap();
        found.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn exec(path: &Path) -> Duration {
    let begun = Instant::now();
    assert!(Command::new(path).status().unwrap().success());
    begun.elapsed()
}

fn quantile(times: &[Duration], share: f64) -> Duration {
    times[((times.len() - 1) as f64 * share).round() as usize]
}

/// By turns, so that whatever else the machine does is in both.
fn delays(home: &Path, place: &Path, tiny: &Path, execs: usize) {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    (0..200).for_each(|_| _ = exec(tiny));
    while with.len() < execs {
        without.extend((0..TURN).map(|_| exec(tiny)));
        let daemon = Daemon::start(home, place);
        exec(tiny);
        with.extend((0..TURN).map(|_| exec(tiny)));
        drop(daemon);
    }
    [&mut without, &mut with].into_iter().for_each(|times| times.sort());
    println!("{execs} execs of a program without a trace, by turns");
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)] {
        let [none, ours] = [&without, &with].map(|times| quantile(times, share).as_secs_f64() * 1e3);
        println!(
            "  {name:6} {none:8.3} ms without, {ours:8.3} ms with: {:+.3} ms, {:.2}x",
            ours - none,
            ours / none
        );
    }
}

/// As fast as the machine can, from eight threads.
fn storm(home: &Path, place: &Path, tiny: &Path) {
    let daemon = Daemon::start(home, place);
    let (cpu, begun) = (daemon.cpu(), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..1250).for_each(|_| _ = exec(tiny)));
        }
    });
    let (took, cpu, status) = (begun.elapsed(), daemon.cpu() - cpu, daemon.status());
    println!(
        "10000 execs from 8 threads: {:.2} s, {:.0} us of the daemon each, {} not looked at, {} let through by the clock, \
         {:.1} MiB at most",
        took.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / 10_000.0,
        status.unseen,
        status.overdue,
        daemon.memory("VmHWM:"),
    );
}

/// A daemon that knows a thousand programs, and nothing happens.
fn rest(home: &Path, place: &Path, idle: Duration) {
    let store = Store::locate(Some(&home.join("store")));
    let start = || Start { when: 1, source: Source::Traced, systems: Vec::new(), files: Vec::new() };
    let measured = vec![Measured::default(); 8];
    let program = |number| PathBuf::from(format!("/usr/lib/some-application/bin/program-{number}"));
    let known = |path: PathBuf| {
        store.add(&path, start()).unwrap();
        let text = serde_json::json!({
            "standing": Standing::Known,
            "why": "read ahead, it read 0 bytes with 0 major faults; 4 MiB or 200 are worth it",
            "file": Identity::default(), "starts": 9, "last": 1, "learned": 1,
            "without": measured, "with": measured, "ahead": Ahead::default(),
        });
        (path, serde_json::from_value(text).unwrap())
    };
    let programs: BTreeMap<PathBuf, Program> = (0..KNOWN).map(program).map(known).collect();
    fs::write(store.folder().join("programs.json"), serde_json::to_vec(&programs).unwrap()).unwrap();
    let daemon = Daemon::start(home, place);
    assert!(daemon.status().programs.len() >= KNOWN);
    std::thread::sleep(Duration::from_secs(2));
    let before = daemon.cpu();
    std::thread::sleep(idle);
    let share = (daemon.cpu() - before).as_secs_f64() / idle.as_secs_f64();
    println!(
        "idle for {} s with {KNOWN} programs: {:.4} % of a core (limit 0.1), {:.1} MiB (limit 30), of it {:.1} its own",
        idle.as_secs(),
        share * 100.0,
        daemon.memory("VmRSS:"),
        daemon.memory("RssAnon:"),
    );
}
