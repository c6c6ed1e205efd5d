//! The other way to an agent: a vsock device, over which the guest connects to its host.
//!
//! Owns the listener, the guest's number (its context id, one for each guest of a host), and who may connect: nobody but
//! that guest. Refuses to guess where the host has no `/dev/vhost-vsock`.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use vsock::{VMADDR_CID_ANY, VsockAddr, VsockListener, VsockStream};

use super::MachineError;

/// What QEMU needs.
const DEVICE: &str = "/dev/vhost-vsock";
/// From the guest's word that its agent is started to its call.
const PATIENCE: Duration = Duration::from_secs(30);
/// `VMADDR_PORT_ANY` of vsock(7).
const ANY_PORT: u32 = u32::MAX;
const LOOK: Duration = Duration::from_millis(1);

/// A guest's way in.
#[derive(Debug)]
pub(super) struct Vsock {
    listener: VsockListener,
    /// The guest's number.
    pub(super) cid: u32,
    /// Where its agent calls.
    pub(super) port: u32,
}

impl Vsock {
    /// Listens for the guest of that name.
    pub(super) fn listen(name: &str) -> Result<Self, MachineError> {
        let refused = |reason: String| MachineError::NoVsock { name: name.into(), reason };
        if !Path::new(DEVICE).exists() {
            return Err(refused(format!("{DEVICE} is not there (`modprobe vhost_vsock`)")));
        }
        let address = VsockAddr::new(VMADDR_CID_ANY, ANY_PORT);
        let listener = VsockListener::bind(&address).map_err(|error| refused(error.to_string()))?;
        let there = listener.local_addr().map_err(|error| refused(error.to_string()))?;
        listener.set_nonblocking(true).map_err(|error| refused(error.to_string()))?;
        // The kernel refuses a number twice. A port is ours alone, and 0, 1 and 2 are nobody's.
        Ok(Vsock { listener, cid: (there.port() & 0x3fff_ffff) | 0x4000_0000, port: there.port() })
    }

    /// The guest's call; those of others are hung up on.
    pub(super) fn call(&self) -> io::Result<VsockStream> {
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
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }
}

/// The agent's end: `CID:PORT`.
///
/// # Errors
/// It is no such address, or nobody answers.
pub fn connect(address: &str) -> io::Result<VsockStream> {
    let parts = address.split_once(':').and_then(|(cid, port)| Some((cid.parse().ok()?, port.parse().ok()?)));
    let (cid, port) = parts.ok_or(io::ErrorKind::InvalidInput)?;
    VsockStream::connect_with_cid_port(cid, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_the_device_says_so_and_one_with_it_gives_each_guest_its_number() {
        match (Vsock::listen("a"), Vsock::listen("b")) {
            (Ok(a), Ok(b)) => assert!(a.cid != b.cid && a.cid > 2 && a.port != b.port),
            (Err(error), _) => assert!(error.to_string().contains("guest a cannot have vsock"), "{error}"),
            (Ok(_), Err(error)) => panic!("{error}"),
        }
        assert_eq!(connect("2;7").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
