//! A commit that is built and measured: by runs of the study as it is, each an ordinary one of the archive.

use std::path::PathBuf;

use perflab_archive::{Archive, RunDir, new_run_id};
use perflab_conduct::RunPermissions;
use perflab_conduct::execution_records::ExecutionRecord;
use perflab_model::error_class::ErrorClass;
use perflab_model::study::TomlSource;
use perflab_model::{Manifest, RunStatus, StopRequest, Study, fact_table};
use perflab_observe::own_directories;
use perflab_workload::Catalogue;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _};
use crate::laboratory::tree_watch::watch_state::{CommitInTest, CommitTestStep, WatchFolder};
use crate::laboratory::tree_watch::watched_tree::{TreeBuilder, WatchedTree};
use crate::measure::bisection::commit_builds::{CommitBuild, CommitBuildError, CommitBuilds, TREE_VARIABLE};
use crate::measure::bisection::commit_line::Commit;
use crate::measure::bisection::commit_runs::{check_metric_known, failure_reason};
use crate::measure::patch::guest_kernel_text;
use crate::measure::repeatable_run::check_study_resumable;
use crate::measure::resume::{RestOfRun, ResumeArgs, measure_rest};
use crate::measure::run::{self, RunArgs};
use crate::selection::find_parts;

/// The folder in which a study finds every commit: the same for all, as a case whose environment differs is another case.
const TREE: &str = "tree";

/// A step that was begun so often and never came to its end is not begun again: it may be what ends perflab or the machine.
const MOST_ATTEMPTS: u32 = 3;

/// The end of the label of a run that was cut and that nobody can go on with: it is no part of the history.
const CUT: &str = " (interrupted)";

/// How the test of a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitTestEnd {
    /// It has all its runs.
    Measured,
    /// It does not build.
    Unbuildable(String),
    /// It gave no value.
    Unrunnable(String),
    /// ^C; what was measured is kept.
    Stopped,
}

/// Builds and measures the commit in test.
pub struct CommitTester<'a> {
    /// The global options.
    pub context: &'a App,
    /// What is watched.
    pub watched: &'a WatchedTree,
    /// The study, as text.
    pub source: &'a TomlSource,
    /// What is known.
    pub folder: &'a mut WatchFolder,
    /// Set by ^C.
    pub stop: &'a StopRequest,
}

impl CommitTester<'_> {
    /// Goes on with the commit until it is measured.
    ///
    /// # Errors
    /// What is no fault of the commit: a wrong study, no room, a program that is missing.
    pub fn test(&mut self, current: &CommitInTest) -> Result<CommitTestEnd, Failure> {
        if current.step == CommitTestStep::Judge {
            return Ok(CommitTestEnd::Measured);
        }
        let is_built = current.step == CommitTestStep::Run && self.is_built(&current.commit);
        if !is_built && let Some(end) = self.build(&current.commit)? {
            return Ok(end);
        }
        if let Some(end) = self.measure(&current.commit)? {
            return Ok(end);
        }
        self.folder.edit_current(|current| (current.step, current.attempts) = (CommitTestStep::Judge, 0))?;
        Ok(CommitTestEnd::Measured)
    }

    fn is_built(&self, commit: &Commit) -> bool {
        self.watched.builds(self.folder.path()).is_there(commit)
    }

    /// Counts that a step is begun; why it is not begun once more, where it never ended.
    fn begin_attempt(&mut self, step: CommitTestStep) -> Result<Option<String>, Failure> {
        let mut refused = None;
        self.folder.edit_current(|current| {
            if current.step != step {
                (current.step, current.attempts) = (step, 0);
            }
            match current.attempts < MOST_ATTEMPTS {
                true => current.attempts += 1,
                false => {
                    let ended = || format!("perflab or the machine ended {MOST_ATTEMPTS} times meanwhile");
                    refused = Some(current.problem.clone().unwrap_or_else(ended));
                }
            }
        })?;
        Ok(refused)
    }

    /// Takes back that a step was begun: it was not the commit that ended it.
    fn forgive_attempt(&mut self) -> Result<(), Failure> {
        Ok(self.folder.edit_current(|current| current.attempts = current.attempts.saturating_sub(1))?)
    }

    /// Builds it; how the test ended, where it did.
    fn build(&mut self, commit: &Commit) -> Result<Option<CommitTestEnd>, Failure> {
        let path = self.folder.path().to_owned();
        let builds = self.watched.builds(&path);
        // Of the commit before, and what an interrupted build left.
        builds.remove_trees()?;
        self.check_plan(commit)?;
        if let Some(reason) = self.begin_attempt(CommitTestStep::Build)? {
            return Ok(Some(CommitTestEnd::Unbuildable(reason)));
        }
        if self.watched.subject.builder != TreeBuilder::Command(None) {
            self.context.note_line(&format!("building {} {}", commit.short, commit.subject));
        }
        if let Some(text) = builds.describe_submodules(commit) {
            self.context.note_line(&format!("warning: {text}"));
        }
        let boot = perflab_observe::read_boot_id(&self.context.root);
        let executions = ExecutionRecord::write(&own_directories::state_directory(), &boot).ok();
        let guard = run::start_execution_guard();
        let built = builds
            .build(self.context, commit, &self.stop.flag())
            .and_then(|built| Ok((built, self.link_tree(&builds, commit)?)));
        drop((guard, executions));
        match built {
            Ok((CommitBuild::Built { .. }, ())) => {
                self.folder
                    .edit_current(|current| (current.step, current.attempts) = (CommitTestStep::Run, 0))?;
                Ok(None)
            }
            Ok((CommitBuild::Failed { reason }, ())) => {
                builds.remove_trees()?;
                Ok(Some(CommitTestEnd::Unbuildable(reason)))
            }
            Ok((CommitBuild::Full(error), ())) => self.clear_full_disk(&builds, error).map(Some),
            Ok((CommitBuild::Stopped, ())) => {
                self.forgive_attempt()?;
                Ok(Some(CommitTestEnd::Stopped))
            }
            Err(failure) => {
                self.forgive_attempt()?;
                Err(failure)
            }
        }
    }

    /// Removes what filled the disk. Where there is room then, it was the build: it has had one of its attempts.
    fn clear_full_disk(
        &mut self,
        builds: &CommitBuilds<'_>,
        error: CommitBuildError,
    ) -> Result<CommitTestEnd, Failure> {
        builds.remove_trees()?;
        if !builds.has_room() {
            self.forgive_attempt()?;
            return Err(error.into());
        }
        let problem = format!("does not build: it fills {}", self.folder.path().display());
        self.folder.edit_current(|current| current.problem = Some(problem.clone()))?;
        let attempts = self.folder.state.current.as_ref().map_or(0, |current| current.attempts);
        if attempts >= MOST_ATTEMPTS { Ok(CommitTestEnd::Unbuildable(problem)) } else { Err(error.into()) }
    }

    fn tree_path(&self) -> PathBuf {
        self.folder.path().join(TREE)
    }

    /// Has the path that the study is given lead to this commit.
    fn link_tree(&self, builds: &CommitBuilds<'_>, commit: &Commit) -> Result<(), Failure> {
        if matches!(self.watched.subject.builder, TreeBuilder::Kernel(_)) {
            return Ok(());
        }
        let (link, half) = (self.tree_path(), self.folder.path().join("half-tree"));
        let _ = std::fs::remove_file(&half);
        let made = std::os::unix::fs::symlink(builds.tree_of(commit), &half)
            .and_then(|()| std::fs::rename(&half, &link));
        made.with_context(|| format!("cannot make {}", link.display()))
    }

    /// Makes the runs that are still to be made; how the test ended, where it did.
    fn measure(&mut self, commit: &Commit) -> Result<Option<CommitTestEnd>, Failure> {
        let archive = self.context.archive()?;
        loop {
            let Some(current) = self.folder.state.current.clone() else { return Ok(None) };
            if current.runs.len() >= self.watched.runs {
                return Ok(None);
            }
            if self.stop.is_requested() {
                return Ok(Some(CommitTestEnd::Stopped));
            }
            let begun = current.parts.iter().rev().find(|id| archive.run_path(id).is_dir());
            let made = match begun {
                None => self.run_once(commit)?,
                Some(id) => self.go_on(&archive, id)?,
            };
            match made {
                MadeRun::Complete(run) => {
                    if let Some(reason) = find_failure(&archive, &run)? {
                        return Ok(Some(CommitTestEnd::Unrunnable(reason)));
                    }
                    self.folder.edit_current(|current| {
                        current.runs.push(run.id().to_owned());
                        (current.parts, current.attempts, current.problem) = (Vec::new(), 0, None);
                    })?;
                }
                MadeRun::None => {}
                MadeRun::Failed(reason) => return Ok(Some(CommitTestEnd::Unrunnable(reason))),
                MadeRun::Stopped => {
                    self.forgive_attempt()?;
                    return Ok(Some(CommitTestEnd::Stopped));
                }
            }
        }
    }

    /// A run from its beginning.
    fn run_once(&mut self, commit: &Commit) -> Result<MadeRun, Failure> {
        if let Some(reason) = self.begin_attempt(CommitTestStep::Run)? {
            return Ok(MadeRun::Failed(reason));
        }
        let id = new_run_id();
        let (manifest, catalogue) = self.plan(commit, &id)?;
        self.folder.edit_current(|current| current.parts = vec![id])?;
        let machine = run::local_machine(self.context, catalogue)?;
        let stop = self.stop_of_run()?;
        let ended = run::execute_study(self.context, &machine, &manifest, &RunPermissions::default(), &stop);
        self.conclude(ended)
    }

    /// One that was begun before: what it lacks is measured.
    fn go_on(&mut self, archive: &Archive, id: &str) -> Result<MadeRun, Failure> {
        let found = crate::selection::select_run(archive, id)?;
        let manifest = found.manifest()?;
        if !manifest.status.is_cut() {
            return Ok(MadeRun::Complete(found));
        }
        if check_study_resumable(&found, &manifest).is_err() {
            return self.set_aside(archive, &found);
        }
        if let Some(reason) = self.begin_attempt(CommitTestStep::Run)? {
            return Ok(MadeRun::Failed(reason));
        }
        let next = new_run_id();
        self.folder.edit_current(|current| current.parts.push(next.clone()))?;
        let args = ResumeArgs {
            run: Some(id.to_owned()),
            changed: false,
            apply: false,
            wait: None,
            no_report: true,
            run_id: Some(next),
        };
        match measure_rest(self.context, &args) {
            Ok(RestOfRun::Nothing(_)) => Ok(MadeRun::Complete(found)),
            Ok(RestOfRun::Measured { status, mut parts }) => match parts.pop() {
                Some(last) => self.conclude(Ok((status, last))),
                None => Ok(MadeRun::None),
            },
            // The machine is another one since: a reboot may have brought another kernel.
            Err(failure) if failure.exit() == Exit::Class(ErrorClass::Usage) => {
                self.context.note_line(&format!("{failure}; it is run anew"));
                self.set_aside(archive, &found)
            }
            Err(failure) => self.conclude(Err(failure)),
        }
    }

    /// Takes a run that nobody can go on with out of the history.
    fn set_aside(&mut self, archive: &Archive, found: &RunDir) -> Result<MadeRun, Failure> {
        let label = format!("{}{CUT}", self.watched.label);
        for part in find_parts(archive, found) {
            archive.set_label(part.id(), Some(&label))?;
        }
        self.folder.edit_current(|current| current.parts.clear())?;
        Ok(MadeRun::None)
    }

    fn conclude(&mut self, ended: Result<(RunStatus, RunDir), Failure>) -> Result<MadeRun, Failure> {
        let is_stopped = self.stop.is_requested();
        match ended {
            Ok((RunStatus::Stopped, _)) | Err(_) if is_stopped => Ok(MadeRun::Stopped),
            // Its time limit is over: there is no more to be had.
            Ok((_, run)) => Ok(MadeRun::Complete(run)),
            Err(failure) if self.is_of_kernel(&failure) => {
                self.context.note_line(&format!("the run failed: {failure}"));
                self.folder.edit_current(|current| current.problem = Some(failure.to_string()))?;
                Ok(MadeRun::None)
            }
            Err(failure) => {
                self.forgive_attempt()?;
                Err(failure)
            }
        }
    }

    /// Whether a run failed as it does with a kernel that does not boot: then it is tried again, as often as any step.
    fn is_of_kernel(&self, failure: &Failure) -> bool {
        let classes = [ErrorClass::Unexpected, ErrorClass::WorkloadFailed].map(Exit::Class);
        let is_kernel = matches!(self.watched.subject.builder, TreeBuilder::Kernel(_));
        is_kernel && classes.contains(&failure.exit())
    }

    /// ^C ends a run; that one was decided, only this run.
    fn stop_of_run(&self) -> Result<StopRequest, Failure> {
        let stop = run::stop_on_interrupt()?;
        if self.stop.is_requested() {
            stop.request_stop();
        }
        Ok(stop)
    }

    /// Refuses before anything is built what is wrong with the study, with what was chosen of it, and with the metrics that are judged.
    fn check_plan(&self, commit: &Commit) -> Result<(), Failure> {
        let (source, study) = self.read_study(commit)?;
        let (manifest, _) = run::plan_manifest(self.context, &source, study, &self.run_args(None))?;
        // A pattern, and a kind of metrics, chooses among those that there are.
        let is_name = |metric: &&String| {
            !metric.contains(['*', '?']) && !["primary", "explanatory"].contains(&metric.as_str())
        };
        for metric in self.watched.metric.iter().filter(is_name) {
            check_metric_known(&manifest, metric, &source.file)?;
        }
        Ok(())
    }

    fn run_args(&self, id: Option<&str>) -> RunArgs {
        RunArgs {
            label: Some(self.watched.label.clone()),
            set: self.watched.set.clone(),
            only: self.watched.only.clone(),
            run_id: id.map(str::to_owned),
            ..RunArgs::default()
        }
    }

    /// The study with this commit.
    fn read_study(&self, commit: &Commit) -> Result<(TomlSource, Study), Failure> {
        if let TreeBuilder::Kernel(_) = self.watched.subject.builder {
            let kernel = self.watched.builds(self.folder.path()).level_value(commit);
            let text = guest_kernel_text(&self.source.parse_study()?, &kernel)?;
            let source = TomlSource::new(self.source.file.clone(), text).extend(self.source)?;
            let study = source.parse_study()?;
            return Ok((source, study));
        }
        let mut study = self.source.parse_study()?;
        let tree = self.tree_path().display().to_string();
        for workload in study.workload.values_mut() {
            workload.environment.insert(TREE_VARIABLE.into(), tree.clone());
        }
        Ok((self.source.clone(), study))
    }

    /// The run of the study with this commit.
    fn plan(&self, commit: &Commit, id: &str) -> Result<(Manifest, Catalogue), Failure> {
        let (source, study) = self.read_study(commit)?;
        run::note_study_warnings(&source, &study);
        let (mut manifest, catalogue) =
            run::plan_manifest(self.context, &source, study, &self.run_args(Some(id)))?;
        manifest.facts.add(fact_table::TREE_COMMIT, commit.id.as_str(), "git");
        Ok((manifest, catalogue))
    }
}

/// What became of a run.
enum MadeRun {
    /// It is complete.
    Complete(RunDir),
    /// There is none, and one is to be made.
    None,
    /// It cannot be made with this commit.
    Failed(String),
    /// ^C.
    Stopped,
}

/// Why a run gave no value, where it gave none.
fn find_failure(archive: &Archive, run: &RunDir) -> Result<Option<String>, Failure> {
    for part in find_parts(archive, run) {
        if !part.read_record()?.samples.is_empty() {
            return Ok(None);
        }
    }
    let reason = failure_reason(&run.read_record()?, |_| true);
    Ok(Some(format!("{reason} (run {})", run.short_id())))
}
