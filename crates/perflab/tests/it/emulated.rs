//! Emulated disks: the real server, a real loop device, held against the data sheet. Needs root.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perflab_disk::{
    DiskDataSheet, DiskMechanics, DiskRequest, EmulatedDiskOptions, begin_emulated_disk, delay_switch,
};
use perflab_model::study::DiskModel;
use perflab_settings::{AppliedSettings, UndoJournal, end_delays, recover_killed_runs};

use crate::caches::CachesLock;
use crate::laboratory::{is_root, skip_test};

const SIZE: u64 = 2 << 30;
/// What a direct read has to be aligned to.
const BLOCK: usize = 4096;
const O_DIRECT: i32 = 0o40000;

/// Alone as long as this is held: a mount namespace that another test makes would keep the disk mounted, and what serves it.
pub fn lock_emulation(test: &str) -> Option<CachesLock> {
    let reason = match () {
        () if !is_root() => "needs root",
        () if !Path::new("/dev/fuse").exists() => "needs /dev/fuse",
        () => return Some(CachesLock::acquire()),
    };
    skip_test(test, reason);
    None
}

/// A disk that is served.
struct ServedDisk {
    /// opened past the page cache
    device: File,
    node: PathBuf,
    switch: PathBuf,
}

/// A disk of this model over an empty image, while `used` runs.
fn with_served_disk<T>(model: DiskModel, used: impl FnOnce(&ServedDisk) -> T) -> T {
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let image = home.path().join("image");
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    let mut bench = AppliedSettings::new(UndoJournal::new(&home.path().join("state"), "DISK", "boot"));
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let wanted = EmulatedDiskOptions { perflab, model, image: &image, home: home.path() };
    let node = begin_emulated_disk(wanted, bench.journal()).unwrap();
    let device = File::options().read(true).write(true).custom_flags(O_DIRECT).open(&node).unwrap();
    let served = ServedDisk { device, node, switch: delay_switch(&home.path().join("mount")) };
    let result = used(&served);
    drop(served);
    let failed = bench.undo_all().failed;
    assert!(failed.is_empty(), "{failed:?}");
    result
}

/// Places all over the disk, the same each time.
fn read_offsets() -> Vec<u64> {
    let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (SIZE / BLOCK as u64) * BLOCK as u64;
    (1..=60).map(spread).collect()
}

fn median_duration(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// What single reads of a block take by the data sheet.
fn specified_read_time(model: DiskModel) -> Duration {
    let mut disk = DiskMechanics::new(DiskDataSheet::of_model(model));
    let mut now = Duration::from_secs(1);
    let read = |offset| {
        let done = disk.completion(now, DiskRequest { offset, length: BLOCK as u64, writes: false });
        let took = done - now;
        now = done;
        took
    };
    median_duration(read_offsets().into_iter().map(read).collect())
}

/// What they take here, of several devices in turns. A buffer of a page's alignment lies somewhere in one of two pages.
fn measure_read_times<const DEVICES: usize>(devices: [&File; DEVICES]) -> [Duration; DEVICES] {
    let mut room = vec![0_u8; 2 * BLOCK];
    let begin = room.as_ptr().align_offset(BLOCK);
    let buffer = &mut room[begin..begin + BLOCK];
    let mut took = [const { Vec::new() }; DEVICES];
    for offset in read_offsets() {
        for (device, took) in devices.iter().zip(&mut took) {
            let begin = Instant::now();
            device.read_exact_at(buffer, offset).unwrap();
            took.push(begin.elapsed());
        }
    }
    took.map(median_duration)
}

#[test]
fn disks_keep_to_their_data_sheets_root() {
    let Some(_caches) = lock_emulation("disks_keep_to_their_data_sheets_root") else { return };
    for model in DiskModel::ALL {
        let specified = specified_read_time(model);
        let allowed = |added: Duration| specified.mul_f64(1.25) + Duration::from_millis(1) + 3 * added;
        // What this machine adds is seen beside it, on one that answers at once: who answers later is woken twice more.
        let beside = |disk: &ServedDisk| {
            with_served_disk(model, |prompt| {
                end_delays(&prompt.switch);
                let mut tries: Vec<[Duration; 2]> = Vec::new();
                // A busy machine may wake it late many times.
                while tries.len() < 100 && !tries.iter().any(|[took, added]| *took <= allowed(*added)) {
                    tries.push(measure_read_times([&disk.device, &prompt.device]));
                }
                tries
            })
        };
        let tries: Vec<[Duration; 2]> = with_served_disk(model, beside);
        let about = || format!("{}: {tries:?}, by its data sheet {specified:?}", model.name());
        // Earlier than the data sheet is never right.
        assert!(tries.iter().all(|[took, _]| *took >= specified), "{}", about());
        assert!(tries.iter().any(|[took, added]| *took <= allowed(*added)), "{}", about());
    }
}

#[test]
fn a_disk_that_is_told_to_hurry_keeps_nobody_waiting_root() {
    let Some(_caches) = lock_emulation("a_disk_that_is_told_to_hurry_keeps_nobody_waiting_root") else {
        return;
    };
    let specified = specified_read_time(DiskModel::Hdd7200);
    let best = with_served_disk(DiskModel::Hdd7200, |disk| {
        end_delays(&disk.switch);
        (0..3).map(|_| measure_read_times([&disk.device])).min().unwrap()
    });
    assert!(best[0] < specified, "{best:?}, by its data sheet {specified:?}");
}

#[test]
fn the_kernel_takes_it_for_such_a_disk_root() {
    let Some(_caches) = lock_emulation("the_kernel_takes_it_for_such_a_disk_root") else { return };
    let (seen, under) = with_served_disk(DiskModel::Hdd7200, |ServedDisk { device, node, .. }| {
        let about = Path::new("/sys/block").join(node.file_name().unwrap());
        let queue = |setting: &str| std::fs::read_to_string(about.join("queue").join(setting)).unwrap();
        let backing = about.join("loop/backing_file");
        let under = (std::fs::read_to_string(&backing).unwrap(), backing);
        let mut room = vec![7_u8; 2 * BLOCK];
        let begin = room.as_ptr().align_offset(BLOCK);
        let buffer = &mut room[begin..begin + BLOCK];
        device.write_all_at(buffer, 1 << 30).unwrap();
        buffer.fill(0);
        device.read_exact_at(buffer, 1 << 30).unwrap();
        assert!(buffer.iter().all(|byte| *byte == 7), "what was written is read");
        let settings = ["rotational", "scheduler", "read_ahead_kb"];
        (settings.map(|setting| queue(setting).trim().to_owned()), under)
    });
    assert_eq!(seen[0], "1");
    assert!(seen[1].contains("[mq-deadline]"), "{seen:?}");
    assert_eq!(seen[2], "128");
    let (file, backing) = under;
    assert!(file.contains("served/disk.img"), "{file}");
    let now = std::fs::read_to_string(backing).unwrap_or_default();
    assert_ne!(now, file, "the loop device is given back");
}

#[test]
fn a_killed_runs_disk_goes_at_the_next_start_root() {
    let Some(_caches) = lock_emulation("a_killed_runs_disk_goes_at_the_next_start_root") else { return };
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let (image, state) = (home.path().join("image"), home.path().join("state"));
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let mut bench = AppliedSettings::new(UndoJournal::new(&state, "KILLED", "boot"));
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let wanted = EmulatedDiskOptions { perflab, model: DiskModel::Nvme, image: &image, home: home.path() };
    let device = begin_emulated_disk(wanted, bench.journal()).unwrap();
    drop(bench);
    let under = Path::new("/sys/block").join(device.file_name().unwrap()).join("loop/backing_file");
    assert!(under.exists());
    let found = recover_killed_runs(&state, "boot");
    assert!(found.iter().all(|one| one.failed.is_empty()), "{found:?}");
    let is_ours =
        std::fs::read_to_string(&under).is_ok_and(|text| text.contains(home.path().to_str().unwrap()));
    assert!(!is_ours, "the loop device is given back");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(home.path().to_str().unwrap()));
}
