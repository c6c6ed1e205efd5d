//! Mounted file systems and the disks and partitions below them (`/proc/self/mountinfo`, `/sys/dev/block`).

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use perflab_model::io_trace::{DeviceNumber, DiskPartition, SECTOR};

/// A file system where it can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// the kernel's number of the mount
    pub id: u64,
    /// its device: the disk's, or one of the kernel's invention
    pub device: DeviceNumber,
    /// the folder of the file system that is mounted here; `/` is all of it
    pub root: PathBuf,
    /// where it is seen
    pub mount_point: PathBuf,
    /// `ext4`
    pub kind: String,
    /// `/dev/vda`
    pub source: String,
    /// the user who mounted it, as the kernel says of FUSE file systems
    pub maker: Option<u32>,
}

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
        MountTable(text.as_ref().split(|byte| *byte == b'\n').filter_map(parse_mountinfo_line).collect())
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

/// `36 35 98:0 /root /place rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse_mountinfo_line(line: &[u8]) -> Option<MountEntry> {
    let middle = line.windows(3).position(|three| three == b" - ")?;
    let words =
        |part: &[u8]| -> Vec<Vec<u8>> { part.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect() };
    let (first, second) = (words(line.get(..middle)?), words(line.get(middle + 3..)?));
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let options = text(second.get(2).map_or(&[][..], Vec::as_slice));
    let maker = options.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
    Some(MountEntry {
        id: text(first.first()?).parse().ok()?,
        device: DeviceNumber::parse(&text(first.get(2)?))?,
        root: unescape_mount_path(first.get(3)?),
        mount_point: unescape_mount_path(first.get(4)?),
        kind: text(second.first()?),
        source: unescape_mount_path(second.get(1)?).to_string_lossy().into_owned(),
        maker,
    })
}

/// A path as the kernel's tables (`mountinfo`, `mounts`, `swaps`) write it: blanks, tabs, line ends and backslashes are written in
/// eights, a blank as `\040`.
pub fn unescape_mount_path(text: impl AsRef<[u8]>) -> PathBuf {
    let (mut rest, mut plain) = (text.as_ref(), Vec::new());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        plain.push(code.unwrap_or(*first));
        rest = after.get(if code.is_some() { 3 } else { 0 }..).unwrap_or_default();
    }
    OsString::from_vec(plain).into()
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
    fn names_are_read_as_they_are_whatever_they_hold() {
        let strange = b"1 0 254:0 / /a\\040b\\011c\\012d\\134e - ext4 /dev/vda rw\n2 0 0:9 / /no\xfftext - fuse some\\040disk rw\n";
        let mounts = MountTable::parse(strange);
        let all: Vec<&MountEntry> = mounts.iter().collect();
        assert_eq!(all[0].mount_point, Path::new("/a b\tc\nd\\e"));
        assert_eq!(all[1].mount_point.as_os_str().as_encoded_bytes(), b"/no\xfftext");
        assert_eq!(all[1].source, "some disk");
        assert_eq!(unescape_mount_path("/a\\04"), Path::new("/a\\04"));
    }

    #[test]
    fn who_made_a_mount_says_the_kernel_and_not_its_name() {
        let maker = |line: &str| MountTable::parse(line).iter().next().unwrap().maker;
        let line =
            |options: &str| format!("36 35 0:98 / /a rw,relatime - fuse perflab-emulated-disk {options}");
        assert_eq!(maker(&line("rw,user_id=0,group_id=0")), Some(0));
        assert_eq!(maker(&line("rw,user_id=65534,group_id=0,allow_other")), Some(65534));
        assert_eq!(maker(&line("rw")), None);
        assert_eq!(maker("36 35 0:98 / /user_id=0 rw,user_id=0 - tmpfs t rw"), None);
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
