//! File systems that are mounted here, and the disks below them (`/proc/self/mountinfo`, `/sys/dev/block`).

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use perflab_model::io::{Device, Partition, SECTOR};

/// A file system where it can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// the kernel's number of the mount
    pub id: u64,
    /// its device: the disk's, or one of the kernel's invention
    pub device: Device,
    /// the folder of the file system that is seen here; `/` is all of it
    pub root: PathBuf,
    /// where it is seen
    pub place: PathBuf,
    /// `ext4`
    pub kind: String,
    /// `/dev/vda`
    pub source: String,
}

/// All mounts of this process.
#[derive(Debug, Clone, Default)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads them.
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    /// From the text of a `mountinfo`; lines that are none are left out.
    pub fn parse(text: &str) -> Self {
        Mounts(text.lines().filter_map(mount).collect())
    }

    /// The mount that shows most of a file system.
    pub fn of(&self, device: Device) -> Option<&Mount> {
        let all = self.0.iter().filter(|mount| mount.device == device);
        all.min_by_key(|mount| (mount.root.as_os_str().len(), mount.place.as_os_str().len()))
    }

    /// The mount that a path lies on, asked of the kernel: what `stat` calls the device of a btrfs file is its subvolume's,
    /// and no mount's.
    pub fn under(&self, path: &Path) -> Option<&Mount> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = statx(CWD, path, flags, StatxFlags::MNT_ID).ok()?;
        self.0.iter().find(|mount| mount.id == found.stx_mnt_id)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }
}

/// `36 35 98:0 /root /place rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn mount(line: &str) -> Option<Mount> {
    let (first, second) = line.split_once(" - ")?;
    let mut first = first.split(' ');
    let mut second = second.split(' ');
    Some(Mount {
        id: first.next()?.parse().ok()?,
        device: Device::parse(first.nth(1)?)?,
        root: unescaped(first.next()?),
        place: unescaped(first.next()?),
        kind: second.next()?.into(),
        source: second.next()?.into(),
    })
}

/// Spaces and the like stand as `\040`.
fn unescaped(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => plain.extend([char::from(code)].into_iter().chain(part.chars().skip(3))),
            None => plain.extend(std::iter::once('\\').chain(part.chars())),
        }
    }
    plain.into()
}

/// The node of a disk in /dev, where it is a disk and has one.
pub fn node(device: Device) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/sys/dev/block/{device}/uevent")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

/// Where a partition lies on its disk; none where the device is none.
pub fn partition(device: Device) -> Option<Partition> {
    let base = PathBuf::from(format!("/sys/dev/block/{device}"));
    let start: u64 = fs::read_to_string(base.join("start")).ok()?.trim().parse().ok()?;
    let disk = Device::parse(&fs::read_to_string(base.join("../dev")).ok()?)?;
    Some(Partition { device, disk, start: start * SECTOR })
}

/// The disk below a mount: its device, or where that is of the kernel's invention (btrfs), the node that was mounted.
pub fn disk(mount: &Mount) -> Option<Device> {
    if is_disk(mount.device) {
        return Some(mount.device);
    }
    let node = fs::metadata(&mount.source).ok().filter(|node| node.file_type().is_block_device())?;
    Some(Device::new(rustix::fs::major(node.rdev()), rustix::fs::minor(node.rdev())))
}

/// Where a mount's device lies on the disk that requests name; none where it is that disk.
pub fn place(mount: &Mount) -> Option<Partition> {
    let below = disk(mount)?;
    let whole = Partition { device: mount.device, disk: below, start: 0 };
    let part = partition(below).map(|part| Partition { device: mount.device, ..part });
    part.or_else(|| (below != mount.device).then_some(whole))
}

/// Whether a device is a disk.
pub fn is_disk(device: Device) -> bool {
    Path::new(&format!("/sys/dev/block/{device}")).exists()
}

/// Whether a disk turns: then the order of reads matters more than their number at a time.
pub fn rotates(device: Device) -> Option<bool> {
    Some(fs::read_to_string(queue(device, "rotational")?).ok()?.trim() == "1")
}

/// The file that says how many KiB the kernel reads around what is touched on a file system: its disk's, or its own (btrfs).
pub fn read_ahead(mount: &Mount) -> Option<PathBuf> {
    if mount.kind != "btrfs" {
        return queue(disk(mount)?, "read_ahead_kb");
    }
    let digits = super::uuid(&File::open(&mount.place).ok()?)?;
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part).unwrap_or_default());
    let path = format!("/sys/fs/btrfs/{}/bdi/read_ahead_kb", parts.join("-"));
    Some(path.into())
}

/// The file of a setting of a disk's queue, which of a partition is its disk's.
pub fn queue(device: Device, setting: &str) -> Option<PathBuf> {
    let base = PathBuf::from(format!("/sys/dev/block/{device}"));
    let places = ["queue", "../queue"].map(|folder| base.join(folder).join(setting));
    places.into_iter().find(|place| place.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_view_of_a_file_system_is_taken() {
        let text = "1 0 254:0 /var /srv/a\\040b rw shared:1 - ext4 /dev/vda rw\n\
                    2 0 254:0 / / rw - ext4 /dev/vda rw\n3 0 0:5 / /proc rw - proc proc rw\nnonsense\n";
        let mounts = Mounts::parse(text);
        assert_eq!(mounts.of(Device::new(254, 0)).unwrap().place, Path::new("/"));
        assert_eq!(mounts.iter().next().unwrap().place, Path::new("/srv/a b"));
        assert_eq!(mounts.iter().count(), 3);
        assert!(mounts.of(Device::new(1, 1)).is_none());
    }
}
