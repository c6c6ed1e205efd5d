//! What `perflab prefetch daemon` costs: an exec of which it knows nothing, by turns with and without it; an open while it sees what
//! a start opens; itself, when nothing happens and it knows 1,000 programs; and a storm. And how long an exec waits for a daemon
//! that is stopped, frozen, killed, or pushed out of memory. As root:
//!
//!     cargo bench -p perflab --bench daemon [-- --execs 5000] [--idle 60] [--stalls 5]
//!
//! Only a file system of the bench's own is watched. An exec is timed from fork to the end of a program of three instructions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use perflab_prefetch::daemon::file_classifier::ExecutableId;
use perflab_prefetch::daemon::programs::{MeasuredStartup, ReadAheadTotals};
use perflab_prefetch::daemon::{DaemonStatus, ProgramState, service};
use perflab_prefetch::{StartupTrace, TraceSource, TraceStore};

#[path = "../tests/it/tiny.rs"]
mod tiny;

/// Programs that the idle daemon knows.
const KNOWN: usize = 1000;
/// Execs of one turn.
const TURN: usize = 250;

fn main() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIP daemon: it needs root");
        return Ok(());
    }
    let execs = parse_argument("--execs", 5000)?;
    let idle = parse_argument("--idle", 60)?;
    let home = tempfile::tempdir()?;
    let disk = MountedExt4::new(home.path())?;
    let tiny = disk.place.join("tiny");
    tiny::write_tiny_elf(&tiny)?;
    measure_exec_delays(home.path(), &disk.place, &tiny, execs)?;
    measure_exec_stalls(home.path(), &disk.place, &tiny, parse_argument("--stalls", 5)?)?;
    measure_opens(&disk.place)?;
    measure_exec_storm(home.path(), &disk.place, &tiny)?;
    measure_idle_cost(home.path(), &disk.place, Duration::from_secs(idle as u64))
}

fn parse_argument(name: &str, default: usize) -> anyhow::Result<usize> {
    let all: Vec<String> = std::env::args().collect();
    let at = all.iter().position(|one| one == name);
    at.and_then(|at| all.get(at + 1))
        .map_or(Ok(default), |value| value.parse())
        .with_context(|| name.to_owned())
}

/// A small ext4 in a file, mounted until it is dropped.
struct MountedExt4 {
    place: PathBuf,
}

impl MountedExt4 {
    fn new(home: &Path) -> anyhow::Result<Self> {
        let (file, place) = (home.join("disk"), home.join("mnt"));
        fs::create_dir(&place)?;
        fs::File::create(&file)?.set_len(32 << 20)?;
        run_successfully(Command::new("mkfs.ext4").arg("-q").arg(&file))?;
        run_successfully(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(&place))?;
        Ok(MountedExt4 { place })
    }
}

impl Drop for MountedExt4 {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.place).status();
    }
}

fn run_successfully(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

struct BenchedDaemon {
    child: Child,
    socket: PathBuf,
}

impl BenchedDaemon {
    fn start(home: &Path, place: &Path) -> anyhow::Result<Self> {
        let socket = home.join("socket");
        let child = Command::new(env!("CARGO_BIN_EXE_perflab"))
            .args(["prefetch", "--store"])
            .arg(home.join("store"))
            .args(["daemon", "--on"])
            .arg(place)
            .arg("--socket")
            .arg(&socket)
            .stderr(Stdio::inherit())
            .spawn()?;
        let mut daemon = BenchedDaemon { child, socket };
        while !service::read_status(&daemon.socket).is_ok_and(|status| !status.watched.is_empty()) {
            ensure!(daemon.child.try_wait()?.is_none(), "the daemon has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(daemon)
    }

    fn status(&self) -> anyhow::Result<DaemonStatus> {
        Ok(service::read_status(&self.socket)?)
    }

    /// CPU time of all its threads.
    fn cpu_time(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).unwrap_or_default();
        ensure!(!stat.is_empty(), "the daemon has ended");
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()))?;
        let of = |thread: fs::DirEntry| {
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
        };
        Ok(Duration::from_nanos(threads.flatten().map(of).sum()))
    }

    /// MiB, of one line of its status.
    fn memory_mib(&self, line: &str) -> anyhow::Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let found = text.lines().find_map(|one| one.strip_prefix(line));
        let number = found.with_context(|| format!("the kernel tells no {line}"))?;
        Ok(number.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
    }
}

impl Drop for BenchedDaemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn time_exec(path: &Path) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    run_successfully(&mut Command::new(path))?;
    Ok(begun.elapsed())
}

/// The times of so many, one after the other.
fn time_execs(path: &Path, count: usize) -> anyhow::Result<Vec<Duration>> {
    (0..count).map(|_| time_exec(path)).collect()
}

fn quantile(times: &[Duration], share: f64) -> Duration {
    times[((times.len() - 1) as f64 * share).round() as usize]
}

/// By turns, so that whatever else the machine does is in both.
fn measure_exec_delays(home: &Path, place: &Path, tiny: &Path, wanted: usize) -> anyhow::Result<()> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    time_execs(tiny, 200)?;
    while with.len() < wanted {
        without.extend(time_execs(tiny, TURN)?);
        let daemon = BenchedDaemon::start(home, place)?;
        time_exec(tiny)?;
        with.extend(time_execs(tiny, TURN)?);
        drop(daemon);
    }
    [&mut without, &mut with].into_iter().for_each(|times| times.sort());
    println!("{wanted} execs of a program without a trace, by turns");
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)] {
        let [none, ours] = [&without, &with].map(|times| quantile(times, share).as_secs_f64() * 1e3);
        println!(
            "  {name:6} {none:8.3} ms without, {ours:8.3} ms with: {:+.3} ms, {:.2}x",
            ours - none,
            ours / none
        );
    }
    Ok(())
}

/// Control groups of the bench's own, gone when dropped.
struct BenchCgroups {
    freezer: PathBuf,
    memory: PathBuf,
}

impl BenchCgroups {
    fn new() -> anyhow::Result<Self> {
        let make = |places: &[&str], name: &str| {
            let place = places.iter().map(Path::new).find(|place| place.join("cgroup.procs").exists());
            let path = place.context("there are no control groups")?.join(name);
            fs::create_dir(&path)?;
            anyhow::Ok(path)
        };
        let name = format!("perflab-bench-{}", std::process::id());
        let freezer = make(&["/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"], &name)?;
        let memory = make(&["/sys/fs/cgroup/memory", "/sys/fs/cgroup"], &format!("{name}-memory"))?;
        Ok(BenchCgroups { freezer, memory })
    }

    fn add_process(&self, process: u32) -> anyhow::Result<()> {
        for group in [&self.freezer, &self.memory] {
            fs::write(group.join("cgroup.procs"), process.to_string())?;
        }
        Ok(())
    }

    fn freeze(&self, frozen: bool) {
        for (file, words) in [("cgroup.freeze", ["0", "1"]), ("freezer.state", ["THAWED", "FROZEN"])] {
            let _ = fs::OpenOptions::new().write(true).open(self.freezer.join(file)).and_then(|mut file| {
                std::io::Write::write_all(&mut file, words[usize::from(frozen)].as_bytes())
            });
        }
    }

    /// Pushes out of memory what can be: files that are mapped, and with swap everything that is not locked.
    fn reclaim(&self) {
        for (file, word) in [("memory.force_empty", "0"), ("memory.reclaim", "1G")] {
            let _ = fs::OpenOptions::new()
                .write(true)
                .open(self.memory.join(file))
                .and_then(|mut file| std::io::Write::write_all(&mut file, word.as_bytes()));
        }
    }
}

impl Drop for BenchCgroups {
    fn drop(&mut self) {
        self.freeze(false);
        for group in [&self.freezer, &self.memory] {
            (0..100)
                .take_while(|_| fs::remove_dir(group).is_err())
                .for_each(|_| std::thread::sleep(Duration::from_millis(20)));
        }
    }
}

/// How long an exec waits that begins right after the daemon does not answer any more.
fn measure_exec_stalls(home: &Path, place: &Path, tiny: &Path, count: usize) -> anyhow::Result<()> {
    let groups = BenchCgroups::new()?;
    let signal =
        |name: &str, process: u32| run_successfully(Command::new("kill").args([name, &process.to_string()]));
    println!("an exec while the daemon does not answer, {count} times each, without systemd");
    for how in
        ["stopped", "frozen", "killed", "pushed out of memory", "its guard killed", "its guard stopped"]
    {
        let mut times = Vec::new();
        for _ in 0..count {
            let daemon = BenchedDaemon::start(home, place)?;
            let (process, guard) = (daemon.child.id(), daemon.status()?.guard.pid);
            groups.add_process(process)?;
            // What the guard heard last is as long ago as it happens to be.
            std::thread::sleep(Duration::from_millis(600 + 130 * times.len() as u64));
            match how {
                "stopped" => signal("-STOP", process)?,
                "frozen" => groups.freeze(true),
                "killed" => signal("-KILL", process)?,
                "its guard killed" => signal("-KILL", guard)?,
                "its guard stopped" => signal("-STOP", guard)?,
                _ => groups.reclaim(),
            }
            times.push(time_exec(tiny)?);
            groups.freeze(false);
            drop(daemon);
        }
        times.sort();
        let [middle, most] = [0.5, 1.0].map(|share| quantile(&times, share).as_secs_f64() * 1e3);
        println!("  {how:22} {middle:8.1} ms, {most:8.1} ms at most");
    }
    Ok(())
}

/// What an open costs on a file system of which opens are told (as the daemon has it while a start that was read ahead is
/// watched), and who reads that.
fn measure_opens(place: &Path) -> anyhow::Result<()> {
    use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
    // Opens of one file by one process are told together.
    let files: Vec<PathBuf> = (0..200).map(|number| place.join(format!("opened-{number}"))).collect();
    files.iter().try_for_each(|file| fs::write(file, "x"))?;
    let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
    let gate =
        Fanotify::init(flags, EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC | EventFFlags::O_NOATIME)?;
    let mark = |flags| {
        gate.mark(flags | MarkFlags::FAN_MARK_FILESYSTEM, MaskFlags::FAN_OPEN, rustix::fs::CWD, Some(place))
    };
    let open = || -> anyhow::Result<f64> {
        let begun = Instant::now();
        files.iter().try_for_each(|file| fs::File::open(file).map(drop))?;
        Ok(begun.elapsed().as_secs_f64() * 1e6 / files.len() as f64)
    };
    let (mut without, mut with, mut reading) = (Vec::new(), Vec::new(), Vec::new());
    open()?;
    for _ in 0..50 {
        without.push(open()?);
        mark(MarkFlags::FAN_MARK_ADD)?;
        with.push(open()?);
        mark(MarkFlags::FAN_MARK_REMOVE)?;
        let (begun, mut read) = (Instant::now(), 0);
        while let Ok(events) = gate.read_events()
            && !events.is_empty()
        {
            read += events.len();
        }
        reading.push(begun.elapsed().as_secs_f64() * 1e6 / read.max(1) as f64);
    }
    let [without, with, reading] = [&mut without, &mut with, &mut reading].map(|times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!(
        "an open that is told of: {:+.2} us ({with:.2} in place of {without:.2}), and {reading:.2} us of who hears it",
        with - without
    );
    Ok(())
}

/// As fast as the machine can, from eight threads.
fn measure_exec_storm(home: &Path, place: &Path, tiny: &Path) -> anyhow::Result<()> {
    let daemon = BenchedDaemon::start(home, place)?;
    let (cpu, begun) = (daemon.cpu_time()?, Instant::now());
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| time_execs(tiny, 1250))).collect();
        let mut ended = all.into_iter().map(|one| one.join().unwrap_or_else(|_| bail!("a thread panicked")));
        ended.try_for_each(|times| times.map(drop))
    })?;
    let (took, cpu, status) = (begun.elapsed(), daemon.cpu_time()? - cpu, daemon.status()?);
    println!(
        "10000 execs from 8 threads: {:.2} s, {:.0} us of the daemon each, {} not looked at, {} let through by the clock, \
         {:.1} MiB at most",
        took.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / 10_000.0,
        status.unseen,
        status.overdue,
        daemon.memory_mib("VmHWM:")?,
    );
    Ok(())
}

/// A daemon that knows a thousand programs, and nothing happens.
fn measure_idle_cost(home: &Path, place: &Path, idle: Duration) -> anyhow::Result<()> {
    let store = TraceStore::locate(Some(&home.join("store")));
    let start =
        || StartupTrace { when: 1, source: TraceSource::Traced, systems: Vec::new(), files: Vec::new() };
    let measured = vec![MeasuredStartup::default(); 8];
    let program = |number| PathBuf::from(format!("/usr/lib/some-application/bin/program-{number}"));
    let known = |path: PathBuf| -> anyhow::Result<serde_json::Value> {
        store.add_startup(&path, start())?;
        Ok(serde_json::json!({
            "path": path, "user": 0,
            "standing": ProgramState::Known,
            "why": "read ahead, it read 0 bytes with 0 major faults; 4 MiB or 200 are worth it",
            "file": ExecutableId::default(), "starts": 9, "last": 1, "learned": 1,
            "without": measured, "with": measured, "ahead": ReadAheadTotals::default(),
        }))
    };
    let programs: Vec<serde_json::Value> = (0..KNOWN).map(program).map(known).collect::<Result<_, _>>()?;
    let text = serde_json::json!({ "programs": programs }).to_string();
    fs::write(store.folder().join("programs.json"), text)?;
    let daemon = BenchedDaemon::start(home, place)?;
    ensure!(daemon.status()?.programs.len() >= KNOWN, "the daemon knows fewer than {KNOWN} programs");
    std::thread::sleep(Duration::from_secs(2));
    let before = daemon.cpu_time()?;
    std::thread::sleep(idle);
    let share = (daemon.cpu_time()? - before).as_secs_f64() / idle.as_secs_f64();
    println!(
        "idle for {} s with {KNOWN} programs: {:.4} % of a core (limit 0.1), {:.1} MiB (limit 30), of it {:.1} its own",
        idle.as_secs(),
        share * 100.0,
        daemon.memory_mib("VmRSS:")?,
        daemon.memory_mib("RssAnon:")?,
    );
    Ok(())
}
