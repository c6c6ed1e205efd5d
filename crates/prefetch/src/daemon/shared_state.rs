//! What the daemon's threads share. No lock is held while a disk or a process is waited for.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perflab_observe::io::ProcessIoTracer;

use crate::daemon::exec_gate::{ExecDeadlines, ExecGate};
use crate::daemon::exec_guard::GuardStatus;
use crate::daemon::file_classifier::{FileId, FileKind};
use crate::daemon::opened_files::OpenedFiles;
use crate::daemon::options::{DaemonOptions, ProgramLists};
use crate::daemon::process_tree::WatchedStartup;
use crate::daemon::programs::{KnownPrograms, ProgramKey};
use crate::startup_trace::StartupTrace;
use crate::trace_builder::seconds_since_1970;

/// Where the daemon talks: to the journal, or to whoever started it.
pub(crate) type DaemonLog = Box<dyn Fn(&str) + Send + Sync>;

/// Files whose nature is remembered; more begin anew.
const MAX_FILE_KINDS: usize = 20_000;

/// Everything.
pub(crate) struct DaemonState {
    pub(crate) settings: DaemonOptions,
    pub(crate) gate: Arc<ExecGate>,
    pub(crate) deadline: ExecDeadlines,
    pub(crate) programs: Mutex<KnownPrograms>,
    pub(crate) lists: Mutex<ProgramLists>,
    pub(crate) watches: Mutex<Sender<WatchedStartup>>,
    /// What is read ahead beside a process ends with it.
    pub(crate) readings: Mutex<HashMap<u32, Arc<AtomicBool>>>,
    /// Buffers that wait for the next program that is to be learnt.
    pub(crate) spare: Mutex<Option<ProcessIoTracer>>,
    /// What was learnt and could not be written yet.
    pub(crate) unsaved: Mutex<Vec<UnsavedTrace>>,
    /// Held by who reads a trace and writes it again; who is asked about an exec never does.
    pub(crate) writing: Mutex<()>,
    /// None where the kernel does not report what is opened.
    pub(crate) opened: Option<OpenedFiles>,
    /// Who started a program last in a process, while any start is traced.
    pub(crate) starters: Mutex<HashMap<u32, u32>>,
    pub(crate) watched: Mutex<Vec<PathBuf>>,
    pub(crate) counts: DaemonCounts,
    /// Where the guard hears that the daemon lives.
    pub(crate) guard_line: Mutex<Option<UnixStream>>,
    pub(crate) guard: Mutex<GuardStatus>,
    /// Threads that learn, and threads that read ahead.
    pub(crate) learning: AtomicUsize,
    pub(crate) reading: AtomicUsize,
    /// Whether the kernel accounts for delays now, and whether it reports ends at all.
    pub(crate) delays: AtomicBool,
    pub(crate) judges: bool,
    pub(crate) begun: u64,
    /// Which interpreter a process will run next, as part of the same exec.
    pub(crate) expected: Mutex<HashMap<u32, FileId>>,
    /// Processes that were other programs before.
    pub(crate) seen: Mutex<HashMap<u32, ()>>,
    file_kinds: Mutex<HashMap<FileId, Arc<FileKind>>>,
    troubles: Mutex<BTreeSet<String>>,
    say: DaemonLog,
}

/// A startup that waits for room on a disk.
pub(crate) struct UnsavedTrace {
    pub(crate) program: ProgramKey,
    pub(crate) start: StartupTrace,
    pub(crate) anew: bool,
}

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct DaemonCounts {
    /// files that were to be run
    pub(crate) asked: AtomicU64,
    /// of them, those that were let through without a look
    pub(crate) unseen: AtomicU64,
    /// times that the kernel had no room for what it had to report
    pub(crate) lost: AtomicU64,
}

impl DaemonState {
    pub(crate) fn new(
        settings: DaemonOptions,
        (door, judges): (Arc<ExecGate>, bool),
        programs: KnownPrograms,
        watches: Sender<WatchedStartup>,
        say: DaemonLog,
    ) -> Self {
        DaemonState {
            lists: Mutex::new(settings.lists.clone()),
            settings,
            gate: door,
            deadline: ExecDeadlines::default(),
            programs: Mutex::new(programs),
            watches: Mutex::new(watches),
            readings: Mutex::default(),
            spare: Mutex::default(),
            unsaved: Mutex::default(),
            writing: Mutex::default(),
            opened: OpenedFiles::open().ok(),
            starters: Mutex::default(),
            watched: Mutex::default(),
            counts: DaemonCounts::default(),
            guard_line: Mutex::default(),
            guard: Mutex::default(),
            learning: AtomicUsize::new(0),
            reading: AtomicUsize::new(0),
            delays: AtomicBool::new(false),
            judges,
            begun: seconds_since_1970(),
            expected: Mutex::default(),
            seen: Mutex::default(),
            file_kinds: Mutex::default(),
            troubles: Mutex::default(),
            say,
        }
    }

    /// Tells the guard that execs are answered. Where it does not listen, the housekeeper finds that out.
    pub(crate) fn signal_guard(&self) {
        if let Some(line) = lock_mutex(&self.guard_line).as_mut() {
            let _ = line.write(&[1]);
        }
    }

    pub(crate) fn log(&self, text: &str) {
        (self.say)(text);
    }

    /// Says it, and not again until it is over.
    pub(crate) fn report_trouble(&self, text: &str) {
        if lock_mutex(&self.troubles).insert(text.into()) {
            self.log(text);
        }
    }

    /// Troubles of this kind are over.
    pub(crate) fn clear_trouble(&self, begin: &str) {
        lock_mutex(&self.troubles).retain(|one| !one.starts_with(begin));
    }

    pub(crate) fn troubles(&self) -> Vec<String> {
        lock_mutex(&self.troubles).iter().cloned().collect()
    }

    pub(crate) fn file_kind(&self, file_id: &FileId) -> Option<Arc<FileKind>> {
        lock_mutex(&self.file_kinds).get(file_id).cloned()
    }

    pub(crate) fn remember_file_kind(&self, file_id: FileId, kind: FileKind) -> Arc<FileKind> {
        let kind = Arc::new(kind);
        let mut all = lock_mutex(&self.file_kinds);
        if all.len() >= MAX_FILE_KINDS {
            all.clear();
        }
        all.insert(file_id, Arc::clone(&kind));
        kind
    }

    /// Changes what is known of a program.
    pub(crate) fn update_program(
        &self,
        key: &ProgramKey,
        change: impl FnOnce(&mut crate::daemon::programs::ProgramRecord),
    ) {
        lock_mutex(&self.programs).update(key, change);
    }

    pub(crate) fn has_delay_accounting(&self) -> bool {
        self.delays.load(Ordering::Relaxed)
    }
}

/// A thread that panicked ends the daemon, so that no lock stays behind.
pub(crate) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
