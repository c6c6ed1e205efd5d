//! A workload while it runs: its process group, its pipes, its end.

use std::io::{IsTerminal as _, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use perflab_model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};

use super::descendants::{Family, new_mark};
use super::{Absence, Captured, Ending, Finished, MARK, now};
use crate::{Invocation, WorkloadError};

/// How long a workload may take to end after SIGTERM.
const GRACE: Nanos = Nanos(500_000_000);
/// How often the stop flag and the limit are looked at.
const TICK: Nanos = Nanos(100_000_000);
/// Who sleeps that much longer than was asked for was stopped, or got no processor.
const ABSENCE: Nanos = Nanos(1_000_000_000);
/// The same where the kernel has no pidfd to wake us (before 5.3).
const SHORT_TICK: Nanos = Nanos(2_000_000);

pub(super) struct Running {
    program: String,
    child: Child,
    family: Family,
    pid: Pid,
    exit: Option<OwnedFd>,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    start: Nanos,
    end: Option<Nanos>,
    /// when we last knew that we ran
    awake: Nanos,
    /// how long we have been away since the look before
    away: Option<Nanos>,
    absence: Option<Absence>,
}

/// A pipe and what came out of it; closed at its end.
struct Pipe<R> {
    reader: Option<R>,
    captured: Captured,
}

impl<R: Read> Pipe<R> {
    fn new(reader: Option<R>) -> Self {
        Pipe { reader, captured: Captured::default() }
    }

    /// One read; only called when there is something to read, as it would block otherwise.
    fn read(&mut self) {
        let mut buffer = [0; 1 << 16];
        let Some(reader) = &mut self.reader else { return };
        match reader.read(&mut buffer) {
            Ok(0) => self.reader = None,
            Ok(length) => self.captured.add(buffer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.reader = None,
        }
    }
}

impl Running {
    /// Starts it in a process group of its own when `moment` returns.
    pub(super) fn start<G>(
        invocation: &Invocation,
        extra_env: &[(String, String)],
        moment: impl FnOnce() -> G,
    ) -> Result<Self, WorkloadError> {
        let (program, arguments) = invocation.argv.split_first().ok_or(WorkloadError::Empty)?;
        let mark = new_mark();
        let mut command = Command::new(program);
        let passes = invocation.inherits_stdin && !std::io::stdin().is_terminal();
        let stdin = if passes { Stdio::inherit() } else { Stdio::null() };
        command.args(arguments).process_group(0).stdin(stdin);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(invocation.environment.iter().map(|(name, value)| (name, value)));
        command.envs(extra_env.iter().map(|(name, value)| (name, value))).env(MARK, &mark);
        if let Some(directory) = &invocation.directory {
            command.current_dir(directory);
        }
        let guard = moment();
        let start = now();
        let spawned = command.spawn();
        drop(guard);
        let mut child =
            spawned.map_err(|source| WorkloadError::Start { program: program.clone(), source })?;
        let pid = Pid::from_child(&child);
        Ok(Running {
            program: program.clone(),
            pid,
            family: Family::new(pid, mark),
            exit: pidfd_open(pid, PidfdFlags::empty()).ok(),
            stdout: Pipe::new(child.stdout.take()),
            stderr: Pipe::new(child.stderr.take()),
            child,
            start,
            end: None,
            awake: now(),
            away: None,
            absence: None,
        })
    }

    /// Reads its output until it ends; says how it was stopped, if it was.
    pub(super) fn watch(&mut self, limit: Nanos, stop: &AtomicBool) -> Result<Option<Ending>, WorkloadError> {
        let deadline = Nanos(self.start.0.saturating_add(limit.0));
        loop {
            let left = deadline.since(now());
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(Ending::Interrupted));
            }
            if left == Nanos(0) {
                return Ok(Some(Ending::TimedOut));
            }
            self.step(left)?;
            if self.exited()? {
                return Ok(None);
            }
        }
    }

    /// Ends whatever still lives, reaps the child, and takes what is left in the pipes.
    pub(super) fn end(&mut self) -> Result<(ExitStatus, usize), WorkloadError> {
        let mut waited = Ok(());
        if self.end.is_none() {
            self.family.signal(Signal::TERM);
            waited = self.wait_for_exit(GRACE);
        }
        // Killed even where waiting was refused.
        let killed = self.family.kill();
        waited?;
        // A process in an uninterruptible sleep may take its time, and must not take ours for ever.
        self.wait_for_exit(Nanos(20 * GRACE.0))?;
        if self.end.is_none() {
            return Err(self.refused("end it", std::io::ErrorKind::TimedOut.into()));
        }
        while self.step(Nanos(0))? {}
        let status = self.child.wait().map_err(|source| self.refused("reap it", source))?;
        Ok((status, killed))
    }

    pub(super) fn finish(self, stopped: Option<Ending>, status: ExitStatus, left_behind: usize) -> Finished {
        let natural = match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exit { code },
            (None, signal) => Ending::Signal { signal: signal.unwrap_or_default() },
        };
        Finished {
            outcome: stopped.unwrap_or(natural),
            stdout: self.stdout.captured,
            stderr: self.stderr.captured,
            start: self.start,
            end: self.end.unwrap_or_else(now),
            left_behind: if stopped.is_some() { 0 } else { left_behind },
            absence: self.absence,
        }
    }

    fn wait_for_exit(&mut self, longest: Nanos) -> Result<(), WorkloadError> {
        let deadline = Nanos(now().0 + longest.0);
        while !self.exited()? && now() < deadline {
            self.step(deadline.since(now()))?;
        }
        Ok(())
    }

    /// Whether the child has ended. It is not reaped yet, so that its id stays its own.
    fn exited(&mut self) -> Result<bool, WorkloadError> {
        if self.end.is_some() {
            return Ok(true);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid), options);
        let status = status.map_err(|errno| self.refused("wait for it", errno.into()))?;
        self.end = status.map(|_| now());
        self.note_absence();
        Ok(self.end.is_some())
    }

    /// Keeps the longest absence; one that hid the end is worth more than any.
    fn note_absence(&mut self) {
        let Some(length) = self.away.take() else { return };
        let absence = Absence { length, hid_the_end: self.end.is_some() };
        let weight = |absence: &Absence| (absence.hid_the_end, absence.length);
        if self.absence.as_ref().is_none_or(|known| weight(known) < weight(&absence)) {
            self.absence = Some(absence);
        }
    }

    /// Sleeps until it prints or ends, at most for a tick, and reads what was printed. Whether
    /// something was read, or a pipe closed.
    fn step(&mut self, left: Nanos) -> Result<bool, WorkloadError> {
        let tick = if self.exit.is_some() { TICK } else { SHORT_TICK };
        let ready = self.readable(left.min(tick));
        let woken = now();
        self.away = Some(Nanos(woken.since(self.awake).0.saturating_sub(left.min(tick).0)));
        self.away = self.away.filter(|away| *away > ABSENCE);
        self.awake = woken;
        let [out, err] = ready.map_err(|errno| self.refused("read its output", errno.into()))?;
        if out {
            self.stdout.read();
        }
        if err {
            self.stderr.read();
        }
        Ok(out || err)
    }

    /// Which of stdout and stderr can be read without blocking.
    fn readable(&self, longest: Nanos) -> rustix::io::Result<[bool; 2]> {
        let out = self.stdout.reader.as_ref().map(AsFd::as_fd);
        let err = self.stderr.reader.as_ref().map(AsFd::as_fd);
        let exit = self.exit.as_ref().filter(|_| self.end.is_none()).map(AsFd::as_fd);
        let mut watched: Vec<PollFd<'_>> = [out, err, exit]
            .into_iter()
            .flatten()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout = Timespec::try_from(Duration::from(longest)).ok();
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let mut ready = watched.iter().map(|fd| !fd.revents().is_empty());
        let out = out.is_some() && ready.next().unwrap_or(false);
        Ok([out, err.is_some() && ready.next().unwrap_or(false)])
    }

    fn refused(&self, action: &'static str, source: std::io::Error) -> WorkloadError {
        WorkloadError::Running { program: self.program.clone(), action, source }
    }
}
