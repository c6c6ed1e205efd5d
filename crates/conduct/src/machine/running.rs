//! Which guests there are, in a private folder of the user's with a folder each.

use std::fs::{self, File, OpenOptions};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perflab_model::{Bytes, nearest};
use perflab_observe::own_directories;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::qmp::QmpConnection;
use super::{Accelerator, GuestError};
use crate::StopRequest;

/// What is noted of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestRecord {
    /// Its folder's name.
    pub id: String,
    /// Its name.
    pub name: String,
    /// QEMU's process.
    pub pid: u32,
    /// The kernel that it booted.
    pub kernel: String,
    /// How its code is run.
    pub accelerator: Accelerator,
    /// Virtual processors.
    pub cpus: u32,
    /// Memory.
    pub memory: Bytes,
    /// The console's log.
    pub console: PathBuf,
    /// Whether it stays when the perflab that started it ends.
    pub stays: bool,
    /// The folder of its logs, where that goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
}

/// Where the folders of guests are: `$XDG_RUNTIME_DIR/perflab`, else `/run/perflab` for root, and a folder of the user's own under
/// /tmp for others. Nobody else may look into it.
///
/// # Errors
/// It cannot be made, or somebody else's folder is there.
pub fn guests_folder() -> Result<PathBuf, GuestError> {
    let path = own_directories::runtime_directory();
    own_directories::create_own_directory(&path).map_err(GuestError::file_error(&path))?;
    Ok(path)
}

/// Claims a guest's folder for as long as the returned file is open, even if its holder is killed.
pub(super) fn lock_guest_folder(folder: &Path) -> std::io::Result<File> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("lock"))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock)
}

pub(super) fn write_guest_record(folder: &Path, note: &GuestRecord) -> Result<(), GuestError> {
    let path = folder.join("guest.json");
    let text =
        serde_json::to_vec_pretty(note).map_err(|error| GuestError::file_error(&path)(error.into()))?;
    fs::write(&path, text).map_err(GuestError::file_error(&path))
}

/// All guests that run, by id. Folders of guests that were killed together with their perflab are removed.
///
/// # Errors
/// The folder of guests cannot be read.
pub fn list_guests() -> Result<Vec<GuestRecord>, GuestError> {
    Ok(scan_guest_folders()?.0)
}

/// Removes the folders of guests that were killed together with their perflab; these are they.
///
/// # Errors
/// The folder of guests cannot be read.
pub fn remove_abandoned_guests() -> Result<Vec<PathBuf>, GuestError> {
    Ok(scan_guest_folders()?.1)
}

/// The guests that run, and the folders of others, which are removed.
fn scan_guest_folders() -> Result<(Vec<GuestRecord>, Vec<PathBuf>), GuestError> {
    let home = guests_folder()?;
    let (mut found, mut removed) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(&home).map_err(GuestError::file_error(&home))?.flatten() {
        let folder = entry.path();
        match read_guest_record(&folder) {
            Some(note) if is_guest_answering(&folder) => found.push(note),
            _ if remove_dead_guest(&folder) => removed.push(folder),
            _ => {}
        }
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok((found, removed))
}

fn read_guest_record(folder: &Path) -> Option<GuestRecord> {
    serde_json::from_slice(&fs::read(folder.join("guest.json")).ok()?).ok()
}

fn is_guest_answering(folder: &Path) -> bool {
    UnixStream::connect(folder.join("qmp")).is_ok()
}

/// A folder this young may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(10);

/// Removes a folder that nobody holds: its guest is gone. Whether it did.
fn remove_dead_guest(folder: &Path) -> bool {
    let age = fs::metadata(folder)
        .and_then(|found| found.modified())
        .map(|made| made.elapsed().unwrap_or_default());
    let is_abandoned =
        age.is_ok_and(|age| age > YOUNG) && folder.is_dir() && lock_guest_folder(folder).is_ok();
    if is_abandoned && let Some(logs) = read_guest_record(folder).and_then(|note| note.logs) {
        let _ = fs::remove_dir_all(logs);
    }
    // Left over, it is found again by the next look.
    is_abandoned && fs::remove_dir_all(folder).is_ok()
}

/// The guest of that id, or the only one whose id begins so.
///
/// # Errors
/// There is none, or several.
pub fn find_guest(name: &str) -> Result<GuestRecord, GuestError> {
    let all = list_guests()?;
    let mut fitting = all.iter().filter(|note| note.id == name || note.id.starts_with(name));
    match (fitting.next(), fitting.next()) {
        (Some(note), None) => Ok(note.clone()),
        (Some(one), Some(other)) => {
            let hint = format!("several begin so: {}, {}", one.id, other.id);
            Err(GuestError::NotRunning { name: name.into(), hint })
        }
        (None, _) if all.is_empty() => {
            let hint = "none is: `perflab vm boot --stay` starts one".into();
            Err(GuestError::NotRunning { name: name.into(), hint })
        }
        (None, _) => {
            let hint = nearest::suggest_name(name, all.iter().map(|note| note.id.as_str()));
            Err(GuestError::NotRunning { name: name.into(), hint })
        }
    }
}

/// The socket of its shell.
///
/// # Errors
/// The folder of guests is gone.
pub fn connect_shell(note: &GuestRecord) -> Result<UnixStream, GuestError> {
    let path = guests_folder()?.join(&note.id).join("shell");
    UnixStream::connect(&path).map_err(GuestError::file_error(&path))
}

/// Ends it: whatever it was doing. Its files were temporary from the beginning.
///
/// # Errors
/// QEMU does not answer.
pub fn stop_guest(note: &GuestRecord) -> Result<(), GuestError> {
    let folder = guests_folder()?.join(&note.id);
    QmpConnection::connect(&note.name, &folder.join("qmp"), &StopRequest::new())?.execute("quit")?;
    let begun = Instant::now();
    while is_guest_answering(&folder) && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Some(logs) = &note.logs {
        // Gone already is fine.
        let _ = fs::remove_dir_all(logs);
    }
    // The perflab that holds it removes it itself.
    if lock_guest_folder(&folder).is_ok() {
        fs::remove_dir_all(&folder).map_err(GuestError::file_error(&folder))
    } else {
        Ok(())
    }
}
