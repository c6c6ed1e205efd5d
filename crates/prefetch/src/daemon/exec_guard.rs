//! A process that answers the kernel where the daemon does not.
//!
//! It holds the daemon's fanotify descriptor too (the same open file), and hears from the daemon twice a second.
//! Silence of more than [`SILENCE`] means that the daemon is stopped, frozen, swapped out or hung: then the guard
//! lets every exec through itself, until the daemon is heard again and takes over. It dies with the daemon, so that
//! the descriptor closes and the kernel lets everything through.
//!
//! [`run_guard`] is the process itself, [`ExecGuard`] the daemon's side of it. The kernel finds a waiting exec by
//! the descriptor number that the reader's table had for it, and takes that number from anybody who holds the
//! descriptor: so the guard answers every number that the daemon's table could have.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::fanotify::{Fanotify, FanotifyEvent, FanotifyResponse, Response};
use perflab_observe::io::MountTable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Pid, Resource, Signal};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use crate::in_flight_requests::open_exec_group;

/// After which silence of either side the other one acts.
pub const SILENCE: Duration = Duration::from_secs(2);

/// How often the guard looks whether the daemon was heard, and says that it lives itself.
const LOOK: Duration = Duration::from_millis(500);

/// For so long after the daemon has read an exec, the guard has let nothing through: the daemon was heard at most a look before.
pub(crate) const UNANSWERED: Duration = SILENCE.saturating_sub(LOOK);

/// How often it looks while it answers instead of the daemon.
const STAND_IN: Duration = Duration::from_millis(20);

/// How long the guard may take to be ready: nothing is held before.
const READY: Duration = Duration::from_secs(20);

/// Numbers of open files that are answered where the daemon's table cannot be looked at.
const NUMBERS: i32 = 65_536;

/// What a message of the guard is: how many execs it has let through so far.
const MESSAGE: usize = size_of::<u64>();

/// What protects execs from the daemon, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardStatus {
    /// the process
    pub pid: u32,
    /// bytes of its memory that cannot be swapped out
    pub locked: u64,
    /// how often it had to be started again
    pub restarts: u64,
    /// execs that it let through in the daemon's place
    pub let_through: u64,
    /// what it cannot protect from, and what does then
    pub lacks: Vec<String>,
}

/// The daemon's side: a child process that is looked after.
#[derive(Debug)]
pub struct ExecGuard {
    program: PathBuf,
    child: Child,
    line: UnixStream,
    heard: Instant,
    /// guards that could not be ended at once: frozen ones of the first cgroups die when they are thawed
    ended: Vec<Child>,
    before: u64,
    status: GuardStatus,
}

impl ExecGuard {
    /// Starts it, and waits until it is ready; `program` is perflab, `gate` the descriptor that is guarded. Must be called by the
    /// process's first thread: the guard is killed when the thread that started it ends.
    ///
    /// # Errors
    /// A process that cannot be started, or does not become ready.
    pub fn start(program: &Path, gate: &impl AsFd) -> io::Result<Self> {
        let (child, line) = spawn_guard(program, gate)?;
        let mut guard = ExecGuard {
            program: program.into(),
            child,
            line,
            heard: Instant::now(),
            ended: Vec::new(),
            before: 0,
            status: GuardStatus::default(),
        };
        guard.update_status();
        Ok(guard)
    }

    /// The end of the line on which the daemon says that it lives.
    ///
    /// # Errors
    /// No descriptor is to be had.
    pub fn clone_line(&self) -> io::Result<UnixStream> {
        self.line.try_clone()
    }

    /// What is known of it.
    pub fn status(&self) -> &GuardStatus {
        &self.status
    }

    /// Hears what it has to say. Whether it lives: where it does not, [`ExecGuard::replace`] it.
    pub fn is_alive(&mut self) -> bool {
        self.ended.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
        let mut message = [0; MESSAGE];
        loop {
            match self.line.read(&mut message) {
                Ok(MESSAGE) => {
                    self.heard = Instant::now();
                    self.status.let_through = self.before + u64::from_le_bytes(message);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        self.heard.elapsed() < SILENCE + LOOK
    }

    /// Ends it, and starts another one.
    ///
    /// # Errors
    /// No other one can be started: then no exec must be held any more.
    pub fn replace(&mut self, gate: &impl AsFd) -> io::Result<()> {
        let _ = self.child.kill();
        let (child, line) = spawn_guard(&self.program, gate)?;
        let mut old = std::mem::replace(&mut self.child, child);
        if !matches!(old.try_wait(), Ok(Some(_))) {
            self.ended.push(old);
        }
        (self.line, self.heard, self.before) = (line, Instant::now(), self.status.let_through);
        self.status.restarts += 1;
        self.update_status();
        Ok(())
    }

    fn update_status(&mut self) {
        let pid = self.child.id();
        let about = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let status = about("status");
        // What is locked is counted by its addresses, of which few are in use.
        let kib = |name: &str| status_field(&status, name).unwrap_or(0);
        let locked = kib("VmLck:").min(kib("VmRSS:")) << 10;
        let group = find_freezable_group(&about("cgroup"));
        self.status.pid = pid;
        self.status.locked = locked;
        self.status.lacks = missing_protections(locked, group, std::env::var_os("WATCHDOG_USEC").is_some());
    }
}

impl AsFd for ExecGuard {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Drop for ExecGuard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.try_wait();
    }
}

fn spawn_guard(program: &Path, gate: &impl AsFd) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let gate: OwnedFd = gate.as_fd().try_clone_to_owned()?;
    let mut command = Command::new(program);
    command.arg0("perflab").arg("prefetch-guard").arg(std::process::id().to_string());
    let child = command.stdin(gate).stdout(OwnedFd::from(theirs)).stderr(Stdio::inherit()).spawn()?;
    // What the command holds of the line must be closed: its end shows that the guard has died.
    drop(command);
    ours.set_read_timeout(Some(READY))?;
    (&ours).read_exact(&mut [0; MESSAGE])?;
    ours.set_nonblocking(true)?;
    Ok((child, ours))
}

/// What a guard with so much locked memory, in a group that can be frozen, does not protect from.
fn missing_protections(locked: u64, group: Option<String>, watchdog: bool) -> Vec<String> {
    let memory = (locked == 0).then(|| {
        "its memory is not locked (it needs CAP_IPC_LOCK, or no limit of locked memory): where memory is short it may be late".into()
    });
    let then = match watchdog {
        true => "systemd, which kills a daemon that is silent",
        false => "nothing but thawing or killing the daemon",
    };
    let group = group.map(|group| {
        format!("it has no control group that cannot be frozen (it is in {group}): where it is frozen together with the daemon, what lets execs through is {then}")
    });
    memory.into_iter().chain(group).collect()
}

/// The group of a process that can be frozen, if it is in one: `text` is its `/proc/PID/cgroup`. Roots cannot be.
fn find_freezable_group(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let freezes = controllers.is_empty() || controllers.split(',').any(|one| one == "freezer");
        (freezes && group != "/").then(|| group.to_owned())
    })
}

fn status_field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Keeps this process's memory from being swapped out, as it is used: where a limit could make later memory fail, it is not tried.
///
/// # Errors
/// No right.
pub fn lock_memory() -> io::Result<()> {
    let has_limit = rustix::process::getrlimit(Resource::Memlock).current.is_some();
    let may = || {
        rustix::thread::capabilities(None).is_ok_and(|all| all.effective.contains(CapabilitySet::IPC_LOCK))
    };
    if has_limit && !may() {
        return Err(Errno::PERM.into());
    }
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}

/// The guard's life: standard input is the fanotify descriptor, standard output its end of the line. Returns when the daemon,
/// whose number is `daemon`, is gone.
///
/// # Errors
/// A line that breaks: the daemon sees that, and starts another guard.
pub fn run_guard(daemon: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let is_daemons = || {
        rustix::process::getppid().map(Pid::as_raw_nonzero).map(|pid| pid.get().unsigned_abs())
            == Some(daemon)
    };
    if !is_daemons() {
        return Ok(());
    }
    let _ = rustix::thread::set_name(c"prefetch-guard");
    // A signal to the daemon's group or terminal is not the guard's.
    rustix::process::setsid()?;
    leave_freezable_groups();
    // Where it is not permitted, the daemon finds that out, and reports it.
    let _ = lock_memory();
    let gate = open_exec_group(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    line.set_nonblocking(true)?;
    let mut let_through = 0_u64;
    // Once for nothing: what it does later is in memory then, and stays there.
    allow_numbers(&gate, 0..16)?;
    let mut heard = Instant::now();
    while is_daemons() {
        match line.write(&let_through.to_le_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            _ => {}
        }
        let stands_in = heard.elapsed() >= SILENCE;
        let mut waits = vec![PollFd::new(&line, PollFlags::IN)];
        if stands_in {
            let_through += allow_all(&gate, daemon)?;
            waits.push(PollFd::new(&gate, PollFlags::IN));
        }
        let most = Timespec::try_from(if stands_in { STAND_IN } else { LOOK }).unwrap_or_default();
        match poll(&mut waits, Some(&most)) {
            Err(error) if error != Errno::INTR => return Err(error.into()),
            _ => {}
        }
        // However late this process comes to it: what the daemon sent until then counts.
        match read_sign_of_life(&mut line) {
            Some(true) => heard = Instant::now(),
            Some(false) => {}
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Whether the daemon sent something; nothing where it is gone.
fn read_sign_of_life(line: &mut UnixStream) -> Option<bool> {
    let (mut any, mut said) = (false, [0; 64]);
    loop {
        match line.read(&mut said) {
            Ok(0) => return None,
            Ok(_) => any = true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(any),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Lets through what has not been read yet, and what the daemon has read and not answered. Returns how many.
fn allow_all(gate: &Fanotify, daemon: u32) -> io::Result<u64> {
    let mut count = 0;
    loop {
        let events = match gate.read_events() {
            Ok(events) => events,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => break,
            Err(error) => return Err(error.into()),
        };
        for fd in events.iter().filter_map(FanotifyEvent::fd) {
            // The number may be one of the daemon's, too: whoever is found first goes on, and so do all others below.
            count += u64::from(gate.write_response(FanotifyResponse::new(fd, Response::FAN_ALLOW)).is_ok());
        }
    }
    let status = fs::read_to_string(format!("/proc/{daemon}/status")).unwrap_or_default();
    let most = status_field(&status, "FDSize:").and_then(|size| size.try_into().ok()).unwrap_or(NUMBERS);
    Ok(count + allow_numbers(gate, 0..most)?)
}

/// Says yes to whatever waits under these numbers. How many did.
fn allow_numbers(gate: &Fanotify, numbers: std::ops::Range<i32>) -> io::Result<u64> {
    let mut count = 0;
    for number in numbers {
        let mut answer = [0; 8];
        let (fd, response) = answer.split_at_mut(4);
        fd.copy_from_slice(&number.to_ne_bytes());
        response.copy_from_slice(&1_u32.to_ne_bytes());
        // Two readers may have given out the same number.
        while rustix::io::write(gate, &answer).is_ok() {
            count += 1;
        }
    }
    Ok(count)
}

/// Goes where it cannot be frozen: the root of each hierarchy that freezes. Where that is not permitted, the daemon reports it.
fn leave_freezable_groups() {
    let is_freezer = |place: &Path| place.join("cgroup.procs").exists();
    for mount in MountTable::read()
        .iter()
        .filter(|mount| mount.kind.starts_with("cgroup") && mount.root == Path::new("/"))
    {
        let of_first =
            mount.mount_point.ends_with("freezer") || mount.mount_point.join("release_agent").exists();
        if (mount.kind == "cgroup2" || of_first) && is_freezer(&mount.mount_point) {
            let _ = fs::write(mount.mount_point.join("cgroup.procs"), "0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_can_be_frozen_is_named() {
        assert_eq!(find_freezable_group("6:freezer:/\n4:memory:/x\n0::/\n"), None);
        assert_eq!(
            find_freezable_group("4:cpu:/x\n0::/system.slice/a.service\n"),
            Some("/system.slice/a.service".into())
        );
        assert_eq!(find_freezable_group("6:cpuset,freezer:/pod\n0::/\n"), Some("/pod".into()));
        assert_eq!(missing_protections(1, None, false), Vec::<String>::new());
        assert_eq!(missing_protections(0, Some("/pod".into()), true).len(), 2);
    }
}
