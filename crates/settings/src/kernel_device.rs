//! Which device a setting's file belongs to: another one may have got its name since.
//!
//! A network device is known by its index, a disk by its sequence number: the kernel gives neither twice within a boot. A loop device is
//! none of these: it is there before and after what lies under it, and keeps what was set.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where the kernel lists network devices, below whatever root.
const NETWORK_DEVICES: &str = "sys/class/net";

/// Folders of sysctls that have one folder for each network device.
const OF_NETWORK_DEVICES: &[&str] = &[
    "proc/sys/net/ipv4/conf",
    "proc/sys/net/ipv4/neigh",
    "proc/sys/net/ipv6/conf",
    "proc/sys/net/ipv6/neigh",
];

/// A device that a file of /sys or /proc/sys belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KernelDevice {
    /// The folder of its name: `/sys/class/net/eth0`, `/proc/sys/net/ipv4/conf/eth0`, `/sys/block/sda`.
    folder: PathBuf,
    /// Which device that was.
    number: DeviceNumber,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DeviceNumber {
    Ifindex(u64),
    Diskseq(u64),
}

impl DeviceNumber {
    /// Of a device's folder below /sys, or of the sysctls of one.
    fn of_folder(folder: &Path) -> Option<Self> {
        let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
        if let Some(listed) = folder_in_sysfs(folder) {
            return DeviceNumber::of_folder(&listed);
        }
        let is_loop = folder.file_name()?.to_str()?.starts_with("loop");
        let disk = || number("diskseq").filter(|_| !is_loop).map(DeviceNumber::Diskseq);
        number("ifindex").map(DeviceNumber::Ifindex).or_else(disk)
    }
}

/// Of a folder of one network device's sysctls, that of the device.
fn folder_in_sysfs(folder: &Path) -> Option<PathBuf> {
    let (kind, name) = (folder.parent()?, folder.file_name()?);
    let root = OF_NETWORK_DEVICES.iter().find_map(|known| kind.to_str()?.strip_suffix(known))?;
    Some(Path::new(root).join(NETWORK_DEVICES).join(name))
}

impl KernelDevice {
    /// The device that a file belongs to; none where it is of no network device or disk, or is not there.
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        path.ancestors().find_map(Self::of_folder)
    }

    /// A network device by its name.
    pub(crate) fn of_network_device(name: &str) -> Option<Self> {
        Self::of_folder(&Path::new("/").join(NETWORK_DEVICES).join(name))
    }

    fn of_folder(folder: &Path) -> Option<Self> {
        let number = DeviceNumber::of_folder(folder)?;
        Some(KernelDevice { folder: folder.into(), number })
    }

    /// Its name now; none where it is gone, whatever is called so.
    pub(crate) fn find_name(&self) -> Option<String> {
        let name = |folder: &Path| folder.file_name()?.to_str().map(str::to_owned);
        if DeviceNumber::of_folder(&self.folder) == Some(self.number) {
            return name(&self.folder);
        }
        let siblings = fs::read_dir(self.folder.parent()?).ok()?.flatten().map(|entry| entry.path());
        let mut renamed = siblings.filter(|folder| DeviceNumber::of_folder(folder) == Some(self.number));
        name(&renamed.next()?)
    }

    /// A file of it by the path that it had, under the device's name now; none where the device is gone.
    pub(crate) fn find_file(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.folder).ok()?;
        Some(self.folder.with_file_name(self.find_name()?).join(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_known_by_its_number_under_every_name() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/class/net/eth0/ifindex", "7\n");
        write("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n");
        write("proc/sys/net/ipv4/conf/eth0/forwarding", "0\n");
        write("proc/sys/net/ipv4/conf/all/forwarding", "0\n");
        write("sys/block/sda/diskseq", "3\n");
        write("sys/block/loop0/diskseq", "4\n");
        let place = |path: &str| home.path().join(path);
        let of = |path: &str| KernelDevice::of_file(&place(path));
        let (queue, conf) =
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "proc/sys/net/ipv4/conf/eth0/forwarding");
        let (by_queue, by_conf) = (of(queue).unwrap(), of(conf).unwrap());
        assert_eq!(by_queue.find_file(&place(queue)), Some(place(queue)));
        assert!(of("sys/block/sda/queue/scheduler").is_some());
        assert_eq!(
            (of("sys/block/loop0/queue/scheduler"), of("proc/sys/net/ipv4/conf/all/forwarding")),
            (None, None)
        );

        // Renamed, and another one has got its name.
        fs::rename(place("sys/class/net/eth0"), place("sys/class/net/lan")).unwrap();
        fs::rename(place("proc/sys/net/ipv4/conf/eth0"), place("proc/sys/net/ipv4/conf/lan")).unwrap();
        write("sys/class/net/eth0/ifindex", "8\n");
        write(conf, "0\n");
        assert_eq!(by_queue.find_file(&place(queue)), Some(place("sys/class/net/lan/queues/rx-0/rps_cpus")));
        assert_eq!(by_conf.find_file(&place(conf)), Some(place("proc/sys/net/ipv4/conf/lan/forwarding")));
        fs::remove_dir_all(place("sys/class/net/lan")).unwrap();
        assert_eq!((by_queue.find_file(&place(queue)), by_conf.find_name()), (None, None));
    }
}
