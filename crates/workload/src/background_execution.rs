//! A program that runs beside an execution: a server, a load. Its output is read all the while, and it ends with all that it started.

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use crate::descendants::{ExecutionProcesses, MARK, new_execution_mark};
use crate::error::WorkloadError;
use crate::execution::CapturedOutput;
use crate::invocation::Invocation;

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
    /// Starts it in a process group of its own.
    ///
    /// # Errors
    /// There is nothing to run, or it cannot be started.
    pub fn start(invocation: &Invocation, extra_env: &[(String, String)]) -> Result<Self, WorkloadError> {
        let (program, arguments) = invocation.argv.split_first().ok_or(WorkloadError::Empty)?;
        let mark = new_execution_mark();
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let variables = invocation.environment.iter().chain(extra_env);
        command.envs(variables.map(|(name, value)| (name, value))).env(MARK, &mark);
        if let Some(directory) = &invocation.directory {
            command.current_dir(directory);
        }
        let begun = Instant::now();
        let mut child =
            command.spawn().map_err(|source| WorkloadError::Start { program: program.clone(), source })?;
        let family = ExecutionProcesses::new(Pid::from_child(&child), mark, Some(begun));
        let (stdout, stderr) = (SharedOutput::default(), SharedOutput::default());
        let readers = [
            child.stdout.take().map(|pipe| read_in_background(pipe, &stdout)),
            child.stderr.take().map(|pipe| read_in_background(pipe, &stderr)),
        ];
        let readers = readers.into_iter().flatten().collect();
        Ok(BackgroundExecution { program: program.clone(), child, family, stdout, stderr, readers })
    }

    /// The program that was started.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// How it ended, if it has: with the end of what it printed.
    pub fn describe_end(&self) -> Option<String> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.child)), options).ok().flatten()?;
        let how = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        // What it printed last may still be on its way.
        thread::sleep(ROUND);
        let last = self.last_lines();
        Some(if last.is_empty() { format!("{how}, without output") } else { format!("{how}: {last}") })
    }

    /// Whether it ended with exit code 0; none while it runs.
    pub fn has_succeeded(&self) -> Option<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.child)), options).ok().flatten()?;
        Some(status.exit_status() == Some(0))
    }

    /// The last lines that it printed, standard error first; empty where there are none.
    pub fn last_lines(&self) -> String {
        let lines = |output: &SharedOutput| lock(output).last_lines(3).join(" | ");
        let errors = lines(&self.stderr);
        if errors.is_empty() { lines(&self.stdout) } else { errors }
    }

    /// Whether a line of its output fits `pattern`.
    pub fn has_printed(&self, pattern: &regex::Regex) -> bool {
        [&self.stdout, &self.stderr]
            .into_iter()
            .any(|output| lock(output).text().lines().any(|line| pattern.is_match(line)))
    }

    /// Asks it to end, kills it and all that it started after `grace`, and gives what it printed.
    pub fn stop(mut self, grace: Duration) -> BackgroundEnd {
        let early_end = self.describe_end();
        if early_end.is_none() {
            self.family.signal(Signal::TERM);
            let begun = Instant::now();
            while begun.elapsed() < grace && self.is_running() {
                thread::sleep(ROUND);
            }
        }
        self.end();
        for reader in self.readers.drain(..) {
            // A thread that reads does not panic.
            let _ = reader.join();
        }
        let taken = |output: &SharedOutput| std::mem::take(&mut *lock(output));
        BackgroundEnd { stdout: taken(&self.stdout), stderr: taken(&self.stderr), early_end }
    }

    fn is_running(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
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

fn lock(output: &SharedOutput) -> std::sync::MutexGuard<'_, CapturedOutput> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a pipe to its end, as far as [`CapturedOutput`] keeps it.
fn read_in_background(mut pipe: impl Read + Send + 'static, output: &SharedOutput) -> JoinHandle<()> {
    let output = Arc::clone(output);
    thread::spawn(move || {
        let mut buffer = [0; 1 << 13];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => lock(&output).add(buffer.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invoke(script: &str) -> Invocation {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        Invocation { argv, environment: Vec::new(), directory: None, inherits_stdin: false }
    }

    #[test]
    fn what_it_prints_is_read_while_it_runs_and_it_ends_with_its_children() {
        let script = "sleep 1000 & echo child $!; yes | head -c 3000000; echo; echo ready; wait";
        let running = BackgroundExecution::start(&invoke(script), &[]).unwrap();
        let ready = regex::Regex::new("^ready$").unwrap();
        while !running.has_printed(&ready) {
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
        let running = BackgroundExecution::start(&invoke("echo no room >&2; exit 7"), &[]).unwrap();
        while running.is_running() {
            thread::sleep(ROUND);
        }
        let ended = running.stop(Duration::ZERO);
        assert_eq!(ended.early_end.as_deref(), Some("exited with code 7: no room"));
    }
}
