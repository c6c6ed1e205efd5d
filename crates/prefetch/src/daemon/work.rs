//! Learning and reading ahead: each on a thread of its own, while an exec waits, which the clock lets through should this take
//! too long. Threads are few; beyond them a start is only watched.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_model::io::IoRecording;
use perflab_observe::io::{Follower, Following, identify};
use perflab_observe::taskstats::TaskStats;

use super::door::Held;
use super::opened::FileUse;
use super::program::Standing;
use super::programs::ProgramKey;
use super::reading::{Reading, known};
use super::shared::{Shared, Unsaved, locked};
use super::trees::Given;
use super::who::Who;
use crate::{Policy, PrefetchError, Start, Store, combine};

/// Programs that are learnt at once: each has buffers of its own in the kernel.
const LEARNING: usize = 2;
/// Programs that are read ahead at once: each has hundreds of files open.
const READING: usize = 6;
/// Starts that wait for room on a disk.
const UNSAVED: usize = 8;
/// Threads whose users are remembered while a start is traced; what the others read is not learnt.
const THREADS: usize = 200_000;

/// Traces a start, and remembers it.
pub(super) fn learn(shared: &Arc<Shared>, held: Arc<Held>, key: &ProgramKey, anew: bool) {
    shared.deadline.set(&held, Instant::now() + shared.settings.bound);
    let (own, program) = (Arc::clone(shared), key.clone());
    let work = move || {
        let following = Traced::follow(&own, held.process());
        held.allow();
        if held.is_overdue() {
            // What it read before was not seen: such a trace would say that nothing is lacking.
            return own
                .with(&program, |one| one.why = "it was let through before its tracing had begun".into());
        }
        drop(held);
        let what = |start| if anew { Ok(start) } else { added(&own, &program, start) };
        finish(&own, &program, following, what, anew);
    };
    spawn(shared, Work::Learn, key, work);
}

/// Reads ahead what a start will need.
pub(super) fn read_ahead(
    shared: &Arc<Shared>,
    held: Arc<Held>,
    (key, who): (&ProgramKey, Who),
    help: Arc<Mutex<Given>>,
    learn: bool,
) {
    let since = Instant::now();
    shared.deadline.set(&held, since + shared.settings.bound);
    let (own, program) = (Arc::clone(shared), key.clone());
    let work = move || {
        let Some(start) = known(&own, &program) else { return };
        let following = learn.then(|| Traced::follow(&own, held.process()));
        Reading { shared: &own, program: &program, who: &who, help: &help, since }.read(&start, held);
        if let Some(following) = following {
            finish(&own, &program, following, |start| added(&own, &program, start), false);
        }
    };
    spawn(shared, Work::ReadAhead, key, work);
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Learn,
    ReadAhead,
}

impl Work {
    /// How many do it now, and how many may.
    fn threads(self, shared: &Shared) -> (&AtomicUsize, usize) {
        match self {
            Work::Learn => (&shared.learning, LEARNING),
            Work::ReadAhead => (&shared.reading, READING),
        }
    }
}

/// Runs it on a thread, where there are not too many. Where it is not run, the exec that it holds goes on.
fn spawn(shared: &Arc<Shared>, kind: Work, key: &ProgramKey, work: impl FnOnce() + Send + 'static) {
    let (own, program) = (Arc::clone(shared), key.clone());
    let done = move |own: &Shared| {
        kind.threads(own).0.fetch_sub(1, Ordering::Relaxed);
        locked(&own.programs).rests(&program);
    };
    let (count, most) = kind.threads(shared);
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
struct Traced {
    following: Following,
    ends: Option<TaskStats>,
}

impl Traced {
    fn follow(shared: &Shared, process: u32) -> Result<Self, perflab_observe::io::IoError> {
        if shared.learning.load(Ordering::Relaxed) <= 1 {
            locked(&shared.starters).clear();
        }
        let ends = shared.judges.then(TaskStats::listen).and_then(Result::ok);
        let spare = locked(&shared.spare).take();
        Ok(Traced { following: spare.map_or_else(Follower::prepare, Ok)?.follow(process)?, ends })
    }

    /// Waits for the end of it: what those of its threads read that are this user's. A child that became another user reads what that one
    /// says.
    fn recorded(self, shared: &Shared, user: u32) -> Result<IoRecording, perflab_observe::io::IoError> {
        let users = RefCell::new(HashMap::new());
        let read = || {
            let mut users = users.borrow_mut();
            let note = |exit: perflab_observe::taskstats::Exit| {
                if users.len() < THREADS {
                    users.insert(exit.thread, exit.user);
                }
            };
            self.ends.as_ref().map(|ends| ends.exits(note));
        };
        let glance = || {
            read();
            false
        };
        self.following.wait(shared.settings.window, glance);
        let mut recording = self.following.stop()?;
        read();
        // Nobody tells: only what is named as wanted is learnt then.
        if self.ends.is_some() {
            let (ended, starters) = (users.into_inner(), locked(&shared.starters).clone());
            let mut threads: HashMap<i32, bool> = HashMap::new();
            recording.events.retain(|event| {
                *threads.entry(event.pid).or_insert_with(|| {
                    let thread = event.pid.unsigned_abs();
                    let alive = || Who::of(thread).map(|who| who.user());
                    let is_own = ended.get(&thread).copied().or_else(alive) == Some(user);
                    is_own && starters.get(&thread).is_none_or(|starter| *starter == user)
                })
            });
        }
        Ok(recording)
    }
}

/// Waits for the end of a traced start, and remembers it; `whole` says what is to be remembered.
fn finish(
    shared: &Shared,
    program: &ProgramKey,
    traced: Result<Traced, perflab_observe::io::IoError>,
    whole: impl FnOnce(Start) -> Result<Start, PrefetchError>,
    anew: bool,
) {
    let learnt = match traced.and_then(|traced| traced.recorded(shared, program.user)) {
        Ok(recording) => start_of(recording).and_then(whole),
        Err(error) => return shared.trouble(&format!("a start cannot be traced: {error}")),
    };
    match learnt {
        Ok(start) => remember(shared, program, start, anew),
        Err(PrefetchError::Empty { .. }) => shared.with(program, |one| match one.standing {
            Standing::Worth => one.why = "the start that was traced had everything in memory".into(),
            _ => one.standing = Standing::Known,
        }),
        Err(error) => shared.with(program, |one| one.why = error.to_string()),
    }
}

fn start_of(mut recording: IoRecording) -> Result<Start, PrefetchError> {
    identify(&mut recording);
    crate::learn(&recording)
}

/// What is known already, and what a start has brought besides: it saw only what was not in memory.
fn added(shared: &Shared, program: &ProgramKey, start: Start) -> Result<Start, PrefetchError> {
    let Ok(mut known) = store_of(shared, program).get(&program.path) else { return Ok(start) };
    known.starts = combine(&known, shared.settings.policy).into_iter().chain([start.clone()]).collect();
    Ok(combine(&known, Policy::Union).unwrap_or(start))
}

fn remember(shared: &Shared, program: &ProgramKey, start: Start, anew: bool) {
    let (pages, files) = (start.pages(), start.files.len());
    let (path, user) = (program.path.display(), program.user);
    shared.say(&format!("learnt {path} of user {user}: {pages} pages of {files} files"));
    let mut unsaved = locked(&shared.unsaved);
    unsaved.retain(|one| one.program != *program);
    unsaved.push(Unsaved { program: program.clone(), start, anew });
    let surplus = unsaved.len().saturating_sub(UNSAVED);
    unsaved.drain(..surplus).for_each(|one| {
        shared.with(&one.program, |one| one.standing = Standing::Worth);
    });
    drop(unsaved);
    save(shared);
    shared.with(program, |one| {
        one.learned += 1;
        one.stale = false;
        one.standing = Standing::Known;
        one.why = "learnt, and not started since".into();
    });
}

/// Writes what was learnt. What cannot be written now is kept, and told once.
pub(super) fn save(shared: &Shared) {
    const LACKS: &str = "what was learnt cannot be written";
    let _writing = locked(&shared.writing);
    let mut all = std::mem::take(&mut *locked(&shared.unsaved));
    let written = |one: &Unsaved| {
        let store = store_of(shared, &one.program);
        if one.anew {
            store.forget(&one.program.path)?;
        }
        store.add(&one.program.path, one.start.clone()).map(drop)
    };
    let before = all.len();
    all.retain(|one| match written(one) {
        Ok(()) => false,
        Err(error) => {
            shared.trouble(&format!("{LACKS}, and is kept in memory until it can: {error}"));
            true
        }
    });
    if all.is_empty() && before > 0 {
        shared.over(LACKS);
    }
    locked(&shared.unsaved).extend(all);
}

fn store_of(shared: &Shared, program: &ProgramKey) -> Store {
    shared.settings.store.of_user(program.user)
}

/// Notes what a start opened of what was read ahead for it; what several did not open is read ahead no more.
pub(super) fn note_use(shared: &Shared, program: &ProgramKey, file_use: &FileUse) {
    let store = store_of(shared, program);
    let _writing = locked(&shared.writing);
    let Ok(mut known) = store.get(&program.path) else { return };
    if !known.note_use(&file_use.opened, &file_use.unopened) {
        return;
    }
    let is_empty = known.starts.iter().all(|start| start.pages() == 0);
    let written = match is_empty {
        true => store.forget(&program.path).map(drop),
        false => store.replace(&program.path, &known),
    };
    if let Err(error) = written {
        return shared.trouble(&format!("what starts did not use cannot be noted: {error}"));
    }
    if is_empty {
        let why = "no start used what was read ahead for it: it is watched anew";
        shared.with(program, |one| one.forgotten(why.into()));
    }
}

/// Forgets what was learnt of programs for which there is no room.
pub(super) fn forget(shared: &Shared, programs: &[ProgramKey]) {
    let _writing = locked(&shared.writing);
    for one in programs {
        if let Err(error) = store_of(shared, one).forget(&one.path) {
            shared.trouble(&format!("what is known of too many programs cannot be forgotten: {error}"));
        }
    }
}
