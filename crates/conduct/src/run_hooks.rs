//! The hooks of a study: commands of the user's around the run, its cases and its iterations, on this host.
//!
//! A hook that comes after something is promised in the undo journal before that begins, and carried out from there:
//! who kills perflab does not keep it from coming.

use std::sync::atomic::AtomicBool;

use perflab_model::expression::{ExpressionError, ExpressionScope};
use perflab_model::study::{CommandLine, HooksSpec};
use perflab_model::{Case, Nanos, Slot};
use perflab_settings::{CommandFailure, SettingError, UndoEntry, UndoJournal, run_user_command};
use perflab_workload::Invocation;

use crate::error::ConductError;

/// How long a hook may take; docs/studies.md says so, too.
const LIMIT: Nanos = Nanos(600_000_000_000);

/// The hooks of a run.
#[derive(Debug)]
pub(crate) struct RunHooks<'a> {
    hooks: &'a HooksSpec,
    scope: ExpressionScope,
    run: &'a str,
    /// The promise of what comes after the iteration that runs.
    after_iteration: Option<u32>,
}

impl<'a> RunHooks<'a> {
    /// The hooks of a study; none was carried out yet.
    pub(crate) fn new(hooks: &'a HooksSpec, scope: ExpressionScope, run: &'a str) -> Self {
        RunHooks { hooks, scope, run, after_iteration: None }
    }

    /// Carries out what comes before the run, and promises what comes after it.
    ///
    /// # Errors
    /// It fails: the run is not to begin.
    pub(crate) fn begin_run(&self, journal: &mut UndoJournal, stop: &AtomicBool) -> Result<(), ConductError> {
        self.promise(journal, "after-run", self.hooks.after_run.as_ref(), &[])?;
        self.carry_out("before-run", self.hooks.before_run.as_ref(), &[], stop)
    }

    /// The same for a case.
    ///
    /// # Errors
    /// It fails: none of its iterations counts.
    pub(crate) fn begin_case(
        &self,
        journal: &mut UndoJournal,
        case: &Case,
        stop: &AtomicBool,
    ) -> Result<(), ConductError> {
        let subject = [("PERFLAB_CASE", case.label())];
        self.promise(journal, "after-case", self.hooks.after_case.as_ref(), &subject)?;
        self.carry_out("before-case", self.hooks.before_case.as_ref(), &subject, stop)
    }

    /// The same for an iteration, after what comes after the one before.
    ///
    /// # Errors
    /// It fails: the iteration does not count.
    pub(crate) fn begin_iteration(
        &mut self,
        journal: &mut UndoJournal,
        (slot, case): (&Slot, &Case),
        stop: &AtomicBool,
    ) -> Result<(), ConductError> {
        let iteration =
            if slot.warmup { format!("warmup-{}", slot.iteration) } else { slot.iteration.to_string() };
        let subject = [("PERFLAB_CASE", case.label()), ("PERFLAB_ITERATION", iteration)];
        let after = self.hooks.after_iteration.as_ref();
        self.after_iteration = self.promise(journal, "after-iteration", after, &subject)?;
        self.carry_out("before-iteration", self.hooks.before_iteration.as_ref(), &subject, stop)
    }

    /// Carries out what comes after the iteration that ran, if one did.
    ///
    /// # Errors
    /// It fails.
    pub(crate) fn end_iteration(&mut self, journal: &mut UndoJournal) -> Result<(), ConductError> {
        let promised = self.after_iteration.take();
        promised.map_or(Ok(()), |number| Ok(journal.undo(number)?))
    }

    fn promise(
        &self,
        journal: &mut UndoJournal,
        key: &'static str,
        command: Option<&CommandLine>,
        subject: &[(&str, String)],
    ) -> Result<Option<u32>, ConductError> {
        let Some(command) = command else { return Ok(None) };
        let invocation = self.build_invocation(key, command, subject)?;
        let case = subject.iter().find(|(name, _)| *name == "PERFLAB_CASE");
        let name =
            case.map_or_else(|| format!("`hooks.{key}`"), |(_, case)| format!("`hooks.{key}` of {case}"));
        Ok(Some(journal.promise(UndoEntry::CleanUp { name, invocation, limit: LIMIT })?))
    }

    fn carry_out(
        &self,
        key: &'static str,
        command: Option<&CommandLine>,
        subject: &[(&str, String)],
        stop: &AtomicBool,
    ) -> Result<(), ConductError> {
        let Some(command) = command else { return Ok(()) };
        let invocation = self.build_invocation(key, command, subject)?;
        match run_user_command(&invocation, LIMIT, Some(stop)) {
            Ok(()) => Ok(()),
            Err(CommandFailure::Failed(reason)) => Err(ConductError::Hook { key, reason }),
            Err(CommandFailure::Stopped) => {
                let command = format!("hooks.{key}");
                Err(ConductError::Setting(SettingError::Stopped { command }))
            }
        }
    }

    fn build_invocation(
        &self,
        key: &'static str,
        command: &CommandLine,
        subject: &[(&str, String)],
    ) -> Result<Invocation, ConductError> {
        let rendered = render_hook(command, &self.scope);
        let argv = rendered.map_err(|error| ConductError::Hook { key, reason: error.to_string() })?;
        let run = ("PERFLAB_RUN".to_owned(), self.run.to_owned());
        let subject = subject.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let environment = [run].into_iter().chain(subject).collect();
        // Who carries out a promise after a kill may be anywhere.
        let directory = std::env::current_dir().ok();
        Ok(Invocation {
            argv,
            environment,
            directory,
            inherits_stdin: false,
            groups: Vec::new(),
            delays: Vec::new(),
        })
    }
}

/// The words of a hook with its templates filled.
pub(crate) fn render_hook(
    command: &CommandLine,
    scope: &ExpressionScope,
) -> Result<Vec<String>, ExpressionError> {
    match command {
        CommandLine::Text(text) => Ok(vec!["/bin/sh".to_owned(), "-c".to_owned(), scope.render(text)?]),
        CommandLine::Words(words) => words.iter().map(|word| scope.render(word)).collect(),
    }
}
