//! A guest's network as its first process sets it up: links, addresses, the default route (rtnetlink(7)), /etc/hosts.
//!
//! There is no `ip` in a bare guest, and nobody answers DHCP on the switch.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

use crate::guest_network::{GuestAddresses, GuestInterface};
use crate::init_protocol::InitError;
use crate::init_root::wait_for;

const RTM_NEWLINK: u16 = 16;

const RTM_NEWADDR: u16 = 20;

const RTM_NEWROUTE: u16 = 24;

const NLMSG_ERROR: u16 = 2;

const NLM_F_REQUEST: u16 = 1;

const NLM_F_ACK: u16 = 4;

const NLM_F_CREATE: u16 = 0x400;

const IFF_UP: u32 = 1;

const AF_INET: u8 = 2;

const IFA_ADDRESS: u16 = 1;

const IFA_LOCAL: u16 = 2;

const RTA_GATEWAY: u16 = 5;

const RT_TABLE_MAIN: u8 = 254;

const RTPROT_BOOT: u8 = 3;

const RTN_UNICAST: u8 = 1;

/// The kernel gives the loopback interface this index in every namespace.
const LOOPBACK: u32 = 1;

/// Brings `lo` up, as `ip link set lo up` does.
pub(crate) fn bring_loopback_up() -> io::Result<()> {
    RouteSocket::open()?.bring_up(LOOPBACK)
}

/// Gives every card its address; a card that does not come is an error.
pub(crate) fn set_up_interfaces(interfaces: &[GuestInterface]) -> Result<(), InitError> {
    if interfaces.is_empty() {
        return Ok(());
    }
    let mut route = RouteSocket::open().map_err(InitError::system_error("open", "a netlink socket"))?;
    for one in interfaces {
        let what =
            || format!("the network card {} of {} (CONFIG_VIRTIO_NET)", one.hardware_address, one.address);
        let folder = wait_for(|| find_interface(&one.hardware_address), what)?;
        let index = fs::read_to_string(folder.join("ifindex")).ok().and_then(|text| text.trim().parse().ok());
        let index = index.ok_or_else(|| InitError::Missing { what: what(), seconds: 0 })?;
        let set = route.set_up(index, one);
        set.map_err(InitError::system_error("set up", what()))?;
    }
    Ok(())
}

fn find_interface(hardware_address: &str) -> Option<PathBuf> {
    let all = fs::read_dir("/sys/class/net").ok()?.flatten().map(|entry| entry.path());
    let has_address = |folder: &PathBuf| {
        fs::read_to_string(folder.join("address")).is_ok_and(|text| text.trim() == hardware_address)
    };
    all.into_iter().find(has_address)
}

/// Writes down who is where, in the root that the guest has now. One that cannot be written to works by addresses.
pub(crate) fn write_names(addresses: &GuestAddresses, root: &Path) {
    if addresses.interfaces.is_empty() {
        return;
    }
    let folder = root.join("etc");
    let _ = fs::create_dir_all(&folder);
    let path = folder.join("hosts");
    let mut text = fs::read_to_string(&path).unwrap_or_else(|_| "127.0.0.1 localhost\n".into());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (name, address) in &addresses.names {
        text.push_str(&format!("{address} {name}\n"));
    }
    let _ = fs::write(&path, text);
    if let Some(server) = addresses.name_server {
        let path = folder.join("resolv.conf");
        // It may be a link to a file of a service that a guest has not.
        let _ = fs::remove_file(&path);
        let _ = fs::write(&path, format!("nameserver {server}\n"));
    }
}

/// A conversation with the kernel about interfaces.
struct RouteSocket {
    socket: OwnedFd,
}

impl RouteSocket {
    fn open() -> io::Result<Self> {
        Ok(RouteSocket { socket: socket(AddressFamily::NETLINK, SocketType::RAW, None)? })
    }

    fn bring_up(&mut self, index: u32) -> io::Result<()> {
        self.ask(RTM_NEWLINK, 0, &link_up_body(index))
    }

    fn set_up(&mut self, index: u32, interface: &GuestInterface) -> io::Result<()> {
        self.ask(RTM_NEWADDR, NLM_F_CREATE, &address_body(index, interface))?;
        self.bring_up(index)?;
        match interface.gateway {
            Some(gateway) => self.ask(RTM_NEWROUTE, NLM_F_CREATE, &default_route_body(gateway)),
            None => Ok(()),
        }
    }

    /// Sends a request and waits for the acknowledgement: without it the interface may still be down when the first benchmark starts.
    fn ask(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let message = with_header(kind, NLM_F_REQUEST | NLM_F_ACK | flags, body);
        sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0_u8; 1024];
        let (length, _) = recv(&self.socket, &mut answer, RecvFlags::empty())?;
        parse_acknowledgement(answer.get(..length).unwrap_or_default())
    }
}

/// What an `nlmsgerr` says: a header, then 0 or the negated number of the error.
fn parse_acknowledgement(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let number = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, number) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(number)) => Err(io::Error::from_raw_os_error(number.saturating_neg())),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// A header (length, type, flags, number, sender) before a body.
fn with_header(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(16 + body.len());
    message.extend_from_slice(&(16 + body.len() as u32).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&flags.to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(body);
    message
}

/// An `ifinfomsg`: family, type, index, flags, which of them change.
fn link_up_body(index: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    for word in [index, IFF_UP, IFF_UP] {
        body.extend_from_slice(&word.to_ne_bytes());
    }
    body
}

/// An `ifaddrmsg` (family, prefix, flags, scope, index) with the address twice: of the interface, and of the end of the link.
fn address_body(index: u32, interface: &GuestInterface) -> Vec<u8> {
    let mut body = vec![AF_INET, interface.prefix, 0, 0];
    body.extend_from_slice(&index.to_ne_bytes());
    body.extend(address_attribute(IFA_LOCAL, interface.address));
    body.extend(address_attribute(IFA_ADDRESS, interface.address));
    body
}

/// An `rtmsg` (family, lengths, service, table, origin, scope, type, flags) of the route to everywhere.
fn default_route_body(gateway: Ipv4Addr) -> Vec<u8> {
    let mut body = vec![AF_INET, 0, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, 0, RTN_UNICAST, 0, 0, 0, 0];
    body.extend(address_attribute(RTA_GATEWAY, gateway));
    body
}

/// An `rtattr`: length, type, content.
fn address_attribute(kind: u16, address: Ipv4Addr) -> Vec<u8> {
    let mut attribute = 8_u16.to_ne_bytes().to_vec();
    attribute.extend_from_slice(&kind.to_ne_bytes());
    attribute.extend_from_slice(&address.octets());
    attribute
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_long_as_they_say_and_answers_are_understood() {
        let interface = GuestInterface {
            hardware_address: "52:54:00:4d:00:01".into(),
            address: Ipv4Addr::new(10, 77, 0, 1),
            prefix: 16,
            gateway: None,
        };
        for body in [link_up_body(2), address_body(2, &interface), default_route_body(interface.address)] {
            let message = with_header(RTM_NEWADDR, NLM_F_REQUEST, &body);
            assert_eq!(message[..4], (message.len() as u32).to_ne_bytes());
            assert_eq!(message.len() % 4, 0);
        }
        let answer = |number: i32| with_header(NLMSG_ERROR, 0, &number.to_ne_bytes());
        assert!(parse_acknowledgement(&answer(0)).is_ok());
        assert_eq!(parse_acknowledgement(&answer(-17)).unwrap_err().raw_os_error(), Some(17));
        assert!(parse_acknowledgement(&[]).is_err());
    }

    #[test]
    fn names_come_after_those_that_are_there() {
        let root = tempfile::tempdir().unwrap();
        let switch = Some(crate::guest_network::SwitchPort {
            socket: "/s".into(),
            address: crate::guest_network::switch_address(0),
        });
        let names = vec![("guest2".to_owned(), crate::guest_network::switch_address(1))];
        let network = crate::guest_network::GuestNetwork { switch, host: true, forward: Vec::new(), names };
        let addresses = GuestAddresses::of_network(&network);
        write_names(&addresses, root.path());
        let hosts = fs::read_to_string(root.path().join("etc/hosts")).unwrap();
        assert_eq!(hosts, "127.0.0.1 localhost\n10.77.0.2 guest2\n10.0.2.2 host\n");
        write_names(&GuestAddresses::default(), root.path());
        assert_eq!(fs::read_to_string(root.path().join("etc/hosts")).unwrap(), hosts);
        assert!(root.path().join("etc/resolv.conf").is_file());
    }
}
