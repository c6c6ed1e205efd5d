//! Learning and reading ahead: each on a thread of its own, while an exec waits, which the clock lets through should this take
//! too long. Threads are few; beyond them a start is only watched.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_model::io::IoRecording;
use perflab_observe::io::{ProcessIoRecording, ProcessIoTracer, resolve_files};
use perflab_observe::taskstats::TaskstatsSocket;

use super::door::PendingExec;
use super::opened::StartupFileUse;
use super::program::ProgramState;
use super::programs::ProgramKey;
use super::reading::{StartupReplay, remembered_trace};
use super::shared::{DaemonState, UnsavedTrace, lock_mutex};
use super::trees::PrefetchHelp;
use super::who::Credentials;
use crate::{CombinePolicy, PrefetchError, StartupTrace, TraceStore, combine_traces};

/// Programs that are learnt at once: each has buffers of its own in the kernel.
const MAX_LEARNING_THREADS: usize = 2;
/// Programs that are read ahead at once: each has hundreds of files open.
const MAX_READING_THREADS: usize = 6;
/// Starts that wait for room on a disk.
const MAX_UNSAVED_TRACES: usize = 8;
/// Threads whose users are remembered while a start is traced; what the others read is not learnt.
const MAX_REMEMBERED_THREADS: usize = 200_000;

/// Traces a start, and remembers it.
pub(super) fn learn_startup(shared: &Arc<DaemonState>, held: Arc<PendingExec>, key: &ProgramKey, anew: bool) {
    shared.deadline.set(&held, Instant::now() + shared.settings.bound);
    let (own, program) = (Arc::clone(shared), key.clone());
    let work = move || {
        let following = FollowedStartup::follow(&own, held.process());
        held.allow();
        if held.is_overdue() {
            // What it read before was not seen: such a trace would say that nothing is lacking.
            return own.update_program(&program, |one| {
                one.why = "it was let through before its tracing had begun".into()
            });
        }
        drop(held);
        let what = |start| if anew { Ok(start) } else { extend_trace(&own, &program, start) };
        finish_learning(&own, &program, following, what, anew);
    };
    spawn_worker(shared, WorkerKind::Learn, key, work);
}

/// Reads ahead what a start will need.
pub(super) fn prefetch_startup(
    shared: &Arc<DaemonState>,
    held: Arc<PendingExec>,
    (key, who): (&ProgramKey, Credentials),
    help: Arc<Mutex<PrefetchHelp>>,
    learn: bool,
) {
    let since = Instant::now();
    shared.deadline.set(&held, since + shared.settings.bound);
    let (own, program) = (Arc::clone(shared), key.clone());
    let work = move || {
        let Some(start) = remembered_trace(&own, &program) else { return };
        let following = learn.then(|| FollowedStartup::follow(&own, held.process()));
        StartupReplay { shared: &own, program: &program, credentials: &who, help: &help, since }
            .run(&start, held);
        if let Some(following) = following {
            finish_learning(&own, &program, following, |start| extend_trace(&own, &program, start), false);
        }
    };
    spawn_worker(shared, WorkerKind::ReadAhead, key, work);
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerKind {
    Learn,
    ReadAhead,
}

impl WorkerKind {
    /// How many do it now, and how many may.
    fn thread_limit(self, shared: &DaemonState) -> (&AtomicUsize, usize) {
        match self {
            WorkerKind::Learn => (&shared.learning, MAX_LEARNING_THREADS),
            WorkerKind::ReadAhead => (&shared.reading, MAX_READING_THREADS),
        }
    }
}

/// Runs it on a thread, where there are not too many. Where it is not run, the exec that it holds goes on.
fn spawn_worker(
    shared: &Arc<DaemonState>,
    kind: WorkerKind,
    key: &ProgramKey,
    work: impl FnOnce() + Send + 'static,
) {
    let (own, program) = (Arc::clone(shared), key.clone());
    let done = move |own: &DaemonState| {
        kind.thread_limit(own).0.fetch_sub(1, Ordering::Relaxed);
        lock_mutex(&own.programs).release(&program);
    };
    let (count, most) = kind.thread_limit(shared);
    if count.fetch_add(1, Ordering::Relaxed) >= most {
        return done(shared);
    }
    let finished = done.clone();
    let thread = std::thread::Builder::new().name("work".into()).spawn(move || {
        work();
        finished(&own);
    });
    if thread.is_err() {
        done(shared);
    }
}

/// A start that is traced, and who its threads were in the end.
struct FollowedStartup {
    following: ProcessIoRecording,
    ends: Option<TaskstatsSocket>,
}

impl FollowedStartup {
    fn follow(shared: &DaemonState, process: u32) -> Result<Self, perflab_observe::io::IoTraceError> {
        if shared.learning.load(Ordering::Relaxed) <= 1 {
            lock_mutex(&shared.starters).clear();
        }
        let ends = shared.judges.then(TaskstatsSocket::listen).and_then(Result::ok);
        let spare = lock_mutex(&shared.spare).take();
        Ok(FollowedStartup { following: spare.map_or_else(ProcessIoTracer::new, Ok)?.start(process)?, ends })
    }

    /// Waits for the end of it: what those of its threads read that are this user's. A child that became another user reads what that one
    /// says.
    fn finish_recording(
        self,
        shared: &DaemonState,
        user: u32,
    ) -> Result<IoRecording, perflab_observe::io::IoTraceError> {
        let users = RefCell::new(HashMap::new());
        let read = || {
            let mut users = users.borrow_mut();
            let note = |exit: perflab_observe::taskstats::ThreadExit| {
                if users.len() < MAX_REMEMBERED_THREADS {
                    users.insert(exit.thread, exit.user);
                }
            };
            self.ends.as_ref().map(|ends| ends.drain_exits(note));
        };
        let glance = || {
            read();
            false
        };
        self.following.wait_for_exit(shared.settings.window, glance);
        let mut recording = self.following.stop()?;
        read();
        // Nobody tells: only what is named as wanted is learnt then.
        if self.ends.is_some() {
            let (ended, starters) = (users.into_inner(), lock_mutex(&shared.starters).clone());
            let mut threads: HashMap<i32, bool> = HashMap::new();
            recording.events.retain(|event| {
                *threads.entry(event.pid).or_insert_with(|| {
                    let thread = event.pid.unsigned_abs();
                    let alive = || Credentials::of_process(thread).map(|who| who.user());
                    let is_own = ended.get(&thread).copied().or_else(alive) == Some(user);
                    is_own && starters.get(&thread).is_none_or(|starter| *starter == user)
                })
            });
        }
        Ok(recording)
    }
}

/// Waits for the end of a traced start, and remembers it; `whole` says what is to be remembered.
fn finish_learning(
    shared: &DaemonState,
    program: &ProgramKey,
    traced: Result<FollowedStartup, perflab_observe::io::IoTraceError>,
    whole: impl FnOnce(StartupTrace) -> Result<StartupTrace, PrefetchError>,
    anew: bool,
) {
    let learnt = match traced.and_then(|traced| traced.finish_recording(shared, program.user)) {
        Ok(recording) => trace_of_recording(recording).and_then(whole),
        Err(error) => return shared.report_trouble(&format!("a start cannot be traced: {error}")),
    };
    match learnt {
        Ok(start) => remember_trace(shared, program, start, anew),
        Err(PrefetchError::Empty { .. }) => shared.update_program(program, |one| match one.standing {
            ProgramState::Worth => one.why = "the start that was traced had everything in memory".into(),
            _ => one.standing = ProgramState::Known,
        }),
        Err(error) => shared.update_program(program, |one| one.why = error.to_string()),
    }
}

fn trace_of_recording(mut recording: IoRecording) -> Result<StartupTrace, PrefetchError> {
    resolve_files(&mut recording);
    crate::build_trace(&recording)
}

/// What is known already, and what a start has brought besides: it saw only what was not in memory.
fn extend_trace(
    shared: &DaemonState,
    program: &ProgramKey,
    start: StartupTrace,
) -> Result<StartupTrace, PrefetchError> {
    let Ok(mut known) = program_store(shared, program).read_trace(&program.path) else { return Ok(start) };
    known.starts =
        combine_traces(&known, shared.settings.policy).into_iter().chain([start.clone()]).collect();
    Ok(combine_traces(&known, CombinePolicy::Union).unwrap_or(start))
}

fn remember_trace(shared: &DaemonState, program: &ProgramKey, start: StartupTrace, anew: bool) {
    let (pages, files) = (start.page_count(), start.files.len());
    let (path, user) = (program.path.display(), program.user);
    shared.log(&format!("learnt {path} of user {user}: {pages} pages of {files} files"));
    let mut unsaved = lock_mutex(&shared.unsaved);
    unsaved.retain(|one| one.program != *program);
    unsaved.push(UnsavedTrace { program: program.clone(), start, anew });
    let surplus = unsaved.len().saturating_sub(MAX_UNSAVED_TRACES);
    unsaved.drain(..surplus).for_each(|one| {
        shared.update_program(&one.program, |one| one.standing = ProgramState::Worth);
    });
    drop(unsaved);
    save_traces(shared);
    shared.update_program(program, |one| {
        one.learned += 1;
        one.stale = false;
        one.standing = ProgramState::Known;
        one.why = "learnt, and not started since".into();
    });
}

/// Writes what was learnt. What cannot be written now is kept, and told once.
pub(super) fn save_traces(shared: &DaemonState) {
    const LACKS: &str = "what was learnt cannot be written";
    let _writing = lock_mutex(&shared.writing);
    let mut all = std::mem::take(&mut *lock_mutex(&shared.unsaved));
    let written = |one: &UnsavedTrace| {
        let store = program_store(shared, &one.program);
        if one.anew {
            store.forget(&one.program.path)?;
        }
        store.add_startup(&one.program.path, one.start.clone()).map(drop)
    };
    let before = all.len();
    all.retain(|one| match written(one) {
        Ok(()) => false,
        Err(error) => {
            shared.report_trouble(&format!("{LACKS}, and is kept in memory until it can: {error}"));
            true
        }
    });
    if all.is_empty() && before > 0 {
        shared.clear_trouble(LACKS);
    }
    lock_mutex(&shared.unsaved).extend(all);
}

fn program_store(shared: &DaemonState, program: &ProgramKey) -> TraceStore {
    shared.settings.store.for_user(program.user)
}

/// Notes what a start opened of what was read ahead for it; what several did not open is read ahead no more.
pub(super) fn note_file_use(shared: &DaemonState, program: &ProgramKey, file_use: &StartupFileUse) {
    let store = program_store(shared, program);
    let _writing = lock_mutex(&shared.writing);
    let Ok(mut known) = store.read_trace(&program.path) else { return };
    if !known.note_use(&file_use.opened, &file_use.unopened) {
        return;
    }
    let is_empty = known.starts.iter().all(|start| start.page_count() == 0);
    let written = match is_empty {
        true => store.forget(&program.path).map(drop),
        false => store.replace(&program.path, &known),
    };
    if let Err(error) = written {
        return shared.report_trouble(&format!("what starts did not use cannot be noted: {error}"));
    }
    if is_empty {
        let why = "no start used what was read ahead for it: it is watched anew";
        shared.update_program(program, |one| one.reset_forgotten(why.into()));
    }
}

/// Forgets what was learnt of programs for which there is no room.
pub(super) fn forget_programs(shared: &DaemonState, programs: &[ProgramKey]) {
    let _writing = lock_mutex(&shared.writing);
    for one in programs {
        if let Err(error) = program_store(shared, one).forget(&one.path) {
            shared
                .report_trouble(&format!("what is known of too many programs cannot be forgotten: {error}"));
        }
    }
}
