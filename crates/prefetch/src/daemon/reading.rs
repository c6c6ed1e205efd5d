//! Reading ahead for one start: what is known of its program, in the name of who starts it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_model::Nanos;
use perflab_model::io::PAGE;
use perflab_observe::Root;

use super::door::Held;
use super::program::Standing;
use super::programs::ProgramKey;
use super::shared::{Shared, locked};
use super::trees::Given;
use super::who::Who;
use crate::warm;
use crate::{Budget, Part, Plan, Replayed, Start, combine, half_of_free, replay};

/// What is remembered of a program, on the disk or not there yet.
pub(super) fn known(shared: &Shared, program: &ProgramKey) -> Option<Start> {
    let unsaved =
        locked(&shared.unsaved).iter().find(|one| one.program == *program).map(|one| one.start.clone());
    if unsaved.is_some() {
        return unsaved;
    }
    match shared.settings.store.of_user(program.user).get(&program.path) {
        Ok(known) => combine(&known, shared.settings.policy),
        Err(error) => {
            shared.with(program, |one| {
                one.standing = Standing::Worth;
                one.why = format!("its trace cannot be used, and is made anew at its next start: {error}");
            });
            None
        }
    }
}

/// Reading ahead for one start.
pub(super) struct Reading<'a> {
    pub(super) shared: &'a Shared,
    pub(super) program: &'a ProgramKey,
    /// the user, as the process was while its exec waited: what it runs may make it another
    pub(super) who: &'a Who,
    pub(super) help: &'a Mutex<Given>,
    /// since when the exec waits
    pub(super) since: Instant,
}

impl Reading<'_> {
    /// Reads what is to be there first, lets the exec go, and reads the rest.
    pub(super) fn read(&self, start: &Start, held: Arc<Held>) {
        let (settings, since) = (&self.shared.settings, self.since);
        let memory = settings.memory.or_else(|| half_of_free(&Root::host())).unwrap_or(u64::MAX);
        let plan = settings.mode.plan(start, settings.order, memory);
        let beginning = held.opened().is_some_and(|file| warm::has_beginning(&file));
        match self.as_user(|| beginning && warm::is_warm(&plan)) {
            Some(true) => {
                *locked(self.help) = Given::Warm;
                return self.shared.with(self.program, |one| one.ahead.warm += 1);
            }
            Some(false) => {}
            None => return,
        }
        let stop = Arc::new(AtomicBool::new(false));
        let process = held.process();
        let observed = self.observe(&held, &plan);
        *locked(self.help) = Given::Reading { since, observed };
        locked(&self.shared.readings).insert(process, Arc::clone(&stop));
        let [before, beside] = settings.mode.parts(&plan);
        let first = self.part(&plan, before, &stop);
        let waited = settings.bound.min(since.elapsed());
        // Before the answer: a short program has ended right after it, and is judged.
        *locked(self.help) = Given::ReadAhead { held: Nanos::from(waited), observed };
        held.allow();
        let overdue = held.is_overdue();
        drop(held);
        let second = self.part(&plan, beside, &stop);
        locked(&self.shared.readings).remove(&process);
        self.count(&[first, second], overdue);
    }

    /// Before the exec goes on, so that nothing is opened unseen.
    fn observe(&self, held: &Held, plan: &Plan<'_>) -> Option<u64> {
        let until = Instant::now() + self.shared.settings.window;
        self.shared.opened.as_ref()?.observe(held.process(), &held.opened()?, plan, until)
    }

    /// A file system's own blocks with the daemon's rights, files with the user's.
    fn part(&self, plan: &Plan<'_>, part: Part, stop: &AtomicBool) -> [Replayed; 2] {
        let budget = Budget { rate: self.shared.settings.rate };
        let metadata = Part { metadata: true, steps: 0..0 };
        let own = if part.metadata { replay(plan, metadata, budget, stop) } else { Replayed::default() };
        let files = Part { metadata: false, steps: part.steps };
        if files.steps.is_empty() || stop.load(Ordering::Relaxed) {
            return [own, Replayed::default()];
        }
        let files = self.as_user(|| replay(plan, files, budget, stop)).unwrap_or_default();
        [own, files]
    }

    /// Does something on a thread that is this user; nothing where it cannot become them.
    fn as_user<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Option<T> {
        let became = std::thread::scope(|scope| {
            let thread = scope.spawn(|| self.who.become_it().map(|()| work()));
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let failed = |error| {
            let text =
                format!("nothing is read ahead for other users: {error}; it needs CAP_SETUID and CAP_SETGID");
            self.shared.trouble(&text);
        };
        became.map_err(failed).ok()
    }

    fn count(&self, parts: &[[Replayed; 2]], overdue: bool) {
        let all = || parts.iter().flatten();
        self.shared.with(self.program, |one| {
            one.ahead.starts += 1;
            one.ahead.bytes += all().map(|part| (part.pages + part.metadata) * PAGE).sum::<u64>();
            one.ahead.skipped += all().map(|part| part.skipped.len() as u64).sum::<u64>();
            one.ahead.overdue += u64::from(overdue);
        });
    }
}
