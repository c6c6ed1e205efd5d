//! A program that runs beside an execution: a server, a load. Its output is read all the while, and it ends with all that it started.

use std::io::Read;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use perflab_model::Nanos;
use regex::Regex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use crate::descendants::{ExecutionProcesses, new_execution_mark};
use crate::error::WorkloadError;
use crate::execution::{CapturedOutput, ExecutionEnd, append_last_lines};
use crate::invocation::Invocation;

/// How long the end of its output is waited for once a program has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How often its end is looked for.
const ROUND: Duration = Duration::from_millis(5);

/// What it printed so far, while a thread goes on reading it.
type SharedOutput = Arc<Mutex<CapturedOutput>>;

/// A program in the background. Dropped, it is killed with all its descendants.
#[derive(Debug)]
pub struct BackgroundExecution {
    program: String,
    child: Child,
    family: ExecutionProcesses,
    stdout: SharedOutput,
    stderr: SharedOutput,
    /// set once the awaited line was printed
    has_printed: Arc<AtomicBool>,
    readers: Vec<JoinHandle<()>>,
}

/// What it printed, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct BackgroundEnd {
    /// Standard output.
    pub stdout: CapturedOutput,
    /// Standard error.
    pub stderr: CapturedOutput,
    /// How it ended before it was asked to, with the end of its output; none where it still ran.
    pub early_end: Option<String>,
}

impl BackgroundExecution {
    /// Starts it in a process group of its own; `awaited` is what a line of its output is looked for by.
    ///
    /// # Errors
    /// There is nothing to run, or it cannot be started.
    pub fn start(
        invocation: &Invocation,
        extra_env: &[(String, String)],
        awaited: Option<&Regex>,
    ) -> Result<Self, WorkloadError> {
        let program = invocation.program()?.to_owned();
        let mark = new_execution_mark();
        let mut command = invocation.command(extra_env, &mark)?;
        let begun = Instant::now();
        let mut child =
            command.spawn().map_err(|cause| WorkloadError::Start { program: program.clone(), cause })?;
        let family = ExecutionProcesses::new(Pid::from_child(&child), mark, Some(begun));
        let (stdout, stderr) = (SharedOutput::default(), SharedOutput::default());
        let has_printed = Arc::new(AtomicBool::new(false));
        let watch = || awaited.map(|pattern| LineWatch::new(pattern, &has_printed));
        let readers = [
            child.stdout.take().map(|pipe| read_in_background(pipe, &stdout, watch())),
            child.stderr.take().map(|pipe| read_in_background(pipe, &stderr, watch())),
        ];
        let readers = readers.into_iter().flatten().collect();
        Ok(BackgroundExecution { program, child, family, stdout, stderr, has_printed, readers })
    }

    /// The program that was started.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// How it ended, if it has: with the end of what it printed.
    pub fn describe_end(&self) -> Option<String> {
        let end = self.find_end()?;
        // What it printed last may still be on its way; what it started may hold its pipes for ever.
        let begun = Instant::now();
        while begun.elapsed() < LAST_WORDS && !self.readers.iter().all(JoinHandle::is_finished) {
            thread::sleep(ROUND);
        }
        Some(self.append_last_lines(&end.describe(Nanos(0))))
    }

    /// How it ended; none while it runs.
    pub fn find_end(&self) -> Option<ExecutionEnd> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.child)), options).ok().flatten()?;
        Some(ExecutionEnd::natural(status.exit_status(), status.terminating_signal()))
    }

    /// What it did, with the last lines that it printed.
    pub(crate) fn append_last_lines(&self, what: &str) -> String {
        append_last_lines(what, &lock_output(&self.stdout), &lock_output(&self.stderr))
    }

    /// Whether it has printed the line that is waited for.
    pub fn has_printed_awaited_line(&self) -> bool {
        self.has_printed.load(Ordering::Acquire)
    }

    /// Asks it to end, kills it and all that it started after `grace`, and gives what it printed.
    pub fn stop(mut self, grace: Duration) -> BackgroundEnd {
        let early_end = self.describe_end();
        if early_end.is_none() {
            self.family.signal(Signal::TERM);
            let begun = Instant::now();
            while begun.elapsed() < grace && self.find_end().is_none() {
                thread::sleep(ROUND);
            }
        }
        self.end();
        for reader in self.readers.drain(..) {
            // A thread that reads does not panic.
            let _ = reader.join();
        }
        let taken = |output: &SharedOutput| std::mem::take(&mut *lock_output(output));
        BackgroundEnd { stdout: taken(&self.stdout), stderr: taken(&self.stderr), early_end }
    }

    /// Ends everything that still lives, and reaps.
    fn end(&mut self) {
        self.family.kill();
        let _ = self.child.wait();
    }
}

impl Drop for BackgroundExecution {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock_output(output: &SharedOutput) -> std::sync::MutexGuard<'_, CapturedOutput> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest beginning of a line that is looked at.
const LONGEST_LINE: usize = 64 << 10;

/// Looks for a line in what is printed, each line once.
struct LineWatch {
    pattern: Regex,
    /// the line that has not ended yet
    line: Vec<u8>,
    found: Arc<AtomicBool>,
}

impl LineWatch {
    fn new(pattern: &Regex, found: &Arc<AtomicBool>) -> Self {
        LineWatch { pattern: pattern.clone(), line: Vec::new(), found: Arc::clone(found) }
    }

    /// Looks at the lines that these bytes go on with, the last of them as far as it has come: a server may wait in one.
    fn look_at(&mut self, bytes: &[u8]) {
        if self.found.load(Ordering::Relaxed) {
            return;
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.line.len()).min(part.len());
            self.line.extend_from_slice(part.get(..room).unwrap_or_default());
            let ends = part.ends_with(b"\n");
            if ends {
                self.look_at_line();
                self.line.clear();
            }
        }
        self.look_at_line();
    }

    fn look_at_line(&self) {
        let text = String::from_utf8_lossy(&self.line);
        if !self.line.is_empty() && self.pattern.is_match(text.trim_end_matches(['\r', '\n'])) {
            self.found.store(true, Ordering::Release);
        }
    }
}

/// Reads a pipe to its end, as far as [`CapturedOutput`] keeps it.
fn read_in_background(
    mut pipe: impl Read + Send + 'static,
    output: &SharedOutput,
    mut watch: Option<LineWatch>,
) -> JoinHandle<()> {
    let output = Arc::clone(output);
    thread::spawn(move || {
        let mut buffer = [0; 1 << 13];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => {
                    let printed = buffer.get(..length).unwrap_or_default();
                    lock_output(&output).add(printed);
                    watch.iter_mut().for_each(|watch| watch.look_at(printed));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::invoke_script;

    #[test]
    fn what_it_prints_is_read_while_it_runs_and_it_ends_with_its_children() {
        let script = "sleep 1000 & echo child $!; yes | head -c 3000000; echo; echo ready; wait";
        let ready = Regex::new("^ready$").unwrap();
        let running = BackgroundExecution::start(&invoke_script(script), &[], Some(&ready)).unwrap();
        while !running.has_printed_awaited_line() {
            assert_eq!(running.describe_end(), None);
            thread::sleep(ROUND);
        }
        let ended = running.stop(Duration::from_millis(500));
        assert_eq!(ended.early_end, None);
        let text = ended.stdout.text();
        let child = text.lines().find_map(|line| line.strip_prefix("child ")).unwrap();
        // Who is to reap it may not have done so yet.
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }

    #[test]
    fn an_end_before_its_time_is_told_with_its_last_words() {
        let invocation = invoke_script("echo no room >&2; exit 7");
        let running = BackgroundExecution::start(&invocation, &[], None).unwrap();
        while running.find_end().is_none() {
            thread::sleep(ROUND);
        }
        let ended = running.stop(Duration::ZERO);
        assert_eq!(ended.early_end.as_deref(), Some("exited with code 7: no room"));
    }
}
