//! Emulated disks: the real server, a real loop device, held against the data sheet; a study on one. Needs root.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use perflab_conduct::emulated::{Emulated, Mechanism, Request, Specification, begin};
use perflab_conduct::settings::{Bench, UndoJournal, recover};
use perflab_model::study::DiskModel;

use crate::laboratory::{Laboratory, is_root, skip};

const SIZE: u64 = 2 << 30;
/// What a direct read has to be aligned to.
const BLOCK: usize = 4096;
const O_DIRECT: i32 = 0o40000;

fn may_emulate(test: &str) -> bool {
    let reason = match () {
        () if !is_root() => "needs root",
        () if !Path::new("/dev/fuse").exists() => "needs /dev/fuse",
        () => return true,
    };
    skip(test, reason);
    false
}

/// A device of this model over an empty image, while `used` runs.
fn with_device<T>(model: DiskModel, used: impl FnOnce(&File) -> T) -> T {
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let image = home.path().join("image");
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    let mut bench = Bench::new(UndoJournal::new(&home.path().join("state"), "DISK", "boot"));
    let perflab = Path::new(env!("CARGO_BIN_EXE_perflab"));
    let wanted = Emulated { perflab, model, image: &image, home: home.path() };
    let device = begin(wanted, bench.journal()).unwrap();
    let opened = File::options().read(true).write(true).custom_flags(O_DIRECT).open(&device).unwrap();
    let result = used(&opened);
    drop(opened);
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

/// What they take here. A buffer of a page's alignment lies somewhere in one of two pages.
fn measured(device: &File) -> Duration {
    let mut room = vec![0_u8; 2 * BLOCK];
    let begin = room.as_ptr().align_offset(BLOCK);
    let buffer = &mut room[begin..begin + BLOCK];
    let mut read = |offset| {
        let begin = Instant::now();
        device.read_exact_at(buffer, offset).unwrap();
        begin.elapsed()
    };
    median(places().into_iter().map(&mut read).collect())
}

#[test]
fn disks_keep_to_their_data_sheets_root() {
    if !may_emulate("disks_keep_to_their_data_sheets_root") {
        return;
    }
    for model in DiskModel::ALL {
        let specified = specified(model);
        // Earlier than the data sheet is never right. Later is this machine's doing: the best of three times counts.
        let tries: Vec<Duration> = with_device(model, |device| (0..3).map(|_| measured(device)).collect());
        let (best, worst) = (tries.iter().min().unwrap(), tries.iter().max().unwrap());
        assert!(*best >= specified, "{}: {tries:?}, by its data sheet {specified:?}", model.name());
        let allowed = specified.mul_f64(1.25) + Duration::from_millis(1);
        assert!(*best <= allowed, "{}: {tries:?}, by its data sheet {specified:?}, {worst:?}", model.name());
    }
}

#[test]
fn the_kernel_takes_it_for_such_a_disk_root() {
    if !may_emulate("the_kernel_takes_it_for_such_a_disk_root") {
        return;
    }
    let looped =
        || std::process::Command::new("losetup").args(["--list", "--noheadings"]).output().unwrap().stdout;
    let seen = with_device(DiskModel::Hdd7200, |device| {
        let listed = String::from_utf8(looped()).unwrap();
        let line = listed.lines().find(|line| line.contains("served/disk.img")).unwrap().to_owned();
        let name = line.split_whitespace().next().unwrap().trim_start_matches("/dev/").to_owned();
        let queue =
            |setting: &str| std::fs::read_to_string(format!("/sys/block/{name}/queue/{setting}")).unwrap();
        let mut room = vec![7_u8; 2 * BLOCK];
        let begin = room.as_ptr().align_offset(BLOCK);
        let buffer = &mut room[begin..begin + BLOCK];
        device.write_all_at(buffer, 1 << 30).unwrap();
        buffer.fill(0);
        device.read_exact_at(buffer, 1 << 30).unwrap();
        assert!(buffer.iter().all(|byte| *byte == 7), "what was written is read");
        [queue("rotational"), queue("scheduler"), queue("read_ahead_kb")].map(|text| text.trim().to_owned())
    });
    assert_eq!(seen[0], "1");
    assert!(seen[1].contains("[mq-deadline]"), "{seen:?}");
    assert_eq!(seen[2], "128");
    assert!(
        !String::from_utf8(looped()).unwrap().contains("served/disk.img"),
        "the loop device is given back"
    );
}

#[test]
fn a_killed_runs_disk_goes_at_the_next_start_root() {
    if !may_emulate("a_killed_runs_disk_goes_at_the_next_start_root") {
        return;
    }
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

const STUDY: &str = r#"
[run]
iterations = 2
warmup = 0

[disk]
kind = "image"
size = "64MiB"

[workload.fs_mark]
parameters = { files = 20, size = 4096, threads = 1 }

[factor.model]
kind = "disk"
levels = ["hdd-7200", "nvme"]
"#;

#[test]
fn a_study_varies_the_disk_and_says_that_it_is_emulated_root() {
    if !may_emulate("a_study_varies_the_disk_and_says_that_it_is_emulated_root") {
        return;
    }
    let laboratory = Laboratory::new();
    let study = laboratory.study("disks.toml", STUDY);
    let ran = laboratory.good(&["run", &study]).err;
    assert!(
        ran.contains("the disk hdd-7200 is emulated") && ran.contains("the disk nvme is emulated"),
        "{ran}"
    );
    let shown = laboratory.good(&["compare", "@latest", "--by", "model"]).out;
    assert!(shown.contains("hdd-7200"), "{shown}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let left = mounts.lines().find(|line| line.contains("/dev/shm/perflab-"));
    assert_eq!(left, None, "disks are unmounted");
}
