//! perflab as the first process of a guest: from the kernel's hands to somebody at work, and power off.
//!
//! Owns everything between the kernel's last line and the agent, the command or the shell that the guest was
//! booted for: mounts, modules, the root, the loopback interface, the ports, the reaping of orphans. It takes
//! its [`InitConfig`] from a file of the initramfs and tells the host over its control port what becomes of them.
//! Refuses to be more than that: there are no services, and when the work ends, the guest ends.

mod agent;
mod control;
mod first;
mod line;
mod modules;
mod mounts;
mod network;
mod ports;
mod reap;
mod root;
mod terminal;
mod work;

pub use agent::guest_agent_address;
pub use control::{ControlFrame, GuestMessage, HostMessage, MAX_CONTROL_FRAME_BYTES};
pub use first::{is_guest_init, run_init};
pub use terminal::exec_on_terminal;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Name of the port over which a guest tells how it is.
pub const CONTROL_PORT: &str = "perflab.control";
/// Name of the port over which its agent takes orders.
pub const AGENT_PORT: &str = "perflab.agent";

/// What the first process is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitConfig {
    /// The guest's name, which becomes its host name.
    pub name: String,
    /// Modules in the order of loading.
    pub modules: Vec<String>,
    /// What `/` is.
    pub root: GuestRoot,
    /// What for.
    pub work: GuestWork,
    /// The host's port that the agent calls over vsock; a port of virtio-serial where there is none.
    pub vsock: Option<u32>,
}

/// What `/` is in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestRoot {
    /// The initramfs itself.
    Bare,
    /// The host's, read-only, under an overlay in memory.
    Shared {
        /// `9p` or `virtiofs`
        filesystem: String,
        /// the name under which QEMU offers it
        tag: String,
    },
    /// A partition of a disk image.
    Disk {
        /// `/dev/vda1`
        device: PathBuf,
    },
}

/// What a guest is booted for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestWork {
    /// To take orders.
    Agent,
    /// One command; the guest ends with it.
    Command(GuestCommand),
    /// A shell on the virtual console; the guest ends with it.
    Shell(GuestCommand),
    /// A shell on the virtual console, and another one when it ends: the guest is ended from outside.
    Shells(GuestCommand),
}

/// A command and its surroundings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it starts; `/` where the guest has no such folder.
    pub directory: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
}

/// Why a guest could not get to work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The kernel refuses something.
    #[error("cannot {action} {what}: {source}")]
    Refused {
        /// "mount", "load", "open"
        action: &'static str,
        /// what
        what: String,
        /// the kernel's reason
        source: std::io::Error,
    },
    /// A program of the host's is not in the guest.
    #[error("cannot start {what}: {source}; a guest has a /tmp of its own, so put it elsewhere")]
    Hidden {
        /// which
        what: String,
        /// the kernel's reason
        source: std::io::Error,
    },
    /// A device did not come.
    #[error("{what} did not appear within {seconds} s")]
    Missing {
        /// which
        what: String,
        /// how long it was waited for
        seconds: u64,
    },
    /// The orders cannot be read.
    #[error("cannot read the orders: {0}")]
    Orders(#[from] serde_json::Error),
}

impl InitError {
    fn system_error<E: Into<std::io::Error>>(
        action: &'static str,
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> InitError {
        let what = what.into();
        move |source| InitError::Refused { action, what, source: source.into() }
    }
}

#[cfg(test)]
mod tests;
