//! Where an agent lives during a run: a process of this host, a container, a login over ssh, a guest, a domain of libvirt, a node of Slurm's.
//!
//! A launcher starts an agent and ends it, whatever state it is in. When that happens is decided in `boot_round`;
//! what is sent is defined in [`crate::protocol`].

pub(crate) mod agent_bundle;
pub(crate) mod agent_call;
pub(crate) mod agent_handle;
pub(crate) mod container;
pub(crate) mod guest;
pub(crate) mod held_hosts;
pub(crate) mod host_hold;
pub(crate) mod host_lock;
pub(crate) mod launch;
pub(crate) mod libvirt;
pub(crate) mod machine_reboot;
pub(crate) mod node_allocation;
pub(crate) mod process;
pub(crate) mod reached_host;
pub(crate) mod slurm;
pub(crate) mod ssh;

pub use agent_call::call_host;
pub use agent_handle::{AgentHandle, LaunchedAgent};
pub use host_hold::serve_host_hold;
pub use host_lock::HostHolder;
pub use launch::{LaunchableTarget, launch_target};
pub use machine_reboot::{REBOOT_LIMIT, return_machine};
pub use reached_host::{HostFacts, ReachedHost};
pub use ssh::SshDestination;
