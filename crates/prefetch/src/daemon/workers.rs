//! Learning and reading ahead, each on a thread of its own, files opened as the user.
//!
//! An exec waits for reading ahead, and the clock lets it through should this take too long. Threads are few;
//! beyond them a startup is only watched. Files are opened on a thread that becomes the user who starts the program
//! and never anybody else again, so that the kernel itself decides what may be opened, with groups, access lists
//! and security modules.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{fs, io};

use perflab_model::Nanos;
use perflab_model::io_trace::{IoRecording, PAGE};
use perflab_observe::Root;
use perflab_observe::io::{ProcessIoRecording, ProcessIoTracer, resolve_files};
use perflab_observe::taskstats::TaskstatsSocket;
use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::daemon::exec_gate::PendingExec;
use crate::daemon::opened_files::StartupFileUse;
use crate::daemon::process_tree::PrefetchHelp;
use crate::daemon::programs::{ProgramKey, ProgramRecord, ProgramState, StateReason};
use crate::daemon::shared_state::{DaemonState, UnsavedTrace, lock_mutex};
use crate::error::PrefetchError;
use crate::replay::{self, ReplayBudget, ReplayResult, replay_part};
use crate::replay_plan::{ReplayPart, ReplayPlan, replay_memory_limit};
use crate::startup_trace::{CombinePolicy, StartupTrace, combine_traces};
use crate::trace_store::TraceStore;

/// Programs that are learnt at once: each has buffers of its own in the kernel.
const MAX_LEARNING_THREADS: usize = 2;

/// Programs that are read ahead at once: each has hundreds of files open.
const MAX_READING_THREADS: usize = 6;

/// Starts that wait for room on a disk.
const MAX_UNSAVED_TRACES: usize = 8;

/// Threads whose users are remembered while a startup is traced; what the others read is not learnt.
const MAX_REMEMBERED_THREADS: usize = 200_000;

/// Traces a startup, and remembers it.
pub(crate) fn learn_startup(shared: &Arc<DaemonState>, exec: Arc<PendingExec>, key: &ProgramKey, anew: bool) {
    shared.deadline.set(&exec, Instant::now() + shared.settings.bound);
    let (own, program) = (Arc::clone(shared), key.clone());
    let work = move || {
        let following = FollowedStartup::follow(&own, exec.process());
        exec.allow();
        if exec.is_overdue() {
            // What it read before was not seen: such a trace would say that nothing is lacking.
            return own.update_program(&program, |one| one.why = StateReason::AllowedUntraced);
        }
        drop(exec);
        let what = |start| if anew { Ok(start) } else { extend_trace(&own, &program, start) };
        finish_learning(&own, &program, following, what, anew);
    };
    spawn_worker(shared, WorkerKind::Learn, key, work);
}

/// Reads ahead what a startup will need.
pub(crate) fn prefetch_startup(
    shared: &Arc<DaemonState>,
    exec: Arc<PendingExec>,
    (key, credentials): (&ProgramKey, Credentials),
    help: Arc<Mutex<PrefetchHelp>>,
    learn: bool,
) {
    let since = Instant::now();
    shared.deadline.set(&exec, since + shared.settings.bound);
    let (own, program) = (Arc::clone(shared), key.clone());
    let work = move || {
        let Some(start) = remembered_trace(&own, &program) else { return };
        let following = learn.then(|| FollowedStartup::follow(&own, exec.process()));
        StartupReplay { shared: &own, program: &program, credentials: &credentials, help: &help, since }
            .run(&start, exec);
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

/// A startup that is traced, and who its threads were in the end.
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
        // Waits are not reported: only what is listed is learnt then.
        if self.ends.is_some() {
            let (ended, starters) = (users.into_inner(), lock_mutex(&shared.starters).clone());
            let mut threads: HashMap<i32, bool> = HashMap::new();
            recording.events.retain(|event| {
                *threads.entry(event.pid).or_insert_with(|| {
                    let thread = event.pid.unsigned_abs();
                    let alive = || Credentials::of_process(thread).map(|credentials| credentials.user());
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
        Err(PrefetchError::Empty { .. }) => shared.update_program(program, |one| match one.state {
            ProgramState::Worth => one.why = StateReason::TracedWarm,
            _ => one.state = ProgramState::Known,
        }),
        Err(error) => {
            shared.update_program(program, |one| one.why = StateReason::TraceFailed(error.to_string()))
        }
    }
}

fn trace_of_recording(mut recording: IoRecording) -> Result<StartupTrace, PrefetchError> {
    resolve_files(&mut recording);
    crate::trace_builder::build_trace(&recording)
}

/// What is known already, and what a startup has brought besides: it saw only what was not in memory.
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
        shared.update_program(&one.program, |one| one.state = ProgramState::Worth);
    });
    drop(unsaved);
    save_traces(shared);
    shared.update_program(program, |one| {
        one.learned += 1;
        one.stale = false;
        one.state = ProgramState::Known;
        one.why = StateReason::Learnt;
    });
}

/// Writes what was learnt. What cannot be written now is kept, and reported once.
pub(crate) fn save_traces(shared: &DaemonState) {
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

/// Notes what a startup opened of what was read ahead for it; what several did not open is read ahead no more.
pub(crate) fn note_file_use(shared: &DaemonState, program: &ProgramKey, file_use: &StartupFileUse) {
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
        shared.update_program(program, ProgramRecord::reset_forgotten);
    }
}

/// Forgets what was learnt of programs for which there is no room.
pub(crate) fn forget_programs(shared: &DaemonState, programs: &[ProgramKey]) {
    let _writing = lock_mutex(&shared.writing);
    for one in programs {
        if let Err(error) = program_store(shared, one).forget(&one.path) {
            shared
                .report_trouble(&format!("what is known of too many programs cannot be forgotten: {error}"));
        }
    }
}

/// What is remembered of a program, on the disk or not there yet.
fn remembered_trace(shared: &DaemonState, program: &ProgramKey) -> Option<StartupTrace> {
    let unsaved =
        lock_mutex(&shared.unsaved).iter().find(|one| one.program == *program).map(|one| one.start.clone());
    if unsaved.is_some() {
        return unsaved;
    }
    match shared.settings.store.for_user(program.user).read_trace(&program.path) {
        Ok(known) => combine_traces(&known, shared.settings.policy),
        Err(error) => {
            shared.update_program(program, |one| {
                one.state = ProgramState::Worth;
                one.why = StateReason::TraceUnusable(error.to_string());
            });
            None
        }
    }
}

/// Reading ahead for one startup.
struct StartupReplay<'a> {
    pub(crate) shared: &'a DaemonState,
    pub(crate) program: &'a ProgramKey,
    /// the user, as the process was while its exec waited: what it runs may make it another
    credentials: &'a Credentials,
    pub(crate) help: &'a Mutex<PrefetchHelp>,
    /// since when the exec waits
    pub(crate) since: Instant,
}

impl StartupReplay<'_> {
    /// Reads what is to be there first, lets the exec go, and reads the rest.
    pub(crate) fn run(&self, start: &StartupTrace, exec: Arc<PendingExec>) {
        let (settings, since) = (&self.shared.settings, self.since);
        let memory = settings.memory.or_else(|| replay_memory_limit(&Root::host())).unwrap_or(u64::MAX);
        let plan = settings.mode.plan_replay(start, settings.order, memory);
        let beginning = exec.open_file().is_some_and(|file| replay::is_first_page_resident(&file));
        match self.run_as_user(|| beginning && replay::is_plan_resident(&plan)) {
            Some(true) => {
                *lock_mutex(self.help) = PrefetchHelp::Warm;
                return self.shared.update_program(self.program, |one| one.ahead.warm += 1);
            }
            Some(false) => {}
            None => return,
        }
        let stop = Arc::new(AtomicBool::new(false));
        let process = exec.process();
        let observed = self.observe(&exec, &plan);
        *lock_mutex(self.help) = PrefetchHelp::Reading { since, observed };
        lock_mutex(&self.shared.readings).insert(process, Arc::clone(&stop));
        let [before, beside] = settings.mode.split_plan(&plan);
        let first = self.replay_part(&plan, before, &stop);
        let waited = settings.bound.min(since.elapsed());
        // Before the answer: a short program has ended right after it, and is judged.
        *lock_mutex(self.help) = PrefetchHelp::ReadAhead { held: Nanos::from(waited), observed };
        exec.allow();
        let overdue = exec.is_overdue();
        drop(exec);
        let second = self.replay_part(&plan, beside, &stop);
        lock_mutex(&self.shared.readings).remove(&process);
        self.count_results(&[first, second], overdue);
    }

    /// Before the exec goes on, so that nothing is opened unseen.
    fn observe(&self, exec: &PendingExec, plan: &ReplayPlan<'_>) -> Option<u64> {
        let until = Instant::now() + self.shared.settings.window;
        self.shared.opened.as_ref()?.observe(exec.process(), &exec.open_file()?, plan, until)
    }

    /// A file system's own blocks with the daemon's rights, files with the user's.
    fn replay_part(&self, plan: &ReplayPlan<'_>, part: ReplayPart, stop: &AtomicBool) -> [ReplayResult; 2] {
        let budget = ReplayBudget { rate: self.shared.settings.rate };
        let metadata = ReplayPart { metadata: true, steps: 0..0 };
        let own =
            if part.metadata { replay_part(plan, metadata, budget, stop) } else { ReplayResult::default() };
        let files = ReplayPart { metadata: false, steps: part.steps };
        if files.steps.is_empty() || stop.load(Ordering::Relaxed) {
            return [own, ReplayResult::default()];
        }
        let files = self.run_as_user(|| replay_part(plan, files, budget, stop)).unwrap_or_default();
        [own, files]
    }

    /// Does something on a thread that is this user; nothing where it cannot become them.
    fn run_as_user<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Option<T> {
        let became = std::thread::scope(|scope| {
            let thread = scope.spawn(|| self.credentials.assume().map(|()| work()));
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let failed = |error| {
            let text =
                format!("nothing is read ahead for other users: {error}; it needs CAP_SETUID and CAP_SETGID");
            self.shared.report_trouble(&text);
        };
        became.map_err(failed).ok()
    }

    fn count_results(&self, parts: &[[ReplayResult; 2]], overdue: bool) {
        let all = || parts.iter().flatten();
        self.shared.update_program(self.program, |one| {
            one.ahead.starts += 1;
            one.ahead.bytes += all().map(|part| (part.pages + part.metadata) * PAGE).sum::<u64>();
            one.ahead.skipped += all().map(|part| part.skipped.len() as u64).sum::<u64>();
            one.ahead.overdue += u64::from(overdue);
        });
    }
}

/// A user with all groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    user: u32,
    group: u32,
    groups: Vec<u32>,
}

impl Credentials {
    /// Their number.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Of a process, as it would open files (the last of the four numbers).
    pub fn of_process(process: u32) -> Option<Self> {
        parse_credentials(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
    }

    /// Makes the calling thread this user; threads that it makes are it too. Rights beyond the user's are given up with it.
    ///
    /// # Errors
    /// CAP_SETUID or CAP_SETGID is missing.
    pub fn assume(&self) -> io::Result<()> {
        if self.user == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        set_thread_groups(&groups)?;
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        set_thread_res_gid(group, group, group)?;
        Ok(set_thread_res_uid(user, user, user)?)
    }
}

fn parse_credentials(status: &str) -> Option<Credentials> {
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    let last = |name: &str| line(name)?.get(3).copied();
    Some(Credentials { user: last("Uid:")?, group: last("Gid:")?, groups: line("Groups:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_for_files_is_the_last() {
        let status = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nVmPeak:\t1 kB\n";
        assert_eq!(parse_credentials(status), Some(Credentials { user: 4, group: 8, groups: vec![9, 10] }));
        assert_eq!(parse_credentials("Uid:\t1\t2\t3\t4\nGid:\t5\n"), None);
        assert!(Credentials::of_process(std::process::id()).is_some());
    }

    #[test]
    fn a_thread_that_became_somebody_may_open_no_more_than_they() {
        if !rustix::process::geteuid().is_root() {
            assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none());
            return eprintln!("SKIP a_thread_that_became_somebody_may_open_no_more_than_they: it needs root");
        }
        let nobody = Credentials { user: 65534, group: 65534, groups: vec![65534] };
        let opened = std::thread::spawn(move || {
            nobody.assume().unwrap();
            let below = std::thread::spawn(|| fs::File::open("/etc/shadow").is_ok()).join().unwrap();
            (fs::File::open("/etc/shadow").is_ok(), below, fs::File::open("/etc/passwd").is_ok())
        });
        assert_eq!(opened.join().unwrap(), (false, false, true));
        assert!(fs::File::open("/etc/shadow").is_ok(), "other threads are who they were");
    }
}
