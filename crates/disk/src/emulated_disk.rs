//! The loop device over an emulated disk: begun, tuned as kernels tune such a disk, released, removed when its
//! server died.
//!
//! Disks whose server is gone may have no journal either: it was lost with its machine, its home or its test. What
//! is mounted from such a disk answers nothing, and stops others: `mkfs.btrfs` looks at every mounted device of the
//! machine, and fails at the first that is dead. Any user may mount a file system of this name, so only one that
//! this user mounted, in folders that nobody else may change, is looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use perflab_model::study::DiskModel;
use perflab_observe::io::{MountEntry, MountTable};
use perflab_observe::own_directories;
use perflab_settings::{RecoveredRun, UndoEntry, UndoJournal, run_command};

use crate::disk_model::DiskDataSheet;
use crate::disk_server::{END_DELAYS_FILE_NAME, IMAGE_FILE_NAME, MOUNT_SOURCE};
use crate::error::DiskError;

/// How long the server may take to begin, on a loaded machine.
const MOUNT_TIMEOUT: Duration = Duration::from_secs(30);

/// What kernels read ahead by default, KiB.
const READ_AHEAD: &str = "128";

/// What is to be emulated, and where.
#[derive(Debug, Clone, Copy)]
pub struct EmulatedDiskOptions<'a> {
    /// The perflab binary: the server is a process of its own, as the kernel may wait for it while perflab writes.
    pub perflab: &'a Path,
    /// The disk.
    pub model: DiskModel,
    /// What it holds.
    pub image: &'a Path,
    /// An existing folder for the server's mount.
    pub home: &'a Path,
}

/// Begins to serve, and gives the block device. All of it is written to the undo journal first.
///
/// # Errors
/// The server does not begin (its message is in the error), there is no loop device, a setting is refused.
pub fn begin_emulated_disk(
    wanted: EmulatedDiskOptions<'_>,
    journal: &mut UndoJournal,
) -> Result<PathBuf, DiskError> {
    let place = served_folder(wanted.home);
    let scratch = |source| DiskError::Scratch { path: place.clone(), source };
    fs::create_dir(&place).map_err(scratch)?;
    journal.promise(UndoEntry::Unmount { path: place.clone() })?;
    let mut server = start_disk_server(&wanted, &place).map_err(scratch)?;
    let served = place.join(IMAGE_FILE_NAME);
    if !wait_until_served(&served, &mut server) {
        let _ = server.kill();
        let stderr = server.wait_with_output().map(|output| output.stderr).unwrap_or_default();
        let reason = String::from_utf8_lossy(&stderr).trim().to_owned();
        return Err(DiskError::Emulated { model: wanted.model, reason });
    }
    // It ends when its file system is unmounted; somebody has to hear of it.
    std::thread::spawn(move || server.wait_with_output());
    let device = attach_loop_device(&served, journal)?;
    tune_queue(&device, DiskDataSheet::of_model(wanted.model), journal)?;
    Ok(device)
}

/// The switch of the emulated disk whose file system is mounted here.
pub fn delay_switch(mount: &Path) -> PathBuf {
    served_folder(mount.parent().unwrap_or(mount)).join(END_DELAYS_FILE_NAME)
}

fn served_folder(home: &Path) -> PathBuf {
    home.join("served")
}

fn start_disk_server(wanted: &EmulatedDiskOptions<'_>, place: &Path) -> std::io::Result<Child> {
    let mut server = Command::new(wanted.perflab);
    server.arg("disk-server").args(["--model", wanted.model.name()]);
    server.arg("--image").arg(wanted.image).arg("--place").arg(place);
    server.arg("--parent").arg(std::process::id().to_string());
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    perflab_observe::spawn_child(server)
}

/// Waits until the file is served; `false` where the server ended or is too late.
fn wait_until_served(served: &Path, server: &mut Child) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < MOUNT_TIMEOUT {
        if served.exists() {
            return true;
        }
        if !matches!(server.try_wait(), Ok(None)) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// A loop device that hands requests through as they are. The kernel frees it with the last use.
fn attach_loop_device(served: &Path, journal: &mut UndoJournal) -> Result<PathBuf, DiskError> {
    let argv = ["losetup", "--find", "--show", "--direct-io=on"].map(str::to_owned);
    let output = run_command(&[argv.as_slice(), &[served.display().to_string()]].concat())?;
    let device = PathBuf::from(output.trim());
    journal.promise(UndoEntry::Detach { device: device.clone(), file: served.into() })?;
    Ok(device)
}

/// The queue's settings outlive the loop device's content, so they are put back.
fn tune_queue(
    device: &Path,
    specification: DiskDataSheet,
    journal: &mut UndoJournal,
) -> Result<(), DiskError> {
    let name = device.file_name().unwrap_or_default();
    let queue = Path::new("/sys/block").join(name).join("queue");
    let rotational = if specification.is_rotating() { "1" } else { "0" };
    let settings =
        [("rotational", rotational), ("scheduler", specification.scheduler), ("read_ahead_kb", READ_AHEAD)];
    for (setting, wanted) in settings {
        let path = queue.join(setting);
        let failed = |action, source| DiskError::Queue { action, path: path.clone(), source };
        let before = fs::read_to_string(&path).map_err(|source| failed("read", source))?;
        journal.promise(UndoEntry::write(&path, selected_value(&before)))?;
        fs::write(&path, wanted).map_err(|source| failed("write", source))?;
    }
    Ok(())
}

/// What is in force in a file like `none [mq-deadline] kyber`, or all of it.
fn selected_value(text: &str) -> &str {
    let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(text.trim(), |(chosen, _)| chosen)
}

/// How long a server may take to answer before it counts as one that lives.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Removes every emulated disk of this machine that this user mounted and whose server is gone. Those that are served are left
/// alone, and so is whatever else is called so.
pub fn remove_dead_emulated_disks() -> Vec<RecoveredRun> {
    let mounts = MountTable::read();
    let own = rustix::process::geteuid().as_raw();
    let is_ours = |mount: &&MountEntry| {
        mount.source == MOUNT_SOURCE && is_fuse_mount(mount) && mount.maker == Some(own)
    };
    let served: Vec<&MountEntry> = mounts.iter().filter(is_ours).collect();
    find_dead_disks(&served).into_iter().map(|place| remove_disk(place, &mounts)).collect()
}

fn remove_disk(served: &Path, mounts: &MountTable) -> RecoveredRun {
    let home = served.parent().unwrap_or(served);
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let mut found = RecoveredRun::new(name.trim_start_matches("perflab-"));
    // From here on, nobody but this user and root can put something else in the place of any of it.
    if let Err(error) = own_directories::open_own_directory(home) {
        found.failed.push(format!("{}: {error}", served.display()));
        return found;
    }
    for step in undo_steps(served, home, mounts) {
        found.record_undo(&step, || step.perform().map(|()| true));
        // What follows rests on it.
        if !found.failed.is_empty() {
            break;
        }
    }
    found
}

/// What was done to have the disk, undone: the latest first.
fn undo_steps(served: &Path, home: &Path, mounts: &MountTable) -> Vec<UndoEntry> {
    let mut steps = Vec::new();
    for (device, file) in loop_devices_over(served) {
        let is_from_it = |mount: &&MountEntry| Path::new(&mount.source) == device && !is_fuse_mount(mount);
        let from_it = mounts.iter().filter(is_from_it);
        steps.extend(from_it.map(|mount| UndoEntry::Unmount { path: mount.mount_point.clone() }));
        steps.push(UndoEntry::Detach { device, file });
    }
    steps.push(UndoEntry::Unmount { path: served.into() });
    if home.file_name().is_some_and(|name| name.to_string_lossy().starts_with("perflab-")) {
        steps.push(UndoEntry::Remove { path: home.into() });
    }
    steps
}

/// Loop devices over files in a folder, with those files.
fn loop_devices_over(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let looped = devices.filter_map(|device| {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        Some((Path::new("/dev").join(device.file_name()), PathBuf::from(file.trim())))
    });
    looped.filter(|(_, file)| file.starts_with(folder)).collect()
}

fn is_fuse_mount(mount: &MountEntry) -> bool {
    mount.kind.starts_with("fuse")
}

/// Those whose server is gone. One that does not answer may be stopped or slow.
fn find_dead_disks<'a>(served: &[&'a MountEntry]) -> Vec<&'a Path> {
    let (sender, answers) = channel();
    for (index, mount) in served.iter().enumerate() {
        let (place, sender) = (mount.mount_point.clone(), sender.clone());
        // A thread: this may wait for ever, and ends with the process.
        std::thread::spawn(move || {
            // Of the file system, not of the folder: the kernel keeps a folder's attributes for as long as its server said.
            let seen = rustix::fs::statfs(&place);
            let _ = sender.send((index, seen.is_err_and(|error| error == rustix::io::Errno::NOTCONN)));
        });
    }
    let end = Instant::now() + RELEASE_TIMEOUT;
    let next = |_: &&MountEntry| answers.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    let found = served.iter().map_while(next).filter(|(_, is_dead)| *is_dead);
    found.filter_map(|(index, _)| Some(served.get(index)?.mount_point.as_path())).collect()
}

#[cfg(test)]
mod tests {
    use super::selected_value;

    #[test]
    fn the_chosen_one_stands_in_brackets() {
        assert_eq!(selected_value("none [mq-deadline] kyber\n"), "mq-deadline");
        assert_eq!(selected_value("128\n"), "128");
    }
}
