//! The guest's end of the control port, shared by whoever has something to say.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ControlFrame, GuestMessage};

/// The control port.
#[derive(Debug, Clone)]
pub(super) struct ControlPort(Arc<Mutex<File>>);

impl ControlPort {
    pub(super) fn new(port: File) -> Self {
        ControlPort(Arc::new(Mutex::new(port)))
    }

    /// Tells the host. One that no longer listens ends the guest by other means.
    pub(super) fn send(&self, said: &GuestMessage) {
        let mut port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = said.write(&mut *port);
    }

    /// For hearing what the host says.
    pub(super) fn reader(&self) -> io::Result<File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).try_clone()
    }
}
