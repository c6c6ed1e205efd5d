//! The scratch disk: a real image, loop-mounted, for each file system; needs root.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use perflab_disk::scratch_disk;
use perflab_model::study::{DiskKind, ScratchDisk};
use perflab_model::{PlannedDisk, Setting};
use perflab_settings::{AppliedSettings, UndoJournal, UndoneSettings, recover_killed_runs};

fn image_disk(filesystem: &str) -> ScratchDisk {
    ScratchDisk {
        kind: DiskKind::Image,
        path: None,
        size: Some("320MiB".into()),
        filesystem: Some(filesystem.into()),
        mkfs: vec![],
        mount: Some("noatime".into()),
        model: None,
    }
}

fn planned_disk(disk: ScratchDisk, folder: &Path) -> PlannedDisk {
    PlannedDisk { levels: Default::default(), disk, folder: Some(folder.into()) }
}

/// Held by tests that start programs: one that is being started holds every journal's lock until its exec, and the journal of a
/// killed run is then taken for that of a living one.
static STARTS: Mutex<()> = Mutex::new(());

fn lock_mounting(test: &str, filesystem: &str) -> Option<MutexGuard<'static, ()>> {
    let program = format!("mkfs.{filesystem}");
    let found =
        ["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|folder| Path::new(folder).join(&program).exists());
    let reason = if !rustix::process::geteuid().is_root() {
        "needs root"
    } else if !found {
        "mkfs is not installed"
    } else {
        return Some(STARTS.lock().unwrap_or_else(PoisonError::into_inner));
    };
    assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{test} {filesystem}: {reason}");
    eprintln!("SKIP {test} {filesystem}: {reason}");
    None
}

fn read_mounts() -> String {
    fs::read_to_string("/proc/self/mounts").unwrap()
}

#[test]
fn an_image_is_made_mounted_and_removed_root() {
    for filesystem in ["ext4", "xfs", "btrfs"] {
        let Some(_starts) = lock_mounting("an_image_is_made_mounted_and_removed_root", filesystem) else {
            continue;
        };
        let home = tempfile::tempdir().unwrap();
        let mut bench = AppliedSettings::new(UndoJournal::new(&home.path().join("state"), "IMG", "boot"));
        let disk = image_disk(filesystem);
        assert_eq!(scratch_disk::check_disk(&planned_disk(disk.clone(), home.path()), true), []);
        let place = scratch_disk::prepare_scratch_disk(
            &planned_disk(disk.clone(), home.path()),
            "IMG",
            Path::new("perflab"),
            bench.journal(),
        )
        .unwrap();
        let line =
            read_mounts().lines().find(|line| line.contains(place.to_str().unwrap())).unwrap().to_owned();
        assert!(line.contains(filesystem) && line.contains("noatime"), "{line}");
        fs::write(place.join("file"), "on its own file system").unwrap();
        let UndoneSettings { undone, failed, .. } = bench.undo_all();
        assert_eq!((undone.len(), failed.len()), (2, 0), "{failed:?}");
        assert!(!place.exists() && !read_mounts().contains(place.to_str().unwrap()));
    }
}

#[test]
fn a_killed_runs_mount_goes_at_the_next_start_root() {
    let Some(_starts) = lock_mounting("a_killed_runs_mount_goes_at_the_next_start_root", "ext4") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    let mut bench = AppliedSettings::new(UndoJournal::new(&state, "IMG", "boot"));
    let place = scratch_disk::prepare_scratch_disk(
        &planned_disk(image_disk("ext4"), home.path()),
        "IMG",
        Path::new("perflab"),
        bench.journal(),
    )
    .unwrap();
    drop(bench);
    assert!(read_mounts().contains(place.to_str().unwrap()));
    let found = recover_killed_runs(&state, "boot");
    assert_eq!((found[0].undone.len(), found[0].failed.len()), (2, 0), "{found:?}");
    assert!(!read_mounts().contains(place.to_str().unwrap()) && !place.exists());
}

#[test]
fn a_mount_goes_whatever_its_path_holds_root() {
    let Some(_starts) = lock_mounting("a_mount_goes_whatever_its_path_holds_root", "ext4") else { return };
    let home = tempfile::tempdir().unwrap();
    // What the kernel's table of mounts writes in eights; and a way to it through a link.
    let (strange, link) = (home.path().join("a b\tc\\d\ne"), home.path().join("link"));
    fs::create_dir(&strange).unwrap();
    std::os::unix::fs::symlink(&strange, &link).unwrap();
    let state = home.path().join("state");
    for is_killed in [true, false] {
        let mut bench = AppliedSettings::new(UndoJournal::new(&state, "IMG", "boot"));
        let disk = image_disk("ext4");
        let perflab = Path::new("perflab");
        scratch_disk::prepare_scratch_disk(
            &planned_disk(disk.clone(), &link),
            "IMG",
            perflab,
            bench.journal(),
        )
        .unwrap();
        let failed = if is_killed {
            drop(bench);
            recover_killed_runs(&state, "boot").into_iter().flat_map(|run| run.failed).collect()
        } else {
            bench.undo_all().failed.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let left: Vec<_> = fs::read_dir(&strange).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(failed.is_empty() && left.is_empty(), "{failed:?} {left:?}");
        assert!(!read_mounts().contains(home.path().to_str().unwrap()), "{}", read_mounts());
    }
}

#[test]
fn a_partition_is_never_formatted_without_apply() {
    let disk = ScratchDisk {
        kind: DiskKind::Partition,
        path: Some("/dev/no-such-partition".into()),
        ..image_disk("ext4")
    };
    let refusals = scratch_disk::check_disk(&planned_disk(disk, Path::new("/tmp")), false);
    let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!(refusal.what, "/dev/no-such-partition would be formatted: everything on it is lost");
    assert_eq!(refusal.hint, "say --apply if that is meant");
}

#[test]
fn a_directory_that_is_not_there_is_refused() {
    let disk =
        ScratchDisk { kind: DiskKind::Directory, path: Some("/no/such/folder".into()), ..image_disk("ext4") };
    let refusals = scratch_disk::check_disk(&planned_disk(disk, Path::new("/no/such/folder")), false);
    let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!(refusal.what, "the scratch directory /no/such/folder is not there");
}

/// A block device of our own, detached at the end.
struct LoopDevice(String);

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").args(["-d", &self.0]).status();
    }
}

impl LoopDevice {
    fn over_file(file: &Path) -> Self {
        fs::File::create(file).unwrap().set_len(64 << 20).unwrap();
        let attached =
            std::process::Command::new("losetup").args(["-f", "--show"]).arg(file).output().unwrap();
        LoopDevice(String::from_utf8(attached.stdout).unwrap().trim().to_owned())
    }
}

/// The kernel gives a queue its own depth with each scheduler, and a scheduler its defaults each time.
#[test]
fn what_another_io_scheduler_changes_comes_back_with_the_old_one_root() {
    let Some(_starts) =
        lock_mounting("what_another_io_scheduler_changes_comes_back_with_the_old_one_root", "ext4")
    else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let device = LoopDevice::over_file(&home.path().join("backing"));
    let queue = Path::new("/sys/block").join(device.0.trim_start_matches("/dev/")).join("queue");
    let file = |name: &str| queue.join(name);
    let original = [("scheduler", "mq-deadline"), ("nr_requests", "77"), ("iosched/read_expire", "1234")];
    for (name, value) in original {
        fs::write(file(name), value).unwrap();
    }
    let now =
        || ["scheduler", "nr_requests", "iosched/read_expire"].map(|name| fs::read_to_string(file(name)));
    let before = now().map(Result::unwrap);
    let knob = |value: &str| Setting::File {
        name: "scheduler".into(),
        path: file("scheduler"),
        value: value.into(),
    };
    let state = home.path().join("state");
    for is_killed in [false, true] {
        let mut bench = AppliedSettings::new(UndoJournal::new(&state, "Q", "boot"));
        bench.apply(&[knob("none")]).unwrap();
        assert!(now()[2].is_err(), "the tunables go with their scheduler");
        bench.apply(&[knob("kyber")]).unwrap();
        let failed: Vec<String> = if is_killed {
            drop(bench);
            recover_killed_runs(&state, "boot").into_iter().flat_map(|run| run.failed).collect()
        } else {
            bench.undo_all().failed.iter().map(ToString::to_string).collect()
        };
        assert_eq!(failed, Vec::<String>::new());
        assert_eq!(now().map(Result::unwrap), before);
    }
}

#[test]
fn a_partition_is_formatted_where_apply_allows_it_root() {
    let Some(_starts) = lock_mounting("a_partition_is_formatted_where_apply_allows_it_root", "ext4") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let device = LoopDevice::over_file(&home.path().join("backing"));
    let disk = ScratchDisk { kind: DiskKind::Partition, path: Some(device.0.clone()), ..image_disk("ext4") };
    assert_eq!(scratch_disk::check_disk(&planned_disk(disk.clone(), home.path()), true), []);
    let mut bench = AppliedSettings::new(UndoJournal::new(&home.path().join("state"), "PART", "boot"));
    let place = scratch_disk::prepare_scratch_disk(
        &planned_disk(disk.clone(), home.path()),
        "PART",
        Path::new("perflab"),
        bench.journal(),
    )
    .unwrap();
    assert!(
        read_mounts()
            .lines()
            .any(|line| line.starts_with(&device.0) && line.contains(place.to_str().unwrap()))
    );
    let busy = scratch_disk::check_disk(&planned_disk(disk.clone(), home.path()), true);
    assert!(busy.iter().any(|refusal| refusal.what.starts_with(&device.0)), "{busy:?}");
    assert_eq!(bench.undo_all().failed.len(), 0);
    assert!(!read_mounts().contains(place.to_str().unwrap()));
}
