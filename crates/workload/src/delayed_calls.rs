//! Delays in system calls of what is executed: the kernel asks about each of them, and is answered after the delay.
//!
//! A filter of seccomp(2) is inherited by all that a thread starts and cannot be taken off again, so a thread of its own starts the
//! execution and ends. Another one, which has no filter, answers. What asking costs, some microseconds a call, is the same at every delay, also
//! at none. When perflab is killed, calls that wait and those that come fail with ENOSYS until the guard has ended the
//! execution; where only the answers end, the execution fails.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use perflab_model::{Nanos, SyscallDelay, suggest_name};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::{gettid, set_current_timer_slack, set_no_new_privs};
use syscalls::Sysno;

use crate::clock::read_monotonic_clock;
use crate::system_calls::{ask_about_calls, let_call_go_on, receive_call};

/// So long before a call may go on, who answers stays awake: waking up takes tens of microseconds.
const AWAKE: Nanos = Nanos(60_000);

/// How often the end is looked for where nobody calls.
const TICK: Nanos = Nanos(20_000_000);

/// How often who answers looks whether there is something to answer, at the beginning.
const FIRST_LOOK: Duration = Duration::from_micros(20);

/// What became of the delays in a system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayRecord {
    /// The system call.
    pub call: String,
    /// How often it was called.
    pub count: u64,
    /// By how much all of them together were delayed, as measured.
    pub added: Nanos,
}

/// What is wrong with the name of a system call, and what would be right.
#[must_use]
pub fn refuse_syscall_name(name: &str) -> Option<(String, String)> {
    if Sysno::from_str(name).is_ok() {
        return None;
    }
    let known = Sysno::iter().map(|call| call.name());
    let hint = suggest_name(name, known.collect::<Vec<_>>().iter().copied());
    Some((format!("`{name}` is no system call of this machine"), hint))
}

/// Why the system calls of what this process starts cannot be delayed, if they cannot.
#[must_use]
pub fn find_delay_refusal() -> Option<String> {
    // Asked of a thread that ends: it has the filter for the rest of its life.
    let asked = spawn(|| ask_or_renounce(&[Sysno::getpid as u32]).map(drop)).join();
    let error = asked.unwrap_or_else(|_| Err(io::Error::other("a thread ended"))).err()?;
    Some(match error.raw_os_error() {
        Some(libc::EBUSY) => {
            "somebody is asked about the system calls of this process already (a container, a sandbox)".into()
        }
        Some(libc::EINVAL | libc::ENOSYS) => {
            "the kernel does not ask about system calls: it needs Linux 5.5 with CONFIG_SECCOMP_FILTER".into()
        }
        _ => format!("seccomp(2) is refused: {error}"),
    })
}

/// As root, nothing else changes for what is started; else it cannot get more rights, as by a setuid program.
fn ask_or_renounce(numbers: &[u32]) -> io::Result<OwnedFd> {
    match ask_about_calls(numbers) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            set_no_new_privs(true)?;
            ask_about_calls(numbers)
        }
        found => found,
    }
}

/// Who answers for the system calls of an execution.
#[derive(Debug)]
pub(crate) struct DelayedCalls {
    end: Arc<AtomicBool>,
    answering: JoinHandle<io::Result<Vec<DelayRecord>>>,
}

/// What the thread that starts an execution and the one that answers for it share: without a system call, as any may be asked about.
#[derive(Debug, Default)]
struct Handover {
    /// None where there is nothing to answer.
    listener: OnceLock<Option<OwnedFd>>,
    /// the thread that starts the execution: its own calls are let through
    starter: AtomicU32,
}

/// Who is to answer, and waits for it.
#[derive(Debug)]
pub(crate) struct WaitingDelays {
    calls: Vec<u32>,
    handover: Arc<Handover>,
    begin: Sender<()>,
    delayed: DelayedCalls,
}

impl WaitingDelays {
    /// Prepares for these delays.
    ///
    /// # Errors
    /// A name that is no system call.
    pub(crate) fn prepare(delays: &[SyscallDelay]) -> io::Result<Self> {
        let number = |delay: &SyscallDelay| {
            let found = Sysno::from_str(&delay.call).map(|call| call as u32);
            found.map_err(|_| io::Error::other(format!("`{}` is no system call", delay.call)))
        };
        let calls = delays.iter().map(number).collect::<io::Result<Vec<_>>>()?;
        let watched: Vec<WatchedCall> = calls.iter().zip(delays).map(WatchedCall::new).collect();
        let (handover, end) = (Arc::new(Handover::default()), Arc::new(AtomicBool::new(false)));
        let (begin, begun) = channel();
        let (given, ended) = (Arc::clone(&handover), Arc::clone(&end));
        let answering = spawn(move || {
            if begun.recv().is_err() {
                return Ok(Vec::new());
            }
            let listener = loop {
                match given.listener.get() {
                    Some(found) => break found.as_ref(),
                    None => sleep(FIRST_LOOK),
                }
            };
            let Some(listener) = listener else { return Ok(Vec::new()) };
            // Wakes up when it is to, not up to 50 us later.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            let mut answers = Answers { listener, calls: watched, waiting: BinaryHeap::new() };
            let outcome = answers.give(&given.starter, &ended);
            let calls = answers.calls;
            // Whoever waits for an answer that is not given fails.
            outcome.map(|()| calls.into_iter().map(|call| call.record).collect())
        });
        Ok(WaitingDelays { calls, handover, begin, delayed: DelayedCalls { end, answering } })
    }

    /// Starts a command whose system calls are delayed, and when that was. Whatever this thread has (its CPUs, its counters), the command has, too.
    ///
    /// # Errors
    /// The kernel refuses the filter, or the start.
    pub(crate) fn start(self, command: &mut Command) -> io::Result<(Child, Nanos, DelayedCalls)> {
        let WaitingDelays { calls, handover, begin, delayed } = self;
        let _ = begin.send(());
        let started = std::thread::scope(|scope| {
            let starting = scope.spawn(|| {
                handover.starter.store(gettid().as_raw_nonzero().get().unsigned_abs(), Ordering::Relaxed);
                match ask_or_renounce(&calls) {
                    Ok(listener) => {
                        // Nobody sleeps for it, so that it makes no system call.
                        let _ = handover.listener.set(Some(listener));
                        let start = read_monotonic_clock();
                        command.spawn().map(|child| (child, start))
                    }
                    Err(error) => {
                        let _ = handover.listener.set(None);
                        let what = format!("its system calls cannot be delayed: {error}");
                        Err(io::Error::new(error.kind(), what))
                    }
                }
            });
            starting.join()
        });
        // Its number may be another's from now on.
        handover.starter.store(0, Ordering::Relaxed);
        match started.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it ended"))) {
            Ok((child, start)) => Ok((child, start, delayed)),
            Err(error) => {
                let _ = delayed.finish();
                Err(error)
            }
        }
    }
}

impl DelayedCalls {
    /// What became of the delays, once the execution has ended.
    ///
    /// # Errors
    /// The answers ended before it: then its system calls failed.
    pub(crate) fn finish(self) -> io::Result<Vec<DelayRecord>> {
        self.end.store(true, Ordering::Relaxed);
        self.answering.join().unwrap_or_else(|_| Err(io::Error::other("the thread that answers ended")))
    }
}

/// A system call about which the kernel asks.
#[derive(Debug)]
struct WatchedCall {
    number: u32,
    delay: Nanos,
    record: DelayRecord,
}

impl WatchedCall {
    fn new((number, delay): (&u32, &SyscallDelay)) -> Self {
        let record = DelayRecord { call: delay.call.clone(), count: 0, added: Nanos(0) };
        WatchedCall { number: *number, delay: delay.delay, record }
    }
}

/// A call that waits for its answer.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingCall {
    until: Nanos,
    since: Nanos,
    id: u64,
    call: usize,
}

/// Answers the kernel.
struct Answers<'a> {
    listener: &'a OwnedFd,
    calls: Vec<WatchedCall>,
    /// the next to go on first
    waiting: BinaryHeap<Reverse<WaitingCall>>,
}

impl Answers<'_> {
    /// Until nobody is left who could call, or `end` is set.
    fn give(&mut self, starter: &AtomicU32, end: &AtomicBool) -> io::Result<()> {
        loop {
            let now = read_monotonic_clock();
            let next = self.waiting.peek().map(|Reverse(next)| next.until);
            let idle = next.map_or(TICK, |until| Nanos(until.since(now).0.saturating_sub(AWAKE.0)));
            match self.poll(idle)? {
                events if events.contains(PollFlags::IN) => self.receive(starter.load(Ordering::Relaxed))?,
                events if !events.is_empty() => return Ok(()),
                _ => {}
            }
            self.release(read_monotonic_clock())?;
            // Who still waits was killed.
            if end.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    fn poll(&self, longest: Nanos) -> io::Result<PollFlags> {
        let mut watched = [PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN)];
        let timeout = Timespec::try_from(Duration::from(longest)).ok();
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) => Ok(watched.first().map_or(PollFlags::empty(), PollFd::revents)),
            Err(Errno::INTR) => Ok(PollFlags::empty()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn receive(&mut self, starter: u32) -> io::Result<()> {
        let asked = match receive_call(self.listener) {
            Err(error) if is_caller_gone(&error) => return Ok(()),
            asked => asked?,
        };
        let since = read_monotonic_clock();
        let is_asked = |call: &WatchedCall| i64::from(call.number) == i64::from(asked.number);
        let found = self.calls.iter().position(is_asked).filter(|_| asked.thread != starter);
        let Some((call, watched)) = found.and_then(|call| Some((call, self.calls.get(call)?))) else {
            return self.answer(asked.id).map(|_| ());
        };
        let until = Nanos(since.0.saturating_add(watched.delay.0));
        self.waiting.push(Reverse(WaitingCall { until, since, id: asked.id, call }));
        Ok(())
    }

    /// Lets go on whose time has come.
    fn release(&mut self, now: Nanos) -> io::Result<()> {
        while self.waiting.peek().is_some_and(|Reverse(next)| next.until <= now) {
            let Some(Reverse(next)) = self.waiting.pop() else { break };
            let is_there = self.answer(next.id)?;
            let added = read_monotonic_clock().since(next.since);
            if let Some(call) = self.calls.get_mut(next.call).filter(|_| is_there) {
                call.record.count += 1;
                call.record.added.0 += added.0;
            }
        }
        Ok(())
    }

    /// Whether the caller was still there.
    fn answer(&self, id: u64) -> io::Result<bool> {
        match let_call_go_on(self.listener, id) {
            Ok(()) => Ok(true),
            Err(error) if is_caller_gone(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_caller_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR | libc::EINPROGRESS))
}
