//! The loopback interface: benchmarks that speak to themselves need it, and nobody else brings it up here.

use std::io;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFF_UP: u32 = 1;
/// The kernel gives the loopback interface this index in every namespace.
const LOOPBACK: u32 = 1;

/// Brings `lo` up, as `ip link set lo up` does (rtnetlink(7)).
pub(super) fn bring_loopback_up() -> io::Result<()> {
    let netlink = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    sendto(&netlink, &link_up_request(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // The acknowledgement: without it the interface may still be down when the first benchmark starts.
    let mut answer = [0_u8; 256];
    recv(&netlink, &mut answer, RecvFlags::empty())?;
    Ok(())
}

/// A header (length, type, flags, number, sender) and an `ifinfomsg` (family, type, index, flags, change).
fn link_up_request() -> Vec<u8> {
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message.extend_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&[0; 4]);
    for word in [LOOPBACK, IFF_UP, IFF_UP] {
        message.extend_from_slice(&word.to_ne_bytes());
    }
    message
}
