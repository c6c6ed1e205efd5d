//! One execution of a workload, from spawn to the last of its descendants.
//!
//! Owns the process group, the pipes and the time limit. Whatever happens, no process that carries
//! the execution's mark lives on afterwards: a workload that leaves a daemon behind would disturb
//! the next iteration. Refuses to judge the output; that is [`crate::parse`]'s.

mod capture;
mod clock;
mod descendants;
mod guard;
mod running;

use std::sync::atomic::AtomicBool;

use perflab_model::Nanos;

pub use capture::CapturedOutput;
pub use clock::read_monotonic_clock;
pub use descendants::{ExecutionOwner, MARK, end_process_tree, find_unknown_executions};
pub use guard::{ExecutionGuard, guard_executions};

use crate::{Invocation, WorkloadError};
use running::RunningExecution;

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// It returned.
    Exit {
        /// 0 is fine
        code: i32,
    },
    /// Somebody else killed it, or it crashed.
    Signal {
        /// the signal's number
        signal: i32,
    },
    /// It was stopped at its time limit, with all its descendants.
    TimedOut,
    /// It was stopped because the run was, with all its descendants.
    Interrupted,
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
    /// How many processes it had left behind; they were ended.
    pub left_behind: usize,
    /// When we did not run ourselves for more than a second meanwhile, if that happened: the longest time.
    pub absence: Option<WatcherAbsence>,
}

/// A time in which who watches an execution did not run: it was stopped, or got no processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatcherAbsence {
    /// How long.
    pub length: Nanos,
    /// Whether the execution's end was noticed only after it: then [`WorkloadExecution::end_processes`] is late by up to as much.
    pub hid_the_end: bool,
}

impl WorkloadExecution {
    /// How long it took.
    pub fn wall_time(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// Why it counts as failed, in one line with the end of what it said; none where it did not fail.
    pub fn failure(&self) -> Option<String> {
        let what = match self.outcome {
            ExecutionEnd::Exit { code: 0 } => return None,
            ExecutionEnd::Exit { code } => format!("exited with code {code}"),
            ExecutionEnd::Signal { signal } => format!("was killed by signal {signal}"),
            ExecutionEnd::TimedOut => format!("was stopped at its time limit after {}", self.wall_time()),
            ExecutionEnd::Interrupted => "was interrupted".into(),
        };
        let said = if self.stderr.is_empty() { &self.stdout } else { &self.stderr };
        let last = said.last_lines(3).join(" | ");
        Some(if last.is_empty() { format!("{what}, and said nothing") } else { format!("{what}: {last}") })
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
    execute_invocation_at(invocation, extra_env, limit, stop, || (), || ())
}

/// The same, started as soon as `moment` returns. What it returns is dropped when the process is started. `interrupted` is called
/// when the stop is noticed, before anything is ended.
pub fn execute_invocation_at<G>(
    invocation: &Invocation,
    extra_env: &[(String, String)],
    limit: Nanos,
    stop: &AtomicBool,
    moment: impl FnOnce() -> G,
    interrupted: impl FnOnce(),
) -> Result<WorkloadExecution, WorkloadError> {
    let mut running = RunningExecution::start(invocation, extra_env, moment)?;
    let stopped = running.watch(limit, stop);
    if matches!(stopped, Ok(Some(ExecutionEnd::Interrupted))) {
        interrupted();
    }
    // Also when watching failed: nothing may be left running.
    let ended = running.end_processes();
    let (stopped, (status, left_behind)) = (stopped?, ended?);
    Ok(running.finish(stopped, status, left_behind))
}
