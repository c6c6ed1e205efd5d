//! `perflab agent`: perflab inside a target. Started by perflab, not by people.

use std::fs::OpenOptions;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use perflab_conduct::{Channel, Host, agent, machine};
use perflab_observe::Root;
use perflab_workload::Catalogue;

use crate::arguments;
use crate::complain;
use crate::exit::{self, Exit, Usage};

/// Serves one host and ends.
pub fn run(wanted: &arguments::Agent) -> anyhow::Result<Exit> {
    let channel = match (&wanted.device, &wanted.connect) {
        (Some(path), _) => device(path)?,
        (None, Some(address)) => connected(address)?,
        (None, None) => stdio()?,
    };
    agent::serve(channel, wanted.device.is_some(), target()?)?;
    Ok(Exit::Fine)
}

/// The agent that a guest's first process starts, on this device or calling this address.
pub fn in_guest(place: &str) -> ExitCode {
    let is_device = place.starts_with('/');
    let channel = if is_device { device(Path::new(place)) } else { connected(place) };
    let served = channel.and_then(|channel| Ok(agent::serve(channel, is_device, target()?)?));
    match served {
        Ok(()) => Exit::Fine.into(),
        Err(error) => {
            complain::print(&error);
            exit::of(&error).into()
        }
    }
}

/// This machine. Which workloads there are comes with the run.
fn target() -> anyhow::Result<Host> {
    let perflab = std::env::current_exe().context("cannot find perflab's own binary")?;
    Ok(Host {
        root: Root::host(),
        state: perflab_observe::own_directories::state(),
        perflab,
        catalogue: Catalogue::default(),
        runs_as_typed: false,
        traces: Default::default(),
    })
}

fn stdio() -> anyhow::Result<Channel> {
    let reading = std::io::stdin().as_fd().try_clone_to_owned()?;
    let writing = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok(Channel::new("host", reading, writing))
}

fn device(path: &Path) -> anyhow::Result<Channel> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let opened = opened.with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Channel::both_ways("host", opened)?)
}

fn connected(address: &str) -> anyhow::Result<Channel> {
    if let Some(address) = address.strip_prefix("vsock:") {
        let stream = machine::vsock::connect(address);
        return Ok(Channel::both_ways(
            "host",
            stream.with_context(|| format!("cannot connect to vsock {address}"))?,
        )?);
    }
    let Some(address) = address.strip_prefix("tcp:") else {
        let hint = "write tcp:HOST:PORT or vsock:CID:PORT";
        return Err(Usage::new(format!("`{address}` is no address of a host"), hint).into());
    };
    let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    // Frames are small and awaited: none may wait for company.
    stream.set_nodelay(true)?;
    Ok(Channel::both_ways("host", stream)?)
}
