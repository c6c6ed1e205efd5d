//! Execs held until they are answered, and the clock that lets them go.
//!
//! An exec that was read from the kernel is answered when it is dropped at the latest, and always with yes: there
//! is no code path to an exec that is refused or forgotten.
//!
//! The clock lets through what is overdue, whatever its thread is doing. It also watches the thread that reads from
//! the kernel: if that hangs, nobody would be answered any more, so the daemon ends itself, upon which the kernel
//! lets everything through.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyEvent, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};

use crate::daemon::exec_guard::UNANSWERED;

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
    /// The kernel's error: no right, no such feature.
    pub fn open() -> io::Result<Arc<Self>> {
        let flags = InitFlags::FAN_CLASS_CONTENT | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
        let events = EventFFlags::O_RDONLY | EventFFlags::O_LARGEFILE | EventFFlags::O_CLOEXEC;
        Ok(Arc::new(ExecGate(Fanotify::init(flags, events)?)))
    }

    /// Watches execs on the file system that is mounted at this path.
    ///
    /// # Errors
    /// The kernel's error.
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
    /// The kernel's error.
    pub fn read_pending(self: &Arc<Self>) -> io::Result<Vec<PendingExec>> {
        let events = match self.0.read_events() {
            Ok(events) => events,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let exec = |event: FanotifyEvent| {
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
        Ok(events.into_iter().filter_map(exec).collect())
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
            // It fails where the process was killed meanwhile, and then nothing waits.
            let _ = self.gate.0.write_response(FanotifyResponse::new(file, Response::FAN_ALLOW));
        }
        first
    }

    /// It may wait until then; an earlier deadline counts no more.
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

    /// Whether it cannot have been let through yet, not even by the guard: a process that goes on may be another user next.
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

/// How long the reading thread may need for what it has read: a thousand times what it does need.
const HANG_LIMIT: Duration = Duration::from_secs(5);

/// How often it is looked after.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long it may need until the guard no longer hears that all is well, and answers in its place.
const LATE_LIMIT: Duration = Duration::from_secs(1);

/// Execs by the time until which they may wait.
#[derive(Debug)]
pub struct ExecDeadlines {
    begun: Instant,
    waiting: Mutex<BTreeMap<(Instant, u64), Weak<PendingExec>>>,
    bell: Condvar,
    serial: AtomicU64,
    /// Milliseconds after `begun` at which the reading thread took up what it works on, and one more; 0 while it waits.
    busy: AtomicU64,
    /// Execs that were let through by the clock.
    pub overdue: AtomicU64,
}

impl Default for ExecDeadlines {
    fn default() -> Self {
        ExecDeadlines {
            begun: Instant::now(),
            waiting: Mutex::default(),
            bell: Condvar::new(),
            serial: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            overdue: AtomicU64::new(0),
        }
    }
}

impl ExecDeadlines {
    /// This exec waits no longer than that, whatever deadline it had.
    pub fn set(&self, exec: &Arc<PendingExec>, until: Instant) {
        exec.wait_until(until);
        let key = (until, self.serial.fetch_add(1, Ordering::Relaxed));
        let mut waiting = self.lock_waiting();
        waiting.insert(key, Arc::downgrade(exec));
        if waiting.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.bell.notify_one();
        }
    }

    /// The reading thread works from now on.
    pub fn mark_busy(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.busy.store(now.saturating_add(1), Ordering::Release);
    }

    /// It waits again.
    pub fn mark_idle(&self) {
        self.busy.store(0, Ordering::Release);
    }

    /// Whether the reading thread came back in time.
    pub fn is_alive(&self) -> bool {
        self.is_busy_less_than(HANG_LIMIT)
    }

    fn is_busy_less_than(&self, limit: Duration) -> bool {
        let busy = self.busy.load(Ordering::Acquire);
        busy == 0 || self.begun.elapsed() < Duration::from_millis(busy) + limit
    }

    /// Looks at the clock for ever. `all_is_well` is called after what was due was answered, and not while the reading thread is late.
    pub fn run(&self, all_is_well: impl Fn()) -> ! {
        loop {
            let late = self.take_due().into_iter().filter(|exec| exec.expire()).count();
            self.overdue.fetch_add(late as u64, Ordering::Relaxed);
            if self.is_busy_less_than(LATE_LIMIT) {
                all_is_well();
            }
            if !self.is_alive() {
                // Printed if possible; the daemon ends either way.
                let _ = std::io::Write::write_all(
                    &mut std::io::stderr(),
                    b"the thread that is asked about execs hangs: the daemon ends, and nothing waits for it\n",
                );
                std::process::abort();
            }
            let waiting = self.lock_waiting();
            let next = waiting.keys().next().map(|(at, _)| at.saturating_duration_since(Instant::now()));
            drop(self.bell.wait_timeout(waiting, next.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)));
        }
    }

    /// Takes out what is due and still held.
    fn take_due(&self) -> Vec<Arc<PendingExec>> {
        let mut waiting = self.lock_waiting();
        let now = Instant::now();
        let later = waiting.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut *waiting, later);
        due.into_values().filter_map(|exec| exec.upgrade()).filter(|exec| !exec.may_still_wait(now)).collect()
    }

    fn lock_waiting(&self) -> MutexGuard<'_, BTreeMap<(Instant, u64), Weak<PendingExec>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
