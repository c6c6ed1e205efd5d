//! An agent over ssh: its bundle is copied there, run over ssh's standard input and output, and removed. The user's own
//! ssh is used, with its configuration, keys and known hosts; it never asks anything.

use std::io;
use std::process::{Command, Stdio};

use perflab_model::StopRequest;
use perflab_settings::run_stoppable_command;

use crate::connection::Connection;
use crate::launcher::agent_bundle::copy_agent_bundle;
use crate::launcher::agent_handle::LaunchedAgent;
use crate::launcher::process::{AgentProcess, StderrTail};
use crate::run_context::LocalMachine;

/// Copies perflab to `address` and starts its agent there.
pub(crate) fn launch_over_ssh(
    name: &str,
    address: &str,
    host: &LocalMachine,
    stop: &StopRequest,
) -> io::Result<LaunchedAgent> {
    let folder = copy_agent_bundle(&host.perflab, |script, bundle| {
        run_stoppable_command(ssh_command(address, &[]).arg(script).stdin(bundle), stop)
    })?;
    let mut command = ssh_command(address, &[]);
    command.arg(format!("{folder}/perflab agent; rm -rf {folder}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stderr = StderrTail::of_child(&mut child);
    let lost = || io::Error::other("a requested pipe is missing");
    let (stdout, stdin) = (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    Ok(LaunchedAgent {
        connection: Connection::new(name, stdout, stdin),
        handle: Box::new(AgentProcess::new(child, stderr)),
    })
}

/// The user's ssh to an address, with further options of its configuration.
pub(crate) fn ssh_command(address: &str, options: &[&str]) -> Command {
    let mut command = Command::new("ssh");
    // What it would ask could not be seen, let alone answered.
    command.args(["-o", "BatchMode=yes"]);
    for option in options {
        command.args(["-o", option]);
    }
    command.args(["-T", "--", address]);
    command
}
