//! The order of things, from the first instruction to power off.

use std::fs;
use std::path::Path;

use rustix::system::{RebootCommand, reboot};

use super::line::ControlPort;
use super::{CONTROL_PORT, GuestMessage, InitConfig, InitError, modules, mounts, network, ports, root, work};
use crate::initramfs::GUEST_HOME;

/// Whether this process is the first one of a guest that perflab booted.
pub fn is_guest_init() -> bool {
    std::process::id() == 1 && init_config_path().is_file()
}

fn init_config_path() -> std::path::PathBuf {
    Path::new(GUEST_HOME).join("orders.json")
}

/// Does everything. Never comes back: the guest is powered off, whatever happens.
pub fn run_init() -> ! {
    if let Err(error) = boot_to_work() {
        // For the console's log; the host was told, if there was a port to do it.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("perflab init: {error}\n"));
    }
    rustix::fs::sync();
    loop {
        // Without a way to power off, a kernel halts or panics, and QEMU is told to end then.
        let _ = reboot(RebootCommand::PowerOff);
        let _ = reboot(RebootCommand::Restart);
    }
}

fn boot_to_work() -> Result<(), InitError> {
    mounts::mount_kernel_file_systems(Path::new("/"))?;
    let text = fs::read(init_config_path()).map_err(InitError::system_error("read", GUEST_HOME))?;
    let orders: InitConfig = serde_json::from_slice(&text)?;
    modules::load_modules(&orders.modules)?;
    let line = ControlPort::new(ports::open_port(CONTROL_PORT)?);
    let worked = prepare_guest(&orders).and_then(|()| work::do_work(&orders.work, orders.vsock, &line));
    if let Err(error) = &worked {
        line.send(&GuestMessage::Failed(error.to_string()));
    }
    worked
}

fn prepare_guest(orders: &InitConfig) -> Result<(), InitError> {
    // A kernel without these works as well.
    let _ = rustix::system::sethostname(orders.name.as_bytes());
    let _ = network::bring_loopback_up();
    root::enter_root(&orders.root)
}
