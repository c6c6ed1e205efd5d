//! One execution from spawn to the last of its descendants: process group, pipes, time limit, captured output, how
//! it ended.
//!
//! Whatever happens, no process that carries the execution's mark lives on afterwards: a workload that leaves a
//! daemon behind would disturb the next iteration. Output is kept within bounds: the beginning and the end, and a
//! count of the rest. What it means is found by [`perflab_formats::metric_extraction`].

use std::collections::VecDeque;
use std::io::{IsTerminal as _, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, ChildStdout, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perflab_formats::metric_extraction::write_omission_line;
use perflab_model::Nanos;
use perflab_model::resource_use::ResourceUse;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::clock::read_monotonic_clock;
use crate::delayed_calls::{DelayRecord, DelayedCalls, WaitingDelays};
use crate::descendants::{ExecutionProcesses, new_execution_mark};
use crate::error::WorkloadError;
use crate::invocation::Invocation;
use crate::reap::reap_with_resources;

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// It returned.
    Exit {
        /// 0 is fine
        code: i32,
    },
    /// Something else killed it, or it crashed.
    Signal {
        /// the signal's number
        signal: i32,
    },
    /// It was stopped at its time limit, with all its descendants.
    TimedOut,
    /// It was stopped because the run was, with all its descendants.
    Interrupted,
}

impl ExecutionEnd {
    /// How it ended by itself.
    pub(crate) fn natural(code: Option<i32>, signal: Option<i32>) -> Self {
        match code {
            Some(code) => ExecutionEnd::Exit { code },
            None => ExecutionEnd::Signal { signal: signal.unwrap_or_default() },
        }
    }

    /// What it did, after its name: `exited with code 3`. `time` is how long it took.
    pub(crate) fn describe(self, time: Nanos) -> String {
        match self {
            ExecutionEnd::Exit { code } => format!("exited with code {code}"),
            ExecutionEnd::Signal { signal } => format!("was killed by signal {signal}"),
            ExecutionEnd::TimedOut => format!("was stopped at its time limit after {time}"),
            ExecutionEnd::Interrupted => "was interrupted".into(),
        }
    }
}

/// What one execution was.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadExecution {
    /// How it ended.
    pub outcome: ExecutionEnd,
    /// Standard output.
    pub stdout: CapturedOutput,
    /// Standard error.
    pub stderr: CapturedOutput,
    /// CLOCK_MONOTONIC right before it was started.
    pub start: Nanos,
    /// CLOCK_MONOTONIC right after it ended; descendants that were left behind do not count.
    pub end: Nanos,
    /// What its processes used.
    pub resources: ResourceUse,
    /// How many processes it had left behind; they were ended.
    pub left_behind: usize,
    /// What became of the delays in its system calls.
    pub delays: Vec<DelayRecord>,
    /// Why system calls of it may have failed that were to be delayed, if they may: then it counts as failed.
    pub delay_failure: Option<String>,
    /// When we did not run ourselves for more than a second during it, if that happened: the longest time.
    pub absence: Option<WatcherAbsence>,
}

/// A time in which who watches an execution did not run: it was stopped, or got no processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatcherAbsence {
    /// How long.
    pub length: Nanos,
    /// Whether the execution's end was noticed only after it: then [`WorkloadExecution::end`] is late by up to as much.
    pub hid_the_end: bool,
}

impl WorkloadExecution {
    /// How long it took.
    pub fn wall_time(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// Why it counts as failed, in one line with the end of its output; none where it did not fail.
    pub fn failure(&self) -> Option<String> {
        if self.outcome == (ExecutionEnd::Exit { code: 0 }) {
            return None;
        }
        let what = self.outcome.describe(self.wall_time());
        Some(append_last_lines(&what, &self.stdout, &self.stderr))
    }

    /// The same where exit codes other than 0 may be no failure either; -1 stands for all of them.
    pub fn failure_beyond(&self, allowed: &[i32]) -> Option<String> {
        let is_allowed = match self.outcome {
            ExecutionEnd::Exit { code } => allowed.iter().any(|allowed| [code, -1].contains(allowed)),
            _ => false,
        };
        self.failure().filter(|_| !is_allowed)
    }
}

/// Runs `invocation` to its end, or until `limit` has passed or `stop` is set.
///
/// Standard input is the invocation's to say; `extra_env` comes last and wins. On a limit or a stop, the process group
/// gets SIGTERM, half a second, and SIGKILL, and so does every descendant outside the group. Errors
/// only where it could not be started or watched; a failing workload is a [`WorkloadExecution`].
pub fn execute_invocation(
    invocation: &Invocation,
    extra_env: &[(String, String)],
    limit: Nanos,
    stop: &AtomicBool,
) -> Result<WorkloadExecution, WorkloadError> {
    execute_invocation_at(invocation, extra_env, limit, stop, || (), |_| ())
}

/// The same, started as soon as `moment` returns. What it returns is dropped when the process is started. `ended` is called when the
/// process has ended, before what it left behind is looked for, or when it is to be ended: then with how.
pub fn execute_invocation_at<G>(
    invocation: &Invocation,
    extra_env: &[(String, String)],
    limit: Nanos,
    stop: &AtomicBool,
    moment: impl FnOnce() -> G,
    ended: impl FnOnce(Option<ExecutionEnd>),
) -> Result<WorkloadExecution, WorkloadError> {
    let mut running = RunningExecution::start(invocation, extra_env, moment)?;
    let stopped = running.watch(limit, stop);
    ended(stopped.as_ref().ok().copied().flatten());
    // Also when watching failed: nothing may be left running.
    let processes = running.end_processes();
    let (stopped, processes) = (stopped?, processes?);
    Ok(running.finish(stopped, processes))
}

/// How long a workload may take to end after SIGTERM.
const GRACE: Nanos = Nanos(500_000_000);

/// How often the stop flag and the limit are looked at.
const TICK: Nanos = Nanos(100_000_000);

/// Who sleeps that much longer than was asked for was stopped, or got no processor.
const ABSENCE: Nanos = Nanos(1_000_000_000);

/// The same where the kernel has no pidfd to wake us (before 5.3).
const SHORT_TICK: Nanos = Nanos(2_000_000);

struct RunningExecution {
    program: String,
    family: ExecutionProcesses,
    pid: Pid,
    delays: Option<DelayedCalls>,
    exit: Option<OwnedFd>,
    stdout: OutputPipe<ChildStdout>,
    stderr: OutputPipe<ChildStderr>,
    start: Nanos,
    end: Option<Nanos>,
    /// when we last knew that we ran
    last_awake: Nanos,
    /// how long we have been away since the look before
    last_absence: Option<Nanos>,
    absence: Option<WatcherAbsence>,
}

/// The processes of an execution at their end.
struct EndedProcesses {
    /// how the first of them ended
    status: ExitStatus,
    resources: ResourceUse,
    /// how many it had left behind
    left_behind: usize,
}

/// A pipe and what came out of it; closed at its end.
struct OutputPipe<R> {
    reader: Option<R>,
    captured: CapturedOutput,
}

impl<R: Read> OutputPipe<R> {
    fn new(reader: Option<R>) -> Self {
        OutputPipe { reader, captured: CapturedOutput::default() }
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

impl RunningExecution {
    /// Starts it in a process group of its own when `moment` returns.
    pub(crate) fn start<G>(
        invocation: &Invocation,
        extra_env: &[(String, String)],
        moment: impl FnOnce() -> G,
    ) -> Result<Self, WorkloadError> {
        let program = invocation.program()?.to_owned();
        let mark = new_execution_mark();
        let mut command = invocation.command(extra_env, &mark)?;
        if invocation.inherits_stdin && !std::io::stdin().is_terminal() {
            command.stdin(Stdio::inherit());
        }
        let waiting = (!invocation.delays.is_empty()).then(|| WaitingDelays::prepare(&invocation.delays));
        let waiting = waiting.transpose().map_err(|cause| {
            let action = "delay its system calls";
            WorkloadError::Running { program: program.clone(), action, cause }
        })?;
        let guard = moment();
        let begun = Instant::now();
        let spawned = match waiting {
            None => {
                let start = read_monotonic_clock();
                command.spawn().map(|child| (child, start, None))
            }
            Some(waiting) => {
                waiting.start(&mut command).map(|(child, start, delays)| (child, start, Some(delays)))
            }
        };
        drop(guard);
        // Of a process that joins groups first, either may be what failed.
        let explain = |cause: std::io::Error| match invocation.groups.is_empty() {
            true => cause,
            false => std::io::Error::new(cause.kind(), format!("{cause}: the program, or its control group")),
        };
        let (mut child, start, delays) = spawned
            .map_err(|cause| WorkloadError::Start { program: program.clone(), cause: explain(cause) })?;
        let pid = Pid::from_child(&child);
        Ok(RunningExecution {
            program,
            pid,
            family: ExecutionProcesses::new(pid, mark, Some(begun)),
            delays,
            exit: pidfd_open(pid, PidfdFlags::empty()).ok(),
            stdout: OutputPipe::new(child.stdout.take()),
            stderr: OutputPipe::new(child.stderr.take()),
            start,
            end: None,
            last_awake: read_monotonic_clock(),
            last_absence: None,
            absence: None,
        })
    }

    /// Reads its output until it ends; says how it was stopped, if it was.
    fn watch(&mut self, limit: Nanos, stop: &AtomicBool) -> Result<Option<ExecutionEnd>, WorkloadError> {
        let deadline = Nanos(self.start.0.saturating_add(limit.0));
        loop {
            let left = deadline.since(read_monotonic_clock());
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(ExecutionEnd::Interrupted));
            }
            if left == Nanos(0) {
                return Ok(Some(ExecutionEnd::TimedOut));
            }
            self.wait_and_read(left)?;
            if self.has_exited()? {
                return Ok(None);
            }
        }
    }

    /// Ends whatever still lives, reaps the child, and takes what is left in the pipes.
    fn end_processes(&mut self) -> Result<EndedProcesses, WorkloadError> {
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
            return Err(self.running_error("end it", std::io::ErrorKind::TimedOut.into()));
        }
        while self.wait_and_read(Nanos(0))? {}
        let reaped = reap_with_resources(self.pid);
        let (status, resources) = reaped.map_err(|source| self.running_error("reap it", source))?;
        Ok(EndedProcesses { status, resources, left_behind: killed })
    }

    fn finish(self, stopped: Option<ExecutionEnd>, ended: EndedProcesses) -> WorkloadExecution {
        let EndedProcesses { status, resources, left_behind } = ended;
        let natural = ExecutionEnd::natural(status.code(), status.signal());
        let (delays, delay_failure) = match self.delays.map(DelayedCalls::finish) {
            None => (Vec::new(), None),
            Some(Ok(delays)) => (delays, None),
            Some(Err(error)) => {
                let what = "nobody answered any more for system calls that are delayed, and they failed";
                (Vec::new(), Some(format!("{what}: {error}")))
            }
        };
        WorkloadExecution {
            delays,
            delay_failure,
            outcome: stopped.unwrap_or(natural),
            stdout: self.stdout.captured,
            stderr: self.stderr.captured,
            start: self.start,
            end: self.end.unwrap_or_else(read_monotonic_clock),
            resources,
            left_behind: if stopped.is_some() { 0 } else { left_behind },
            absence: self.absence,
        }
    }

    fn wait_for_exit(&mut self, longest: Nanos) -> Result<(), WorkloadError> {
        let deadline = Nanos(read_monotonic_clock().0 + longest.0);
        while !self.has_exited()? && read_monotonic_clock() < deadline {
            self.wait_and_read(deadline.since(read_monotonic_clock()))?;
        }
        Ok(())
    }

    /// Whether the child has ended. It is not reaped yet, so that its id stays its own.
    fn has_exited(&mut self) -> Result<bool, WorkloadError> {
        if self.end.is_some() {
            return Ok(true);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid), options);
        let status = status.map_err(|errno| self.running_error("wait for it", errno.into()))?;
        self.end = status.map(|_| read_monotonic_clock());
        self.record_absence();
        Ok(self.end.is_some())
    }

    /// Keeps the longest absence; one that hid the end is worth more than any.
    fn record_absence(&mut self) {
        let Some(length) = self.last_absence.take() else { return };
        let absence = WatcherAbsence { length, hid_the_end: self.end.is_some() };
        let weight = |absence: &WatcherAbsence| (absence.hid_the_end, absence.length);
        if self.absence.as_ref().is_none_or(|known| weight(known) < weight(&absence)) {
            self.absence = Some(absence);
        }
    }

    /// Sleeps until it prints or ends, at most for a tick, and reads what was printed. Whether
    /// something was read, or a pipe closed.
    fn wait_and_read(&mut self, left: Nanos) -> Result<bool, WorkloadError> {
        let tick = if self.exit.is_some() { TICK } else { SHORT_TICK };
        let ready = self.poll_readable(left.min(tick));
        let woken = read_monotonic_clock();
        self.last_absence = Some(Nanos(woken.since(self.last_awake).0.saturating_sub(left.min(tick).0)));
        self.last_absence = self.last_absence.filter(|away| *away > ABSENCE);
        self.last_awake = woken;
        let [out, err] = ready.map_err(|errno| self.running_error("read its output", errno.into()))?;
        if out {
            self.stdout.read();
        }
        if err {
            self.stderr.read();
        }
        Ok(out || err)
    }

    /// Which of stdout and stderr can be read without blocking.
    fn poll_readable(&self, longest: Nanos) -> rustix::io::Result<[bool; 2]> {
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

    fn running_error(&self, action: &'static str, cause: std::io::Error) -> WorkloadError {
        WorkloadError::Running { program: self.program.clone(), action, cause }
    }
}

/// Bytes kept of the beginning, and again of the end.
const HALF: usize = 8 << 20;

/// One output stream of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CapturedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl CapturedOutput {
    /// Bytes that were printed and not kept.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// All that was kept; bytes that are not UTF-8 are replaced, and a gap is marked by a line.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.dropped > 0 {
            text.push_str(&format!("\n{}\n", write_omission_line(self.dropped)));
        }
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        text.push_str(&String::from_utf8_lossy(&tail));
        text
    }

    /// Up to `count` of the last lines with something in them, each cut to 200 characters.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        let mut last: Vec<String> = lines.take(count).map(|line| line.chars().take(200).collect()).collect();
        last.reverse();
        last
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let room = HALF.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }
}

/// What happened, with the last lines that were printed: those of standard error, or of standard output where it is empty.
pub(crate) fn append_last_lines(what: &str, stdout: &CapturedOutput, stderr: &CapturedOutput) -> String {
    let output = if stderr.is_empty() { stdout } else { stderr };
    let last = output.last_lines(3).join(" | ");
    if last.is_empty() { format!("{what}, without output") } else { format!("{what}: {last}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut captured = CapturedOutput::default();
        captured.add(b"first\n");
        for _ in 0..20 {
            captured.add(&vec![b'x'; 1 << 20]);
        }
        captured.add(b"\nlast\n");
        assert_eq!(captured.dropped_bytes(), (20 << 20) + 12 - 2 * HALF as u64);
        assert!(captured.text().starts_with("first\n"));
        assert_eq!(captured.last_lines(1), ["last"]);
        let text = captured.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('x')).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        first
        [perflab: 4194316 bytes not kept]
        last
        ");
    }
}
