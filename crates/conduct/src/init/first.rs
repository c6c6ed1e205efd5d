//! The order of things, from the first instruction to power off.

use std::fs;
use std::path::Path;

use rustix::system::{RebootCommand, reboot};

use super::line::Line;
use super::{CONTROL_PORT, InitError, Orders, Said, modules, mounts, network, ports, root, work};
use crate::initramfs::HOME;

/// Whether this process is the first one of a guest that perflab booted.
pub fn is_first() -> bool {
    std::process::id() == 1 && orders_path().is_file()
}

fn orders_path() -> std::path::PathBuf {
    Path::new(HOME).join("orders.json")
}

/// Does everything. Never comes back: the guest is powered off, whatever happens.
pub fn run() -> ! {
    if let Err(error) = booted() {
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

fn booted() -> Result<(), InitError> {
    mounts::kernel_file_systems(Path::new("/"))?;
    let text = fs::read(orders_path()).map_err(InitError::refused("read", HOME))?;
    let orders: Orders = serde_json::from_slice(&text)?;
    modules::load(&orders.modules)?;
    let line = Line::new(ports::open(CONTROL_PORT)?);
    let worked = prepare(&orders).and_then(|()| work::work(&orders.work, orders.vsock, &line));
    if let Err(error) = &worked {
        line.say(&Said::Failed(error.to_string()));
    }
    worked
}

fn prepare(orders: &Orders) -> Result<(), InitError> {
    // A kernel without these works as well.
    let _ = rustix::system::sethostname(orders.name.as_bytes());
    let _ = network::loopback_up();
    root::enter(&orders.root)
}
