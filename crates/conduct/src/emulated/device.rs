//! The loop device over an emulated disk, with the settings that kernels give such a disk.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_model::study::DiskModel;

use super::DiskDataSheet;
use super::server::{END_DELAYS_FILE_NAME, IMAGE_FILE_NAME};
use crate::ConductError;
use crate::command::run_command;
use crate::machine::launch;
use crate::settings::{UndoEntry, UndoJournal};

/// How long the server may take to begin, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// What kernels read ahead unless they are told otherwise, KiB.
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

/// Begins to serve, and gives the block device. All of it is promised to the journal first.
///
/// # Errors
/// The server does not begin (its words are in the error), there is no loop device, a setting is refused.
pub fn begin_emulated_disk(
    wanted: EmulatedDiskOptions<'_>,
    journal: &mut UndoJournal,
) -> Result<PathBuf, ConductError> {
    let place = served_folder(wanted.home);
    let scratch = |source| ConductError::Scratch { path: place.clone(), source };
    fs::create_dir(&place).map_err(scratch)?;
    journal.promise(UndoEntry::Unmount { path: place.clone() })?;
    let mut server = start_disk_server(&wanted, &place).map_err(scratch)?;
    let served = place.join(IMAGE_FILE_NAME);
    if !wait_until_served(&served, &mut server) {
        let _ = server.kill();
        let said = server.wait_with_output().map(|output| output.stderr).unwrap_or_default();
        let reason = String::from_utf8_lossy(&said).trim().to_owned();
        return Err(ConductError::Emulated { model: wanted.model, reason });
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

/// Has a disk answer at once from now on, before all that was promised is undone: what waits to be written to a slow one would
/// hold its file system, and whoever writes, for minutes. Nothing where there is no such disk.
pub fn end_delays(switch: &Path) {
    let switch = fs::File::options().write(true).open(switch);
    let _ = switch.and_then(|mut switch| switch.write_all(b"1"));
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
    launch::spawn_child(server)
}

/// Waits until the file is served; `false` where the server ended or is too late.
fn wait_until_served(served: &Path, server: &mut Child) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
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
fn attach_loop_device(served: &Path, journal: &mut UndoJournal) -> Result<PathBuf, ConductError> {
    let argv = ["losetup", "--find", "--show", "--direct-io=on"].map(str::to_owned);
    let said = run_command(&[argv.as_slice(), &[served.display().to_string()]].concat())?;
    let device = PathBuf::from(said.trim());
    journal.promise(UndoEntry::Detach { device: device.clone(), file: served.into() })?;
    Ok(device)
}

/// The queue's settings outlive the loop device's content, so they are put back.
fn tune_queue(
    device: &Path,
    specification: DiskDataSheet,
    journal: &mut UndoJournal,
) -> Result<(), ConductError> {
    let name = device.file_name().unwrap_or_default();
    let queue = Path::new("/sys/block").join(name).join("queue");
    let rotational = if specification.is_rotating() { "1" } else { "0" };
    let settings =
        [("rotational", rotational), ("scheduler", specification.scheduler), ("read_ahead_kb", READ_AHEAD)];
    for (setting, wanted) in settings {
        let path = queue.join(setting);
        let failed = |action, source| ConductError::Setting { action, path: path.clone(), source };
        let before = fs::read_to_string(&path).map_err(|source| failed("read", source))?;
        journal.promise(UndoEntry::Write { path: path.clone(), value: selected_value(&before).into() })?;
        fs::write(&path, wanted).map_err(|source| failed("write", source))?;
    }
    Ok(())
}

/// What is in force in a file like `none [mq-deadline] kyber`, or all of it.
fn selected_value(text: &str) -> &str {
    let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(text.trim(), |(chosen, _)| chosen)
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
