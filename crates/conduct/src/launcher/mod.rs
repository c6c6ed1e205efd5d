//! Where an agent lives during a run: a process of this host, a login over ssh, a guest, a domain of libvirt.
//!
//! A launcher starts an agent and ends it, whatever state it is in. When that happens is decided in `boot_round`;
//! what is sent is defined in [`crate::protocol`].

pub(crate) mod guest;
pub(crate) mod libvirt;
pub(crate) mod process;
pub(crate) mod ssh;
use std::fmt::Debug;

use perflab_model::StopRequest;
use perflab_model::study::{TargetKind, TargetSpec};
use perflab_settings::TemporaryFolder;

use crate::connection::Connection;
use crate::error::ConductError;
use crate::run_context::LocalMachine;

/// An agent's home. Dropping it ends the agent as well.
pub trait AgentHandle: Send + Debug {
    /// Ends the agent and all that was started for it, within a few seconds, however it resists; gives what was printed
    /// beside the stream: standard error, a console.
    fn end(&mut self) -> String;
}

/// An agent that was started, and has not been heard yet.
#[derive(Debug)]
pub struct LaunchedAgent {
    /// Where it is spoken to.
    pub connection: Connection,
    /// Where it lives.
    pub handle: Box<dyn AgentHandle>,
}

/// Starts the agent of one target.
///
/// # Errors
/// Names the target, and what could not be started.
pub fn launch_target(
    name: &str,
    target: &TargetSpec,
    host: &LocalMachine,
    stop: &StopRequest,
) -> Result<LaunchedAgent, ConductError> {
    let started = match target.kind {
        TargetKind::Vm => {
            let logs = TemporaryFolder::create(&host.state, &perflab_observe::read_boot_id(&host.root))?;
            return crate::launcher::guest::launch_guest_agent(name, target, host, stop, logs)
                .map_err(|error| target_lost_error(name, error.to_string()));
        }
        TargetKind::Libvirt => crate::launcher::libvirt::launch_in_domain(name, target, host, stop),
        TargetKind::Process => crate::launcher::process::launch_process_agent(name, target, host),
        TargetKind::Ssh => crate::launcher::ssh::launch_over_ssh(
            name,
            target.address.as_deref().unwrap_or_default(),
            host,
            stop,
        ),
    };
    started.map_err(|error| target_lost_error(name, error.to_string()))
}

fn target_lost_error(name: &str, reason: String) -> ConductError {
    ConductError::Target { target: name.into(), reason }
}
