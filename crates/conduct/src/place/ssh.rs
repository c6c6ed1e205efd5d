//! An agent on a machine that ssh reaches: the binary is copied to a temporary file there, run over ssh's standard input
//! and output, and removed. The user's own ssh, with its configuration, keys and known hosts; it never asks anything.

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

use super::process::Process;
use super::{Started, Words};
use crate::{Channel, Host};

/// Makes a private file of standard input and says where it is.
const COPY: &str =
    "umask 077 && f=$(mktemp /tmp/perflab-agent.XXXXXX) && cat >\"$f\" && chmod 700 \"$f\" && echo \"$f\"";
const PREFIX: &str = "/tmp/perflab-agent.";

/// Copies perflab to `address` and starts its agent there.
pub(super) fn start(name: &str, address: &str, host: &Host) -> io::Result<Started> {
    let path = copy(address, host)?;
    let mut command = ssh(address);
    command.arg(format!("{path} agent; rm -f {path}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let words = Words::of(&mut child);
    let lost = || io::Error::other("a pipe that was asked for is not there");
    let (stdout, stdin) = (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    Ok(Started { channel: Channel::new(name, stdout, stdin), place: Box::new(Process::new(child, words)) })
}

fn copy(address: &str, host: &Host) -> io::Result<String> {
    let binary = File::open(&host.perflab)?;
    let output = ssh(address).arg(COPY).stdin(binary).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    // A login may print something of its own before.
    let path = said.lines().next_back().unwrap_or_default().trim();
    let own = path.strip_prefix(PREFIX).filter(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric()));
    match own {
        Some(_) if output.status.success() => Ok(path.to_owned()),
        _ => Err(io::Error::other(format!(
            "perflab could not be copied there: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

fn ssh(address: &str) -> Command {
    let mut command = Command::new("ssh");
    // What it would ask could not be seen, let alone answered.
    command.args(["-o", "BatchMode=yes", "-T", "--", address]);
    command
}
