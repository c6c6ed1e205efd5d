//! Every process of one execution, found in /proc and ended: the process group, children of children, and whatever
//! carries the mark in its environment, however far it has run.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read as _;
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, fs, io, thread};

use perflab_formats::kernel::process::ProcessStat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// The environment variable that marks the processes of one execution.
pub const MARK: &str = "PERFLAB_EXECUTION";

/// Rounds in which all processes are to be ended.
const ROUNDS: u32 = 500;

/// Rounds in a row in which no process is found, until there is none.
const ROUNDS_WITHOUT: u32 = 3;

/// More process numbers than these are not asked one by one: the whole of /proc is listed.
const FEW_NUMBERS: i32 = 64;

/// No kernel gives out process numbers faster than one in this time: they are counted up under one lock, by forks of many times as
/// long. So it takes this times their number until one can be given out again.
const SHORTEST_FORK: Duration = Duration::from_micros(1);

/// How long a process may be within exec until it counts as unowned: its program may lie on a disk that answers late.
const IN_EXEC: Duration = Duration::from_millis(300);

/// A mark that no other execution has: that of this perflab, and a number.
pub(crate) fn new_execution_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", ExecutionOwner::current(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Has a command, with what it leaves in the background, ended should this perflab be killed.
pub fn end_with_perflab(command: &mut Command) {
    command.env(MARK, new_execution_mark());
}

/// A perflab that carries out executions, as their marks name it. What is random in it is known to its journal and to what it
/// started: no process has it by chance, or from a perflab whose end was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionOwner {
    pid: i32,
    /// clock ticks after boot
    started: u64,
    /// the inode of the PID namespace in which the number counts
    namespace: u64,
    token: String,
}

impl ExecutionOwner {
    /// This process.
    pub fn current() -> &'static Self {
        static OWN: OnceLock<ExecutionOwner> = OnceLock::new();
        OWN.get_or_init(|| ExecutionOwner {
            pid: read_own_pid(),
            started: SeenProcess::read_own().map_or(0, |process| process.started),
            namespace: read_own_namespace().unwrap_or_default(),
            token: format!("{:016x}{:016x}", random_token(), random_token()),
        })
    }

    /// As [`ExecutionOwner`] prints itself: `PID-START-NAMESPACE-TOKEN`.
    pub fn parse(text: &str) -> Option<Self> {
        let (executor, rest) = Self::parse_prefix(text)?;
        rest.is_empty().then_some(executor)
    }

    /// The executor of a mark, and what follows it.
    fn parse_prefix(text: &str) -> Option<(Self, &str)> {
        let mut parts = text.splitn(5, '-');
        let mut next = || parts.next();
        let (pid, started, namespace) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
        let token = next()?.to_owned();
        let is_token = token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_token.then_some((ExecutionOwner { pid, started, namespace, token }, next().unwrap_or_default()))
    }

    /// Whether it is gone for certain: of a number in another PID namespace than ours, that is not known.
    pub fn is_gone(&self) -> bool {
        read_own_namespace() == Some(self.namespace) && !is_process_living(self.pid, self.started)
    }

    /// Whether it goes on, as far as can be seen.
    pub fn is_living(&self) -> bool {
        read_own_namespace() == Some(self.namespace) && is_process_living(self.pid, self.started)
    }

    /// Whether this very process was it, before it became another program by exec.
    pub fn is_predecessor(&self) -> bool {
        read_own_namespace() == Some(self.namespace)
            && self.pid == read_own_pid()
            && SeenProcess::read_own().is_some_and(|process| process.started == self.started)
            && self.token != Self::current().token
    }

    /// Ends what is left of its executions; how many processes that was. Only for who knows it from its journal, or was started by
    /// it: an environment alone may have been copied.
    pub fn end_executions(&self) -> usize {
        let mut ended = 0;
        kill_until_none_found(|| {
            let marked = list_other_processes()
                .into_iter()
                .filter(|process| process.execution_owner().as_ref() == Some(self));
            // Whoever is older was not started by it.
            let killed = marked.filter(|one| one.started >= self.started && one.signal(Signal::KILL)).count();
            ended += killed;
            if killed > 0 { KillRound::Found } else { KillRound::NoneFound }
        });
        ended
    }
}

impl fmt::Display for ExecutionOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.pid, self.started, self.namespace, self.token)
    }
}

/// Ends a child of this process that was not reaped yet, with its children and theirs: asked first, and killed after `grace`.
pub fn end_process_tree(leader: u32, grace: Duration) {
    let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
    let Some(leader) = leader.filter(|pid| !pid.is_init()) else { return };
    let mut family = ExecutionProcesses::new(leader, String::new(), None);
    family.known_members.insert((family.group, family.started));
    family.signal(Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < grace && !family.living_members().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    family.kill();
}

/// What one look at the processes that are to be ended has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillRound {
    /// Some lived, and were killed.
    Found,
    /// None was seen; one that was forked meanwhile may have been missed.
    NoneFound,
    /// None is left: no process was made while they were looked for.
    NoneLeft,
}

/// Kills in rounds. One may fork between looking and killing: its child is found in the next round. One may also have forked and
/// ended while /proc was read, and its child likewise: only several rounds without anybody are the end, or one during which
/// nobody forked.
fn kill_until_none_found(mut kill: impl FnMut() -> KillRound) {
    let mut without = 0;
    for _ in 0..ROUNDS {
        match kill() {
            KillRound::Found => {
                without = 0;
                thread::sleep(Duration::from_millis(2));
            }
            KillRound::NoneFound if without + 1 < ROUNDS_WITHOUT => without += 1,
            KillRound::NoneFound | KillRound::NoneLeft => return,
        }
    }
}

/// Processes that carry the mark of a perflab that is gone from this PID namespace, and is none of `known`.
pub fn find_unknown_executions(known: &[ExecutionOwner]) -> Vec<i32> {
    let is_unknown = |executor: &ExecutionOwner| executor.is_gone() && !known.contains(executor);
    let marked = list_other_processes()
        .into_iter()
        .filter(|process| process.is_alive() && process.execution_owner().as_ref().is_some_and(is_unknown));
    marked.map(|process| process.pid).collect()
}

fn read_own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or_default()
}

fn random_token() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The inode of this process's PID namespace; none where /proc is of another one, so that its numbers are not ours.
fn read_own_namespace() -> Option<u64> {
    SeenProcess::read_own().filter(|process| process.pid == read_own_pid())?;
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// The shortest time in which every process number of this PID namespace could be given out; none where those of /proc are not ours.
fn find_number_round() -> Option<Duration> {
    static ROUND: OnceLock<Option<Duration>> = OnceLock::new();
    *ROUND.get_or_init(|| {
        read_own_namespace()?;
        let most: u32 = fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse().ok()?;
        Some(SHORTEST_FORK * most)
    })
}

/// The process or thread number that was given last in this process's PID namespace: the last field of /proc/loadavg.
fn read_newest_number() -> Option<i32> {
    read_small_file("/proc/loadavg").ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// A file of the kernel's that it writes at once, in one read: `read_to_string` asks for its size and goes on in small steps.
fn read_small_file(path: &str) -> io::Result<String> {
    let mut bytes = [0; 4096];
    let length = fs::File::open(path)?.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned())
}

/// One that is not reaped yet is dead, too.
fn is_process_living(pid: i32, started: u64) -> bool {
    SeenProcess::read(pid).is_some_and(|owner| owner.started == started && owner.is_alive())
}

/// The processes of one execution.
///
/// One escapes us only if it clears its environment, leaves the group, and loses its parent before we
/// first look, which is at the end; nothing short of a cgroup would find it.
#[derive(Debug)]
pub(crate) struct ExecutionProcesses {
    group: i32,
    mark: String,
    /// When the leader started, in ticks: whoever is older is not a member, and is not looked at closer.
    started: u64,
    /// Until when no process number can have been given out again since the leader got its own.
    numbers_ascend_until: Option<Instant>,
    /// Pid and start time of members seen before: once its parent is dead, nothing else may show it.
    known_members: BTreeSet<(i32, u64)>,
}

impl ExecutionProcesses {
    /// `begun` is a moment before the leader was there, where one is known.
    pub(crate) fn new(leader: Pid, mark: String, begun: Option<Instant>) -> Self {
        let group = leader.as_raw_nonzero().get();
        let started = SeenProcess::read(group).map_or(0, |leader| leader.started);
        let numbers_ascend_until = begun.zip(find_number_round()).map(|(begun, round)| begun + round);
        ExecutionProcesses { group, mark, started, numbers_ascend_until, known_members: BTreeSet::new() }
    }

    /// Sends a signal to every member once.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.living_members().iter().for_each(|process| {
            process.signal(signal);
        });
    }

    /// Kills until none is left, and returns how many were killed besides the leader.
    pub(crate) fn kill(&mut self) -> usize {
        let mut killed = BTreeSet::new();
        kill_until_none_found(|| {
            let newest = self.newest_number();
            let living = self.living_members();
            killed.extend(living.iter().filter(|one| one.signal(Signal::KILL)).map(|one| one.pid));
            match living.is_empty() {
                false => KillRound::Found,
                true if newest.is_some() && newest == self.newest_number() => KillRound::NoneLeft,
                true => KillRound::NoneFound,
            }
        });
        killed.remove(&self.group);
        killed.len()
    }

    /// The number that was given last to a process or thread of this PID namespace: whatever descends from the leader has one from
    /// the leader's to this. None where numbers may have been given out again since.
    fn newest_number(&self) -> Option<i32> {
        let newest = read_newest_number().filter(|newest| *newest >= self.group)?;
        self.numbers_ascend_until.is_some_and(|end| Instant::now() < end).then_some(newest)
    }

    /// Every process that may be a member, and perhaps others.
    fn list_candidates(&self) -> Vec<SeenProcess> {
        match self.newest_number() {
            // A number may also be that of a thread, which cannot be signalled, and ends with its process.
            Some(newest) if newest - self.group < FEW_NUMBERS => {
                (self.group..=newest).filter_map(SeenProcess::read).collect()
            }
            _ => list_other_processes(),
        }
    }

    fn living_members(&mut self) -> Vec<SeenProcess> {
        let (mut members, mut others): (Vec<_>, Vec<_>) =
            self.list_candidates().into_iter().partition(|one| self.is_member(one));
        // Children of members, and theirs, even those that have cleared their environment.
        loop {
            let parents: BTreeSet<i32> = members.iter().map(|one| one.pid).collect();
            let (children, rest): (Vec<_>, Vec<_>) =
                others.into_iter().partition(|one| parents.contains(&one.parent));
            if children.is_empty() {
                break;
            }
            members.extend(children);
            others = rest;
        }
        members.retain(|one| one.is_alive());
        self.known_members.extend(members.iter().map(|one| (one.pid, one.started)));
        members
    }

    fn is_member(&self, one: &SeenProcess) -> bool {
        one.group == self.group
            || self.known_members.contains(&(one.pid, one.started))
            || (one.started >= self.started && one.execution_mark().as_ref() == Some(&self.mark))
    }
}

/// A process as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenProcess(ProcessStat);

impl Deref for SeenProcess {
    type Target = ProcessStat;

    fn deref(&self) -> &ProcessStat {
        &self.0
    }
}

impl SeenProcess {
    fn read(pid: i32) -> Option<Self> {
        Some(SeenProcess(ProcessStat::parse(&read_small_file(&format!("/proc/{pid}/stat")).ok()?)?))
    }

    /// This process, by the number that /proc has for it.
    fn read_own() -> Option<Self> {
        Some(SeenProcess(ProcessStat::parse(&fs::read_to_string("/proc/self/stat").ok()?)?))
    }

    /// The execution that it belongs to, by its mark.
    fn execution_owner(&self) -> Option<ExecutionOwner> {
        ExecutionOwner::parse_prefix(&self.execution_mark()?).map(|(executor, _)| executor)
    }

    /// Its mark; none where it has none, or belongs to another user.
    fn execution_mark(&self) -> Option<String> {
        let environment = self.read_environment()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let value =
            variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// Within exec, the kernel shows no environment: the end of that is waited for, however little it runs on a busy machine. It may
    /// come between two looks, so that only what is empty twice is empty.
    fn read_environment(&self) -> Option<Vec<u8>> {
        let begun = Instant::now();
        let mut was_empty = false;
        loop {
            let environment = fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
            if !environment.is_empty() || self.is_kernel_thread {
                return Some(environment);
            }
            match (self.is_in_exec(), was_empty) {
                (false, true) => return Some(environment),
                (false, false) => was_empty = true,
                (true, _) if begun.elapsed() > IN_EXEC => return None,
                (true, _) => {
                    was_empty = false;
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Whether it is within exec now.
    fn is_in_exec(&self) -> bool {
        SeenProcess::read(self.pid).is_some_and(|now| now.0.is_in_exec())
    }

    /// Signals this process and no other that got its number since. Whether it was there.
    fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.pid > 1) else { return false };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => {
                self.is_same_as_handle(&handle)
                    && self.is_still_living()
                    && pidfd_send_signal(&handle, signal).is_ok()
            }
            // Before Linux 5.3.
            Err(Errno::NOSYS) => self.is_still_living() && kill_process(pid, signal).is_ok(),
            Err(_) => false,
        }
    }

    /// Whether /proc means the same process by its number as system calls do: it may be that of another PID namespace.
    fn is_same_as_handle(&self, handle: &OwnedFd) -> bool {
        let path = format!("/proc/self/fdinfo/{}", handle.as_raw_fd());
        let text = fs::read_to_string(path).unwrap_or_default();
        let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"));
        // The first kernels with such descriptors did not report it.
        pid.is_none_or(|pid| pid.trim().parse() == Ok(self.pid))
    }

    fn is_still_living(&self) -> bool {
        SeenProcess::read(self.pid).is_some_and(|now| now.started == self.started && now.is_alive())
    }
}

/// All processes except our own.
fn list_other_processes() -> Vec<SeenProcess> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| *name != own).filter_map(|name| SeenProcess::read(name.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_differ() {
        assert_ne!(new_execution_mark(), new_execution_mark());
    }

    #[test]
    fn a_mark_names_its_perflab_and_an_old_or_invented_one_nobody() {
        let own = ExecutionOwner::current();
        let mark = new_execution_mark();
        let (executor, count) = ExecutionOwner::parse_prefix(&mark).unwrap();
        assert!(executor == *own && !count.is_empty() && ExecutionOwner::parse(&mark).is_none());
        assert_eq!(ExecutionOwner::parse(&own.to_string()).as_ref(), Some(own));
        assert!(
            ["1-1-1-1", "1-1-1-1-1", "", "1-2-3-"]
                .into_iter()
                .all(|text| ExecutionOwner::parse(text).is_none())
        );
    }

    #[test]
    fn an_executor_of_another_namespace_is_not_known_to_be_gone() {
        let own = ExecutionOwner::current();
        assert!(!own.is_gone() && own.namespace != 0);
        let dead = ExecutionOwner { started: own.started + 1, ..own.clone() };
        assert!(dead.is_gone());
        assert!(!ExecutionOwner { namespace: own.namespace + 1, ..dead.clone() }.is_gone());
        assert!(!own.is_predecessor());
        assert!(ExecutionOwner { token: "0".repeat(32), ..own.clone() }.is_predecessor());
    }
}
