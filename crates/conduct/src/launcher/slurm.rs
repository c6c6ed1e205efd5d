//! An agent on a node of a Slurm job: its bundle is copied there over the standard input of `srun`, run, and removed.
//!
//! It calls this host as `srun` does, which holds back what passes through it; where it cannot, the streams of `srun` have to do.
//! A step shares all that the job has on the node, and is not tied to any CPU of it.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use perflab_model::{StopRequest, remove_control_characters};
use perflab_settings::run_stoppable_command;

use crate::connection::Connection;
use crate::launcher::agent_bundle::copy_agent_bundle;
use crate::launcher::agent_call::AgentCallPort;
use crate::launcher::agent_handle::{AgentHandle, LaunchedAgent};
use crate::launcher::node_allocation::{AllocatedNode, explain_missing_slurm};
use crate::launcher::process::{AgentProcess, StderrTail};
use crate::run_context::LocalMachine;

/// Variables that name places of this host, which are other ones there.
const OWN_PLACES: [&str; 4] = ["PERFLAB_STATE", "PERFLAB_ARCHIVE", "PERFLAB_CACHE", "TMPDIR"];

/// Copies perflab to a node of the job and starts its agent there.
pub(crate) fn launch_on_node(
    name: &str,
    node: &AllocatedNode,
    host: &LocalMachine,
    stop: &StopRequest,
) -> io::Result<LaunchedAgent> {
    let (theirs, ours) = (&node.architecture, rustix::system::uname());
    let ours = ours.machine().to_string_lossy();
    if !theirs.is_empty() && *theirs != ours {
        return Err(io::Error::other(format!(
            "its instruction set is {theirs}, and this perflab's is {ours}; name nodes of the same kind by `constraint` or \
             `partition`"
        )));
    }
    let folder = copy_to_node(node, host, stop)?;
    // A job that is cancelled has a moment to undo its settings and to remove the folder.
    let port = AgentCallPort::open().ok();
    let call = port
        .as_ref()
        .map_or(String::new(), |port| format!(" --call \"$SLURM_LAUNCH_NODE_IPADDR:{}\"", port.port));
    let mut command =
        step_command(node, &format!("trap : TERM; {folder}/perflab agent{call}; rm -rf {folder}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stderr = StderrTail::of_child(&mut child);
    let lost = || io::Error::other("a requested pipe is missing");
    let (mut stdout, mut stdin) =
        (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    // From here on it ends with this value.
    let mut agent = NodeAgent { process: AgentProcess::new(child, stderr), streams: None };
    let call = match port {
        Some(port) => {
            let call = writeln!(stdin, "{}", port.secret).and_then(|()| port.take_call(&mut stdout, stop));
            call.map_err(|error| with_last_words(error, &mut agent))?
        }
        None => None,
    };
    let connection = match call {
        Some(call) => {
            agent.streams = Some((stdin, stdout));
            Connection::duplex(name, call)?
        }
        None => Connection::new(name, stdout, stdin),
    };
    Ok(LaunchedAgent { connection, handle: Box::new(agent) })
}

/// How often perflab is copied to a node at most.
const COPIES: u32 = 3;

/// How long a copy may stand still.
const STILL: Duration = Duration::from_secs(15);

const LOOK: Duration = Duration::from_millis(100);

/// Copies perflab to a node, and once more where `srun` stops taking its standard input, as that of Slurm 22.05 does once in some
/// hundred copies: what it had taken is removed when it is ended.
fn copy_to_node(node: &AllocatedNode, host: &LocalMachine, stop: &StopRequest) -> io::Result<String> {
    let copy = || {
        copy_agent_bundle(&host.perflab, |script, bundle| {
            run_while_it_reads(&mut step_command(node, script), bundle, STILL, stop)
                .map_err(|error| explain_missing_slurm("srun", error))
        })
    };
    let mut copied = copy();
    for _ in 1..COPIES {
        match copied {
            Err(ref error) if error.kind() == io::ErrorKind::TimedOut => copied = copy(),
            other => return other,
        }
    }
    copied
}

/// Runs a command that reads `input`, and ends it where it has read nothing for so long before the end: a program that is given a file shares the
/// place in it.
///
/// # Errors
/// As [`run_stoppable_command`]; `TimedOut` of one that stood still.
fn run_while_it_reads(
    command: &mut Command,
    input: File,
    still: Duration,
    stop: &StopRequest,
) -> io::Result<Output> {
    let (watched, length) = (input.try_clone()?, input.metadata()?.len());
    let (attempt, is_still) = (StopRequest::new(), AtomicBool::new(false));
    let (running, ended) = channel::<()>();
    let output = std::thread::scope(|scope| {
        let (attempt, is_still, mut watched) = (&attempt, &is_still, &watched);
        scope.spawn(move || {
            let (mut place, mut since) = (0, Instant::now());
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let now = watched.stream_position().unwrap_or(length);
                if now != place || now >= length {
                    (place, since) = (now, Instant::now());
                }
                is_still.store(since.elapsed() > still, Ordering::SeqCst);
                if stop.is_requested() || is_still.load(Ordering::SeqCst) {
                    attempt.request_stop();
                }
            }
        });
        let output = run_stoppable_command(command.stdin(input), attempt);
        drop(running);
        output
    });
    match is_still.load(Ordering::SeqCst) {
        true if output.is_err() => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("srun takes no more of its input, for {} s", still.as_secs()),
        )),
        _ => output,
    }
}

/// An error, with what was printed last by the agent that it is about.
fn with_last_words(error: io::Error, agent: &mut NodeAgent) -> io::Error {
    let printed = agent.end();
    match printed.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => io::Error::other(format!("{error}: {}", remove_control_characters(line.trim()))),
        None => error,
    }
}

/// What srun says of itself while nothing is wrong, or as it is ended: no reason why an agent was lost.
const IDLE_WORDS: [&str; 3] =
    ["lacks support for cpu binding", "srun: got SIGCONT", "srun: Job step aborted: Waiting up to"];

/// An srun with an agent at its other end.
#[derive(Debug)]
struct NodeAgent {
    process: AgentProcess,
    /// Where the agent called: srun's streams, as long as the agent is to live.
    streams: Option<(ChildStdin, ChildStdout)>,
}

impl AgentHandle for NodeAgent {
    fn end(&mut self) -> String {
        self.streams = None;
        let printed = self.process.end();
        let lines = printed.lines().filter(|line| !IDLE_WORDS.iter().any(|words| line.contains(words)));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

impl Drop for NodeAgent {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a script of the shell's on the node, in a process group of its own: a ^C at the terminal is perflab's to pass on.
fn step_command(node: &AllocatedNode, script: &str) -> Command {
    let mut command = node.job_command("srun");
    for name in OWN_PLACES {
        command.env_remove(name);
    }
    command.arg(format!("--nodelist={}", node.name));
    command.args([
        "--nodes=1",
        "--ntasks=1",
        "--overlap",
        "--cpu-bind=none",
        "--mpi=none",
        "--chdir=/",
        "sh",
        "-c",
    ]);
    command.arg(script).process_group(0);
    command
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const SOON: Duration = Duration::from_millis(400);

    fn bundle_of(bytes: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn what_reads_to_its_end_is_left_alone_and_what_stops_reading_is_ended() {
        let mut counting = Command::new("wc");
        let counted =
            run_while_it_reads(counting.arg("-c"), bundle_of(300_000), SOON, &StopRequest::new()).unwrap();
        assert_eq!(String::from_utf8_lossy(&counted.stdout).trim(), "300000");
        // After its end, it may take as long as it likes.
        let mut working = Command::new("sh");
        working.args(["-c", "cat > /dev/null; sleep 1; echo done"]);
        let worked = run_while_it_reads(&mut working, bundle_of(10), SOON, &StopRequest::new()).unwrap();
        assert_eq!(worked.stdout, b"done\n");
        let mut stuck = Command::new("sh");
        stuck.args(["-c", "head -c 100 > /dev/null; exec sleep 60"]).process_group(0);
        let error =
            run_while_it_reads(&mut stuck, bundle_of(300_000), SOON, &StopRequest::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn who_wishes_to_stop_waits_for_no_copy() {
        let stop = StopRequest::new();
        stop.request_stop();
        let mut stuck = Command::new("sleep");
        stuck.arg("60").process_group(0);
        let error = run_while_it_reads(&mut stuck, bundle_of(300_000), SOON, &stop).unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::TimedOut);
    }
}
