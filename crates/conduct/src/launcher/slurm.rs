//! An agent on a node of a Slurm job: its bundle is copied there over the standard input of `srun`, run, and removed.
//!
//! It calls this host as `srun` does, which holds back what passes through it; where it cannot, the streams of `srun` have to do.
//! A step shares all that the job has on the node, and is not tied to any CPU of it.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

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
    let folder = copy_agent_bundle(&host.perflab, |script, bundle| {
        let mut command = step_command(node, script);
        run_stoppable_command(command.stdin(bundle), stop)
            .map_err(|error| explain_missing_slurm("srun", error))
    })?;
    // A job that is cancelled has a moment to undo its settings and to remove the folder. Slurm signals every process of it, also what
    // removes: that ignores it.
    let port = AgentCallPort::open().ok();
    let call = port
        .as_ref()
        .map_or(String::new(), |port| format!(" --call \"$SLURM_LAUNCH_NODE_IPADDR:{}\"", port.port));
    let mut command = step_command(
        node,
        &format!("trap : TERM; {folder}/perflab agent{call}; trap '' TERM HUP INT; rm -rf {folder}"),
    );
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
