//! An agent as a child process of this host, and the bounded tail of what it prints on standard error.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use perflab_guest::GuestVsock;
use perflab_model::study::{AgentChannel, TargetSpec};
use rustix::process::{Pid, Signal, kill_process};

use crate::connection::Connection;
use crate::launcher::agent_handle::{AgentHandle, LaunchedAgent};
use crate::run_context::LocalMachine;

/// How long an agent whose stream was closed may take to end its workload and undo its settings.
const GRACE: Duration = Duration::from_secs(5);

const TICK: Duration = Duration::from_millis(5);

/// A child that speaks over its standard input and output.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    child: Child,
    stderr: StderrTail,
}

impl AgentProcess {
    /// `stderr` is the child's.
    pub(crate) fn new(child: Child, stderr: StderrTail) -> Self {
        AgentProcess { child, stderr }
    }
}

/// Waits until a child has ended, or for so long; says whether it has.
pub(crate) fn has_ended_within(child: &mut Child, within: Duration) -> bool {
    let begun = Instant::now();
    while !matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
        if begun.elapsed() > within {
            return false;
        }
        std::thread::sleep(TICK);
    }
    true
}

impl AgentHandle for AgentProcess {
    fn end(&mut self) -> String {
        // One that was stopped (SIGSTOP) could not see that its stream was closed.
        let pid = Pid::from_child(&self.child);
        if !has_ended_within(&mut self.child, Duration::ZERO) {
            let _ = kill_process(pid, Signal::CONT);
        }
        if !has_ended_within(&mut self.child, GRACE) {
            let _ = self.child.kill();
            has_ended_within(&mut self.child, GRACE);
        }
        self.stderr.text()
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts `perflab agent` in a process group of its own: a ^C at the terminal is perflab's to pass on.
pub(crate) fn launch_process_agent(
    name: &str,
    target: &TargetSpec,
    host: &LocalMachine,
) -> io::Result<LaunchedAgent> {
    match target.channel {
        Some(AgentChannel::Vsock) => launch_calling_agent(name, host),
        _ => launch_paired_agent(name, host),
    }
}

/// One that calls over vsock.
fn launch_calling_agent(name: &str, host: &LocalMachine) -> io::Result<LaunchedAgent> {
    let vsock = GuestVsock::listen_locally()?;
    let address = format!("vsock:{}:{}", vsock.cid, vsock.port);
    let mut command = Command::new(&host.perflab);
    command.args(["agent", "--connect", &address]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).process_group(0).spawn()?;
    let stderr = StderrTail::of_child(&mut child);
    let mut process = AgentProcess::new(child, stderr);
    match vsock.accept_call(|| !has_ended_within(&mut process.child, Duration::ZERO)) {
        Ok(stream) => {
            Ok(LaunchedAgent { connection: Connection::duplex(name, stream)?, handle: Box::new(process) })
        }
        Err(error) => Err(io::Error::other(format!("{error}: {}", process.end().trim()))),
    }
}

/// One that speaks over its standard input and output.
fn launch_paired_agent(name: &str, host: &LocalMachine) -> io::Result<LaunchedAgent> {
    let mut command = Command::new(&host.perflab);
    command.arg("agent");
    let (connection, process) = spawn_paired_agent(name, command)?;
    Ok(LaunchedAgent { connection, handle: Box::new(process) })
}

/// Starts what becomes an agent, with an end of a socket pair as its standard input and output, in a process group of its own.
pub(crate) fn spawn_paired_agent(name: &str, mut command: Command) -> io::Result<(Connection, AgentProcess)> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    command.stdin(theirs.try_clone()?).stdout(theirs).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    // The command holds their end: as long as it lives, the stream would not end with the child.
    drop(command);
    let stderr = StderrTail::of_child(&mut child);
    Ok((Connection::duplex(name, ours)?, AgentProcess::new(child, stderr)))
}

/// Bytes kept.
const MOST: usize = 64 << 10;

/// How long the end of the stream is waited for once the child has ended: who else has it may keep it open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Listens to a child's standard error on a thread of its own, which ends with the stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrTail {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_over: Arc<AtomicBool>,
}

impl StderrTail {
    /// Listens to `child`, whose standard error is a pipe.
    pub(crate) fn of_child(child: &mut Child) -> Self {
        let tail = StderrTail::default();
        let collected = tail.clone();
        let Some(mut stderr) = child.stderr.take() else {
            collected.is_over.store(true, Ordering::SeqCst);
            return tail;
        };
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut buffer) {
                collected.append(buffer.get(..length).unwrap_or_default());
            }
            collected.is_over.store(true, Ordering::SeqCst);
        });
        tail
    }

    fn append(&self, bytes: &[u8]) {
        let mut tail = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(bytes);
        let over = tail.len().saturating_sub(MOST);
        tail.drain(..over);
    }

    /// What was printed by a child that has ended.
    pub(crate) fn text(&self) -> String {
        let begun = Instant::now();
        while !self.is_over.load(Ordering::SeqCst) && begun.elapsed() < LAST_WORDS {
            std::thread::sleep(TICK);
        }
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}
