//! The lock of a run that is being recorded. The kernel drops it with the process, however that died,
//! so a held lock is the one proof of a living recorder. Refuses to wait.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::ArchiveError;
use crate::layout::LOCK;

/// Readers look at the lock by taking it for an instant; a writer tries again rather than fail on that.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct RunLock {
    file: File,
}

/// Closing the file would not do: a child that another thread is just starting has it open as well, until
/// it becomes another program.
impl Drop for RunLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl RunLock {
    /// Takes the lock of the run at `run`; `None` while another process holds it.
    pub(crate) fn try_lock(run: &Path) -> Result<Option<RunLock>, ArchiveError> {
        let path = run.join(LOCK);
        let mut options = OpenOptions::new();
        let opened =
            options.write(true).create(true).truncate(false).custom_flags(lock_open_flags()).open(&path);
        let file = opened.map_err(ArchiveError::io("open", &path))?;
        for _ in 0..ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(Some(RunLock { file })),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(source)) => return Err(ArchiveError::io("lock", &path)(source)),
            }
        }
        Ok(None)
    }
}

/// A copied archive may have anything in the place of a lock: a FIFO is not waited for, a link not followed.
fn lock_open_flags() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed()
}

/// Whether a living process records the run at `run`. What cannot be found out counts as no.
pub(crate) fn is_run_live(run: &Path) -> bool {
    let opened = OpenOptions::new().read(true).custom_flags(lock_open_flags()).open(run.join(LOCK));
    let Ok(file) = opened else { return false };
    let tried = file.try_lock_shared();
    let _ = file.unlock();
    matches!(tried, Err(TryLockError::WouldBlock))
}
