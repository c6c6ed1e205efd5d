//! Learning and reading ahead: each on a thread of its own, while an exec waits, which the clock lets through should this take
//! too long. Threads are few; beyond them a start is only watched.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_model::io::IoRecording;
use perflab_observe::io::{Follower, Following, identify};

use super::door::Held;
use super::program::Standing;
use super::reading::{Reading, known};
use super::shared::{Shared, Unsaved, locked};
use super::trees::Given;
use crate::{Policy, PrefetchError, Start, combine};

/// Programs that are learnt at once: each has buffers of its own in the kernel.
const LEARNING: usize = 2;
/// Programs that are read ahead at once: each has hundreds of files open.
const READING: usize = 6;
/// Starts that wait for room on a disk.
const UNSAVED: usize = 8;

/// Traces a start, and remembers it.
pub(super) fn learn(shared: &Arc<Shared>, held: Arc<Held>, path: &Path, anew: bool) {
    shared.deadline.set(&held, Instant::now() + shared.settings.bound);
    let (own, program) = (Arc::clone(shared), path.to_path_buf());
    let work = move || {
        let following = follow(&own, held.process());
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
    spawn(shared, Work::Learn, path, work);
}

/// Reads ahead what a start will need.
pub(super) fn read_ahead(
    shared: &Arc<Shared>,
    held: Arc<Held>,
    path: &Path,
    help: Arc<Mutex<Given>>,
    learn: bool,
) {
    shared.deadline.set(&held, Instant::now() + shared.settings.bound);
    let (own, program) = (Arc::clone(shared), path.to_path_buf());
    let work = move || {
        let Some(start) = known(&own, &program) else { return };
        let following = learn.then(|| follow(&own, held.process()));
        Reading { shared: &own, program: &program, help: &help }.read(&start, held);
        if let Some(following) = following {
            finish(&own, &program, following, |start| added(&own, &program, start), false);
        }
    };
    spawn(shared, Work::ReadAhead, path, work);
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
fn spawn(shared: &Arc<Shared>, kind: Work, path: &Path, work: impl FnOnce() + Send + 'static) {
    let (own, program) = (Arc::clone(shared), path.to_path_buf());
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

fn follow(shared: &Shared, process: u32) -> Result<Following, perflab_observe::io::IoError> {
    let spare = locked(&shared.spare).take();
    spare.map_or_else(Follower::prepare, Ok)?.follow(process)
}

/// Waits for the end of a traced start, and remembers it; `whole` says what is to be remembered.
fn finish(
    shared: &Shared,
    program: &Path,
    following: Result<Following, perflab_observe::io::IoError>,
    whole: impl FnOnce(Start) -> Result<Start, PrefetchError>,
    anew: bool,
) {
    let recorded = following.and_then(|following| {
        following.wait(shared.settings.window, || false);
        following.stop()
    });
    let learnt = match recorded {
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
fn added(shared: &Shared, program: &Path, start: Start) -> Result<Start, PrefetchError> {
    let Ok(mut known) = shared.settings.store.get(program) else { return Ok(start) };
    known.starts = combine(&known, shared.settings.policy).into_iter().chain([start.clone()]).collect();
    Ok(combine(&known, Policy::Union).unwrap_or(start))
}

fn remember(shared: &Shared, program: &Path, start: Start, anew: bool) {
    let (pages, files) = (start.pages(), start.files.len());
    shared.say(&format!("learnt {}: {pages} pages of {files} files", program.display()));
    let mut unsaved = locked(&shared.unsaved);
    unsaved.retain(|one| one.program != program);
    unsaved.push(Unsaved { program: program.into(), start, anew });
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
    let mut all = std::mem::take(&mut *locked(&shared.unsaved));
    let store = &shared.settings.store;
    let written = |one: &Unsaved| {
        if one.anew {
            store.forget(&one.program)?;
        }
        store.add(&one.program, one.start.clone()).map(drop)
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
