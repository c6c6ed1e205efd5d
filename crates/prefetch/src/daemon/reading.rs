//! Reading ahead for one start: what is known of its program, in the name of who starts it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_model::Nanos;
use perflab_model::io::PAGE;
use perflab_observe::Root;

use super::door::PendingExec;
use super::program::ProgramState;
use super::programs::ProgramKey;
use super::shared::{DaemonState, lock_mutex};
use super::trees::PrefetchHelp;
use super::who::Credentials;
use crate::warm;
use crate::{
    ReplayBudget, ReplayPart, ReplayPlan, ReplayResult, StartupTrace, combine_traces, replay_memory_limit,
    replay_part,
};

/// What is remembered of a program, on the disk or not there yet.
pub(super) fn remembered_trace(shared: &DaemonState, program: &ProgramKey) -> Option<StartupTrace> {
    let unsaved =
        lock_mutex(&shared.unsaved).iter().find(|one| one.program == *program).map(|one| one.start.clone());
    if unsaved.is_some() {
        return unsaved;
    }
    match shared.settings.store.for_user(program.user).read_trace(&program.path) {
        Ok(known) => combine_traces(&known, shared.settings.policy),
        Err(error) => {
            shared.update_program(program, |one| {
                one.standing = ProgramState::Worth;
                one.why = format!("its trace cannot be used, and is made anew at its next start: {error}");
            });
            None
        }
    }
}

/// Reading ahead for one start.
pub(super) struct StartupReplay<'a> {
    pub(super) shared: &'a DaemonState,
    pub(super) program: &'a ProgramKey,
    /// the user, as the process was while its exec waited: what it runs may make it another
    pub(super) credentials: &'a Credentials,
    pub(super) help: &'a Mutex<PrefetchHelp>,
    /// since when the exec waits
    pub(super) since: Instant,
}

impl StartupReplay<'_> {
    /// Reads what is to be there first, lets the exec go, and reads the rest.
    pub(super) fn run(&self, start: &StartupTrace, held: Arc<PendingExec>) {
        let (settings, since) = (&self.shared.settings, self.since);
        let memory = settings.memory.or_else(|| replay_memory_limit(&Root::host())).unwrap_or(u64::MAX);
        let plan = settings.mode.plan_replay(start, settings.order, memory);
        let beginning = held.open_file().is_some_and(|file| warm::is_first_page_resident(&file));
        match self.run_as_user(|| beginning && warm::is_plan_resident(&plan)) {
            Some(true) => {
                *lock_mutex(self.help) = PrefetchHelp::Warm;
                return self.shared.update_program(self.program, |one| one.ahead.warm += 1);
            }
            Some(false) => {}
            None => return,
        }
        let stop = Arc::new(AtomicBool::new(false));
        let process = held.process();
        let observed = self.observe(&held, &plan);
        *lock_mutex(self.help) = PrefetchHelp::Reading { since, observed };
        lock_mutex(&self.shared.readings).insert(process, Arc::clone(&stop));
        let [before, beside] = settings.mode.split_plan(&plan);
        let first = self.replay_part(&plan, before, &stop);
        let waited = settings.bound.min(since.elapsed());
        // Before the answer: a short program has ended right after it, and is judged.
        *lock_mutex(self.help) = PrefetchHelp::ReadAhead { held: Nanos::from(waited), observed };
        held.allow();
        let overdue = held.is_overdue();
        drop(held);
        let second = self.replay_part(&plan, beside, &stop);
        lock_mutex(&self.shared.readings).remove(&process);
        self.count_results(&[first, second], overdue);
    }

    /// Before the exec goes on, so that nothing is opened unseen.
    fn observe(&self, held: &PendingExec, plan: &ReplayPlan<'_>) -> Option<u64> {
        let until = Instant::now() + self.shared.settings.window;
        self.shared.opened.as_ref()?.observe(held.process(), &held.open_file()?, plan, until)
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
