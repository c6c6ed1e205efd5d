//! Mounted file systems and the disks and partitions below them (`/proc/self/mountinfo`, `/sys/dev/block`).

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use perflab_formats::kernel::mountinfo::parse_mountinfo;
pub use perflab_formats::kernel::mountinfo::{MountEntry, unescape_mount_path};
use perflab_model::io_trace::{DeviceNumber, DiskPartition, SECTOR};

/// All mounts of this process.
#[derive(Debug, Clone, Default)]
pub struct MountTable(Vec<MountEntry>);

impl MountTable {
    /// Reads them.
    pub fn read() -> Self {
        Self::parse(fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// From the text of a `mountinfo`; lines that are none are left out. Bytes: one path that is not UTF-8 hides no other.
    pub fn parse(text: impl AsRef<[u8]>) -> Self {
        MountTable(parse_mountinfo(text.as_ref()).collect())
    }

    /// Whether a file system is mounted at this very path, which may lead there through links.
    pub fn has_mount_at(&self, path: &Path) -> bool {
        let place = resolve_parent_links(path);
        self.0.iter().any(|mount| mount.mount_point == place)
    }

    /// Where file systems are mounted at this path or below it.
    pub fn mount_points_within(&self, path: &Path) -> Vec<&Path> {
        let folder = resolve_parent_links(path);
        let places = self.0.iter().map(|mount| mount.mount_point.as_path());
        places.filter(|place| place.starts_with(&folder)).collect()
    }

    /// The mount that shows most of a file system.
    pub fn find_by_device(&self, device: DeviceNumber) -> Option<&MountEntry> {
        let all = self.0.iter().filter(|mount| mount.device == device);
        all.min_by_key(|mount| (mount.root.as_os_str().len(), mount.mount_point.as_os_str().len()))
    }

    /// The mount that a path lies on, asked of the kernel: what `stat` calls the device of a btrfs file is its subvolume's,
    /// and no mount's.
    pub fn find_by_path(&self, path: &Path) -> Option<&MountEntry> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = statx(CWD, path, flags, StatxFlags::MNT_ID).ok()?;
        self.0.iter().find(|mount| mount.id == found.stx_mnt_id)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &MountEntry> {
        self.0.iter()
    }
}

/// The path as the kernel calls it. Its last part is not looked at: a file system whose server is gone may be mounted there.
fn resolve_parent_links(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    match (absolute.parent().map(fs::canonicalize), absolute.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => absolute,
    }
}

/// The node of a disk in /dev, where it is a disk and has one.
pub fn device_node(device: DeviceNumber) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/sys/dev/block/{device}/uevent")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

/// Where a partition lies on its disk; none where the device is none.
pub fn partition_of_device(device: DeviceNumber) -> Option<DiskPartition> {
    let base = PathBuf::from(format!("/sys/dev/block/{device}"));
    let start: u64 = fs::read_to_string(base.join("start")).ok()?.trim().parse().ok()?;
    let disk = DeviceNumber::parse(&fs::read_to_string(base.join("../dev")).ok()?)?;
    Some(DiskPartition { device, disk, start: start * SECTOR })
}

/// The disk below a mount: its device, or where that is of the kernel's invention (btrfs), the node that was mounted.
pub fn disk_below(mount: &MountEntry) -> Option<DeviceNumber> {
    if is_disk_device(mount.device) {
        return Some(mount.device);
    }
    let node = fs::metadata(&mount.source).ok().filter(|node| node.file_type().is_block_device())?;
    Some(DeviceNumber::new(rustix::fs::major(node.rdev()), rustix::fs::minor(node.rdev())))
}

/// Where a mount's device lies on the disk that requests name; none where it is that disk.
pub fn partition_of_mount(mount: &MountEntry) -> Option<DiskPartition> {
    let below = disk_below(mount)?;
    let whole = DiskPartition { device: mount.device, disk: below, start: 0 };
    let part = partition_of_device(below).map(|part| DiskPartition { device: mount.device, ..part });
    part.or_else(|| (below != mount.device).then_some(whole))
}

/// Whether a device is a disk.
pub fn is_disk_device(device: DeviceNumber) -> bool {
    Path::new(&format!("/sys/dev/block/{device}")).exists()
}

/// Whether a disk is rotational: then the order of reads matters more than their number at a time.
pub fn is_rotational(device: DeviceNumber) -> Option<bool> {
    Some(fs::read_to_string(queue_setting_file(device, "rotational")?).ok()?.trim() == "1")
}

/// The file that says how many KiB the kernel reads around what is touched on a file system: its disk's, or its own (btrfs).
pub fn read_ahead_file(mount: &MountEntry) -> Option<PathBuf> {
    if mount.kind != "btrfs" {
        return queue_setting_file(disk_below(mount)?, "read_ahead_kb");
    }
    let digits = crate::io::file_ioctls::file_system_uuid(&File::open(&mount.mount_point).ok()?)?;
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part).unwrap_or_default());
    let path = format!("/sys/fs/btrfs/{}/bdi/read_ahead_kb", parts.join("-"));
    Some(path.into())
}

/// The file of a setting of a disk's queue, which of a partition is its disk's.
pub fn queue_setting_file(device: DeviceNumber, setting: &str) -> Option<PathBuf> {
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
        let mounts = MountTable::parse(text);
        assert_eq!(mounts.find_by_device(DeviceNumber::new(254, 0)).unwrap().mount_point, Path::new("/"));
        assert_eq!(mounts.iter().next().unwrap().mount_point, Path::new("/srv/a b"));
        assert_eq!(mounts.iter().count(), 3);
        assert!(mounts.find_by_device(DeviceNumber::new(1, 1)).is_none());
    }

    #[test]
    fn a_mount_is_found_through_a_link_too() {
        let home = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(home.path()).unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        let mounts = MountTable::parse(format!("1 0 0:9 / {}/place/below - tmpfs t rw\n", real.display()));
        fs::create_dir(real.join("place")).unwrap();
        assert!(
            mounts.has_mount_at(&real.join("link/place/below"))
                && !mounts.has_mount_at(&real.join("link/place"))
        );
        assert_eq!(mounts.mount_points_within(&real.join("link/place")), [real.join("place/below")]);
        assert!(mounts.mount_points_within(&real.join("link/pla")).is_empty());
    }
}
