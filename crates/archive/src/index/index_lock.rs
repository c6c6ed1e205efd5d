//! One writer at a time of what lies beside the runs, the index above all: a lock file. Readers take no lock; SQLite keeps half-written rows from
//! them.
//!
//! It is a file of its own because a replaced index is another file, and because closing any descriptor of an SQLite
//! file drops the locks that SQLite holds on it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// The lock's file, in the archive's directory.
pub(super) const INDEX_LOCK: &str = "index.lock";

const PAUSE: Duration = Duration::from_millis(2);

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct IndexLock {
    file: File,
}

/// Closing alone would leave it to a child that another thread is just starting.
impl Drop for IndexLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl IndexLock {
    /// Takes the lock of the index of `archive`; fails with `WouldBlock` where another process keeps it for longer than
    /// `patience`.
    pub(crate) fn acquire(archive: &Path, patience: Duration) -> io::Result<IndexLock> {
        let mut options = OpenOptions::new();
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        let opened = options.write(true).create(true).truncate(false).custom_flags(flags);
        let file = opened.open(archive.join(INDEX_LOCK))?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(IndexLock { file }),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }
}
