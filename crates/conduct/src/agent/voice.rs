//! The speaking end of an agent's stream, shared by its threads: one whole frame at a time.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::protocol::{Report, encode, greeting};

/// Says reports.
#[derive(Debug, Clone)]
pub(super) struct Voice(Arc<Mutex<File>>);

impl Voice {
    pub(super) fn new(writing: File) -> Self {
        Voice(Arc::new(Mutex::new(writing)))
    }

    pub(super) fn greet(&self) -> io::Result<()> {
        self.write(&greeting())
    }

    /// An error means that the host is gone.
    pub(super) fn say(&self, report: &Report) -> io::Result<()> {
        self.write(&encode(report).map_err(io::Error::other)?)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut writing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writing.write_all(bytes)?;
        writing.flush()
    }
}
