//! The way to an agent over vsock, from a guest or from a process of this kernel.
//!
//! Only the expected caller, known by its number (its context id, unique among the guests of a host), may connect.
//! Where the host has no `/dev/vhost-vsock`, that is an error; there is no silent fallback.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use vsock::{VMADDR_CID_ANY, VMADDR_CID_LOCAL, VsockAddr, VsockListener, VsockStream};

use crate::error::GuestError;

/// What QEMU needs.
const DEVICE: &str = "/dev/vhost-vsock";

/// From the start of the agent to its call.
const PATIENCE: Duration = Duration::from_secs(30);

/// `VMADDR_PORT_ANY` of vsock(7).
const ANY_PORT: u32 = u32::MAX;

const LOOK: Duration = Duration::from_millis(1);

/// An agent's way in.
#[derive(Debug)]
pub struct GuestVsock {
    listener: VsockListener,
    /// The caller's number.
    pub cid: u32,
    /// Where it calls.
    pub port: u32,
}

impl GuestVsock {
    /// Listens for the guest of that name.
    pub(crate) fn listen(name: &str) -> Result<Self, GuestError> {
        let refused = |reason: String| GuestError::NoVsock { name: name.into(), reason };
        if !Path::new(DEVICE).exists() {
            return Err(refused(format!("{DEVICE} is not there (`modprobe vhost_vsock`)")));
        }
        let vsock = GuestVsock::listen_locally().map_err(|error| refused(error.to_string()))?;
        // The kernel refuses a number twice. A port is ours alone, and 0, 1 and 2 are reserved.
        Ok(GuestVsock { cid: (vsock.port & 0x3fff_ffff) | 0x4000_0000, ..vsock })
    }

    /// Listens for a process of this kernel's.
    pub fn listen_locally() -> io::Result<Self> {
        let listener = VsockListener::bind(&VsockAddr::new(VMADDR_CID_ANY, ANY_PORT))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(GuestVsock { listener, cid: VMADDR_CID_LOCAL, port })
    }

    /// The caller's call, as long as it is there; those of others are hung up on.
    pub fn accept_call(&self, mut is_running: impl FnMut() -> bool) -> io::Result<VsockStream> {
        let begun = Instant::now();
        loop {
            match self.listener.accept() {
                Ok((stream, from)) if from.cid() == self.cid => {
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
                Ok(_) => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if begun.elapsed() > PATIENCE => return Err(io::ErrorKind::TimedOut.into()),
                Err(_) if !is_running() => return Err(io::Error::other("it ended before it called")),
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }
}

/// The agent's end: `CID:PORT`.
///
/// # Errors
/// It is no such address, or nobody answers.
pub fn connect_vsock(address: &str) -> io::Result<VsockStream> {
    let parts = address.split_once(':').and_then(|(cid, port)| Some((cid.parse().ok()?, port.parse().ok()?)));
    let (cid, port) = parts.ok_or(io::ErrorKind::InvalidInput)?;
    VsockStream::connect_with_cid_port(cid, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_the_device_says_so_and_one_with_it_gives_each_guest_its_number() {
        match (GuestVsock::listen("a"), GuestVsock::listen("b")) {
            (Ok(a), Ok(b)) => assert!(a.cid != b.cid && a.cid > 2 && a.port != b.port),
            (Err(error), _) => {
                assert!(matches!(&error, GuestError::NoVsock { name, .. } if name == "a"), "{error}")
            }
            (Ok(_), Err(error)) => panic!("{error}"),
        }
        assert_eq!(connect_vsock("2;7").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
