//! Kernels, and virtual machines that perflab starts with QEMU and ends.
//!
//! A guest from its description to the last of its processes and sockets. Nothing outlives the process that started
//! it, not even one that was killed: QEMU and virtiofsd die with their parent.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`machine`] | what a guest is made of; KVM where it really runs code, else TCG, and why |
//! | [`image_identity`] | which kernel an image holds: build id, release, version |
//! | [`kernel`], [`kernel_recipe`], [`kernel_request`] | a kernel image and its modules; recipes; what a user asks for |
//! | `kernel_sources`, `kernel_build`, `kernel_package`, `kernel_cache` | how it is had: checked out, patched, built, fetched, kept |
//! | `distribution_root` | the root of a release that debootstrap makes, kept beside the kernels |
//! | [`initramfs`], `portable_program`, `program_path` | the first file system, with perflab in it; a program with its loader and libraries; where it is |
//! | `qemu_command_line`, `root_share` | the machine as QEMU's arguments; the host's root or a folder, read-only |
//! | [`mod@boot`] | from a machine to a guest that is ready, with a deadline that knows how loaded the host is |
//! | [`running_guest`], [`console_log`] | a running guest, and the list of all of them; the log of its console |
//! | `git` | git in somebody's repository |
//! | `qmp` | QEMU's monitor: questions, and pinning of virtual processors |
//! | `gdb_stub`, [`ProcessorSampler`] | QEMU's debugger's port; sampling a guest's processors from outside |
//! | `crash_dump` | the memory of a guest whose kernel panicked, as a file for debuggers |
//! | [`vsock`] | the second way to an agent, beside virtio-serial |
//! | [`network_switch`], [`guest_network`] | the switch between the guests of a run; who is where on it |
//! | [`init_protocol`], `init`, `init_root`, `init_network` | perflab as the first process: its orders, its work, its file systems, its network |

pub mod boot;
pub mod console_log;
mod crash_dump;
mod distribution_root;
mod error;
mod gdb_stub;
mod git;
pub mod guest_network;
pub mod image_identity;
mod init;
mod init_network;
pub mod init_protocol;
mod init_root;
pub mod initramfs;
pub mod kernel;
mod kernel_build;
mod kernel_cache;
mod kernel_layout;
mod kernel_package;
pub mod kernel_recipe;
pub mod kernel_request;
mod kernel_sources;
mod kernel_step;
pub mod machine;
pub mod network_switch;
mod portable_program;
mod processor_sampler;
mod program_path;
mod qemu_command_line;
mod qmp;
mod root_share;
pub mod running_guest;
pub mod vsock;

pub use boot::{BootOptions, boot_guest, log_tail};
pub use console_log::{find_panic, find_panic_in, read_log_end};
pub use distribution_root::{
    DistributionRoot, DistributionRootError, MadeRoot, RootListener, RootProgress, describe_root_packages,
};
pub use error::{GuestError, InitramfsError};
pub use git::git_command;
pub use guest_network::{
    GuestAddresses, GuestInterface, GuestNetwork, HOST_ADDRESS, SwitchPort, switch_address,
};
pub use image_identity::KernelIdentity;
pub use init::{exec_on_terminal, guest_agent_address, is_guest_init, run_init};
pub use init_protocol::{
    ControlFrame, GuestCommand, GuestMessage, GuestRoot, GuestWork, HostMessage, InitConfig,
};
pub use initramfs::{CpioWriter, Initramfs, pack_portable_perflab};
pub use kernel::{KernelBuildRecord, KernelError, KernelImage, SourceIdentity};
pub use kernel_build::{compare_configs, read_kernel_config_file};
pub use kernel_cache::list_built_kernels;
pub use kernel_recipe::{KernelRecipe, KernelRecipes, KernelSource};
pub use kernel_request::{KernelRequest, find_kernel};
pub use kernel_sources::list_revisions;
pub use kernel_step::{KernelListener, KernelProgress};
pub use machine::{
    Accelerator, AcceleratorRequest, ChosenAccelerator, GuestDebug, GuestDisk, GuestMachine, GuestNumaNode,
    GuestRootSource,
};
pub use network_switch::NetworkSwitch;
pub use portable_program::find_closure;
pub use processor_sampler::{ProcessorRecording, ProcessorSampler, RunningProcessorSampler, SampledGuest};
pub use running_guest::{Guest, connect_shell, find_guest, list_guests, remove_abandoned_guests, stop_guest};
pub use vsock::{GuestVsock, connect_vsock};
