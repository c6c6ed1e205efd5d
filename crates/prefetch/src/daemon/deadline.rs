//! The clock that lets through what is overdue, whatever its thread is doing. It also looks after the thread that reads from the
//! kernel: if that hangs, nobody would be answered any more, and the daemon ends itself, upon which the kernel lets everything
//! through.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::door::PendingExec;

/// How long the reading thread may need for what it has read: a thousand times what it does need.
const HANG_LIMIT: Duration = Duration::from_secs(5);
/// How often it is looked after.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How long it may need until the guard is not told any more that all is well, and answers in its place.
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
    /// This exec waits no longer than that, whatever was said before.
    pub fn set(&self, held: &Arc<PendingExec>, until: Instant) {
        held.wait_until(until);
        let key = (until, self.serial.fetch_add(1, Ordering::Relaxed));
        let mut waiting = self.lock_waiting();
        waiting.insert(key, Arc::downgrade(held));
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
            let late = self.take_due().into_iter().filter(|held| held.expire()).count();
            self.overdue.fetch_add(late as u64, Ordering::Relaxed);
            if self.is_busy_less_than(LATE_LIMIT) {
                all_is_well();
            }
            if !self.is_alive() {
                // Said if anybody listens; the daemon ends either way.
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

    /// Takes out what is due and still somebody's.
    fn take_due(&self) -> Vec<Arc<PendingExec>> {
        let mut waiting = self.lock_waiting();
        let now = Instant::now();
        let later = waiting.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut *waiting, later);
        due.into_values().filter_map(|held| held.upgrade()).filter(|held| !held.may_still_wait(now)).collect()
    }

    fn lock_waiting(&self) -> MutexGuard<'_, BTreeMap<(Instant, u64), Weak<PendingExec>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
