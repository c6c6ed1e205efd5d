//! An agent on a machine that ssh reaches: perflab is copied to a temporary folder there with all that it needs to start,
//! run over ssh's standard input and output, and removed. The user's own ssh, with its configuration, keys and known
//! hosts; it never asks anything.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::parcel::agent_bundle;
use super::process::AgentProcess;
use super::{LaunchedAgent, StderrTail};
use crate::command::run_stoppable_command;
use crate::inert::remove_control_characters;
use crate::{Connection, LocalMachine, StopRequest};

/// Where it is put there: so short that a loader's path within fits where the system's stands in a program.
const PREFIX: &str = "/tmp/perflab.";

/// Copies perflab to `address` and starts its agent there.
pub(super) fn launch_over_ssh(
    name: &str,
    address: &str,
    host: &LocalMachine,
    stop: &StopRequest,
) -> io::Result<LaunchedAgent> {
    let folder = copy_bundle(address, host, stop)?;
    let folder = folder.display();
    let mut command = ssh_command(address);
    command.arg(format!("{folder}/perflab agent; rm -rf {folder}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let words = StderrTail::of_child(&mut child);
    let lost = || io::Error::other("a pipe that was asked for is not there");
    let (stdout, stdin) = (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    Ok(LaunchedAgent {
        connection: Connection::new(name, stdout, stdin),
        handle: Box::new(AgentProcess::new(child, words)),
    })
}

/// A private folder that was not there before, with perflab in it.
fn copy_bundle(address: &str, host: &LocalMachine, stop: &StopRequest) -> io::Result<PathBuf> {
    let folder = format!("{PREFIX}{}", random_suffix());
    let parcel = agent_bundle(&host.perflab, Path::new(&folder))?;
    let take = format!(
        "umask 077; mkdir {folder} && {{ tar -xf - -C {folder} || {{ rm -rf {folder}; exit 1; }}; }}"
    );
    let output = run_stoppable_command(ssh_command(address).arg(take).stdin(parcel), stop)?;
    if output.status.success() {
        return Ok(folder.into());
    }
    let said = remove_control_characters(&String::from_utf8_lossy(&output.stderr));
    Err(io::Error::other(format!("perflab could not be copied there: {}", said.trim())))
}

/// Six letters that nobody guesses; where they are taken all the same, the folder is not made.
fn random_suffix() -> String {
    let mut random = RandomState::new().build_hasher().finish();
    let mut letter = || {
        let letter = b'a' + (random % 26) as u8;
        random /= 26;
        char::from(letter)
    };
    (0..6).map(|_| letter()).collect()
}

fn ssh_command(address: &str) -> Command {
    let mut command = Command::new("ssh");
    // What it would ask could not be seen, let alone answered.
    command.args(["-o", "BatchMode=yes", "-T", "--", address]);
    command
}
