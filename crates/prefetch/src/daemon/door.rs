//! Execs that wait for an answer. One that was read from the kernel is answered when it is dropped at the latest, and always
//! with yes: no way leads to an exec that is refused or forgotten.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyEvent, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};

use super::exec_guard::UNANSWERED;

/// Where the kernel asks. When it is closed, also by a death, the kernel lets everything through.
#[derive(Debug)]
pub struct ExecGate(Fanotify);

/// An exec that waits.
#[derive(Debug)]
pub struct PendingExec {
    gate: Arc<ExecGate>,
    event: FanotifyEvent,
    answered: AtomicBool,
    overdue: AtomicBool,
    until: Mutex<Option<Instant>>,
    since: Instant,
}

impl ExecGate {
    /// Opens it; nothing is watched yet.
    ///
    /// # Errors
    /// What the kernel said: no right, no such feature.
    pub fn open() -> io::Result<Arc<Self>> {
        let flags = InitFlags::FAN_CLASS_CONTENT | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
        let events = EventFFlags::O_RDONLY | EventFFlags::O_LARGEFILE | EventFFlags::O_CLOEXEC;
        Ok(Arc::new(ExecGate(Fanotify::init(flags, events)?)))
    }

    /// Watches execs on the file system that is seen at this place.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn watch_file_system(&self, place: &Path) -> io::Result<()> {
        let flags = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
        Ok(self.0.mark(flags, MaskFlags::FAN_OPEN_EXEC_PERM, rustix::fs::CWD, Some(place))?)
    }

    /// Asks no more about this file, as long as the kernel can remember that. A loader comes with every program, and says nothing.
    pub fn ignore_file(&self, file: BorrowedFd<'_>) {
        let flags =
            MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_IGNORED_MASK | MarkFlags::FAN_MARK_EVICTABLE;
        let _ = self.0.mark(flags, MaskFlags::FAN_OPEN_EXEC_PERM, file, None::<&Path>);
    }

    /// The execs that wait now, at most some 170.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn read_pending(self: &Arc<Self>) -> io::Result<Vec<PendingExec>> {
        let events = match self.0.read_events() {
            Ok(events) => events,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let held = |event: FanotifyEvent| {
            event.fd().is_some().then(|| PendingExec {
                gate: Arc::clone(self),
                event,
                answered: AtomicBool::new(false),
                overdue: AtomicBool::new(false),
                until: Mutex::new(None),
                since: Instant::now(),
            })
        };
        // All of them first: should one be odd, the others are answered nevertheless.
        Ok(events.into_iter().filter_map(held).collect())
    }
}

impl AsFd for ExecGate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PendingExec {
    /// Who wants to.
    pub fn process(&self) -> u32 {
        self.event.pid().unsigned_abs()
    }

    /// The file that is to be run.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.event.fd()
    }

    /// The same, to be kept.
    pub fn open_file(&self) -> Option<File> {
        Some(self.file()?.try_clone_to_owned().ok()?.into())
    }

    /// Lets it through. Whether it was still waiting.
    pub fn allow(&self) -> bool {
        let first = !self.answered.swap(true, Ordering::AcqRel);
        if let Some(file) = self.event.fd().filter(|_| first) {
            // It fails where the process was killed meanwhile, and then nobody waits.
            let _ = self.gate.0.write_response(FanotifyResponse::new(file, Response::FAN_ALLOW));
        }
        first
    }

    /// It may wait until then; what was said before counts no more.
    pub fn wait_until(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Whether it may still wait.
    pub fn may_still_wait(&self, now: Instant) -> bool {
        self.until.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| until > now)
    }

    /// Lets it through because it waits too long. Whether it was still waiting.
    pub fn expire(&self) -> bool {
        let first = self.allow();
        self.overdue.fetch_or(first, Ordering::AcqRel);
        first
    }

    /// Whether nobody can have let it through yet, the guard neither: who goes on may be another user next.
    pub fn is_waiting(&self) -> bool {
        !self.answered.load(Ordering::Acquire) && self.since.elapsed() < UNANSWERED
    }

    /// Whether it was let through because it waited too long.
    pub fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Acquire)
    }
}

impl Drop for PendingExec {
    fn drop(&mut self) {
        self.allow();
    }
}
