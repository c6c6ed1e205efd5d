//! A running guest and its record: list, find, stop, and the log of its console.
//!
//! Records lie in a private folder of the user's, with a folder for each guest. A guest decides how much it prints,
//! so only the end of its console is ever read, and older parts of the log give their room back.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use perflab_model::{Bytes, StopRequest, remove_control_characters};
use perflab_observe::own_directories;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

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

/// What a log may take of the disk before its beginning is given back, in bytes,
const MOST: u64 = 16 << 20;

/// and what is left of it then.
const LEFT: u64 = 4 << 20;

/// How often its size is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// What the kernel's last line begins with when it gives up.
const PANIC: &str = "Kernel panic";

/// The last `most` bytes of a log; nothing where there is none.
pub fn read_log_end(log: &Path, most: usize) -> Vec<u8> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let begin = file.metadata()?.len().saturating_sub(most as u64);
        file.seek(SeekFrom::Start(begin))?;
        let mut end = Vec::new();
        file.take(most as u64).read_to_end(&mut end)?;
        Ok(end)
    };
    read().unwrap_or_default()
}

/// The line in which the kernel says that it panicked, without its time stamp; none where it did not.
pub fn find_panic(console: &str) -> Option<String> {
    let line = console.lines().rev().find(|line| line.contains(PANIC))?;
    let message = line.get(line.find(PANIC)?..)?;
    Some(remove_control_characters(message.trim()).chars().take(200).collect())
}

/// As [`find_panic`], of the end of a log.
pub fn find_panic_in(log: &Path) -> Option<String> {
    find_panic(&String::from_utf8_lossy(&read_log_end(log, LEFT as usize)))
}

/// Keeps a log within bounds for as long as it lives.
#[derive(Debug)]
pub(crate) struct ConsoleLogLimiter {
    _ended: Sender<()>,
}

impl ConsoleLogLimiter {
    /// Looks at the log on a thread of its own.
    pub(crate) fn watch(log: PathBuf) -> Self {
        let (ended, end) = channel::<()>();
        std::thread::spawn(move || {
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                // A log that cannot be cut is tried again: its file system may be full.
                let _ = free_log_beginning(&log);
            }
        });
        ConsoleLogLimiter { _ended: ended }
    }
}

/// Gives the room of a log's beginning back, where it takes too much. QEMU writes on where it was: the file keeps its
/// length, with a hole in front.
fn free_log_beginning(log: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).open(log)?;
    let found = file.metadata()?;
    if found.blocks() * 512 <= MOST {
        return Ok(());
    }
    let past = found.len().saturating_sub(LEFT);
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(&file, hole, 0, past) {
        Ok(()) => Ok(()),
        // A file system without holes: all of it goes.
        Err(_) => file.set_len(0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_log_that_grows_takes_little_room_and_keeps_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("console.log");
        let mut file = File::create(&log).unwrap();
        let mut most = 0;
        for round in 0..8 {
            file.write_all(&vec![b'x'; 8 << 20]).unwrap();
            file.write_all(format!("round {round}\n").as_bytes()).unwrap();
            file.sync_all().unwrap();
            free_log_beginning(&log).unwrap();
            most = most.max(log.metadata().unwrap().blocks() * 512);
        }
        assert!(most <= MOST + (1 << 20), "{most} bytes of the disk");
        assert_eq!(log.metadata().unwrap().len(), 8 * ((8 << 20) + 8));
        assert_eq!(read_log_end(&log, 9), b"xround 7\n");
        assert_eq!(read_log_end(&folder.path().join("none"), 9), b"");
    }

    #[test]
    fn a_panic_is_found_without_its_time_stamp() {
        let console = "[    1.2] fine\r\n[    2.3] Kernel panic - not syncing: sysrq triggered crash\u{1b}\r\n[ 2.4] CPU: 0\r\n";
        assert_eq!(
            find_panic(console).as_deref(),
            Some("Kernel panic - not syncing: sysrq triggered crash\u{fffd}")
        );
        assert_eq!(find_panic("all is well"), None);
    }
}
