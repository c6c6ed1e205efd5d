//! Disks that lie on others: a loop device on its file, RAID and device mapper on what sysfs calls their slaves.
//!
//! One read of such a device is seen twice, on it and on what lies below. Where its sectors below are in the
//! device's own order (linear and encrypted volumes, mirrors), they are translated, in `segments`; striped devices
//! are not translated.

pub(crate) mod segments;
#[cfg(test)]
mod tree;

use std::collections::BTreeSet;
use std::path::Path;

use perflab_model::io_trace::{DeviceNumber, IoRecording, SECTOR, SectorRange, StackedDisk};

use crate::io::file_description::{describe_file, describe_file_system};
use crate::mounts::MountTable;
use crate::root::Root;

pub use segments::{locate_stacked_devices, read_dmsetup_table};

/// The stacks among some disks: those of which it is known what lies below.
pub fn read_device_stacks(root: &Root, devices: &BTreeSet<DeviceNumber>) -> Vec<StackedDisk> {
    let stack = |device: &DeviceNumber| {
        let folder = format!("/sys/dev/block/{device}");
        let below = match root.read(&format!("{folder}/loop/backing_file")) {
            Ok(file) if root.is_host() => find_file_ranges(Path::new(&file)),
            Ok(_) => Vec::new(),
            Err(_) => {
                let slaves = root.list(&format!("{folder}/slaves"));
                let ranges =
                    slaves.iter().map(|name| find_slave_range(root, &format!("{folder}/slaves/{name}")));
                ranges.collect::<Option<Vec<_>>>().unwrap_or_default()
            }
        };
        (!below.is_empty()).then_some(StackedDisk { device: *device, below })
    };
    devices.iter().filter_map(stack).collect()
}

/// All of a disk, or a partition's part of its disk, which is what requests name.
fn find_slave_range(root: &Root, folder: &str) -> Option<SectorRange> {
    let number = |name: &str| root.read(&format!("{folder}/{name}")).ok()?.parse::<u64>().ok();
    let device = DeviceNumber::parse(&root.read(&format!("{folder}/dev")).ok()?)?;
    let sectors = number("size")?;
    let Some(first) = number("start") else { return Some(SectorRange { disk: device, first: 0, sectors }) };
    // A link leads to the partition's folder, which is in its disk's.
    let disk = DeviceNumber::parse(&root.read(&format!("/sys/dev/block/{device}/../dev")).ok()?)?;
    Some(SectorRange { disk, first, sectors })
}

/// Where a file lies on the disk that requests name.
fn find_file_ranges(path: &Path) -> Vec<SectorRange> {
    let mounts = MountTable::read();
    let Some((file, mount)) = describe_file(path).zip(mounts.find_by_path(path)) else { return Vec::new() };
    let device = file.device;
    let mut found = IoRecording { files: vec![file], ..IoRecording::default() };
    // Where the extents of a btrfs lie takes more than asking the file.
    describe_file_system(&mut found, mount);
    let (disk, start) = found.summary.disk_below(device);
    let extents = found.files.iter().flat_map(|file| &file.extents);
    let range = |from: u64, length: u64| SectorRange { disk, first: from / SECTOR, sectors: length / SECTOR };
    extents.map(|extent| range(start + extent.physical, extent.length)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::device_stack::tree::create_sysfs_tree;

    #[test]
    fn a_volume_on_a_raid_on_partitions_is_followed_by_its_slaves() {
        let (_home, root) = create_sysfs_tree(
            &[
                ("block/sda", &[("dev", "8:0"), ("size", "1000000")]),
                ("block/sda/sda1", &[("dev", "8:1"), ("start", "63"), ("size", "500000")]),
                ("block/sdb", &[("dev", "8:16"), ("size", "600000")]),
                ("block/md0", &[("dev", "9:0"), ("size", "499000")]),
                ("block/dm-0", &[("dev", "253:0"), ("size", "400000")]),
            ],
            &[
                ("dev/block/8:0", "block/sda"),
                ("dev/block/8:1", "block/sda/sda1"),
                ("dev/block/8:16", "block/sdb"),
                ("dev/block/9:0", "block/md0"),
                ("dev/block/253:0", "block/dm-0"),
                ("block/md0/slaves/sda1", "block/sda/sda1"),
                ("block/md0/slaves/sdb", "block/sdb"),
                ("block/dm-0/slaves/md0", "block/md0"),
            ],
        );
        let [sda, sdb, md] = [DeviceNumber::new(8, 0), DeviceNumber::new(8, 16), DeviceNumber::new(9, 0)];
        let volume = DeviceNumber::new(253, 0);
        let range = |disk, first, sectors| SectorRange { disk, first, sectors };
        let found = read_device_stacks(&root, &[sda, sdb, md, volume].into());
        let expected = [
            StackedDisk { device: md, below: vec![range(sda, 63, 500_000), range(sdb, 0, 600_000)] },
            StackedDisk { device: volume, below: vec![range(md, 0, 499_000)] },
        ];
        assert_eq!(found, expected);
        assert_eq!(read_device_stacks(&root, &[sda, DeviceNumber::new(1, 1)].into()), []);
    }
}
