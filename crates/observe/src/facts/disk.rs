//! Family `disk`: block devices with their queues; mounted file systems with their options.

use std::collections::BTreeMap;

use perflab_model::Value;

use super::notes::Notes;
use crate::io::mounts::unescaped;

const BLOCK: &str = "/sys/block";
const MOUNTS: &str = "/proc/self/mounts";

/// File systems without a device below them that a workload may still run on.
const WITHOUT_DEVICE: &[&str] = &["overlay", "zfs", "9p", "virtiofs", "tmpfs"];
/// Places of those that belong to the system.
const OF_THE_SYSTEM: &[&str] = &["/sys", "/proc", "/run", "/dev/"];

pub(super) fn collect(notes: &mut Notes<'_>) {
    for name in notes.root.list(BLOCK) {
        device(notes, &name);
    }
    mounts(notes);
}

/// One block device, unless it is empty: a loop device without a file, a drive without a disk.
fn device(notes: &mut Notes<'_>, name: &str) {
    let sectors = notes.read(&format!("{BLOCK}/{name}/size")).and_then(|text| text.parse::<i64>().ok());
    if sectors.unwrap_or(0) == 0 {
        return;
    }
    // In units of 512 bytes, whatever the device's own sectors are.
    notes.scaled(&format!("disk.{name}.size"), &format!("{BLOCK}/{name}/size"), 512);
    notes.file(&format!("disk.{name}.model"), &format!("{BLOCK}/{name}/device/model"));
    let queue = format!("{BLOCK}/{name}/queue");
    notes.switch(&format!("disk.{name}.rotational"), &format!("{queue}/rotational"), "1");
    notes.choice(&format!("disk.{name}.scheduler"), &format!("{queue}/scheduler"));
    notes.file(&format!("disk.{name}.nr_requests"), &format!("{queue}/nr_requests"));
    notes.scaled(&format!("disk.{name}.read_ahead"), &format!("{queue}/read_ahead_kb"), 1024);
    notes.file(&format!("disk.{name}.write_cache"), &format!("{queue}/write_cache"));
    notes.file(&format!("disk.{name}.logical_block_size"), &format!("{queue}/logical_block_size"));
    notes.file(&format!("disk.{name}.wbt_lat_usec"), &format!("{queue}/wbt_lat_usec"));
}

fn mounts(notes: &mut Notes<'_>) {
    let text = notes.read(MOUNTS).unwrap_or_default();
    // What was mounted last over a place is what one finds there.
    let latest: BTreeMap<&str, Mount<'_>> = text.lines().filter_map(mount).collect();
    for (place, Mount { device, kind, options }) in latest {
        notes.add(&format!("disk.mount.{place}.type"), kind, MOUNTS);
        notes.add(&format!("disk.mount.{place}.options"), options, MOUNTS);
        notes.add(&format!("disk.mount.{place}.device"), device, MOUNTS);
        // A user's own file system may call itself anything, and never answer.
        if !kind.starts_with("fuse") {
            free(notes, place, device);
        }
    }
}

struct Mount<'t> {
    device: &'t str,
    kind: &'t str,
    options: &'t str,
}

/// A line of `/proc/self/mounts`, where a workload may run on what it tells of.
fn mount(line: &str) -> Option<(&str, Mount<'_>)> {
    let mut words = line.split(' ');
    let (device, place, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let of_system = OF_THE_SYSTEM.iter().any(|prefix| place.starts_with(prefix)) && place != "/dev/shm";
    let remote = device.contains(":/");
    let wanted = device.starts_with("/dev/") || remote || (WITHOUT_DEVICE.contains(&kind) && !of_system);
    wanted.then_some((place, Mount { device, kind, options }))
}

/// Free bytes, of this machine's local devices only: a server that is gone would never answer.
fn free(notes: &mut Notes<'_>, place: &str, device: &str) {
    if notes.root.is_host() && device.starts_with("/dev/") {
        let found = rustix::fs::statvfs(unescaped(place)).ok();
        let bytes = found.and_then(|disk| i64::try_from(disk.f_bavail.checked_mul(disk.f_frsize)?).ok());
        notes.add_known(&format!("disk.free.{place}"), bytes.map(Value::Int), "statvfs");
    }
}
