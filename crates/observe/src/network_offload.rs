//! What a network device does in place of the kernel, one switch each: read and set by ethtool's ioctl
//! (include/uapi/linux/ethtool.h).

#![expect(unsafe_code, reason = "an ioctl takes pointers")]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

/// A switch of a network device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkOffload {
    /// large packets are cut by the device: TCP segmentation offload
    Tso,
    /// large packets are cut as late as possible: generic segmentation offload
    Gso,
    /// packets that came are joined: generic receive offload
    Gro,
    /// packets that came are joined by the device: large receive offload
    Lro,
    /// the device checks sums of what comes
    RxChecksum,
    /// the device makes sums of what goes
    TxChecksum,
}

/// `ETH_FLAG_LRO`: the one of these that is a bit among flags.
const LRO_FLAG: u32 = 1 << 15;

/// `struct ethtool_value`
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

impl NetworkOffload {
    /// All of them.
    pub const ALL: [NetworkOffload; 6] = [
        NetworkOffload::Tso,
        NetworkOffload::Gso,
        NetworkOffload::Gro,
        NetworkOffload::Lro,
        NetworkOffload::RxChecksum,
        NetworkOffload::TxChecksum,
    ];

    /// As settings call it.
    pub fn name(self) -> &'static str {
        match self {
            NetworkOffload::Tso => "tso",
            NetworkOffload::Gso => "gso",
            NetworkOffload::Gro => "gro",
            NetworkOffload::Lro => "lro",
            NetworkOffload::RxChecksum => "rx-checksum",
            NetworkOffload::TxChecksum => "tx-checksum",
        }
    }

    /// `ETHTOOL_G…` and `ETHTOOL_S…`.
    fn commands(self) -> (u32, u32) {
        match self {
            NetworkOffload::Tso => (0x1e, 0x1f),
            NetworkOffload::Gso => (0x23, 0x24),
            NetworkOffload::Gro => (0x2b, 0x2c),
            NetworkOffload::Lro => (0x25, 0x26),
            NetworkOffload::RxChecksum => (0x14, 0x15),
            NetworkOffload::TxChecksum => (0x16, 0x17),
        }
    }

    /// Whether a device does it.
    ///
    /// # Errors
    /// There is no such device, or it has no such switch.
    pub fn read(self, device: &str) -> io::Result<bool> {
        let data = self.read_data(device)?;
        Ok(if self == NetworkOffload::Lro { data & LRO_FLAG != 0 } else { data != 0 })
    }

    /// Has a device do it, or not; whether it does is to be read back: one that always does says nothing against it.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN; or the device refuses.
    pub fn set(self, device: &str, is_on: bool) -> io::Result<()> {
        let data = match self {
            NetworkOffload::Lro if is_on => self.read_data(device)? | LRO_FLAG,
            NetworkOffload::Lro => self.read_data(device)? & !LRO_FLAG,
            _ => u32::from(is_on),
        };
        send_ethtool_request(device, &mut EthtoolValue { command: self.commands().1, data })
    }

    fn read_data(self, device: &str) -> io::Result<u32> {
        let mut value = EthtoolValue { command: self.commands().0, data: 0 };
        send_ethtool_request(device, &mut value)?;
        Ok(value.data)
    }
}

/// `SIOCETHTOOL`
const ETHTOOL_REQUEST: u64 = 0x8946;

fn send_ethtool_request(device: &str, value: &mut EthtoolValue) -> io::Result<()> {
    let socket: OwnedFd = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: zeros are a request without a name.
    let mut asked: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.is_empty() || device.len() >= asked.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (into, byte) in asked.ifr_name.iter_mut().zip(device.bytes()) {
        *into = byte as libc::c_char;
    }
    asked.ifr_ifru.ifru_data = (value as *mut EthtoolValue).cast();
    // SAFETY: the request and the value that it points to live until the call returns, and are of the types that it wants.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), ETHTOOL_REQUEST as _, &mut asked) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_switches_and_what_is_not_there_has_none() {
        let read = |device: &str| NetworkOffload::ALL.map(|offload| offload.read(device).is_ok());
        assert_eq!(read("lo"), [true; 6]);
        for device in ["", "nothing-of-this", "a-name-that-is-too-long-for-the-kernel"] {
            assert_eq!(read(device), [false; 6], "{device}");
        }
    }
}
