//! The thread that answers execs, and the one that looks at new files.
//!
//! The first touches no disk, takes no lock that is held for long, and prints nothing: every process that starts a
//! program waits for whatever it does.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_observe::taskstats::{TaskstatsSocket, ThreadUsage};
use rustix::event::{PollFd, PollFlags, poll};

use crate::daemon::exec_gate::PendingExec;
use crate::daemon::file_classifier::{self, FileId, FileKind};
use crate::daemon::process_tree::{PrefetchHelp, WatchedStartup, process_usage};
use crate::daemon::programs::{ProgramKey, StartupPurpose};
use crate::daemon::shared_state::{DaemonState, lock_mutex};
use crate::daemon::workers::{self, Credentials};
use crate::trace_builder::seconds_since_1970;

/// Execs that wait at once, from which on none is looked at: it is a storm.
const STORM: usize = 64;

/// Files that wait to be looked at; of more, the exec goes on.
const MAX_QUEUED_FILES: usize = 64;

/// Processes of which is remembered that they were seen.
const MAX_REMEMBERED_PROCESSES: usize = 4096;

/// Answers for ever. Returns where the kernel asks no more.
pub(crate) fn answer_execs(shared: &Arc<DaemonState>) -> io::Error {
    let (send, found) = sync_channel(MAX_QUEUED_FILES);
    let own = Arc::clone(shared);
    if let Err(error) =
        std::thread::Builder::new().name("scout".into()).spawn(move || classify_files(&own, &found))
    {
        return error;
    }
    let handler = ExecHandler::new(Arc::clone(shared));
    loop {
        let mut waits = [PollFd::new(&shared.gate, PollFlags::IN)];
        if let Err(error) = poll(&mut waits, None)
            && error != rustix::io::Errno::INTR
        {
            return error.into();
        }
        shared.deadline.mark_busy();
        match shared.gate.read_pending() {
            Ok(exec) => handler.accept_execs(exec, &send),
            // The kernel refuses an exec for which it can open no file: there must never be too many of ours.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
                shared.counts.lost.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => return error,
        }
        shared.deadline.mark_idle();
    }
}

fn classify_files(shared: &Arc<DaemonState>, found: &Receiver<(Arc<PendingExec>, FileId)>) {
    let handler = ExecHandler::new(Arc::clone(shared));
    for (exec, place) in found {
        let kind = exec.open_file().map_or(FileKind::Nameless, |file| file_classifier::classify_file(&file));
        if let (FileKind::Program(path) | FileKind::Script(path, _), Some(credentials)) =
            (&kind, exec_credentials(&exec))
        {
            let key = ProgramKey { path: path.clone(), user: credentials.user() };
            let has_trace = shared.settings.store.for_user(key.user).trace_path(path).exists();
            lock_mutex(&shared.programs).add_if_new(&key, place.1, has_trace);
        }
        let kind = shared.remember_file_kind(place, kind);
        handler.accept_classified(exec, place, &kind);
    }
}

/// One of the two threads.
struct ExecHandler {
    shared: Arc<DaemonState>,
    own: u32,
    alive: Option<TaskstatsSocket>,
}

impl ExecHandler {
    fn new(shared: Arc<DaemonState>) -> Self {
        ExecHandler { shared, own: std::process::id(), alive: TaskstatsSocket::open().ok() }
    }

    fn accept_execs(&self, execs: Vec<PendingExec>, scouts: &SyncSender<(Arc<PendingExec>, FileId)>) {
        let counts = &self.shared.counts;
        counts.asked.fetch_add(execs.len() as u64, Ordering::Relaxed);
        if execs.len() >= STORM {
            counts.unseen.fetch_add(execs.len() as u64, Ordering::Relaxed);
            return;
        }
        for one in execs.into_iter().filter(|one| one.process() != self.own) {
            let Some(place) = one.file().and_then(file_classifier::file_id) else { continue };
            let one = Arc::new(one);
            match self.shared.file_kind(&place) {
                Some(kind) => self.accept_classified(one, place, &kind),
                None => {
                    self.shared.deadline.set(&one, Instant::now() + self.shared.settings.decide);
                    let sent = scouts.try_send((one, place)).is_ok();
                    self.shared.counts.unseen.fetch_add(u64::from(!sent), Ordering::Relaxed);
                }
            }
        }
    }

    /// An execs of a file that was looked at once.
    fn accept_classified(&self, exec: Arc<PendingExec>, place: FileId, kind: &FileKind) {
        let process = exec.process();
        let is_part = lock_mutex(&self.shared.expected).remove(&process) == Some(place);
        match kind {
            FileKind::Script(_, Some(next)) => {
                make_room(&mut lock_mutex(&self.shared.expected)).insert(process, *next);
            }
            FileKind::Loader => exec.file().into_iter().for_each(|file| self.shared.gate.ignore_file(file)),
            _ => {}
        }
        if let (FileKind::Program(path) | FileKind::Script(path, _), false) = (kind, is_part) {
            let Some(credentials) = exec_credentials(&exec) else { return };
            let key = ProgramKey { path: path.clone(), user: credentials.user() };
            if self.shared.learning.load(Ordering::Relaxed) > 0 {
                make_room(&mut lock_mutex(&self.shared.starters)).insert(process, key.user);
            }
            let refused = lock_mutex(&self.shared.lists).reason_refused(path);
            let purpose =
                lock_mutex(&self.shared.programs).begin_startup(&key, place.1, seconds_since_1970(), refused);
            self.begin_startup(exec, (key, credentials), purpose);
        }
    }

    fn begin_startup(
        &self,
        exec: Arc<PendingExec>,
        (key, credentials): (ProgramKey, Credentials),
        purpose: StartupPurpose,
    ) {
        if purpose == StartupPurpose::Nothing {
            return;
        }
        let help = Arc::<Mutex<PrefetchHelp>>::default();
        let process = exec.process();
        let watch = WatchedStartup {
            process,
            program: key.clone(),
            until: Instant::now() + self.shared.settings.window,
            before: self.usage_before(process),
            help: Arc::clone(&help),
        };
        // Before the answer, so that it is known when the end is reported. The other side goes only with the daemon.
        let _ = lock_mutex(&self.shared.watches).send(watch);
        match purpose {
            StartupPurpose::Learn { anew } => workers::learn_startup(&self.shared, exec, &key, anew),
            StartupPurpose::ReadAhead { learn } => {
                workers::prefetch_startup(&self.shared, exec, (&key, credentials), help, learn)
            }
            StartupPurpose::Watch | StartupPurpose::Nothing => {}
        }
    }

    /// A process that runs one program after the other has used something before.
    fn usage_before(&self, process: u32) -> ThreadUsage {
        let again = make_room(&mut lock_mutex(&self.shared.seen)).insert(process, ()).is_some();
        match (again, &self.alive) {
            (true, Some(alive)) => process_usage(process, alive),
            _ => ThreadUsage::default(),
        }
    }
}

/// Who starts a program; none where the exec may have gone on already, and the process be another user now.
fn exec_credentials(exec: &PendingExec) -> Option<Credentials> {
    Credentials::of_process(exec.process()).filter(|_| exec.is_waiting())
}

/// Room for one more; what was remembered longest may be wrong by now, and is not missed.
fn make_room<T>(all: &mut HashMap<u32, T>) -> &mut HashMap<u32, T> {
    if all.len() >= MAX_REMEMBERED_PROCESSES {
        all.clear();
    }
    all
}
