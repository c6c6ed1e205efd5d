//! Everybody who belongs to one execution, found in /proc: the process group, children of children,
//! and whoever carries the mark in the environment, however far it has run.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::now;

/// The environment variable that marks the processes of one execution.
pub const MARK: &str = "PERFLAB_ITERATION";

/// A mark that no other execution has: `PID-STARTTIME-NANOS-COUNT`, of this perflab.
pub(super) fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (own, started) = (std::process::id(), own_start());
    format!("{own}-{started}-{}-{}", now().0, COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Ends what executions of a perflab that is dead have left behind (it was killed with -9), and says
/// how many processes that were. Executions of perflabs that live are left alone.
pub fn end_abandoned() -> usize {
    end(|pid, started| !is_living(pid, started))
}

/// Ends what executions of this very process have left behind, before it became another program by exec.
pub fn end_predecessors() -> usize {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    end(|pid, started| pid == own && is_living(pid, started))
}

/// Ends what executions of one perflab that is dead have left behind.
pub(super) fn end_executions_of(pid: i32, started: u64) -> usize {
    end(|owner, since| owner == pid && since == started && !is_living(pid, started))
}

/// Ends a child of this process that was not reaped yet, with its children and theirs: asked first, and killed after `grace`.
pub fn end_tree(leader: u32, grace: Duration) {
    let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
    let Some(leader) = leader.filter(|pid| !pid.is_init()) else { return };
    let mut family = Family::new(leader, String::new());
    family.seen.insert((family.group, family.started));
    family.signal(Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < grace && !family.living().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    family.kill();
}

/// When this process started, in ticks after boot.
pub(super) fn own_start() -> u64 {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    Process::read(own).map_or(0, |process| process.started)
}

/// One that nobody has reaped yet is dead, too.
pub(super) fn is_living(pid: i32, started: u64) -> bool {
    Process::read(pid).is_some_and(|owner| owner.started == started && owner.alive)
}

/// Ends the processes of executions whose perflab, by pid and start, is one to choose; how many.
fn end(chosen: impl Fn(i32, u64) -> bool) -> usize {
    let owner = |process: &Process| {
        let mark = process.mark()?;
        let mut parts = mark.split('-');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    let is_wanted = |process: &Process| owner(process).is_some_and(|(pid, started)| chosen(pid, started));
    let found: Vec<Process> = all().into_iter().filter(is_wanted).collect();
    found.iter().filter(|process| process.signal(Signal::KILL)).count()
}

/// The processes of one execution.
///
/// One escapes us only if it clears its environment, leaves the group, and loses its parent before we
/// first look, which is at the end; nothing short of a cgroup would find it.
pub(super) struct Family {
    group: i32,
    mark: String,
    /// When the leader started, in ticks: whoever is older is no member, and is not looked at closer.
    started: u64,
    /// Pid and start time of members seen before: once its parent is dead, nothing else may tell.
    seen: BTreeSet<(i32, u64)>,
}

impl Family {
    pub(super) fn new(leader: Pid, mark: String) -> Self {
        let group = leader.as_raw_nonzero().get();
        let started = Process::read(group).map_or(0, |leader| leader.started);
        Family { group, mark, started, seen: BTreeSet::new() }
    }

    /// Sends a signal to every member once.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.living().iter().for_each(|process| {
            process.signal(signal);
        });
    }

    /// Kills until nobody is left, and says how many were killed beside the leader.
    pub(super) fn kill(&mut self) -> usize {
        let mut killed = BTreeSet::new();
        // A member may fork between looking and killing; its child is found in the next round.
        for _ in 0..500 {
            let living = self.living();
            if living.is_empty() {
                break;
            }
            killed.extend(living.iter().filter(|one| one.signal(Signal::KILL)).map(|one| one.pid));
            thread::sleep(Duration::from_millis(2));
        }
        killed.remove(&self.group);
        killed.len()
    }

    fn living(&mut self) -> Vec<Process> {
        let (mut members, mut others): (Vec<_>, Vec<_>) = all().into_iter().partition(|one| self.has(one));
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
        members.retain(|one| one.alive);
        self.seen.extend(members.iter().map(|one| (one.pid, one.started)));
        members
    }

    fn has(&self, one: &Process) -> bool {
        one.group == self.group
            || self.seen.contains(&(one.pid, one.started))
            || (one.started >= self.started && one.mark().as_ref() == Some(&self.mark))
    }
}

/// What /proc/PID/stat says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    pid: i32,
    alive: bool,
    kernel: bool,
    parent: i32,
    group: i32,
    /// clock ticks after boot; with the pid, it names one process for ever
    started: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in parentheses may hold anything, so fields are counted from its end.
    fn parse(stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        Some(Process {
            pid: head.split_whitespace().next()?.parse().ok()?,
            alive: !matches!(*fields.first()?, "Z" | "X" | "x"),
            // PF_KTHREAD: kernel threads have no environment, ever.
            kernel: fields.get(6)?.parse::<u64>().ok()? & 0x0020_0000 != 0,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Its mark; none where it has none, or belongs to somebody else.
    fn mark(&self) -> Option<String> {
        let environment = self.environment()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let value =
            variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// For a moment within exec, the kernel shows no environment, so nothing at all is asked for again.
    fn environment(&self) -> Option<Vec<u8>> {
        for _ in 0..5 {
            let environment = fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
            if !environment.is_empty() || !self.alive || self.kernel {
                return Some(environment);
            }
            thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// Signals this process and no other that got its number since. Whether it was there.
    fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.pid > 1) else { return false };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return self.same() && rustix::process::kill_process(pid, signal).is_ok();
        };
        self.same() && pidfd_send_signal(&handle, signal).is_ok()
    }

    fn same(&self) -> bool {
        Process::read(self.pid).is_some_and(|now| now.started == self.started && now.alive)
    }
}

/// All processes except our own.
fn all() -> Vec<Process> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| *name != own).filter_map(|name| Process::read(name.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let stat = "12 (a) b (c) S 7 9 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2";
        let process = Process::parse(stat).unwrap();
        assert_eq!((process.pid, process.parent, process.group, process.started), (12, 7, 9, 4711));
        assert!(process.alive);
    }

    #[test]
    fn marks_differ() {
        assert_ne!(new_mark(), new_mark());
    }
}
