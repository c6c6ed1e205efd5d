//! A running guest and its record: list, find, stop.
//!
//! Records lie in a private folder of the user's, with a folder for each guest.

use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use perflab_model::{Bytes, StopRequest};
use perflab_observe::own_directories;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::console_log::ConsoleLogLimiter;
use crate::crash_dump::CrashWatch;
use crate::error::GuestError;
use crate::machine::{Accelerator, ChosenAccelerator};
use crate::processor_sampler::SampledGuest;
use crate::qmp::QmpConnection;
use crate::vsock::GuestVsock;

/// A guest that was booted. Dropped, it ends, with its server of files and its folder.
#[derive(Debug)]
pub struct Guest {
    pub(crate) record: GuestRecord,
    pub(crate) accelerator: ChosenAccelerator,
    pub(crate) qemu: Child,
    pub(crate) server: Option<Child>,
    #[expect(
        dead_code,
        reason = "held, not read: the folder's lock is free when nobody holds the guest any more"
    )]
    pub(crate) lock: std::fs::File,
    pub(crate) folder: Option<TempDir>,
    pub(crate) control: UnixStream,
    pub(crate) vsock: Option<GuestVsock>,
    pub(crate) crash_watch: Option<CrashWatch>,
    #[expect(dead_code, reason = "held, not read: the console is bounded as long as it is there")]
    pub(crate) bound: ConsoleLogLimiter,
}

impl Guest {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// What is noted of it.
    pub fn record(&self) -> &GuestRecord {
        &self.record
    }

    /// How its code is run, and why so.
    pub fn accelerator(&self) -> &ChosenAccelerator {
        &self.accelerator
    }

    /// The log of its console.
    pub fn console_log(&self) -> &Path {
        &self.record.console
    }

    /// QEMU's process.
    pub fn pid(&self) -> u32 {
        self.record.pid
    }

    /// A byte stream to its agent.
    ///
    /// # Errors
    /// QEMU is gone, or another process holds the stream.
    pub fn connect_agent(&self) -> std::io::Result<OwnedFd> {
        match &self.vsock {
            Some(vsock) => Ok(vsock.accept_call(|| true)?.into()),
            None => Ok(UnixStream::connect(self.socket_path("agent"))?.into()),
        }
    }

    /// What a sampler of its processors needs of it.
    pub fn sampled(&self) -> SampledGuest {
        let folder = self.folder.as_ref().map_or_else(PathBuf::new, |folder| folder.path().to_owned());
        SampledGuest { name: self.record.name.clone(), folder, cpus: self.record.cpus }
    }

    /// Where its memory was written, of a guest that is debugged and that panicked; asked once it is gone.
    ///
    /// # Errors
    /// Its kernel panicked, and its memory could not be written.
    pub fn finish_crash_dump(&mut self) -> Result<Option<PathBuf>, GuestError> {
        self.crash_watch.take().map_or(Ok(None), CrashWatch::finish)
    }

    /// The socket of its virtual console.
    pub fn shell_socket(&self) -> PathBuf {
        self.socket_path("shell")
    }

    fn socket_path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().map_or_else(PathBuf::new, |folder| folder.path().join(name))
    }

    /// The conversation with its first process ([`crate::init_protocol::ControlFrame`]).
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn control_stream(&self) -> std::io::Result<UnixStream> {
        self.control.try_clone()
    }

    /// How QEMU ended, if it did.
    ///
    /// # Errors
    /// The system does not say.
    pub fn exit_status(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.qemu.try_wait()
    }

    /// Makes it known to `perflab vm list`.
    pub(crate) fn with_record_written(self) -> Result<Guest, GuestError> {
        if let Some(folder) = &self.folder {
            write_guest_record(folder.path(), &self.record)?;
        }
        Ok(self)
    }

    /// Leaves it running: `perflab vm list` shows it, `perflab vm stop` ends it, with the folder `logs`.
    ///
    /// # Errors
    /// What is to go with it cannot be noted; it is ended.
    pub fn leave_running(mut self, logs: Option<PathBuf>) -> Result<GuestRecord, GuestError> {
        self.record.logs = logs;
        if let Some(folder) = &self.folder {
            write_guest_record(folder.path(), &self.record)?;
        }
        if let Some(folder) = self.folder.take() {
            let _ = folder.keep();
        }
        Ok(self.record.clone())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.folder.is_none() {
            return; // left running
        }
        for child in [Some(&mut self.qemu), self.server.as_mut()].into_iter().flatten() {
            // Gone already is fine.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

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
    /// The file of its image.
    #[serde(default)]
    pub image: PathBuf,
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
/// /tmp for others. No other user may look into it.
///
/// # Errors
/// It cannot be made, or another user's folder is there.
pub fn guests_folder() -> Result<PathBuf, GuestError> {
    let path = own_directories::runtime_directory();
    own_directories::create_own_directory(&path).map_err(GuestError::file_error(&path))?;
    Ok(path)
}

/// Claims a guest's folder for as long as the returned file is open, even if its holder is killed.
pub(crate) fn lock_guest_folder(folder: &Path) -> std::io::Result<File> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("lock"))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock)
}

fn write_guest_record(folder: &Path, note: &GuestRecord) -> Result<(), GuestError> {
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

/// Removes a folder whose lock is free: its guest is gone. Returns whether it did.
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
            let hint = "`perflab vm boot --stay` starts one".into();
            Err(GuestError::NotRunning { name: name.into(), hint })
        }
        (None, _) => {
            let hint = perflab_model::suggest_name(name, all.iter().map(|note| note.id.as_str()));
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
