//! A running guest, and its end.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use tempfile::TempDir;

use super::console::ConsoleBound;
use super::running::Note;
use super::vsock::Vsock;
use super::{Chosen, MachineError};
use crate::Channel;

/// A guest that was booted. Dropped, it ends, with its server of files and its folder.
#[derive(Debug)]
pub struct Guest {
    pub(super) note: Note,
    pub(super) chosen: Chosen,
    pub(super) qemu: Child,
    pub(super) server: Option<Child>,
    #[expect(
        dead_code,
        reason = "held, not read: the folder's lock is free when nobody holds the guest any more"
    )]
    pub(super) lock: std::fs::File,
    pub(super) folder: Option<TempDir>,
    pub(super) control: UnixStream,
    pub(super) vsock: Option<Vsock>,
    #[expect(dead_code, reason = "held, not read: the console is bounded as long as it is there")]
    pub(super) bound: ConsoleBound,
}

impl Guest {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.note.name
    }

    /// What is noted of it.
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// How its code is run, and why so.
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// The log of its console.
    pub fn console(&self) -> &Path {
        &self.note.console
    }

    /// QEMU's process.
    pub fn pid(&self) -> u32 {
        self.note.pid
    }

    /// A byte stream to its agent.
    ///
    /// # Errors
    /// QEMU is gone, or somebody else holds the stream.
    pub fn channel(&self) -> std::io::Result<Channel> {
        match &self.vsock {
            Some(vsock) => Channel::both_ways(self.name(), vsock.call(|| true)?),
            None => Channel::unix(self.name(), &self.socket("agent")),
        }
    }

    /// The socket of its virtual console.
    pub fn shell_socket(&self) -> PathBuf {
        self.socket("shell")
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.as_ref().map_or_else(PathBuf::new, |folder| folder.path().join(name))
    }

    /// The conversation with its first process ([`crate::init::Control`]).
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn control(&self) -> std::io::Result<UnixStream> {
        self.control.try_clone()
    }

    /// How QEMU ended, if it did.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.qemu.try_wait()
    }

    /// Makes it known to `perflab vm list`.
    pub(super) fn noted(self) -> Result<Guest, MachineError> {
        if let Some(folder) = &self.folder {
            super::running::write(folder.path(), &self.note)?;
        }
        Ok(self)
    }

    /// Leaves it running: `perflab vm list` shows it, `perflab vm stop` ends it, with the folder `logs`.
    ///
    /// # Errors
    /// What is to go with it cannot be noted; it is ended.
    pub fn leave(mut self, logs: Option<PathBuf>) -> Result<Note, MachineError> {
        self.note.logs = logs;
        if let Some(folder) = &self.folder {
            super::running::write(folder.path(), &self.note)?;
        }
        if let Some(folder) = self.folder.take() {
            let _ = folder.keep();
        }
        Ok(self.note.clone())
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
