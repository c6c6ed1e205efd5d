//! A running guest, and its end.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use tempfile::TempDir;

use super::console::ConsoleLogLimiter;
use super::running::GuestRecord;
use super::vsock::GuestVsock;
use super::{ChosenAccelerator, GuestError};
use crate::Connection;

/// A guest that was booted. Dropped, it ends, with its server of files and its folder.
#[derive(Debug)]
pub struct Guest {
    pub(super) record: GuestRecord,
    pub(super) accelerator: ChosenAccelerator,
    pub(super) qemu: Child,
    pub(super) server: Option<Child>,
    #[expect(
        dead_code,
        reason = "held, not read: the folder's lock is free when nobody holds the guest any more"
    )]
    pub(super) lock: std::fs::File,
    pub(super) folder: Option<TempDir>,
    pub(super) control: UnixStream,
    pub(super) vsock: Option<GuestVsock>,
    #[expect(dead_code, reason = "held, not read: the console is bounded as long as it is there")]
    pub(super) bound: ConsoleLogLimiter,
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
    /// QEMU is gone, or somebody else holds the stream.
    pub fn connect_agent(&self) -> std::io::Result<Connection> {
        match &self.vsock {
            Some(vsock) => Connection::duplex(self.name(), vsock.accept_call(|| true)?),
            None => Connection::connect_unix(self.name(), &self.socket_path("agent")),
        }
    }

    /// The socket of its virtual console.
    pub fn shell_socket(&self) -> PathBuf {
        self.socket_path("shell")
    }

    fn socket_path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().map_or_else(PathBuf::new, |folder| folder.path().join(name))
    }

    /// The conversation with its first process ([`crate::init::ControlFrame`]).
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
    pub(super) fn with_record_written(self) -> Result<Guest, GuestError> {
        if let Some(folder) = &self.folder {
            super::running::write_guest_record(folder.path(), &self.record)?;
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
            super::running::write_guest_record(folder.path(), &self.record)?;
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
