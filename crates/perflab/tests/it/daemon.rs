//! `perflab prefetch daemon`: the real one, on a file system of the test's own, which alone is watched. Judged are residency,
//! requests, and what the daemon counted; never time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_observe::io::page_residency::count_resident_pages;
use perflab_prefetch::daemon::{DaemonStatus, ProgramRecord, ProgramState, StateReason, service};
use serde_json::Value;

use crate::image::MountedImage;
use crate::laboratory::{CommandOutput, Sandbox, skip_test};
use crate::taken::{EvictedPages, MappingProcess, repeat_until_undisturbed};
use crate::tiny;

const UNIT: &str = include_str!("../../../../contrib/perflab-prefetch.service");
/// Long enough for a busy machine; nothing is judged by it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon, a file system and a program on it.
struct DaemonBench {
    daemon: Child,
    socket: PathBuf,
    program: PathBuf,
    laboratory: Sandbox,
    image: MountedImage,
}

impl Drop for DaemonBench {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// The rights that the unit leaves, as setpriv wants them.
fn unit_capabilities() -> String {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let names = line.split_whitespace().map(|name| format!(",+{}", name[4..].to_lowercase()));
    format!("--bounding-set=-all{}", names.collect::<String>())
}

fn wait_until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        match found() {
            Some(found) => return found,
            None => assert!(begun.elapsed() < PATIENCE, "{what}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl DaemonBench {
    fn new(test: &str, arguments: &[&str]) -> Option<Self> {
        DaemonBench::new_in_cgroup(test, arguments, None)
    }

    /// With a daemon that is moved to a group before it begins.
    fn new_in_cgroup(test: &str, arguments: &[&str], group: Option<&Path>) -> Option<Self> {
        let image = MountedImage::new(test)?;
        let laboratory = Sandbox::new();
        if let Err(error) = perflab_observe::io::check_io_tracing() {
            skip_test(test, &error.to_string());
            return None;
        }
        let (whole, small) = (image.write_pages("lib/whole", 400), image.mount_point().join("lib/small"));
        (0..20).for_each(|file| drop(image.write_pages(&format!("lib/small/{file}"), 3)));
        let program = image.mount_point().join("start");
        write_script(&program, &format!("cat {} {}/* > /dev/null", whole.display(), small.display()));
        let socket = laboratory.path("run/socket");
        let daemon = start_daemon(&laboratory, &image, &socket, arguments, group);
        let bench = DaemonBench { daemon, socket, program, laboratory, image };
        wait_until("the daemon watches", || {
            service::read_status(&bench.socket)
                .ok()
                .filter(|status| status.watched == [bench.image.mount_point()])
        });
        Some(bench)
    }

    fn status(&self) -> DaemonStatus {
        wait_until("the daemon answers", || service::read_status(&self.socket).ok())
    }

    fn status_text(&self) -> String {
        fs::read_to_string(self.laboratory.path("said")).unwrap()
    }

    /// Waits until this holds for what is known of the program.
    fn wait_for_program(&self, what: &str, holds: impl Fn(&ProgramRecord) -> bool) -> ProgramRecord {
        self.wait_for_program_of_user(0, what, holds)
    }

    /// The same, as this user starts it.
    fn wait_for_program_of_user(
        &self,
        user: u32,
        what: &str,
        holds: impl Fn(&ProgramRecord) -> bool,
    ) -> ProgramRecord {
        let found = || self.status().program(&self.program, user).filter(|program| holds(program)).cloned();
        let begun = Instant::now();
        loop {
            match found() {
                Some(program) => return program,
                None => {
                    assert!(begun.elapsed() < PATIENCE, "{what}: {:?}\n{}", self.status(), self.status_text())
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_state(&self, standing: ProgramState) -> ProgramRecord {
        self.wait_for_program(&format!("it stands at {standing:?}"), |program| program.state == standing)
    }

    /// Pages of the file system's files leave the memory.
    fn evict_files(&self) {
        rustix::fs::sync();
        let folders = ["", "lib", "lib/small"].map(|name| self.image.mount_point().join(name));
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
    fn read_one_file(&self, test: &str) -> Option<MappingProcess> {
        write_program(&self.program, &tiny::tiny_elf_bytes(READ));
        let mapped = MappingProcess::map_whole(&self.program);
        if mapped.is_none() {
            skip_test(test, "python3 is missing");
        }
        mapped
    }

    fn start_program(&self) {
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
        for open in [self.image.mount_point(), self.image.mount_point().parent().unwrap().into()] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Started cold until it is known.
    fn start_until_known(&self) -> ProgramRecord {
        self.evict_files();
        self.start_program();
        self.wait_for_state(ProgramState::Worth);
        self.evict_files();
        self.start_program();
        self.wait_for_state(ProgramState::Known)
    }
}

fn write_script(path: &Path, text: &str) {
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
fn start_daemon(
    laboratory: &Sandbox,
    image: &MountedImage,
    socket: &Path,
    arguments: &[&str],
    group: Option<&Path>,
) -> Child {
    let group = group.unwrap_or(Path::new("/dev/null"));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("echo $$ > {}; exec \"$@\"", group.display()), "sh", "setpriv"]);
    // What the unit's LimitMEMLOCK gives: a limit cannot be raised everywhere.
    command
        .args([&format!("{},+ipc_lock", unit_capabilities()), "--no-new-privs"])
        .arg(env!("CARGO_BIN_EXE_perflab"));
    command.args(["prefetch", "--store"]).arg(laboratory.path("store")).arg("daemon");
    command.arg("--on").arg(image.mount_point()).arg("--socket").arg(socket).args(arguments);
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
    let Some(bench) = DaemonBench::new(test, &["--mode", "sync"]) else { return };
    let learnt = bench.start_until_known();
    assert_eq!((learnt.starts, learnt.learned, learnt.ahead.starts), (2, 1, 0), "{}", bench.status_text());
    bench.evict_files();
    let taken = EvictedPages::on_file_system(&bench.image.mount_point());
    bench.laboratory.run_successfully(&["io", "record", "--", bench.program.to_str().unwrap()]);
    let files = bench.laboratory.run_successfully(&["io", "show", "--top", "100000", "--format", "json"]).out;
    let files: Vec<Value> = serde_json::from_str(&files).unwrap();
    let place = bench.image.mount_point().display().to_string();
    let of = |row: &&Value| row["file"].as_str().unwrap().starts_with(&place);
    let read: u64 = files.iter().filter(of).map(|row| row["read"].as_u64().unwrap()).sum();
    assert!(read <= taken.readable_again_bytes(), "everything was there: {:?}", bench.status());
    let known = bench.wait_for_program("the third start is judged", |program| program.with.len() == 1);
    assert!(known.ahead.starts == 1 && known.ahead.bytes >= 460 << 12, "{known:?}");
    assert!(known.without.iter().all(|start| start.used.read >= 460 << 12), "{known:?}");
    assert!(
        known.ahead.judged > 0 && known.ahead.used == known.ahead.judged,
        "all of it was used: {known:?}"
    );
    let read = known.with[0].used.read;
    assert!(read < 64 << 10, "{read} of {known:?}");
    bench.laboratory.run_successfully(&["prefetch", "--store", "store", "show"]);
    let socket = bench.socket.to_str().unwrap();
    let told = bench.laboratory.run_json(&["prefetch", "status", "--socket", socket]);
    let (facts, status) = (&told["daemon"], bench.status());
    assert_eq!(facts["pid"], bench.daemon.id(), "{told}");
    assert_eq!((&facts["bound"], &facts["overdue"]), (&30_000_000_000_u64.into(), &0.into()), "{told}");
    assert_eq!((&facts["since"], &facts["guard"]["pid"]), (&status.since.into(), &status.guard.pid.into()));
    assert_eq!(facts["watched"], serde_json::json!([bench.image.mount_point()]));
    assert!(facts["guard"]["lacks"].is_array() && facts["programs"].is_null(), "{told}");
    assert!(
        told["programs"].as_array().unwrap().iter().any(|row| row["learnt"] == 1 && row["ahead"] == 1),
        "{told}"
    );
    assert_eq!(fs::metadata(&bench.socket).unwrap().permissions().mode() & 0o777, 0o600);
    // What has left memory since is there again, and nothing was read ahead for a second.
    let all_is_there = || {
        std::thread::sleep(Duration::from_secs(1));
        let replay = ["prefetch", "--store", "store", "replay", "--mode", "sync", "--no-start", "--"];
        bench.laboratory.run_successfully(&[&replay[..], &[bench.program.to_str().unwrap()]].concat());
    };
    let counted = || bench.status().program(&bench.program, 0).unwrap().ahead;
    let start = || {
        let before = counted();
        bench.start_program();
        wait_until("the start is counted", || {
            let now = counted();
            (now.starts + now.warm > before.starts + before.warm).then_some(now.warm > before.warm)
        })
    };
    let is_warm = repeat_until_undisturbed(&bench.image.mount_point(), all_is_there, start);
    assert!(is_warm, "what is in memory is not read: {:?}", bench.status());
}

#[test]
fn a_daemon_that_is_killed_lets_everything_through_root() {
    let test = "a_daemon_that_is_killed_lets_everything_through_root";
    let slow = ["--mode", "sync", "--io", "1KiB", "--bound", "3600s"];
    let Some(mut bench) = DaemonBench::new(test, &slow) else { return };
    bench.start_until_known();
    bench.evict_files();
    let asked = bench.status().asked;
    let shell = format!("exec {}", bench.program.display());
    let mut child = Command::new("sh").args(["-c", &shell]).spawn().unwrap();
    wait_until("the exec is held", || (bench.status().asked > asked).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    let name = fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
    assert_eq!(name.trim(), "sh", "it waits, and would for an hour");
    bench.daemon.kill().unwrap();
    let status = wait_until("it goes on", || child.try_wait().unwrap());
    assert!(status.success());
}

/// What a guard must make good within; the promise is 5 s, and a busy machine gets as much again.
const EXEC_DEADLINE: Duration = Duration::from_secs(10);

impl DaemonBench {
    /// Starts the program, which the daemon holds for an hour, and sees it held.
    fn start_held_program(&self) -> Child {
        self.evict_files();
        let asked = self.status().asked;
        let child = spawn_by_shell(&self.program);
        wait_until("the exec is held", || (self.status().asked > asked).then_some(()));
        child
    }

    fn send_signal(&self, process: u32, name: &str) {
        assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
    }

    /// A new program goes on, and what is held does, while the daemon answers nobody.
    fn assert_lets_through(&self, held: &mut Child) {
        let begun = Instant::now();
        let tiny = self.image.mount_point().join("tiny");
        let mut fresh = Command::new("sh").args(["-c", tiny.to_str().unwrap()]).spawn().unwrap();
        for child in [&mut fresh, held] {
            while child.try_wait().unwrap().is_none() {
                assert!(begun.elapsed() < EXEC_DEADLINE, "an exec waits: {}", self.status_text());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// A held exec, without waiting for it as `Command` does.
fn spawn_by_shell(program: &Path) -> Child {
    Command::new("sh").args(["-c", &format!("exec {}", program.display())]).spawn().unwrap()
}

#[test]
fn a_daemon_that_is_stopped_holds_nobody_and_comes_back_root() {
    let test = "a_daemon_that_is_stopped_holds_nobody_and_comes_back_root";
    let slow = ["--mode", "sync", "--io", "1KiB", "--bound", "3600s"];
    let Some(bench) = DaemonBench::new(test, &slow) else { return };
    tiny::write_tiny_elf(&bench.image.mount_point().join("tiny")).unwrap();
    bench.start_until_known();
    let guard = bench.status().guard;
    assert!(guard.pid > 0 && guard.locked > 0, "{guard:?}");
    let mut held = bench.start_held_program();
    bench.send_signal(bench.daemon.id(), "-STOP");
    bench.assert_lets_through(&mut held);
    // As long as it is stopped.
    let mut again = spawn_by_shell(&bench.program);
    bench.assert_lets_through(&mut again);
    bench.send_signal(bench.daemon.id(), "-CONT");
    wait_until("what the guard did is told", || (bench.status().guard.let_through >= 3).then_some(()));
    assert_eq!(bench.status().guard.pid, guard.pid);
    std::thread::sleep(Duration::from_secs(2));
    // Who comes back is asked again: it holds.
    let mut held = bench.start_held_program();
    std::thread::sleep(Duration::from_secs(1));
    assert!(held.try_wait().unwrap().is_none(), "it is held again");
    // And so is one whose guard was killed, or stopped.
    bench.send_signal(guard.pid, "-KILL");
    let next = wait_until("another guard", || Some(bench.status().guard).filter(|now| now.pid != guard.pid));
    bench.send_signal(next.pid, "-STOP");
    let last = wait_until("another guard", || Some(bench.status().guard).filter(|now| now.pid != next.pid));
    assert_eq!(last.restarts, 2);
    bench.send_signal(bench.daemon.id(), "-STOP");
    bench.assert_lets_through(&mut held);
    // Both at once: the death of the daemon is the guard's, also of one that is stopped.
    bench.send_signal(last.pid, "-STOP");
    let mut held = spawn_by_shell(&bench.program);
    bench.send_signal(bench.daemon.id(), "-KILL");
    bench.assert_lets_through(&mut held);
    wait_until("the guard is gone", || (!Path::new(&format!("/proc/{}", last.pid)).exists()).then_some(()));
}

/// A group of a test's own below a hierarchy that freezes.
struct FreezerCgroup(PathBuf);

impl Drop for FreezerCgroup {
    fn drop(&mut self) {
        self.set_frozen(false);
        wait_until("the group is empty", || {
            (fs::read_to_string(self.0.join("cgroup.procs")).is_ok_and(|all| all.is_empty())).then_some(())
        });
        let _ = fs::remove_dir(&self.0);
    }
}

impl FreezerCgroup {
    /// Of cgroup2, or of the first cgroups.
    fn new(second: bool) -> Option<Self> {
        let mounts = perflab_observe::io::MountTable::read();
        let own = |place: &Path| {
            if second { place.join("cgroup.controllers").exists() } else { place.ends_with("freezer") }
        };
        let kind = if second { "cgroup2" } else { "cgroup" };
        let mount = mounts.iter().find(|mount| mount.kind == kind && own(&mount.mount_point))?;
        let place = mount.mount_point.join(format!("perflab-test-{}", std::process::id()));
        fs::create_dir(&place).ok()?;
        Some(FreezerCgroup(place))
    }

    fn set_frozen(&self, freeze: bool) {
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
        let Some(group) = FreezerCgroup::new(second) else {
            skip_test(
                test,
                if second { "no cgroup2 that can be written" } else { "no freezer of the first cgroups" },
            );
            continue;
        };
        let procs = group.0.join("cgroup.procs");
        let slow = ["--mode", "sync", "--io", "1KiB", "--bound", "3600s"];
        let Some(bench) = DaemonBench::new_in_cgroup(test, &slow, Some(&procs)) else { return };
        tiny::write_tiny_elf(&bench.image.mount_point().join("tiny")).unwrap();
        let inside = fs::read_to_string(&procs).unwrap();
        let pids: Vec<u32> = inside.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(pids, [bench.daemon.id()], "the guard is elsewhere");
        assert_eq!(bench.status().guard.lacks, Vec::<String>::new());
        bench.start_until_known();
        let mut held = bench.start_held_program();
        group.set_frozen(true);
        bench.assert_lets_through(&mut held);
        group.set_frozen(false);
        wait_until("what the guard did is told", || (bench.status().guard.let_through >= 2).then_some(()));
        drop(bench);
    }
}

#[test]
fn no_exec_waits_beyond_its_bound_root() {
    let test = "no_exec_waits_beyond_its_bound_root";
    // Long enough for tracing to begin on a busy machine.
    let slow = ["--mode", "sync", "--io", "1KiB", "--bound", "3s"];
    let Some(bench) = DaemonBench::new(test, &slow) else { return };
    bench.start_until_known();
    bench.evict_files();
    bench.start_program();
    let known = bench.wait_for_program("the clock lets it through, and reading ends with it", |program| {
        program.ahead.overdue == 1
    });
    assert_eq!(bench.status().overdue, 1);
    let without = known.without.len();
    let known = bench.wait_for_program("it is judged", |program| program.with.len() == 1);
    assert_eq!(known.without.len(), without, "as one that was read ahead: {known:?}");
    assert_eq!(known.with[0].held, perflab_model::Nanos(3_000_000_000));
}

#[test]
fn nothing_is_read_that_the_user_could_not_open_root() {
    let test = "nothing_is_read_that_the_user_could_not_open_root";
    let Some(bench) = DaemonBench::new(test, &["--mode", "sync"]) else { return };
    let secret = bench.image.write_pages("lib/secret", 50);
    let whole = bench.image.mount_point().join("lib/whole");
    write_script(
        &bench.program,
        &format!("cat {} {} > /dev/null; exit 0", secret.display(), whole.display()),
    );
    bench.open_to_all();
    for (standing, user) in
        [(ProgramState::Worth, 65534), (ProgramState::Known, 65534), (ProgramState::Worth, 0)]
    {
        bench.evict_files();
        if user == 0 {
            bench.start_program()
        } else {
            bench.start_as_nobody(&[])
        };
        bench.wait_for_program_of_user(user, "it moves on", |program| program.state == standing);
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    bench.evict_files();
    let in_memory = || count_resident_pages(&fs::File::open(&secret).unwrap(), 0, 0).unwrap();
    assert_eq!(in_memory(), 0);
    bench.start_as_nobody(&[]);
    let known =
        bench.wait_for_program_of_user(65534, "it was read ahead", |program| program.ahead.starts == 1);
    assert!(known.ahead.skipped >= 1 && known.ahead.bytes >= 400 << 12, "{known:?}");
    assert_eq!(in_memory(), 0, "nobody may not know what is in it, nor read it into memory");
}

#[test]
fn what_one_user_starts_decides_nothing_of_roots_starts_root() {
    let test = "what_one_user_starts_decides_nothing_of_roots_starts_root";
    let Some(bench) = DaemonBench::new(test, &["--mode", "sync"]) else { return };
    let big = bench.image.write_pages("lib/big", 2000);
    let Some(_mapped) = bench.read_one_file(test) else { return };
    bench.open_to_all();
    for standing in [ProgramState::Worth, ProgramState::Known] {
        bench.evict_files();
        bench.start_as_nobody(&[big.to_str().unwrap()]);
        bench.wait_for_program_of_user(65534, "it moves on", |program| program.state == standing);
    }
    let in_memory = || count_resident_pages(&fs::File::open(&big).unwrap(), 0, 0).unwrap();
    for start in 1..=2 {
        bench.evict_files();
        bench.start_program();
        let own = bench.wait_for_program("root's start is seen", |program| {
            program.starts == start && program.why != StateReason::Unseen
        });
        assert_eq!((own.state, own.ahead.starts, own.learned), (ProgramState::Watched, 0, 0), "{own:?}");
        assert_eq!(in_memory(), 0, "root is not made to read it");
    }
    // What root's start has another user do is not root's either.
    let as_nobody = format!("setpriv --reuid=65534 --regid=65534 --clear-groups cat {}", big.display());
    write_script(&bench.program, &format!("{as_nobody} > /dev/null"));
    bench.evict_files();
    bench.start_program();
    bench.wait_for_state(ProgramState::Worth);
    bench.evict_files();
    bench.start_program();
    let traced =
        || bench.wait_for_program("it was traced", |program| !matches!(program.why, StateReason::Cost(_)));
    assert!(traced().learned <= 1);
    let program = bench.program.to_str().unwrap();
    let learnt = bench.laboratory.run(&["prefetch", "--store", "store", "show", program, "--format", "json"]);
    if learnt.code == Some(0) {
        let files: Value = serde_json::from_str(&learnt.out).unwrap();
        assert!(files.as_array().unwrap().iter().all(|row| row["file"] != big.to_str().unwrap()), "{files}");
    }
    let socket = bench.socket.to_str().unwrap();
    let status = bench.laboratory.run_json(&["prefetch", "status", "--socket", socket]);
    let users_and_states =
        status["programs"].as_array().unwrap().iter().map(|row| (&row["user"], &row["state"]));
    let users_and_states: Vec<_> = users_and_states.collect();
    let has = |user: u64, state: &str| users_and_states.iter().any(|row| *row.0 == user && *row.1 == state);
    assert!(users_and_states.iter().any(|row| *row.0 == 65534) && has(0, "read ahead"), "{status}");
}

#[test]
fn what_starts_do_not_use_is_read_ahead_no_more_root() {
    let test = "what_starts_do_not_use_is_read_ahead_no_more_root";
    let Some(bench) = DaemonBench::new(test, &["--mode", "sync"]) else { return };
    let big = bench.image.write_pages("lib/big", 2000);
    let Some(_mapped) = bench.read_one_file(test) else { return };
    let cool = || {
        rustix::fs::sync();
        let file = fs::File::open(&big).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    };
    for standing in [ProgramState::Worth, ProgramState::Known] {
        cool();
        assert!(Command::new(&bench.program).arg(&big).status().unwrap().success());
        bench.wait_for_state(standing);
    }
    for start in 1..=3 {
        std::thread::sleep(Duration::from_millis(1100));
        cool();
        bench.start_program();
        bench.wait_for_program("it was read ahead in vain", |program| {
            program.ahead.judged >= start * (2000 << 12)
        });
    }
    let left = bench.wait_for_state(ProgramState::Watched);
    assert!(left.why == StateReason::TraceUnused && left.ahead.used == 0, "{left:?}");
    std::thread::sleep(Duration::from_millis(1100));
    cool();
    bench.start_program();
    bench.wait_for_program("the next is seen", |program| program.starts == 6);
    assert_eq!(
        count_resident_pages(&fs::File::open(&big).unwrap(), 0, 0).unwrap(),
        0,
        "{:?}",
        bench.status()
    );
    let shown =
        bench.laboratory.run_successfully(&["prefetch", "--store", "store", "show", "--format", "csv"]).out;
    assert_eq!(shown.lines().count(), 1, "its trace is forgotten: {shown}");
}

#[test]
fn what_a_daemon_of_before_knew_begins_anew_with_a_word_root() {
    let laboratory = Sandbox::new();
    let old = serde_json::json!({ "/usr/bin/editor": {
        "file": { "inode": 1, "size": 2, "changed": 3 }, "standing": "known", "why": "", "starts": 9, "last": 1,
        "learned": 1, "without": [], "with": [],
        "ahead": { "starts": 0, "warm": 0, "bytes": 0, "skipped": 0, "overdue": 0 },
    }});
    fs::create_dir(laboratory.path("store")).unwrap();
    fs::write(laboratory.path("store/programs.json"), old.to_string()).unwrap();
    let said = laboratory
        .run_successfully(&["prefetch", "--store", "store", "status", "--socket", "none", "--format", "csv"]);
    insta::assert_snapshot!(said.stable_err(), @"
    no daemon answers on none: No such file or directory (os error 2); this is what the last one wrote:
    store/programs.json does not say which user started its programs (1): learning begins anew for each user
    ");
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
}

#[test]
fn upgrades_and_lost_or_full_folders_are_survived_root() {
    let test = "upgrades_and_lost_or_full_folders_are_survived_root";
    let Some(bench) = DaemonBench::new(test, &["--mode", "sync"]) else { return };
    bench.start_until_known();
    // A package is upgraded.
    let whole = bench.image.mount_point().join("lib/whole");
    write_script(&bench.program, &format!("cat {} > /dev/null # newer", whole.display()));
    bench.evict_files();
    bench.start_program();
    let anew = bench.wait_for_program("it is learnt anew", |program| program.learned == 2);
    assert!(anew.state == ProgramState::Known && anew.ahead.starts == 0, "{anew:?}");
    let shown = bench.laboratory.run_json(&["prefetch", "--store", "store", "show"]);
    assert_eq!(shown[0]["starts"], 1, "the start of before is forgotten: {shown}");
    // The folder goes, and cannot be made again.
    let store = bench.laboratory.path("store");
    fs::remove_dir_all(&store).unwrap();
    fs::write(&store, "in the way").unwrap();
    bench.evict_files();
    bench.start_program();
    bench.wait_for_state(ProgramState::Worth);
    bench.evict_files();
    bench.start_program();
    bench.wait_for_program("it is learnt again", |program| program.learned == 3);
    std::thread::sleep(Duration::from_secs(1));
    bench.evict_files();
    bench.start_program();
    bench.wait_for_program("it is read ahead from memory", |program| program.ahead.starts == 1);
    let said = CommandOutput { code: None, out: String::new(), err: bench.status_text() };
    insta::assert_snapshot!(said.err_wording_of("what was learnt"), @"what was learnt cannot be written, and is kept in memory until it can: cannot create /tmp/.TMP/store: Not a directory (os error N)");
    // There is room again.
    fs::remove_file(&store).unwrap();
    wait_until("it is written", || store.join("programs.json").exists().then_some(()));
    let shown = bench.laboratory.run_json(&["prefetch", "--store", "store", "show"]);
    assert_eq!(shown[0]["program"], bench.program.to_str().unwrap(), "{shown}");
}

#[test]
fn a_storm_of_execs_and_a_new_mount_are_survived_root() {
    let test = "a_storm_of_execs_and_a_new_mount_are_survived_root";
    let Some(bench) = DaemonBench::new(test, &[]) else { return };
    let path = bench.image.mount_point().join("tiny");
    tiny::write_tiny_elf(&path).unwrap();
    let before = bench.status().asked;
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| (0..8).for_each(|_| assert!(Command::new(&path).status().unwrap().success())));
        }
    });
    assert_eq!(bench.status().asked - before, 800);
    wait_until("each was seen, or counted as not", || {
        let status = bench.status();
        (status.program(&path, 0).unwrap().starts + status.unseen == 800).then_some(())
    });
    bench.image.evict_files();
    let starts = || bench.status().program(&bench.program, 0).map_or(0, |program| program.starts);
    let before = starts();
    wait_until("the new mount is watched", || {
        bench.start_program();
        (starts() > before).then_some(())
    });
}

#[test]
fn what_cannot_be_is_refused_root() {
    let Some(bench) = DaemonBench::new("what_cannot_be_is_refused_root", &["--never", "/no/such/program"])
    else {
        return;
    };
    let place = bench.image.mount_point().display().to_string();
    let socket = bench.socket.display().to_string();
    let daemon = |arguments: &[&str]| {
        let all =
            [&["prefetch", "--store", "store", "daemon", "--on", &place, "--socket"], arguments].concat();
        bench.laboratory.run(&all)
    };
    let said = daemon(&[&socket]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: a daemon listens on /tmp/.TMP/run/socket already");
    fs::write(bench.laboratory.path("list"), "always /x\n").unwrap();
    let wrong: [&[&str]; 3] = [&["--list", "list"], &["--on", "/no/such/place"], &["--bound", "soon"]];
    let errors = wrong.map(|arguments| {
        let said = daemon(&[&["other"], arguments].concat());
        assert_eq!(said.code, Some(2), "{}", said.err);
        said.stable_err()
    });
    insta::assert_snapshot!(errors.concat(), @"
    error: list, line 1: `always /x` is neither `only PATH` nor `never PATH`, with a whole path
    error: /no/such/place is no mount point; `findmnt` lists them
    error: invalid value 'soon' for '--bound <TIME>': `soon` is not a time: write a number with ns, us, ms, s, min, h or d, such as `100ms`

    For more information, try '--help'.
    ");
    let said =
        bench.laboratory.run_successfully(&["prefetch", "--store", "store", "status", "--socket", "other"]);
    insta::assert_snapshot!(said.stable_err(), @"no daemon answers on other: Connection refused (os error 111); this is what the last one wrote:");
}

#[test]
fn a_list_is_read_again_when_it_changes_root() {
    let test = "a_list_is_read_again_when_it_changes_root";
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    fs::write(&list, "never /\n").unwrap();
    let Some(bench) = DaemonBench::new(test, &["--list", list.to_str().unwrap()]) else { return };
    bench.evict_files();
    bench.start_program();
    let left = bench.wait_for_program("it is seen", |program| program.starts == 1);
    assert!(left.state == ProgramState::Watched && matches!(left.why, StateReason::Excluded(_)), "{left:?}");
    fs::write(&list, "only /\n").unwrap();
    wait_until("it is watched", || {
        bench.evict_files();
        bench.start_program();
        (bench.status().program(&bench.program, 0)?.state == ProgramState::Worth).then_some(())
    });
}

#[test]
fn the_unit_is_one() {
    let laboratory = Sandbox::new();
    let printed = laboratory.run_successfully(&["prefetch", "daemon", "--print-unit"]).out;
    assert_eq!(printed, UNIT);
    let path = laboratory.path("perflab-prefetch.service");
    fs::write(&path, UNIT.replace("/usr/bin/perflab", env!("CARGO_BIN_EXE_perflab"))).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&path).output() {
        Ok(said) => {
            // Of the machine's own units it may complain.
            let about = String::from_utf8_lossy(&said.stderr).into_owned();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(!about.contains(name), "{about}");
        }
        Err(_) => skip_test("the_unit_is_one", "systemd-analyze is missing"),
    }
}
