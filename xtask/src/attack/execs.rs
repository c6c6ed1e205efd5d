//! Execs while the prefetch daemon that must answer them is stopped, frozen, killed, short of memory or fed with
//! rubbish: each goes on within five seconds, and what runs is what was to be run. On a file system of the attack's
//! own, never on one that anybody needs.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::attempts::{Attack, AttackCounts, AttackEnvironment};
use crate::needs;

/// Everything that keeps the daemon from answering.
pub const ATTACK: Attack = Attack {
    name: "execs",
    tries: "execs in parallel while the prefetch daemon is stopped, frozen, killed, without guard, short of memory, its traces damaged, \
            its list changed, its mount gone: each goes on within 5 s and runs what it should",
    brief: 40,
    full: 400,
    carry_out: attack_exec_daemon,
};

/// How long an exec may wait, with what its program takes.
const PROMISE: Duration = Duration::from_secs(5);
/// When one that waits is given up.
const GIVEN_UP: Duration = Duration::from_secs(10);
/// Those who start programs at a time.
const STARTERS: usize = 4;
/// Programs, each with files of its own.
const PROGRAMS: usize = 6;

/// What is done to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DaemonHarm {
    Stop,
    Freeze,
    Kill,
    KillGuard,
    StopGuard,
    /// The guard is stopped, the daemon killed: nobody is there to let anybody through but the kernel.
    KillBesideStoppedGuard,
    ShortOfMemory,
    DamageTraces,
    ChangeList,
    TakeMountAway,
}

const HARMS: [DaemonHarm; 10] = [
    DaemonHarm::Stop,
    DaemonHarm::KillGuard,
    DaemonHarm::DamageTraces,
    DaemonHarm::Freeze,
    DaemonHarm::Kill,
    DaemonHarm::ChangeList,
    DaemonHarm::StopGuard,
    DaemonHarm::TakeMountAway,
    DaemonHarm::KillBesideStoppedGuard,
    DaemonHarm::ShortOfMemory,
];

fn attack_exec_daemon(ground: &AttackEnvironment, count: u32) -> Result<AttackCounts> {
    if !needs::is_root() {
        bail!("the daemon is root's");
    }
    let mut scene = DaemonScene::new(ground)?;
    let mut counts = AttackCounts::default();
    for (number, harm) in (0..count).zip(HARMS.iter().cycle()) {
        let failure = scene.attempt_harm(*harm, u64::from(number)).with_context(|| format!("{harm:?}"))?;
        counts.count_attempt(failure.map(|failure| format!("{harm:?} ({number}): {failure}")));
    }
    println!("{} execs", scene.execs.load(Ordering::Relaxed));
    Ok(counts)
}

/// A file system with programs, and a daemon that watches it.
struct DaemonScene<'a> {
    ground: &'a AttackEnvironment,
    daemon: Option<Child>,
    /// Groups that the daemon is put into: one that can be frozen, one of which the memory is bounded.
    freezer: PathBuf,
    memory: PathBuf,
    execs: AtomicUsize,
}

impl Drop for DaemonScene<'_> {
    fn drop(&mut self) {
        self.set_group_frozen(false);
        self.kill_daemon();
        let _ = Command::new("umount").arg("--lazy").arg(self.mount_path()).status();
        for group in [&self.freezer, &self.memory] {
            (0..50)
                .take_while(|_| fs::remove_dir(group).is_err())
                .for_each(|_| sleep(Duration::from_millis(20)));
        }
    }
}

impl<'a> DaemonScene<'a> {
    fn new(ground: &'a AttackEnvironment) -> Result<Self> {
        let name = format!("perflab-attack-{}", std::process::id());
        let freezer = create_control_group(
            &["/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"],
            &name,
        )?;
        let memory =
            create_control_group(&["/sys/fs/cgroup/memory", "/sys/fs/cgroup"], &format!("{name}-memory"))?;
        let scene = DaemonScene { ground, daemon: None, freezer, memory, execs: AtomicUsize::new(0) };
        fs::create_dir(scene.mount_path())?;
        File::create(scene.image_path())?.set_len(64 << 20)?;
        require_success(Command::new("mkfs.ext4").arg("-q").arg(scene.image_path()))?;
        scene.mount_image()?;
        fs::write(scene.ground.folder.join("list"), "")?;
        for number in 0..PROGRAMS {
            fs::write(scene.data_path(number), vec![b'x'; 400 << 10])?;
            let text = format!(
                "#!/bin/sh\ncat {} > /dev/null\necho program {number}\n",
                scene.data_path(number).display()
            );
            fs::write(scene.program_path(number), text)?;
            fs::set_permissions(scene.program_path(number), fs::Permissions::from_mode(0o755))?;
        }
        Ok(scene)
    }

    fn mount_path(&self) -> PathBuf {
        self.ground.folder.join("mount")
    }

    fn image_path(&self) -> PathBuf {
        self.ground.folder.join("image")
    }

    fn store_path(&self) -> PathBuf {
        self.ground.folder.join("store")
    }

    fn program_path(&self, number: usize) -> PathBuf {
        self.mount_path().join(format!("program-{number}"))
    }

    fn data_path(&self, number: usize) -> PathBuf {
        self.mount_path().join(format!("data-{number}"))
    }

    fn mount_image(&self) -> Result<()> {
        require_success(
            Command::new("mount").args(["-o", "loop"]).arg(self.image_path()).arg(self.mount_path()),
        )
    }

    /// Starts the daemon where none lives, and waits until it answers.
    fn start_daemon(&mut self) -> Result<()> {
        if let Some(daemon) = &mut self.daemon
            && daemon.try_wait()?.is_none()
            && self.is_answering()
        {
            return Ok(());
        }
        self.kill_daemon();
        let folder = &self.ground.folder;
        let procs =
            [&self.freezer, &self.memory].map(|group| group.join("cgroup.procs").display().to_string());
        let log = File::options().create(true).append(true).open(folder.join("daemon.log"))?;
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$1\"; echo $$ > \"$2\"; shift 2; exec \"$@\"", "sh"]).args(&procs);
        command.arg(&self.ground.perflab).args(["prefetch", "--store"]).arg(self.store_path()).arg("daemon");
        command.arg("--on").arg(self.mount_path()).arg("--socket").arg(folder.join("socket"));
        command.arg("--list").arg(folder.join("list"));
        command.args(["--worth-read", "64KiB", "--worth-wait", "1us", "--for", "2s", "--mode", "sync"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.daemon = Some(command.spawn().context("cannot start the daemon")?);
        let begun = Instant::now();
        while !self.is_answering() {
            let output = || fs::read_to_string(folder.join("daemon.log")).unwrap_or_default();
            ensure!(begun.elapsed() < Duration::from_secs(60), "the daemon does not answer: {}", output());
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn is_answering(&self) -> bool {
        let Ok(mut stream) = UnixStream::connect(self.ground.folder.join("socket")) else { return false };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
        let mut text = String::new();
        stream.read_to_string(&mut text).is_ok() && text.starts_with('{')
    }

    fn kill_daemon(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }

    /// One harm, done at a random moment while programs are started, for as long as the guard needs; then undone.
    fn attempt_harm(&mut self, harm: DaemonHarm, number: u64) -> Result<Option<String>> {
        self.start_daemon()?;
        for one in 0..PROGRAMS {
            // Out of memory, so that there is something to read ahead.
            let file = format!("if={}", self.data_path(one).display());
            require_success(Command::new("dd").args([&file, "iflag=nocache", "count=0", "status=none"]))?;
        }
        let done = AtomicBool::new(false);
        let may_be_gone = harm == DaemonHarm::TakeMountAway;
        let (daemon, guard) = self.daemon_and_guard_pids()?;
        let failures = std::thread::scope(|scope| {
            let scene = &*self;
            let starters: Vec<_> = (0..STARTERS)
                .map(|at| {
                    scope.spawn({
                        let done = &done;
                        move || scene.start_programs(at, done, may_be_gone)
                    })
                })
                .collect();
            sleep(Duration::from_millis(number * 37 % 300));
            let harmed = scene.inflict_harm(harm, (daemon, guard));
            done.store(true, Ordering::Relaxed);
            let failures: Vec<String> = starters
                .into_iter()
                .flat_map(|one| one.join().unwrap_or_else(|_| vec!["a starter panicked".into()]))
                .collect();
            harmed.map(|()| failures)
        })?;
        Ok((!failures.is_empty()).then(|| failures.join("; ")))
    }

    /// The daemon and its guard.
    fn daemon_and_guard_pids(&self) -> Result<(u32, u32)> {
        let daemon = self.daemon.as_ref().context("there is no daemon")?.id();
        let children = fs::read_to_string(format!("/proc/{daemon}/task/{daemon}/children"))?;
        let guard = children.split_whitespace().next_back().context("the daemon has no guard")?;
        Ok((daemon, guard.parse()?))
    }

    fn inflict_harm(&self, harm: DaemonHarm, (daemon, guard): (u32, u32)) -> Result<()> {
        let silence = || sleep(Duration::from_millis(3200));
        let moment = || sleep(Duration::from_millis(700));
        match harm {
            DaemonHarm::Stop => {
                signal_process("-STOP", daemon)?;
                silence();
                signal_process("-CONT", daemon)?;
                moment();
            }
            DaemonHarm::Freeze => {
                self.set_group_frozen(true);
                silence();
                self.set_group_frozen(false);
                moment();
            }
            DaemonHarm::Kill => {
                signal_process("-KILL", daemon)?;
                moment();
            }
            DaemonHarm::KillGuard => {
                signal_process("-KILL", guard)?;
                moment();
            }
            DaemonHarm::StopGuard => {
                signal_process("-STOP", guard)?;
                silence();
            }
            DaemonHarm::KillBesideStoppedGuard => {
                signal_process("-STOP", guard)?;
                signal_process("-KILL", daemon)?;
                moment();
            }
            DaemonHarm::ShortOfMemory => self.restrict_memory(moment)?,
            DaemonHarm::DamageTraces => {
                self.damage_traces()?;
                moment();
            }
            DaemonHarm::ChangeList => {
                let list = self.ground.folder.join("list");
                for text in ["never /\n", "rubbish\0\u{1b}[2J\n", "only /no/such/place\n", ""] {
                    fs::write(&list, text)?;
                    sleep(Duration::from_millis(400));
                }
            }
            DaemonHarm::TakeMountAway => {
                require_success(Command::new("umount").arg("--lazy").arg(self.mount_path()))?;
                moment();
                self.mount_image()?;
                moment();
            }
        }
        Ok(())
    }

    fn restrict_memory(&self, moment: impl Fn()) -> Result<()> {
        let limit = ["memory.limit_in_bytes", "memory.max"].map(|name| self.memory.join(name));
        let limit = limit.iter().find(|path| path.exists()).context("no limit of memory")?;
        // What cannot be had is refused, or the daemon is killed: both are part of it.
        ["4M", "2M", "1M"].iter().for_each(|most| drop(fs::write(limit, most)));
        moment();
        moment();
        let _ = fs::write(limit, if limit.ends_with("memory.max") { "max" } else { "-1" });
        Ok(())
    }

    fn damage_traces(&self) -> Result<()> {
        for entry in fs::read_dir(self.store_path()).into_iter().flatten().flatten() {
            let mut bytes = fs::read(entry.path()).unwrap_or_default();
            let middle = bytes.len() / 2;
            bytes.truncate(if middle % 3 == 0 { middle } else { bytes.len() });
            bytes.iter_mut().skip(middle).step_by(7).for_each(|byte| *byte ^= 0x55);
            fs::write(entry.path(), bytes)?;
        }
        Ok(())
    }

    fn set_group_frozen(&self, frozen: bool) {
        let files = [("cgroup.freeze", ["0", "1"]), ("freezer.state", ["THAWED", "FROZEN"])];
        for (file, words) in files {
            let path = self.freezer.join(file);
            if path.exists() {
                let _ = fs::write(path, words[usize::from(frozen)]);
            }
        }
    }

    /// Starts one program after the other until it is done: what went wrong.
    fn start_programs(&self, at: usize, done: &AtomicBool, may_be_gone: bool) -> Vec<String> {
        let mut failures = Vec::new();
        for number in (at..).take_while(|_| !done.load(Ordering::Relaxed)) {
            match self.start_program(number % PROGRAMS, may_be_gone) {
                Ok(None) => {}
                Ok(Some(failure)) => failures.push(failure),
                Err(error) => failures.push(format!("{error:#}")),
            }
            self.execs.fetch_add(1, Ordering::Relaxed);
        }
        failures
    }

    /// By a shell that lies elsewhere, so that nobody here waits within an exec.
    fn start_program(&self, number: usize, may_be_gone: bool) -> Result<Option<String>> {
        let begun = Instant::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\""]).arg(self.program_path(number)).stdin(Stdio::null());
        let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if begun.elapsed() > GIVEN_UP {
                child.kill()?;
                child.wait()?;
                return Ok(Some(format!("an exec waited for {GIVEN_UP:?} and longer")));
            }
            sleep(Duration::from_millis(2));
        };
        let took = begun.elapsed();
        let mut output = String::new();
        child.stdout.take().context("no output")?.read_to_string(&mut output)?;
        if took > PROMISE {
            return Ok(Some(format!("an exec took {:.1} s", took.as_secs_f64())));
        }
        let right = output == format!("program {number}\n");
        // A shell says 2 where it was started for a script that is gone by then.
        let gone = may_be_gone && matches!(status.code(), Some(2 | 126 | 127)) && output.is_empty();
        // A script that was found and whose file is gone by then prints what it prints.
        let is_well = gone || right && (status.success() || may_be_gone);
        Ok((!is_well).then(|| format!("program {number} ended with {status} and said {output:?}")))
    }
}

/// A control group of the attack's own in the first of these hierarchies that there is.
fn create_control_group(places: &[&str], name: &str) -> Result<PathBuf> {
    let place = places.iter().map(Path::new).find(|place| place.join("cgroup.procs").exists());
    let path = place.context("there are no control groups")?.join(name);
    fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

fn signal_process(name: &str, process: u32) -> Result<()> {
    require_success(Command::new("kill").args([name, &process.to_string()]))
}

fn require_success(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
