//! An agent in a guest that QEMU runs.

use std::fs;
use std::path::Path;

use perflab_model::Bytes;
use perflab_model::study::{GuestRoot, TargetUse};
use tempfile::TempDir;

use super::{Place, Started};
use crate::init::Work;
use crate::kernel;
use crate::machine::boot::Surroundings;
use crate::machine::{Guest, Machine, MachineError, RootKind, boot};
use crate::{Host, Stop};

/// What is kept of a console, in bytes of its end.
const MOST: usize = 256 << 10;

/// A guest, until it is ended.
#[derive(Debug)]
struct Running {
    guest: Option<Guest>,
    /// What it boots, and how its code is run: the first line of what is kept of it.
    how: String,
    _logs: TempDir,
}

impl Place for Running {
    fn end(&mut self) -> String {
        let Some(guest) = self.guest.take() else { return String::new() };
        let console = guest.console().to_owned();
        drop(guest);
        let mut text = fs::read(console).unwrap_or_default();
        text.drain(..text.len().saturating_sub(MOST));
        format!("{}\n{}", self.how, String::from_utf8_lossy(&text))
    }
}

/// Boots a guest whose work is to take orders.
pub(super) fn start(
    name: &str,
    target: &TargetUse,
    host: &Host,
    stop: &Stop,
) -> Result<Started, MachineError> {
    let logs = TempDir::new().map_err(MachineError::file("the temporary directory"))?;
    let machine = described(name, target)?;
    let around =
        Surroundings { perflab: &host.perflab, logs: logs.path(), work: Work::Agent, stays: false, stop };
    let guest = boot(&machine, &around)?;
    let channel = guest.channel().map_err(MachineError::file("the agent's socket"))?;
    let chosen = guest.chosen();
    let how = format!("perflab: {}, run by {} ({})", guest.note().kernel, chosen.accelerator, chosen.because);
    Ok(Started { channel, place: Box::new(Running { guest: Some(guest), how, _logs: logs }) })
}

fn described(name: &str, target: &TargetUse) -> Result<Machine, MachineError> {
    let modules = target.modules.as_deref().map(Path::new);
    let mut machine =
        Machine::new(name, kernel::find(target.kernel.as_deref().unwrap_or_default(), modules)?);
    machine.append = target.append.clone();
    machine.cpus = target.cpus.unwrap_or(machine.cpus);
    machine.memory =
        target.memory.as_deref().and_then(|text| Bytes::parse(text).ok()).unwrap_or(machine.memory);
    if target.root == Some(GuestRoot::Bare) {
        machine.root = RootKind::Bare { programs: Vec::new() };
    }
    machine.pin = target.pin.clone();
    Ok(machine)
}
