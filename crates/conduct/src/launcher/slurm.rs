//! An agent on a node of a Slurm job: its bundle is copied there, run over the standard input and output of `srun`, and removed.
//!
//! A step shares all that the job has on the node, and is not tied to any CPU of it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use perflab_model::StopRequest;
use perflab_settings::run_stoppable_command;

use crate::connection::Connection;
use crate::launcher::agent_bundle::copy_agent_bundle;
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
    // A job that is cancelled has a moment to undo its settings and to remove the folder.
    let mut command = step_command(node, &format!("trap : TERM; {folder}/perflab agent; rm -rf {folder}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stderr = StderrTail::of_child(&mut child);
    let lost = || io::Error::other("a requested pipe is missing");
    let (stdout, stdin) = (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    Ok(LaunchedAgent {
        connection: Connection::new(name, stdout, stdin),
        handle: Box::new(NodeAgent(AgentProcess::new(child, stderr))),
    })
}

/// What srun says of itself while nothing is wrong, or as it is ended: no reason why an agent was lost.
const IDLE_WORDS: [&str; 3] =
    ["lacks support for cpu binding", "srun: got SIGCONT", "srun: Job step aborted: Waiting up to"];

/// An srun with an agent at its other end.
#[derive(Debug)]
struct NodeAgent(AgentProcess);

impl AgentHandle for NodeAgent {
    fn end(&mut self) -> String {
        let printed = self.0.end();
        let lines = printed.lines().filter(|line| !IDLE_WORDS.iter().any(|words| line.contains(words)));
        lines.map(|line| format!("{line}\n")).collect()
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
