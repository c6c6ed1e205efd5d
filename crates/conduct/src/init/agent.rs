//! How a guest's first process starts the agent: by a name of its own, without the words of the command line. Under TCG
//! code that runs once is what costs most, and the parser of perflab's arguments alone would be a tenth of a boot.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::{AGENT_PORT, InitError, ports};
use crate::initramfs::GUEST_HOME;

/// What it is called.
const NAME: &str = "perflab-agent";
/// The host's number in every guest (vsock(7)).
const HOST: u32 = 2;

/// perflab as the agent, on its port, or calling its host's vsock port.
pub(super) fn agent_command(vsock: Option<u32>) -> Result<Command, InitError> {
    let place = match vsock {
        Some(port) => format!("vsock:{HOST}:{port}"),
        None => ports::wait_for_port(AGENT_PORT)?.display().to_string(),
    };
    let mut command = Command::new(Path::new(GUEST_HOME).join("perflab"));
    command.arg0(NAME).arg(place);
    Ok(command)
}

/// Where this process is to take orders, if it was started as a guest's agent: a device, or `vsock:CID:PORT`.
pub fn guest_agent_address() -> Option<String> {
    let mut words = std::env::args_os();
    words.next().filter(|name| name == NAME)?;
    words.next()?.into_string().ok()
}
