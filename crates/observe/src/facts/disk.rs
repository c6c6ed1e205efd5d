//! Family `disk`: block devices with their queues; mounted file systems with their options.

use std::collections::BTreeMap;

use perflab_model::Scalar;
use perflab_model::fact_table;

use crate::facts::collector::FactCollector;
use crate::mounts::unescape_mount_path;

const BLOCK: &str = "/sys/block";

const MOUNTS: &str = "/proc/self/mounts";

/// File systems without a device below them that a workload may still run on.
const WITHOUT_DEVICE: &[&str] = &["overlay", "zfs", "9p", "virtiofs", "tmpfs"];

/// Mount points of those that belong to the system.
const OF_THE_SYSTEM: &[&str] = &["/sys", "/proc", "/run", "/dev/"];

pub(crate) fn collect_disk_facts(notes: &mut FactCollector<'_>) {
    for name in notes.root.list(BLOCK) {
        collect_block_device(notes, &name);
    }
    collect_mounts(notes);
}

/// One block device, unless it is empty: a loop device without a file, a drive without a disk.
fn collect_block_device(notes: &mut FactCollector<'_>, name: &str) {
    let sectors = notes.read(&format!("{BLOCK}/{name}/size")).and_then(|text| text.parse::<i64>().ok());
    if sectors.unwrap_or(0) == 0 {
        return;
    }
    // In units of 512 bytes, whatever the device's own sectors are.
    notes.add_scaled(fact_table::DISK_SIZE.key(name), &format!("{BLOCK}/{name}/size"), 512);
    notes.add_file(fact_table::DISK_MODEL.key(name), &format!("{BLOCK}/{name}/device/model"));
    let queue = format!("{BLOCK}/{name}/queue");
    notes.add_flag(fact_table::DISK_ROTATIONAL.key(name), &format!("{queue}/rotational"), "1");
    notes.add_choice(fact_table::DISK_SCHEDULER.key(name), &format!("{queue}/scheduler"));
    notes.add_file(fact_table::DISK_NR_REQUESTS.key(name), &format!("{queue}/nr_requests"));
    notes.add_scaled(fact_table::DISK_READ_AHEAD.key(name), &format!("{queue}/read_ahead_kb"), 1024);
    notes.add_file(fact_table::DISK_WRITE_CACHE.key(name), &format!("{queue}/write_cache"));
    notes.add_file(fact_table::DISK_LOGICAL_BLOCK_SIZE.key(name), &format!("{queue}/logical_block_size"));
    notes.add_file(fact_table::DISK_WBT_LAT_USEC.key(name), &format!("{queue}/wbt_lat_usec"));
}

fn collect_mounts(notes: &mut FactCollector<'_>) {
    let text = notes.read(MOUNTS).unwrap_or_default();
    // What was mounted last over a mount point is what one finds there.
    let latest: BTreeMap<&str, MountsLine<'_>> = text.lines().filter_map(parse_mounts_line).collect();
    for (place, MountsLine { device, kind, options }) in latest {
        notes.add(fact_table::DISK_MOUNT_TYPE.key(place), kind, MOUNTS);
        notes.add(fact_table::DISK_MOUNT_OPTIONS.key(place), options, MOUNTS);
        notes.add(fact_table::DISK_MOUNT_DEVICE.key(place), device, MOUNTS);
        // A user's own file system may call itself anything, and never answer.
        if !kind.starts_with("fuse") {
            add_free_space(notes, place, device);
        }
    }
}

struct MountsLine<'t> {
    device: &'t str,
    kind: &'t str,
    options: &'t str,
}

/// A line of `/proc/self/mounts`, where a workload may run on what it names.
fn parse_mounts_line(line: &str) -> Option<(&str, MountsLine<'_>)> {
    let mut words = line.split(' ');
    let (device, place, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let of_system = OF_THE_SYSTEM.iter().any(|prefix| place.starts_with(prefix)) && place != "/dev/shm";
    let remote = device.contains(":/");
    let is_listed = device.starts_with("/dev/") || remote || (WITHOUT_DEVICE.contains(&kind) && !of_system);
    is_listed.then_some((place, MountsLine { device, kind, options }))
}

/// Free bytes, of this machine's local devices only: a server that is gone would never answer.
fn add_free_space(notes: &mut FactCollector<'_>, place: &str, device: &str) {
    if notes.root.is_host() && device.starts_with("/dev/") {
        let found = rustix::fs::statvfs(unescape_mount_path(place)).ok();
        let bytes = found.and_then(|disk| i64::try_from(disk.f_bavail.checked_mul(disk.f_frsize)?).ok());
        notes.add_optional(fact_table::DISK_FREE.key(place), bytes.map(Scalar::Int), "statvfs");
    }
}
