//! `perflab prefetch daemon`: the real one, on a file system of the test's own, which alone is watched. Judged are residency,
//! requests, and what the daemon counted; never time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_observe::io::residency::resident;
use perflab_prefetch::daemon::{Program, Standing, Status, status};
use serde_json::Value;

use crate::image::Image;
use crate::laboratory::{Laboratory, skip};
use crate::taken::{Mapped, Taken, undisturbed};
use crate::tiny;

const UNIT: &str = include_str!("../../../../contrib/perflab-prefetch.service");
/// Long enough for a busy machine; nothing is judged by it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon, a file system and a program on it.
struct Bench {
    daemon: Child,
    socket: PathBuf,
    program: PathBuf,
    laboratory: Laboratory,
    image: Image,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// The rights that the unit leaves, as setpriv wants them.
fn rights() -> String {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let names = line.split_whitespace().map(|name| format!(",+{}", name[4..].to_lowercase()));
    format!("--bounding-set=-all{}", names.collect::<String>())
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        match found() {
            Some(found) => return found,
            None => assert!(begun.elapsed() < PATIENCE, "{what}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Bench {
    fn new(test: &str, arguments: &[&str]) -> Option<Self> {
        Bench::in_group(test, arguments, None)
    }

    /// With a daemon that is moved to a group before it begins.
    fn in_group(test: &str, arguments: &[&str], group: Option<&Path>) -> Option<Self> {
        let image = Image::new(test)?;
        let laboratory = Laboratory::new();
        if let Err(error) = perflab_observe::io::check() {
            skip(test, &error.to_string());
            return None;
        }
        let (whole, small) = (image.write("lib/whole", 400), image.place().join("lib/small"));
        (0..20).for_each(|file| drop(image.write(&format!("lib/small/{file}"), 3)));
        let program = image.place().join("start");
        script(&program, &format!("cat {} {}/* > /dev/null", whole.display(), small.display()));
        let socket = laboratory.path("run/socket");
        let daemon = daemon(&laboratory, &image, &socket, arguments, group);
        let bench = Bench { daemon, socket, program, laboratory, image };
        until("the daemon watches", || {
            status::ask(&bench.socket).ok().filter(|status| status.watched == [bench.image.place()])
        });
        Some(bench)
    }

    fn status(&self) -> Status {
        until("the daemon answers", || status::ask(&self.socket).ok())
    }

    fn said(&self) -> String {
        fs::read_to_string(self.laboratory.path("said")).unwrap()
    }

    /// Waits until this holds for what is known of the program.
    fn program(&self, what: &str, holds: impl Fn(&Program) -> bool) -> Program {
        self.program_of(0, what, holds)
    }

    /// The same, as this user starts it.
    fn program_of(&self, user: u32, what: &str, holds: impl Fn(&Program) -> bool) -> Program {
        let found = || self.status().program(&self.program, user).filter(|program| holds(program)).cloned();
        let begun = Instant::now();
        loop {
            match found() {
                Some(program) => return program,
                None => assert!(begun.elapsed() < PATIENCE, "{what}: {:?}\n{}", self.status(), self.said()),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn stands(&self, standing: Standing) -> Program {
        self.program(&format!("it stands at {standing:?}"), |program| program.standing == standing)
    }

    /// Pages of the file system's files leave the memory.
    fn cool(&self) {
        rustix::fs::sync();
        let folders = ["", "lib", "lib/small"].map(|name| self.image.place().join(name));
        for path in
            folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|one| one.unwrap().path())
        {
            if path.is_file() {
                let file = fs::File::open(&path).unwrap();
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            }
        }
    }

    /// In place of the program one that reads the file that it is given and opens no other, and stays in memory itself: what its starts read
    /// is that file, whatever the machine takes from memory.
    fn read_one_file(&self, test: &str) -> Option<Mapped> {
        write_program(&self.program, &tiny::program(READ));
        let mapped = Mapped::whole(&self.program);
        if mapped.is_none() {
            skip(test, "python3 is missing");
        }
        mapped
    }

    fn start(&self) {
        assert!(Command::new(&self.program).status().unwrap().success());
    }

    /// Started with these arguments, by somebody who is not root.
    fn start_as_nobody(&self, arguments: &[&str]) {
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut start = Command::new("setpriv");
        start.args(nobody).arg(&self.program).args(arguments).stderr(Stdio::null());
        assert!(start.status().unwrap().success());
    }

    /// Others may go there.
    fn open_to_all(&self) {
        for open in [self.image.place(), self.image.place().parent().unwrap().into()] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Started cold until it is known.
    fn learnt(&self) -> Program {
        self.cool();
        self.start();
        self.stands(Standing::Worth);
        self.cool();
        self.start();
        self.stands(Standing::Known)
    }
}

fn script(path: &Path, text: &str) {
    write_program(path, format!("#!/bin/sh\n{text}\n").as_bytes());
}

/// Another file in the place of what is there.
fn write_program(path: &Path, bytes: &[u8]) {
    let fresh = path.with_extension("new");
    fs::write(&fresh, bytes).unwrap();
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&fresh, path).unwrap();
}

/// Reads the file that it is given to its end, if it is given one, and ends well:
///
/// ```text
///       mov rdi, [rsp+16]; test rdi, rdi; jz end
///       sub rsp, 65536; xor esi, esi; mov eax, 2; syscall; test eax, eax; js end; mov edi, eax
/// more: mov rsi, rsp; mov edx, 65536; xor eax, eax; syscall; test eax, eax; jg more
/// end:  xor edi, edi; mov eax, 60; syscall
/// ```
const READ: &[u8] = &[
    0x48, 0x8b, 0x7c, 0x24, 16, 0x48, 0x85, 0xff, 0x74, 0x26, 0x48, 0x81, 0xec, 0, 0, 1, 0, 0x31, 0xf6, 0xb8,
    2, 0, 0, 0, 0x0f, 0x05, 0x85, 0xc0, 0x78, 0x12, 0x89, 0xc7, 0x48, 0x89, 0xe6, 0xba, 0, 0, 1, 0, 0x31,
    0xc0, 0x0f, 0x05, 0x85, 0xc0, 0x7f, 0xf0, 0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05,
];

/// With the rights that the unit leaves, and no more.
fn daemon(
    laboratory: &Laboratory,
    image: &Image,
    socket: &Path,
    arguments: &[&str],
    group: Option<&Path>,
) -> Child {
    let group = group.unwrap_or(Path::new("/dev/null"));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("echo $$ > {}; exec \"$@\"", group.display()), "sh", "setpriv"]);
    // What the unit's LimitMEMLOCK gives: a limit cannot be raised everywhere.
    command.args([&format!("{},+ipc_lock", rights()), "--no-new-privs"]).arg(env!("CARGO_BIN_EXE_perflab"));
    command.args(["prefetch", "--store"]).arg(laboratory.path("store")).arg("daemon");
    command.arg("--on").arg(image.place()).arg("--socket").arg(socket).args(arguments);
    command.args(["--worth-read", "1MiB", "--worth-wait", "1us", "--decide", "5s"]);
    // Where it is not what the test is about, no start of a busy machine's is let through by the clock.
    if !arguments.contains(&"--bound") {
        command.args(["--bound", "30s"]);
    }
    let said = fs::File::create(laboratory.path("said")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn().unwrap()
}

#[test]
fn the_first_start_is_watched_the_second_learnt_the_third_read_ahead_root() {
    let test = "the_first_start_is_watched_the_second_learnt_the_third_read_ahead_root";
    let Some(bench) = Bench::new(test, &["--mode", "sync"]) else { return };
    let learnt = bench.learnt();
    assert_eq!((learnt.starts, learnt.learned, learnt.ahead.starts), (2, 1, 0), "{}", bench.said());
    bench.cool();
    let taken = Taken::of(&bench.image.place());
    bench.laboratory.good(&["io", "record", "--", bench.program.to_str().unwrap()]);
    let files = bench.laboratory.good(&["io", "show", "--top", "100000", "--format", "json"]).out;
    let files: Vec<Value> = serde_json::from_str(&files).unwrap();
    let place = bench.image.place().display().to_string();
    let of = |row: &&Value| row["file"].as_str().unwrap().starts_with(&place);
    let read: u64 = files.iter().filter(of).map(|row| row["read"].as_u64().unwrap()).sum();
    assert!(read <= taken.may_be_read(), "everything was there: {:?}", bench.status());
    let known = bench.program("the third start is judged", |program| program.with.len() == 1);
    assert!(known.ahead.starts == 1 && known.ahead.bytes >= 460 << 12, "{known:?}");
    assert!(known.without.iter().all(|start| start.used.read >= 460 << 12), "{known:?}");
    assert!(
        known.ahead.judged > 0 && known.ahead.used == known.ahead.judged,
        "all of it was used: {known:?}"
    );
    let read = known.with[0].used.read;
    assert!(read < 64 << 10, "{read} of {known:?}");
    bench.laboratory.good(&["prefetch", "--store", "store", "show"]);
    let socket = bench.socket.to_str().unwrap();
    let shown = bench.laboratory.good(&["prefetch", "status", "--socket", socket, "--format", "csv"]);
    assert!(shown.out.contains("read ahead") && shown.err.contains("starts are judged by"), "{}", shown.out);
    let told = bench.laboratory.good(&["prefetch", "status", "--socket", socket, "--format", "json"]).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let (facts, status) = (&told["daemon"], bench.status());
    assert_eq!(facts["pid"], bench.daemon.id(), "{told}");
    assert_eq!((&facts["bound"], &facts["overdue"]), (&30_000_000_000_u64.into(), &0.into()), "{told}");
    assert_eq!((&facts["since"], &facts["guard"]["pid"]), (&status.since.into(), &status.guard.pid.into()));
    assert_eq!(facts["watched"], serde_json::json!([bench.image.place()]));
    assert!(facts["guard"]["lacks"].is_array() && facts["programs"].is_null(), "{told}");
    assert!(told["programs"].as_array().unwrap().iter().any(|row| row["learnt"] == 1), "{told}");
    assert_eq!(fs::metadata(&bench.socket).unwrap().permissions().mode() & 0o777, 0o600);
    // What has left memory since is there again, and nothing was read ahead for a second.
    let all_is_there = || {
        std::thread::sleep(Duration::from_secs(1));
        let replay = ["prefetch", "--store", "store", "replay", "--mode", "sync", "--no-start", "--"];
        bench.laboratory.good(&[&replay[..], &[bench.program.to_str().unwrap()]].concat());
    };
    let counted = || bench.status().program(&bench.program, 0).unwrap().ahead;
    let start = || {
        let before = counted();
        bench.start();
        until("the start is counted", || {
            let now = counted();
            (now.starts + now.warm > before.starts + before.warm).then_some(now.warm > before.warm)
        })
    };
    let is_warm = undisturbed(&bench.image.place(), all_is_there, start);
    assert!(is_warm, "what is in memory is not read: {:?}", bench.status());
}

#[test]
fn a_daemon_that_is_killed_lets_everything_through_root() {
    let test = "a_daemon_that_is_killed_lets_everything_through_root";
    let slow = ["--mode", "sync", "--io", "1KiB", "--bound", "3600s"];
    let Some(mut bench) = Bench::new(test, &slow) else { return };
    bench.learnt();
    bench.cool();
    let asked = bench.status().asked;
    let shell = format!("exec {}", bench.program.display());
    let mut child = Command::new("sh").args(["-c", &shell]).spawn().unwrap();
    until("the exec is held", || (bench.status().asked > asked).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    let name = fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
    assert_eq!(name.trim(), "sh", "it waits, and would for an hour");
    bench.daemon.kill().unwrap();
    let status = until("it goes on", || child.try_wait().unwrap());
    assert!(status.success());
}

/// What a guard must make good within; the promise is 5 s, and a busy machine gets as much again.
const PROMISE: Duration = Duration::from_secs(10);

impl Bench {
    /// Starts the program, which the daemon holds for an hour, and sees it held.
    fn held(&self) -> Child {
        self.cool();
        let asked = self.status().asked;
        let child = shell(&self.program);
        until("the exec is held", || (self.status().asked > asked).then_some(()));
        child
    }

    fn signal(&self, process: u32, name: &str) {
        assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
    }

    /// A new program goes on, and what is held does, while the daemon answers nobody.
    fn lets_through(&self, held: &mut Child) {
        let begun = Instant::now();
        let tiny = self.image.place().join("tiny");
        let mut fresh = Command::new("sh").args(["-c", tiny.to_str().unwrap()]).spawn().unwrap();
        for child in [&mut fresh, held] {
            while child.try_wait().unwrap().is_none() {
                assert!(begun.elapsed() < PROMISE, "an exec waits: {}", self.said());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// A held exec, without waiting for it as `Command` does.
fn shell(program: &Path) -> Child {
    Command::new("sh").args(["-c", &format!("exec {}", program.display())]).spawn().unwrap()
}

#[test]
fn a_daemon_that_is_stopped_holds_nobody_and_comes_back_root() {
    let test = "a_daemon_that_is_stopped_holds_nobody_and_comes_back_root";
    let slow = ["--mode", "sync", "--io", "1KiB", "--bound", "3600s"];
    let Some(bench) = Bench::new(test, &slow) else { return };
    tiny::write(&bench.image.place().join("tiny")).unwrap();
    bench.learnt();
    let guard = bench.status().guard;
    assert!(guard.pid > 0 && guard.locked > 0, "{guard:?}");
    let mut held = bench.held();
    bench.signal(bench.daemon.id(), "-STOP");
    bench.lets_through(&mut held);
    // As long as it is stopped.
    let mut again = shell(&bench.program);
    bench.lets_through(&mut again);
    bench.signal(bench.daemon.id(), "-CONT");
    until("what the guard did is told", || (bench.status().guard.let_through >= 3).then_some(()));
    assert_eq!(bench.status().guard.pid, guard.pid);
    std::thread::sleep(Duration::from_secs(2));
    // Who comes back is asked again: it holds.
    let mut held = bench.held();
    std::thread::sleep(Duration::from_secs(1));
    assert!(held.try_wait().unwrap().is_none(), "it is held again");
    // And so is one whose guard was killed, or stopped.
    bench.signal(guard.pid, "-KILL");
    let next = until("another guard", || Some(bench.status().guard).filter(|now| now.pid != guard.pid));
    bench.signal(next.pid, "-STOP");
    let last = until("another guard", || Some(bench.status().guard).filter(|now| now.pid != next.pid));
    assert_eq!(last.restarts, 2);
    bench.signal(bench.daemon.id(), "-STOP");
    bench.lets_through(&mut held);
    // Both at once: the death of the daemon is the guard's, also of one that is stopped.
    bench.signal(last.pid, "-STOP");
    let mut held = shell(&bench.program);
    bench.signal(bench.daemon.id(), "-KILL");
    bench.lets_through(&mut held);
    until("the guard is gone", || (!Path::new(&format!("/proc/{}", last.pid)).exists()).then_some(()));
}

/// A group of a test's own below a hierarchy that freezes.
struct Freezer(PathBuf);

impl Drop for Freezer {
    fn drop(&mut self) {
        self.freeze(false);
        until("the group is empty", || {
            (fs::read_to_string(self.0.join("cgroup.procs")).is_ok_and(|all| all.is_empty())).then_some(())
        });
        let _ = fs::remove_dir(&self.0);
    }
}

impl Freezer {
    /// Of cgroup2, or of the first cgroups.
    fn new(second: bool) -> Option<Self> {
        let mounts = perflab_observe::io::Mounts::read();
        let own = |place: &Path| {
            if second { place.join("cgroup.controllers").exists() } else { place.ends_with("freezer") }
        };
        let kind = if second { "cgroup2" } else { "cgroup" };
        let mount = mounts.iter().find(|mount| mount.kind == kind && own(&mount.place))?;
        let place = mount.place.join(format!("perflab-test-{}", std::process::id()));
        fs::create_dir(&place).ok()?;
        Some(Freezer(place))
    }

    fn freeze(&self, freeze: bool) {
        let _ = match freeze {
            true => fs::write(self.0.join("cgroup.freeze"), "1")
                .or_else(|_| fs::write(self.0.join("freezer.state"), "FROZEN")),
            false => fs::write(self.0.join("cgroup.freeze"), "0")
                .or_else(|_| fs::write(self.0.join("freezer.state"), "THAWED")),
        };
    }
}

#[test]
fn a_daemon_that_is_frozen_holds_nobody_root() {
    let test = "a_daemon_that_is_frozen_holds_nobody_root";
    for second in [true, false] {
        let Some(group) = Freezer::new(second) else {
            skip(
                test,
                if second { "no cgroup2 that can be written" } else { "no freezer of the first cgroups" },
            );
            continue;
        };
        let procs = group.0.join("cgroup.procs");
        let slow = ["--mode", "sync", "--io", "1KiB", "--bound", "3600s"];
        let Some(bench) = Bench::in_group(test, &slow, Some(&procs)) else { return };
        tiny::write(&bench.image.place().join("tiny")).unwrap();
        let inside = fs::read_to_string(&procs).unwrap();
        let pids: Vec<u32> = inside.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(pids, [bench.daemon.id()], "the guard is elsewhere");
        assert_eq!(bench.status().guard.lacks, Vec::<String>::new());
        bench.learnt();
        let mut held = bench.held();
        group.freeze(true);
        bench.lets_through(&mut held);
        group.freeze(false);
        until("what the guard did is told", || (bench.status().guard.let_through >= 2).then_some(()));
        drop(bench);
    }
}

#[test]
fn no_exec_waits_beyond_its_bound_root() {
    let test = "no_exec_waits_beyond_its_bound_root";
    // Long enough for tracing to begin on a busy machine.
    let slow = ["--mode", "sync", "--io", "1KiB", "--bound", "3s"];
    let Some(bench) = Bench::new(test, &slow) else { return };
    bench.learnt();
    bench.cool();
    bench.start();
    let known = bench
        .program("the clock lets it through, and reading ends with it", |program| program.ahead.overdue == 1);
    assert_eq!(bench.status().overdue, 1);
    let without = known.without.len();
    let known = bench.program("it is judged", |program| program.with.len() == 1);
    assert_eq!(known.without.len(), without, "as one that was read ahead: {known:?}");
    assert_eq!(known.with[0].held, perflab_model::Nanos(3_000_000_000));
}

#[test]
fn nothing_is_read_that_the_user_could_not_open_root() {
    let test = "nothing_is_read_that_the_user_could_not_open_root";
    let Some(bench) = Bench::new(test, &["--mode", "sync"]) else { return };
    let secret = bench.image.write("lib/secret", 50);
    let whole = bench.image.place().join("lib/whole");
    script(&bench.program, &format!("cat {} {} > /dev/null; exit 0", secret.display(), whole.display()));
    bench.open_to_all();
    for (standing, user) in [(Standing::Worth, 65534), (Standing::Known, 65534), (Standing::Worth, 0)] {
        bench.cool();
        if user == 0 {
            bench.start()
        } else {
            bench.start_as_nobody(&[])
        };
        bench.program_of(user, "it moves on", |program| program.standing == standing);
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    bench.cool();
    let in_memory = || resident(&fs::File::open(&secret).unwrap(), 0, 0).unwrap();
    assert_eq!(in_memory(), 0);
    bench.start_as_nobody(&[]);
    let known = bench.program_of(65534, "it was read ahead", |program| program.ahead.starts == 1);
    assert!(known.ahead.skipped >= 1 && known.ahead.bytes >= 400 << 12, "{known:?}");
    assert_eq!(in_memory(), 0, "nobody may not know what is in it, nor read it into memory");
}

#[test]
fn what_one_user_starts_decides_nothing_of_roots_starts_root() {
    let test = "what_one_user_starts_decides_nothing_of_roots_starts_root";
    let Some(bench) = Bench::new(test, &["--mode", "sync"]) else { return };
    let big = bench.image.write("lib/big", 2000);
    let Some(_mapped) = bench.read_one_file(test) else { return };
    bench.open_to_all();
    for standing in [Standing::Worth, Standing::Known] {
        bench.cool();
        bench.start_as_nobody(&[big.to_str().unwrap()]);
        bench.program_of(65534, "it moves on", |program| program.standing == standing);
    }
    let in_memory = || resident(&fs::File::open(&big).unwrap(), 0, 0).unwrap();
    for start in 1..=2 {
        bench.cool();
        bench.start();
        let own = bench.program("root's start is seen", |program| {
            program.starts == start && !program.why.starts_with("it was not")
        });
        assert_eq!((own.standing, own.ahead.starts, own.learned), (Standing::Watched, 0, 0), "{own:?}");
        assert_eq!(in_memory(), 0, "root is not made to read it");
    }
    // What root's start has another user do is not root's either.
    let as_nobody = format!("setpriv --reuid=65534 --regid=65534 --clear-groups cat {}", big.display());
    script(&bench.program, &format!("{as_nobody} > /dev/null"));
    bench.cool();
    bench.start();
    bench.stands(Standing::Worth);
    bench.cool();
    bench.start();
    until("it was traced", || bench.said().contains("learnt").then_some(()));
    let traced = || bench.program("it was traced", |program| !program.why.starts_with("it read"));
    assert!(traced().learned <= 1);
    let show =
        || bench.laboratory.run(&["prefetch", "--store", "store", "show", bench.program.to_str().unwrap()]);
    assert!(!show().out.contains("/big"), "{}", show().out);
    let socket = bench.socket.to_str().unwrap();
    let status = bench.laboratory.good(&["prefetch", "status", "--socket", socket, "--format", "csv"]).out;
    assert!(status.contains(",65534,") && status.contains(",0,read ahead"), "{status}");
}

#[test]
fn what_starts_do_not_use_is_read_ahead_no_more_root() {
    let test = "what_starts_do_not_use_is_read_ahead_no_more_root";
    let Some(bench) = Bench::new(test, &["--mode", "sync"]) else { return };
    let big = bench.image.write("lib/big", 2000);
    let Some(_mapped) = bench.read_one_file(test) else { return };
    let cool = || {
        rustix::fs::sync();
        let file = fs::File::open(&big).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    };
    for standing in [Standing::Worth, Standing::Known] {
        cool();
        assert!(Command::new(&bench.program).arg(&big).status().unwrap().success());
        bench.stands(standing);
    }
    for start in 1..=3 {
        std::thread::sleep(Duration::from_millis(1100));
        cool();
        bench.start();
        bench.program("it was read ahead in vain", |program| program.ahead.judged >= start * (2000 << 12));
    }
    let left = bench.stands(Standing::Watched);
    assert!(left.why.contains("watched anew") && left.ahead.used == 0, "{left:?}");
    std::thread::sleep(Duration::from_millis(1100));
    cool();
    bench.start();
    bench.program("the next is seen", |program| program.starts == 6);
    assert_eq!(resident(&fs::File::open(&big).unwrap(), 0, 0).unwrap(), 0, "{:?}", bench.status());
    let shown = bench.laboratory.good(&["prefetch", "--store", "store", "show", "--format", "csv"]).out;
    assert_eq!(shown.lines().count(), 1, "its trace is forgotten: {shown}");
}

#[test]
fn what_a_daemon_of_before_knew_begins_anew_with_a_word_root() {
    let laboratory = Laboratory::new();
    let old = serde_json::json!({ "/usr/bin/editor": {
        "file": { "inode": 1, "size": 2, "changed": 3 }, "standing": "known", "why": "", "starts": 9, "last": 1,
        "learned": 1, "without": [], "with": [],
        "ahead": { "starts": 0, "warm": 0, "bytes": 0, "skipped": 0, "overdue": 0 },
    }});
    fs::create_dir(laboratory.path("store")).unwrap();
    fs::write(laboratory.path("store/programs.json"), old.to_string()).unwrap();
    let said =
        laboratory.good(&["prefetch", "--store", "store", "status", "--socket", "none", "--format", "csv"]);
    assert!(said.err.contains("not whose starts they were"), "{}", said.err);
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
}

#[test]
fn upgrades_and_lost_or_full_folders_are_survived_root() {
    let test = "upgrades_and_lost_or_full_folders_are_survived_root";
    let Some(bench) = Bench::new(test, &["--mode", "sync"]) else { return };
    bench.learnt();
    // A package is upgraded.
    let whole = bench.image.place().join("lib/whole");
    script(&bench.program, &format!("cat {} > /dev/null # newer", whole.display()));
    bench.cool();
    bench.start();
    let anew = bench.program("it is learnt anew", |program| program.learned == 2);
    assert!(anew.standing == Standing::Known && anew.ahead.starts == 0, "{anew:?}");
    let shown = bench.laboratory.good(&["prefetch", "--store", "store", "show", "--format", "csv"]).out;
    assert!(shown.lines().nth(1).unwrap().contains(",1,"), "the start of before is forgotten: {shown}");
    // The folder goes, and cannot be made again.
    let store = bench.laboratory.path("store");
    fs::remove_dir_all(&store).unwrap();
    fs::write(&store, "in the way").unwrap();
    bench.cool();
    bench.start();
    bench.stands(Standing::Worth);
    bench.cool();
    bench.start();
    bench.program("it is learnt again", |program| program.learned == 3);
    std::thread::sleep(Duration::from_secs(1));
    bench.cool();
    bench.start();
    bench.program("it is read ahead from memory", |program| program.ahead.starts == 1);
    let said = bench.said();
    assert_eq!(said.matches("kept in memory until it can").count(), 1, "{said}");
    // There is room again.
    fs::remove_file(&store).unwrap();
    until("it is written", || store.join("programs.json").exists().then_some(()));
    let shown = bench.laboratory.good(&["prefetch", "--store", "store", "show", "--format", "csv"]).out;
    assert!(shown.contains("/start"), "{shown}");
}

#[test]
fn a_storm_of_execs_and_a_new_mount_are_survived_root() {
    let test = "a_storm_of_execs_and_a_new_mount_are_survived_root";
    let Some(bench) = Bench::new(test, &[]) else { return };
    let path = bench.image.place().join("tiny");
    tiny::write(&path).unwrap();
    let before = bench.status().asked;
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| (0..8).for_each(|_| assert!(Command::new(&path).status().unwrap().success())));
        }
    });
    assert_eq!(bench.status().asked - before, 800);
    until("each was seen, or counted as not", || {
        let status = bench.status();
        (status.program(&path, 0).unwrap().starts + status.unseen == 800).then_some(())
    });
    bench.image.cool();
    let starts = || bench.status().program(&bench.program, 0).map_or(0, |program| program.starts);
    let before = starts();
    until("the new mount is watched", || {
        bench.start();
        (starts() > before).then_some(())
    });
}

#[test]
fn what_cannot_be_is_refused_root() {
    let Some(bench) = Bench::new("what_cannot_be_is_refused_root", &["--never", "/no/such/program"]) else {
        return;
    };
    let place = bench.image.place().display().to_string();
    let socket = bench.socket.display().to_string();
    let daemon = |arguments: &[&str]| {
        let all =
            [&["prefetch", "--store", "store", "daemon", "--on", &place, "--socket"], arguments].concat();
        bench.laboratory.run(&all)
    };
    let said = daemon(&[&socket]);
    assert!(said.code == Some(3) && said.err.contains("listens on"), "{}", said.err);
    fs::write(bench.laboratory.path("list"), "always /x\n").unwrap();
    let said = daemon(&["other", "--list", "list"]);
    assert!(said.code == Some(2) && said.err.contains("line 1"), "{}", said.err);
    let said = daemon(&["other", "--on", "/no/such/place"]);
    assert!(said.code == Some(2) && said.err.contains("no mount point"), "{}", said.err);
    let said = daemon(&["other", "--bound", "soon"]);
    assert!(said.code == Some(2) && said.err.contains("--bound"), "{}", said.err);
    let said = bench.laboratory.good(&["prefetch", "--store", "store", "status", "--socket", "other"]);
    assert!(said.err.contains("no daemon answers"), "{}", said.err);
}

#[test]
fn a_list_is_read_again_when_it_changes_root() {
    let test = "a_list_is_read_again_when_it_changes_root";
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    fs::write(&list, "never /\n").unwrap();
    let Some(bench) = Bench::new(test, &["--list", list.to_str().unwrap()]) else { return };
    bench.cool();
    bench.start();
    let left = bench.program("it is seen", |program| program.starts == 1);
    assert!(left.standing == Standing::Watched && left.why.contains("never wanted"), "{left:?}");
    fs::write(&list, "only /\n").unwrap();
    until("it is watched", || {
        bench.cool();
        bench.start();
        (bench.status().program(&bench.program, 0)?.standing == Standing::Worth).then_some(())
    });
}

#[test]
fn the_unit_is_one() {
    let laboratory = Laboratory::new();
    let printed = laboratory.good(&["prefetch", "daemon", "--print-unit"]).out;
    assert_eq!(printed, UNIT);
    let path = laboratory.path("perflab-prefetch.service");
    fs::write(&path, UNIT.replace("/usr/bin/perflab", env!("CARGO_BIN_EXE_perflab"))).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&path).output() {
        Ok(said) => {
            let about = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(!about.contains("perflab-prefetch.service"), "{about}");
        }
        Err(_) => skip("the_unit_is_one", "systemd-analyze is missing"),
    }
}
