//! The agent of one target, started by the kind of the target.

use perflab_model::StopRequest;
use perflab_model::study::{TargetKind, TargetSpec};
use perflab_settings::TemporaryFolder;

use crate::error::ConductError;
use crate::launcher::agent_handle::LaunchedAgent;
use crate::launcher::guest::launch_guest_agent;
use crate::launcher::libvirt::launch_in_domain;
use crate::launcher::process::launch_process_agent;
use crate::launcher::ssh::launch_over_ssh;
use crate::run_context::LocalMachine;

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
            return launch_guest_agent(name, target, host, stop, logs)
                .map_err(|error| target_lost_error(name, error.to_string()));
        }
        TargetKind::Libvirt => launch_in_domain(name, target, host, stop),
        TargetKind::Process => launch_process_agent(name, target, host),
        TargetKind::Ssh => launch_over_ssh(name, target.address.as_deref().unwrap_or_default(), host, stop),
    };
    started.map_err(|error| target_lost_error(name, error.to_string()))
}

fn target_lost_error(name: &str, reason: String) -> ConductError {
    ConductError::Target { target: name.into(), reason }
}
