//! Where an agent lives while a run goes on: a process of this host, a login over ssh, a guest, a domain of libvirt's.
//!
//! Owns how an agent is started and how it is ended, whatever state it is in. What is said to it is
//! [`crate::protocol`]'s; when it is started and given up is [`crate::step`]'s.

mod libvirt;
mod parcel;
mod process;
mod ssh;
mod vm;
mod words;

use std::fmt::Debug;

use perflab_model::study::{TargetKind, TargetUse};

use crate::leftovers::TemporaryFolder;
use crate::{Channel, ConductError, Host, Stop};

pub(crate) use words::Words;

/// An agent's home. Dropping it ends the agent as well.
pub trait Place: Send + Debug {
    /// Ends the agent and all that was started for it, within a few seconds, however it resists; gives what was said
    /// beside the stream: standard error, a console.
    fn end(&mut self) -> String;
}

/// An agent that was started, and has not been heard yet.
#[derive(Debug)]
pub struct Started {
    /// Where it is spoken to.
    pub channel: Channel,
    /// Where it lives.
    pub place: Box<dyn Place>,
}

/// Starts the agent of one target.
///
/// # Errors
/// Names the target, and what could not be started.
pub fn start(name: &str, target: &TargetUse, host: &Host, stop: &Stop) -> Result<Started, ConductError> {
    let started = match target.kind {
        TargetKind::Vm => {
            let logs = TemporaryFolder::make(&host.state, &perflab_observe::boot_id(&host.root))?;
            return vm::start(name, target, host, stop, logs).map_err(|error| lost(name, error.to_string()));
        }
        TargetKind::Libvirt => libvirt::start(name, target, host, stop),
        TargetKind::Process => process::start(name, target, host),
        TargetKind::Ssh => ssh::start(name, target.address.as_deref().unwrap_or_default(), host, stop),
    };
    started.map_err(|error| lost(name, error.to_string()))
}

fn lost(name: &str, reason: String) -> ConductError {
    ConductError::Target { target: name.into(), reason }
}
