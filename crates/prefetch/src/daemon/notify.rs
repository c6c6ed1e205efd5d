//! What is told to systemd (`sd_notify`): that the daemon watches, and, again and again, that it lives. A daemon that was stopped
//! cannot answer; systemd kills one that is silent, and with it goes what waits.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Tells it where somebody listens (`NOTIFY_SOCKET`).
pub fn notify_systemd(what: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let socket = UnixDatagram::unbound();
    if let (Ok(address), Ok(socket)) = (address, socket) {
        // Where nobody reads, nobody needs to know.
        let _ = socket.set_nonblocking(true);
        let _ = socket.send_to_addr(what.as_bytes(), &address);
    }
}

/// How often a sign of life is expected (`WATCHDOG_USEC`), halved.
pub fn watchdog_interval() -> Option<Duration> {
    let micros: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    Some(Duration::from_micros(micros / 2))
}
