//! `perflab agent`: perflab inside a target. Started by perflab, not by people.

use std::fs::OpenOptions;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use perflab_conduct::{Connection, LocalMachine, agent};
use perflab_observe::Root;
use perflab_workload::Catalogue;

use crate::arguments;
use crate::complain;
use crate::exit::{self, Exit, UsageError};

/// Serves one host and ends.
pub fn run_agent(wanted: &arguments::AgentArgs) -> anyhow::Result<Exit> {
    let channel = match (&wanted.device, &wanted.connect) {
        (Some(path), _) => device_channel(path)?,
        (None, Some(address)) => tcp_channel(address)?,
        (None, None) => stdio_channel()?,
    };
    agent::serve_agent(channel, wanted.device.is_some(), agent_target()?)?;
    Ok(Exit::Fine)
}

/// The agent that a guest's first process starts, on this device or calling this address.
pub fn run_guest_agent(place: &str) -> ExitCode {
    let is_device = place.starts_with('/');
    let channel = if is_device { device_channel(Path::new(place)) } else { tcp_channel(place) };
    let served = channel.and_then(|channel| Ok(agent::serve_agent(channel, is_device, agent_target()?)?));
    match served {
        Ok(()) => Exit::Fine.into(),
        Err(error) => {
            complain::print_failure(&error);
            exit::exit_for_error(&error).into()
        }
    }
}

/// This machine. Which workloads there are comes with the run.
fn agent_target() -> anyhow::Result<LocalMachine> {
    let perflab = std::env::current_exe().context("cannot find perflab's own binary")?;
    Ok(LocalMachine {
        root: Root::host(),
        state: perflab_observe::own_directories::state_directory(),
        perflab,
        catalogue: Catalogue::default(),
        runs_as_typed: false,
        traces: Default::default(),
    })
}

fn stdio_channel() -> anyhow::Result<Connection> {
    let reading = std::io::stdin().as_fd().try_clone_to_owned()?;
    let writing = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok(Connection::new("host", reading, writing))
}

fn device_channel(path: &Path) -> anyhow::Result<Connection> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let opened = opened.with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Connection::duplex("host", opened)?)
}

fn tcp_channel(address: &str) -> anyhow::Result<Connection> {
    if let Some(address) = address.strip_prefix("vsock:") {
        let stream = perflab_conduct::guest::vsock::connect_vsock(address);
        return Ok(Connection::duplex(
            "host",
            stream.with_context(|| format!("cannot connect to vsock {address}"))?,
        )?);
    }
    let Some(address) = address.strip_prefix("tcp:") else {
        let hint = "write tcp:HOST:PORT or vsock:CID:PORT";
        return Err(UsageError::new(format!("`{address}` is no address of a host"), hint).into());
    };
    let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    // Frames are small and awaited: none may wait for company.
    stream.set_nodelay(true)?;
    Ok(Connection::duplex("host", stream)?)
}
