//! Emulated disks: the real server, a real loop device, held against the data sheet. Needs root.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perflab_conduct::emulated::{Emulated, Mechanism, Request, Specification, begin, hurry, switch_of};
use perflab_conduct::settings::{Bench, UndoJournal, recover};
use perflab_model::study::DiskModel;

use crate::caches::Caches;
use crate::laboratory::{is_root, skip};

const SIZE: u64 = 2 << 30;
/// What a direct read has to be aligned to.
const BLOCK: usize = 4096;
const O_DIRECT: i32 = 0o40000;

/// Alone as long as this is held: a mount namespace that another test makes would keep the disk mounted, and what serves it.
pub fn may_emulate(test: &str) -> Option<Caches> {
    let reason = match () {
        () if !is_root() => "needs root",
        () if !Path::new("/dev/fuse").exists() => "needs /dev/fuse",
        () => return Some(Caches::alone()),
    };
    skip(test, reason);
    None
}

/// A disk that is served.
struct Served {
    /// opened past the page cache
    device: File,
    node: PathBuf,
    switch: PathBuf,
}

/// A disk of this model over an empty image, while `used` runs.
fn with_disk<T>(model: DiskModel, used: impl FnOnce(&Served) -> T) -> T {
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let image = home.path().join("image");
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    let mut bench = Bench::new(UndoJournal::new(&home.path().join("state"), "DISK", "boot"));
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let wanted = Emulated { perflab, model, image: &image, home: home.path() };
    let node = begin(wanted, bench.journal()).unwrap();
    let device = File::options().read(true).write(true).custom_flags(O_DIRECT).open(&node).unwrap();
    let served = Served { device, node, switch: switch_of(&home.path().join("mount")) };
    let result = used(&served);
    drop(served);
    let (_, failed) = bench.undo();
    assert!(failed.is_empty(), "{failed:?}");
    result
}

/// Places all over the disk, the same each time.
fn places() -> Vec<u64> {
    let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (SIZE / BLOCK as u64) * BLOCK as u64;
    (1..=60).map(spread).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// What single reads of a block take by the data sheet.
fn specified(model: DiskModel) -> Duration {
    let mut disk = Mechanism::new(Specification::of(model));
    let mut now = Duration::from_secs(1);
    let read = |offset| {
        let done = disk.done(now, Request { offset, length: BLOCK as u64, writes: false });
        let took = done - now;
        now = done;
        took
    };
    median(places().into_iter().map(read).collect())
}

/// What they take here, of several devices in turns. A buffer of a page's alignment lies somewhere in one of two pages.
fn measured<const DEVICES: usize>(devices: [&File; DEVICES]) -> [Duration; DEVICES] {
    let mut room = vec![0_u8; 2 * BLOCK];
    let begin = room.as_ptr().align_offset(BLOCK);
    let buffer = &mut room[begin..begin + BLOCK];
    let mut took = [const { Vec::new() }; DEVICES];
    for offset in places() {
        for (device, took) in devices.iter().zip(&mut took) {
            let begin = Instant::now();
            device.read_exact_at(buffer, offset).unwrap();
            took.push(begin.elapsed());
        }
    }
    took.map(median)
}

#[test]
fn disks_keep_to_their_data_sheets_root() {
    let Some(_caches) = may_emulate("disks_keep_to_their_data_sheets_root") else { return };
    for model in DiskModel::ALL {
        let specified = specified(model);
        // What this machine adds is seen beside it, on one that answers at once: who answers later is woken twice more.
        let beside = |disk: &Served| {
            with_disk(model, |prompt| {
                hurry(&prompt.switch);
                (0..3).map(|_| measured([&disk.device, &prompt.device])).collect()
            })
        };
        let tries: Vec<[Duration; 2]> = with_disk(model, beside);
        let about = || format!("{}: {tries:?}, by its data sheet {specified:?}", model.name());
        // Earlier than the data sheet is never right.
        assert!(tries.iter().all(|[took, _]| *took >= specified), "{}", about());
        let allowed = |added: Duration| specified.mul_f64(1.25) + Duration::from_millis(1) + 3 * added;
        assert!(tries.iter().any(|[took, added]| *took <= allowed(*added)), "{}", about());
    }
}

#[test]
fn a_disk_that_is_told_to_hurry_keeps_nobody_waiting_root() {
    let Some(_caches) = may_emulate("a_disk_that_is_told_to_hurry_keeps_nobody_waiting_root") else { return };
    let specified = specified(DiskModel::Hdd7200);
    let best = with_disk(DiskModel::Hdd7200, |disk| {
        hurry(&disk.switch);
        (0..3).map(|_| measured([&disk.device])).min().unwrap()
    });
    assert!(best[0] < specified, "{best:?}, by its data sheet {specified:?}");
}

#[test]
fn the_kernel_takes_it_for_such_a_disk_root() {
    let Some(_caches) = may_emulate("the_kernel_takes_it_for_such_a_disk_root") else { return };
    let (seen, under) = with_disk(DiskModel::Hdd7200, |Served { device, node, .. }| {
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
    let Some(_caches) = may_emulate("a_killed_runs_disk_goes_at_the_next_start_root") else { return };
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let (image, state) = (home.path().join("image"), home.path().join("state"));
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let mut bench = Bench::new(UndoJournal::new(&state, "KILLED", "boot"));
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let wanted = Emulated { perflab, model: DiskModel::Nvme, image: &image, home: home.path() };
    let device = begin(wanted, bench.journal()).unwrap();
    drop(bench);
    let under = Path::new("/sys/block").join(device.file_name().unwrap()).join("loop/backing_file");
    assert!(under.exists());
    let found = recover(&state, "boot");
    assert!(found.iter().all(|one| one.failed.is_empty()), "{found:?}");
    let is_ours =
        std::fs::read_to_string(&under).is_ok_and(|text| text.contains(home.path().to_str().unwrap()));
    assert!(!is_ours, "the loop device is given back");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(home.path().to_str().unwrap()));
}
