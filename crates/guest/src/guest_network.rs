//! Who a guest is on its networks: hardware and IP addresses, names, what its first process sets up.
//!
//! Nothing is asked for and nothing is assigned: every address follows from the guest's number among the targets, so that who is
//! where is known before anything boots.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use perflab_model::study::PortForward;
use serde::{Deserialize, Serialize};

/// The host on QEMU's user network,
pub const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// the server of names there,
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);

/// and the guest: each has a user network of its own.
const USER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);

/// The hardware address of a guest's card on its user network.
pub(crate) const HOST_CARD: [u8; 6] = [0x52, 0x54, 0x00, 0xff, 0x02, 0x0f];

/// The network cards of a guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestNetwork {
    /// Its card on a switch with other guests; none without.
    pub switch: Option<SwitchPort>,
    /// Whether a card leads to the host, and to what the host reaches.
    pub host: bool,
    /// TCP ports of the host's loopback address, and the guest's ports that they lead to.
    pub forward: Vec<PortForward>,
    /// Names that it knows, with their addresses.
    pub names: Vec<(String, Ipv4Addr)>,
}

/// A port of a [`crate::NetworkSwitch`], and who is behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPort {
    /// The switch's socket.
    pub socket: PathBuf,
    /// The guest's address there; its hardware address follows from it.
    pub address: Ipv4Addr,
}

/// A network card as the guest's first process sets it up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestInterface {
    /// Its hardware address, by which it is found: `52:54:00:4d:00:01`.
    pub hardware_address: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Bits of the address that are the network's.
    pub prefix: u8,
    /// Where everything else is reached; none where it leads nowhere.
    pub gateway: Option<Ipv4Addr>,
}

/// What a guest's first process has to know of its networks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestAddresses {
    /// Its cards.
    pub interfaces: Vec<GuestInterface>,
    /// For /etc/hosts.
    pub names: Vec<(String, Ipv4Addr)>,
    /// For /etc/resolv.conf.
    pub name_server: Option<Ipv4Addr>,
}

/// The address on the switch of the target of that number, from 0 on: 10.77.0.1 and the next.
pub fn switch_address(number: usize) -> Ipv4Addr {
    // A network of 16 bits has room for more guests than a host.
    let number = u16::try_from(number + 1).unwrap_or(u16::MAX);
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// The hardware address of the card with that address.
pub(crate) fn switch_hardware_address(address: Ipv4Addr) -> [u8; 6] {
    let [_, b, c, d] = address.octets();
    [0x52, 0x54, 0x00, b, c, d]
}

/// As QEMU and /sys write it.
pub(crate) fn format_hardware_address(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

impl GuestAddresses {
    /// What belongs to these cards.
    pub(crate) fn of_network(network: &GuestNetwork) -> Self {
        let switch = network.switch.as_ref().map(|port| GuestInterface {
            hardware_address: format_hardware_address(switch_hardware_address(port.address)),
            address: port.address,
            prefix: 16,
            gateway: None,
        });
        let host = network.host.then(|| GuestInterface {
            hardware_address: format_hardware_address(HOST_CARD),
            address: USER_ADDRESS,
            prefix: 24,
            gateway: Some(HOST_ADDRESS),
        });
        let itself = network.host.then(|| ("host".to_owned(), HOST_ADDRESS));
        GuestAddresses {
            interfaces: switch.into_iter().chain(host).collect(),
            names: network.names.iter().cloned().chain(itself).collect(),
            name_server: network.host.then_some(NAME_SERVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_an_address_of_its_own() {
        let all: std::collections::BTreeSet<Ipv4Addr> = (0..2000).map(switch_address).collect();
        assert_eq!(all.len(), 2000);
        assert_eq!(switch_address(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(switch_address(255), Ipv4Addr::new(10, 77, 1, 0));
        let cards = |address| format_hardware_address(switch_hardware_address(address));
        assert_eq!(cards(switch_address(256)), "52:54:00:4d:01:01");
        assert!(all.iter().all(|address| switch_hardware_address(*address) != HOST_CARD));
    }
}
