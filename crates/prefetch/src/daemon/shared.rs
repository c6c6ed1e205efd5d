//! What the daemon's threads share. No lock is held while a disk or a process is waited for.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perflab_observe::io::Follower;

use super::deadline::Deadline;
use super::door::Door;
use super::exec_guard::GuardStatus;
use super::lists::Lists;
use super::opened::OpenedFiles;
use super::programs::{ProgramKey, Programs};
use super::scout::{Place, Sight};
use super::settings::Settings;
use super::trees::Watch;
use crate::Start;
use crate::learn::now;

/// Where the daemon talks: to the journal, or to whoever started it.
pub(super) type Say = Box<dyn Fn(&str) + Send + Sync>;

/// Files whose nature is remembered; more begin anew.
const SIGHTS: usize = 20_000;

/// Everything.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) door: Arc<Door>,
    pub(super) deadline: Deadline,
    pub(super) programs: Mutex<Programs>,
    pub(super) lists: Mutex<Lists>,
    pub(super) watches: Mutex<Sender<Watch>>,
    /// What is read ahead beside a process ends with it.
    pub(super) readings: Mutex<HashMap<u32, Arc<AtomicBool>>>,
    /// Buffers that wait for the next program that is to be learnt.
    pub(super) spare: Mutex<Option<Follower>>,
    /// What was learnt and could not be written yet.
    pub(super) unsaved: Mutex<Vec<Unsaved>>,
    /// Held by who reads a trace and writes it again; who is asked about an exec never does.
    pub(super) writing: Mutex<()>,
    /// None where the kernel does not tell what is opened.
    pub(super) opened: Option<OpenedFiles>,
    /// Who started a program last in a process, while any start is traced.
    pub(super) starters: Mutex<HashMap<u32, u32>>,
    pub(super) watched: Mutex<Vec<PathBuf>>,
    pub(super) counts: Counts,
    /// Where the guard hears that the daemon lives.
    pub(super) guard_line: Mutex<Option<UnixStream>>,
    pub(super) guard: Mutex<GuardStatus>,
    /// Threads that learn, and threads that read ahead.
    pub(super) learning: AtomicUsize,
    pub(super) reading: AtomicUsize,
    /// Whether the kernel accounts for delays now, and whether it tells of ends at all.
    pub(super) delays: AtomicBool,
    pub(super) judges: bool,
    pub(super) begun: u64,
    /// Which interpreter a process will run next, as part of the same exec.
    pub(super) expected: Mutex<HashMap<u32, Place>>,
    /// Processes that were other programs before.
    pub(super) seen: Mutex<HashMap<u32, ()>>,
    sights: Mutex<HashMap<Place, Arc<Sight>>>,
    troubles: Mutex<BTreeSet<String>>,
    say: Say,
}

/// A start that waits for room on a disk.
pub(super) struct Unsaved {
    pub(super) program: ProgramKey,
    pub(super) start: Start,
    pub(super) anew: bool,
}

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// files that were to be run
    pub(super) asked: AtomicU64,
    /// of them, those that were let through without a look
    pub(super) unseen: AtomicU64,
    /// times that the kernel had no room for what it had to tell
    pub(super) lost: AtomicU64,
}

impl Shared {
    pub(super) fn new(
        settings: Settings,
        (door, judges): (Arc<Door>, bool),
        programs: Programs,
        watches: Sender<Watch>,
        say: Say,
    ) -> Self {
        Shared {
            lists: Mutex::new(settings.lists.clone()),
            settings,
            door,
            deadline: Deadline::default(),
            programs: Mutex::new(programs),
            watches: Mutex::new(watches),
            readings: Mutex::default(),
            spare: Mutex::default(),
            unsaved: Mutex::default(),
            writing: Mutex::default(),
            opened: OpenedFiles::prepare().ok(),
            starters: Mutex::default(),
            watched: Mutex::default(),
            counts: Counts::default(),
            guard_line: Mutex::default(),
            guard: Mutex::default(),
            learning: AtomicUsize::new(0),
            reading: AtomicUsize::new(0),
            delays: AtomicBool::new(false),
            judges,
            begun: now(),
            expected: Mutex::default(),
            seen: Mutex::default(),
            sights: Mutex::default(),
            troubles: Mutex::default(),
            say,
        }
    }

    /// Tells the guard that execs are answered. Where it does not listen, the housekeeper finds that out.
    pub(super) fn tell_guard(&self) {
        if let Some(line) = locked(&self.guard_line).as_mut() {
            let _ = line.write(&[1]);
        }
    }

    pub(super) fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Says it, and not again until it is over.
    pub(super) fn trouble(&self, text: &str) {
        if locked(&self.troubles).insert(text.into()) {
            self.say(text);
        }
    }

    /// Troubles of this kind are over.
    pub(super) fn over(&self, begin: &str) {
        locked(&self.troubles).retain(|one| !one.starts_with(begin));
    }

    pub(super) fn troubles(&self) -> Vec<String> {
        locked(&self.troubles).iter().cloned().collect()
    }

    pub(super) fn sight(&self, place: &Place) -> Option<Arc<Sight>> {
        locked(&self.sights).get(place).cloned()
    }

    pub(super) fn saw(&self, place: Place, sight: Sight) -> Arc<Sight> {
        let sight = Arc::new(sight);
        let mut all = locked(&self.sights);
        if all.len() >= SIGHTS {
            all.clear();
        }
        all.insert(place, Arc::clone(&sight));
        sight
    }

    /// Changes what is known of a program.
    pub(super) fn with(&self, key: &ProgramKey, change: impl FnOnce(&mut super::Program)) {
        locked(&self.programs).with(key, change);
    }

    pub(super) fn delays(&self) -> bool {
        self.delays.load(Ordering::Relaxed)
    }
}

/// A thread that panicked ends the daemon, so that no lock stays behind.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
