//! `perflab queue watch`: the newest commit of a tree is built, measured, judged, and what stepped is bisected, whenever there is one.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use perflab_analyze::GuardReport;
use perflab_archive::RunDir;
use perflab_model::error_class::ErrorClass;
use perflab_model::study::TomlSource;
use perflab_model::{AcceptedStep, Manifest, Nanos, RunNote, StopRequest, Unit};
use perflab_observe::read_clock_anchor;
use perflab_present::comparison::OutputFormat;
use perflab_present::history::guard_grid;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::laboratory::job_queue::JobQueue;
use crate::laboratory::tree_watch::commit_test::{CommitTestEnd, CommitTester};
use crate::laboratory::tree_watch::stepped_metric::{
    EarlierCommit, RepairedMetric, StepSearch, SteppedMetric, list_told_steps,
};
use crate::laboratory::tree_watch::tested_commit_text::{
    failing_text, list_tested_commits, outcome_text, repair_text, step_text,
};
use crate::laboratory::tree_watch::watch_state::{
    CommitInTest, CommitOutcome, CommitTestStep, TestedCommit, WatchFolder,
};
use crate::laboratory::tree_watch::watched_tree::{
    TreeBuilder, WatchSubject, WatchedTree, find_archive_path, find_branch, find_builder, find_study_path,
};
use crate::measure::bisection::bisection_result::BisectionResult;
use crate::measure::bisection::commit_line::{Commit, HEAD, is_ancestor, read_branch_head};
use crate::measure::run;
use crate::output_path::OutputPath;
use crate::see::history::{
    GUARD_MARGIN, HistoryPage, HistorySelection, JudgedHistory, judge_newest_run, read_histories,
    write_history_report,
};
use crate::selection::{parse_label, select_run};
use crate::study_source;

/// The version of the JSON document.
const FORMAT: u32 = 1;

/// Letters of a label in the name of a report.
const LONGEST_NAME: usize = 50;

/// Who writes notes on runs.
const WRITER: &str = "perflab queue watch";

/// Test what is new in a tree
#[derive(Debug, Args)]
#[command(after_long_help = WATCH)]
pub struct QueueWatchArgs {
    /// The git repository, or a folder in it; it is only read
    tree: PathBuf,
    /// The study that measures a commit
    #[arg(long, value_name = "STUDY")]
    study: String,
    /// The branch, or another revision, whose newest commit is tested (default: the branch that is checked out)
    #[arg(long, value_name = "REV")]
    branch: Option<String>,
    /// What builds a commit, run by the shell in its folder; the study finds it in $PERFLAB_TREE
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// The recipe that builds a kernel of the tree, which the study's guests boot (default for a tree of Linux: linux-guest)
    #[arg(long, value_name = "RECIPE", conflicts_with = "build")]
    kernel: Option<String>,
    /// How long a build by --build may take
    #[arg(long, value_name = "TIME", default_value = "1h")]
    build_limit: Nanos,
    /// Judge only this metric (repeatable)
    #[arg(long)]
    metric: Vec<String>,
    /// Keep only these levels of a factor of the study (repeatable)
    #[arg(long, value_name = "FACTOR=LEVEL", value_delimiter = ',')]
    set: Vec<String>,
    /// Only this workload of the study
    #[arg(long, value_name = "WORKLOAD")]
    only: Option<String>,
    /// Runs of each commit: more of them tell its noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The label of the runs (default: `watch:` and the branch)
    #[arg(long, value_parser = parse_label)]
    label: Option<String>,
    /// Say what stepped and how to bisect it, and do not
    #[arg(long)]
    no_bisect: bool,
    /// At most so many starts, or boots, of commits in a bisection
    #[arg(long, value_name = "N", default_value_t = 5_000, conflicts_with = "no_bisect")]
    at_most: usize,
    /// Accept, with a note, what the newest tested commit got worse in: a new baseline begins; nothing is tested
    #[arg(long, value_name = "NOTE", conflicts_with_all = ["no_bisect", "once", "every", "output", "retry"])]
    accept: Option<String>,
    /// Test the newest commit once more, if it did not build or run
    #[arg(long)]
    retry: bool,
    /// Look once, test what is new, and end
    #[arg(long)]
    once: bool,
    /// How long to wait before looking again where nothing is new
    #[arg(long, value_name = "TIME", default_value = "10min", conflicts_with = "once")]
    every: Nanos,
    /// Where the report goes (default: in the archive's folder `reports`, named after the label)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    output: Option<OutputPath>,
}

const WATCH: &str = "\
Looks at the newest commit of a branch. One that was not tested with this study is built in a folder
of perflab's own, or as a kernel; the study is run with it, as a run of the archive with the branch
in its label; that run is held against those before it, as by `perflab guard`. Where a metric
alarms, or falls out of its history for the worse, the last good commit and this one are measured
side by side, and if they differ, the commit between them that did it is found, as by `perflab
bisect`. The history is written as a report. What a commit was told to be worse in is no measure for
later ones; --accept makes it one.

What is done is on the disk before each step: after a kill or a reboot the same command goes on
where it was, and measures nothing twice. Jobs of the queue and watches take turns. Exit codes of
--once: 0 nothing new, or nothing stepped for sure; 5 something got worse; 4 the commit does not
build or run (which is said once), or ^C.

Examples:
  perflab queue watch ~/linux --study nightly.toml --branch origin/master
  perflab queue watch ~/src/zstd --study zstd.toml --build 'make -j2 zstd' --once -o zstd.html
  perflab queue watch ~/src/app --study speed.toml --no-bisect --every 1min
  perflab queue watch ~/src/app --study speed.toml --accept 'the new format is slower and safer'";

/// Tests what is new, until it is stopped or, with `--once`, once.
pub fn watch_tree(context: &App, args: &QueueWatchArgs) -> Result<Exit, Failure> {
    run::undo_leftovers(context);
    let watched = resolve_watch(context, args)?;
    let mut folder = WatchFolder::open(&watched.subject, &watched.label)?;
    if let Some(note) = &args.accept {
        return accept_steps(context, &folder, note);
    }
    if args.retry {
        let head = watched.head()?;
        folder.state.tested.retain(|one| one.outcome.is_measured() || one.commit.id != head.id);
    }
    let queue = JobQueue::open()?;
    let stop = run::stop_on_interrupt()?;
    let watch = TreeWatch { context, watched: &watched, output: args.output.as_ref() };
    let mut exit = Exit::Fine;
    loop {
        let waits = match watch.look(&mut folder, &queue, &stop) {
            Ok(Some(look)) => {
                watch.print(&look)?;
                if exit == Exit::Fine {
                    exit = look.exit();
                }
                look.is_newest
            }
            Ok(None) => {
                context.note("stopped; the same command goes on from there");
                return Ok(if args.once { Exit::WORKLOAD_FAILED } else { Exit::Fine });
            }
            // What the machine lacks now it may have later.
            Err(failure) if !args.once && failure.exit() == Exit::Class(ErrorClass::Environment) => {
                failure.print();
                true
            }
            Err(failure) => return Err(failure),
        };
        match (waits, args.once) {
            (true, true) => return Ok(exit),
            (true, false) => stop.wait_for(Duration::from_nanos(args.every.0)),
            (false, _) => {}
        }
        if stop.is_requested() {
            return Ok(Exit::Fine);
        }
    }
}

/// What the arguments mean.
fn resolve_watch(context: &App, args: &QueueWatchArgs) -> Result<WatchedTree, Failure> {
    let asked = args.branch.as_deref().unwrap_or(HEAD);
    let head = read_branch_head(&args.tree, asked)?;
    let tree =
        std::fs::canonicalize(&args.tree).with_context(|| format!("cannot find {}", args.tree.display()))?;
    let branch = match &args.branch {
        Some(branch) => branch.clone(),
        None => find_branch(&tree)?,
    };
    let builder = match (&args.kernel, &args.build) {
        (Some(recipe), _) => TreeBuilder::Kernel(recipe.clone()),
        (None, Some(command)) => TreeBuilder::Command(Some(command.clone())),
        (None, None) => find_builder(&tree, &head),
    };
    let only = args.only.iter().map(|only| format!("only={only}"));
    Ok(WatchedTree {
        label: args.label.clone().unwrap_or_else(|| format!("watch:{branch}")),
        subject: WatchSubject {
            archive: find_archive_path(context, &tree)?,
            tree,
            branch,
            study: find_study_path(&args.study)?,
            choices: args.set.iter().cloned().chain(only).collect(),
            builder,
        },
        set: args.set.clone(),
        only: args.only.clone(),
        metric: args.metric.clone(),
        build_limit: args.build_limit,
        runs: args.runs as usize,
        bisects: !args.no_bisect,
        at_most: args.at_most,
    })
}

/// What a look at a tree came to.
#[derive(Serialize)]
struct TreeLook {
    /// [`FORMAT`]
    format: u32,
    /// The tree.
    tree: PathBuf,
    /// The branch.
    branch: String,
    /// The label of its runs.
    label: String,
    /// Whether the commit was tested by this look; else it was before.
    is_new: bool,
    /// Whether it is the newest one; else it is one whose test had been interrupted, and the newest comes next.
    is_newest: bool,
    /// Where the branch was before, where that commit is no part of it any more.
    rewritten_from: Option<String>,
    /// The commit, and what became of it.
    #[serde(flatten)]
    tested: TestedCommit,
    /// What the guard says.
    guard: Option<GuardReport>,
    /// What was bisected.
    bisections: Vec<BisectionResult>,
    /// The report.
    report: Option<String>,
    /// The guard's table.
    #[serde(skip)]
    history: Option<Box<JudgedHistory>>,
}

impl TreeLook {
    fn exit(&self) -> Exit {
        let steps = &self.tested.steps;
        let is_news = steps.is_empty() || steps.iter().any(|step| !step.is_known && step.is_worse());
        match self.tested.outcome {
            _ if !self.is_new => Exit::Fine,
            CommitOutcome::Worse if is_news => Exit::Regression,
            CommitOutcome::Good | CommitOutcome::Unjudged | CommitOutcome::Worse => Exit::Fine,
            CommitOutcome::Unbuildable | CommitOutcome::Unrunnable => Exit::WORKLOAD_FAILED,
        }
    }
}

/// What was made of the runs of a commit.
struct JudgedCommit {
    outcome: CommitOutcome,
    steps: Vec<SteppedMetric>,
    repaired: Vec<RepairedMetric>,
    bisections: Vec<BisectionResult>,
    history: JudgedHistory,
    selection: HistorySelection,
}

/// A watch at work.
struct TreeWatch<'a> {
    context: &'a App,
    watched: &'a WatchedTree,
    output: Option<&'a OutputPath>,
}

impl TreeWatch<'_> {
    /// Looks once, and tests what is new or was not ended; none where it was stopped.
    fn look(
        &self,
        folder: &mut WatchFolder,
        queue: &JobQueue,
        stop: &StopRequest,
    ) -> Result<Option<TreeLook>, Failure> {
        let source = study_source::find_study(&self.watched.subject.study)?;
        let study = digest_study(&source);
        let head = self.watched.head()?;
        let is_built = |current: &CommitInTest| current.step != CommitTestStep::Build;
        let is_new = folder.state.find_tested(&head.id, &study).is_none();
        if is_new && !folder.state.current.as_ref().is_some_and(is_built) {
            // What is known has to be written, whatever a build left of the disk.
            self.watched.builds(folder.path()).remove_trees()?;
        }
        let rewritten_from = self.note_rewrite(folder, &head);
        self.choose_commit(folder, &head, &study)?;
        let Some(current) = folder.state.current.clone() else {
            let tested = folder.state.find_tested(&head.id, &study).cloned();
            return Ok(tested.map(|tested| TreeLook {
                is_new: false,
                rewritten_from,
                ..self.describe(tested)
            }));
        };
        let Some(_turn) = queue.take_turn(stop, |text| self.context.note(text))? else { return Ok(None) };
        let look = self.test(folder, &source, &current, stop)?;
        let is_newest = current.commit.id == head.id;
        Ok(look.map(|look| TreeLook { is_newest, rewritten_from, ..look }))
    }

    /// Tests a commit, or goes on with it; none where it was stopped.
    fn test(
        &self,
        folder: &mut WatchFolder,
        source: &TomlSource,
        current: &CommitInTest,
        stop: &StopRequest,
    ) -> Result<Option<TreeLook>, Failure> {
        let commit = &current.commit;
        let mut tester = CommitTester { context: self.context, watched: self.watched, source, folder, stop };
        let (outcome, reason) = match tester.test(current)? {
            CommitTestEnd::Stopped => return Ok(None),
            CommitTestEnd::Measured => {
                let runs = folder.state.current.as_ref().map(|current| current.runs.clone());
                return self.conclude_measured(folder, commit, runs.unwrap_or_default(), stop);
            }
            CommitTestEnd::Unbuildable(reason) => (CommitOutcome::Unbuildable, reason),
            CommitTestEnd::Unrunnable(reason) => (CommitOutcome::Unrunnable, reason),
        };
        let tested = TestedCommit {
            commit: commit.clone(),
            study: current.study.clone(),
            outcome,
            reason: Some(reason),
            runs: Vec::new(),
            steps: Vec::new(),
            repaired: Vec::new(),
            at: read_clock_anchor().realtime,
        };
        folder.state.finish(tested.clone());
        folder.save()?;
        let report = self.write_report_anew(folder)?;
        Ok(Some(TreeLook { report: report.map(|path| path.to_string()), ..self.describe(tested) }))
    }

    /// The report without a new run: with a commit of which there is none. None where no commit was measured yet.
    fn write_report_anew(&self, folder: &WatchFolder) -> Result<Option<OutputPath>, Failure> {
        let mut runs = folder.state.tested.iter().rev().filter_map(|one| one.runs.last());
        let Some(last) = runs.next() else { return Ok(None) };
        let Ok(run) = select_run(&self.context.archive()?, last) else { return Ok(None) };
        let selection = self.select_history(folder, &run.manifest()?)?;
        let (runs, found) = read_histories(self.context, &selection)?;
        let page = HistoryPage { guard: None, tested_commits: list_tested_commits(&folder.state.tested) };
        write_history_report(self.context, &selection, (&runs, &found), page)?;
        Ok(selection.report)
    }

    /// The history of the watch's runs, and where its report goes.
    fn select_history(&self, folder: &WatchFolder, manifest: &Manifest) -> Result<HistorySelection, Failure> {
        Ok(HistorySelection {
            metric: self.watched.metric.clone(),
            workload: Vec::new(),
            label: Some(self.watched.label.clone()),
            study: Some(manifest.study.title.clone()),
            last: None,
            all: false,
            margin: GUARD_MARGIN,
            report: Some(self.report_path(folder)?),
        })
    }

    fn describe(&self, tested: TestedCommit) -> TreeLook {
        let subject = &self.watched.subject;
        TreeLook {
            format: FORMAT,
            tree: subject.tree.clone(),
            branch: subject.branch.clone(),
            label: self.watched.label.clone(),
            is_new: true,
            is_newest: true,
            rewritten_from: None,
            tested,
            guard: None,
            bisections: Vec::new(),
            report: None,
            history: None,
        }
    }

    /// Notes where the branch is; where it was, if that commit is not in it any more.
    fn note_rewrite(&self, folder: &mut WatchFolder, head: &Commit) -> Option<String> {
        let before = folder.state.head.replace(head.id.clone()).filter(|before| *before != head.id);
        let tree = &self.watched.subject.tree;
        let rewritten = before.filter(|before| !is_ancestor(tree, before, &head.id));
        if let Some(before) = &rewritten {
            self.context.note_line(&format!(
                "{} was rewritten: {} is no part of it any more; it is at {} {}",
                self.watched.subject.branch,
                before.get(..12).unwrap_or(before),
                head.short,
                head.subject
            ));
        }
        rewritten
    }

    /// Which commit is in test: the one that was, unless it is no part of the branch any more or the study is another one; else the
    /// newest, unless it was tested.
    fn choose_commit(&self, folder: &mut WatchFolder, head: &Commit, study: &str) -> Result<(), Failure> {
        let tree = &self.watched.subject.tree;
        if let Some(current) = folder.state.current.take() {
            let is_part = is_ancestor(tree, &current.commit.id, &head.id);
            if is_part && current.study == study {
                folder.state.current = Some(current);
                return Ok(());
            }
            let why = if is_part { "the study was edited" } else { "it is no part of the branch any more" };
            self.context.note_line(&format!("the test of {} is given up: {why}", current.commit.short));
            let archive = self.context.archive()?;
            for run in current.parts.iter().chain(&current.runs) {
                if archive.run_path(run).is_dir() {
                    archive.set_label(run, Some(&format!("{} (given up)", self.watched.label)))?;
                }
            }
        }
        if folder.state.find_tested(&head.id, study).is_none() {
            folder.state.current = Some(CommitInTest {
                commit: head.clone(),
                study: study.to_owned(),
                step: CommitTestStep::Build,
                attempts: 0,
                problem: None,
                parts: Vec::new(),
                runs: Vec::new(),
            });
        }
        Ok(folder.save()?)
    }

    /// Judges a commit that was measured, bisects what stepped, and writes the report; none where it was stopped.
    fn conclude_measured(
        &self,
        folder: &mut WatchFolder,
        commit: &Commit,
        runs: Vec<String>,
        stop: &StopRequest,
    ) -> Result<Option<TreeLook>, Failure> {
        let archive = self.context.archive()?;
        let newest = select_run(&archive, runs.last().map_or("", String::as_str))?;
        let Some(judged) = self.judge(folder, commit, &newest, stop)? else { return Ok(None) };
        self.note_bisections(&newest, &judged)?;
        let study = folder.state.current.as_ref().map(|current| current.study.clone());
        let tested = TestedCommit {
            commit: commit.clone(),
            study: study.unwrap_or_default(),
            outcome: judged.outcome,
            reason: failing_text(&judged.history.judged),
            runs,
            steps: judged.steps,
            repaired: judged.repaired,
            at: read_clock_anchor().realtime,
        };
        let all = || folder.state.tested.iter().chain([&tested]);
        let history = &judged.history;
        let page = HistoryPage { guard: Some(&history.judged), tested_commits: list_tested_commits(all()) };
        write_history_report(self.context, &judged.selection, (&history.runs, &history.found), page)?;
        folder.state.finish(tested.clone());
        folder.save()?;
        Ok(Some(TreeLook {
            guard: Some(judged.history.judged.clone()),
            bisections: judged.bisections,
            report: judged.selection.report.map(|path| path.to_string()),
            history: Some(Box::new(judged.history)),
            ..self.describe(tested)
        }))
    }

    fn judge(
        &self,
        folder: &WatchFolder,
        commit: &Commit,
        newest: &RunDir,
        stop: &StopRequest,
    ) -> Result<Option<JudgedCommit>, Failure> {
        let manifest = newest.manifest()?;
        let selection = self.select_history(folder, &manifest)?;
        let study = folder.state.current.as_ref().map(|current| current.study.as_str());
        let is_earlier = |one: &&TestedCommit| one.outcome.is_measured() && Some(one.study.as_str()) == study;
        let accepted = self.context.archive()?.read_accepted_steps()?;
        let earlier = folder.state.tested.iter().filter(is_earlier);
        let earlier: Vec<EarlierCommit<'_>> = earlier.map(|one| one.as_earlier(&accepted)).collect();
        let judged = judge_newest_run(self.context, &selection, &list_told_steps(&earlier));
        let mut history = match self.watched.metric.is_empty() {
            true => judged?,
            false => {
                judged.with_context(|| format!("--metric {}", self.watched.metric.join(" --metric ")))?
            }
        };
        let search = StepSearch {
            context: self.context,
            watched: self.watched,
            commit,
            earlier,
            manifest: &manifest,
            history: &history.found,
            judged: &history.judged,
        };
        let mut steps = search.find_steps();
        let repaired = search.find_repaired(&steps);
        let bisections = match self.watched.bisects {
            true => search.bisect(&mut steps, stop)?,
            false => Some(Vec::new()),
        };
        let Some(bisections) = bisections else { return Ok(None) };
        for step in steps.iter().filter(|step| step.is_worse()) {
            step.set_verdict(&mut history.judged);
        }
        let is_worse = steps.iter().any(SteppedMetric::is_worse) || !history.judged.failing().is_empty();
        let outcome = match (is_worse, history.judged.is_empty()) {
            (true, _) => CommitOutcome::Worse,
            (false, true) => CommitOutcome::Unjudged,
            (false, false) => CommitOutcome::Good,
        };
        Ok(Some(JudgedCommit { outcome, steps, repaired, bisections, history, selection }))
    }

    fn report_path(&self, folder: &WatchFolder) -> Result<OutputPath, Failure> {
        if let Some(output) = self.output {
            return Ok(output.clone());
        }
        let reports = self.context.archive_path().join("reports");
        std::fs::create_dir_all(&reports).with_context(|| format!("cannot create {}", reports.display()))?;
        let letters = self.watched.label.chars().map(|c| if c.is_alphanumeric() { c } else { '-' });
        let name: String = letters.take(LONGEST_NAME).collect();
        // Other labels may have the same letters.
        Ok(OutputPath::File(reports.join(format!("{name}-{}.html", folder.short_name()))))
    }

    /// Notes on a run what was bisected: the report shows it, and so does `perflab show`.
    fn note_bisections(&self, run: &RunDir, judged: &JudgedCommit) -> Result<(), Failure> {
        let archive = self.context.archive()?;
        for result in &judged.bisections {
            let text = result.text();
            let known = run.read_notes()?;
            if known.iter().any(|note| note.text == text) {
                continue;
            }
            let step = judged.steps.iter().find(|step| step.metric == result.metric);
            let note = RunNote {
                at: Nanos(0),
                by: WRITER.into(),
                text,
                case: step.map(|step| step.case.clone()),
                metric: Some(result.metric.clone()),
            };
            archive.add_note(run, note)?;
        }
        Ok(())
    }

    fn print(&self, look: &TreeLook) -> Result<(), Failure> {
        let context = self.context;
        if context.format == OutputFormat::Json {
            return context.print_json(look);
        }
        let (tested, branch) = (&look.tested, &look.branch);
        let commit = format!("{} {}", tested.commit.short, tested.commit.subject);
        if !look.is_new {
            context
                .note_line(&format!("nothing is new: {branch} is at {commit}: {}", tested.outcome.words()));
            return Ok(());
        }
        if let Some(history) = &look.history {
            context.print_grid(&guard_grid(&history.found, &history.judged))?;
        }
        for result in &look.bisections {
            context.print_text(&result.text())?;
        }
        for step in &tested.steps {
            stderr_line!(
                "perflab: {}",
                perflab_model::untrusted_text::escape_controls_in_line(&step_text(step))
            );
        }
        for metric in &tested.repaired {
            context.note_line(&repair_text(metric));
        }
        context.note_line(&format!("{branch} {commit}: {}", outcome_text(tested)));
        Ok(())
    }
}

/// Accepts what the newest commit that was measured was told to be worse in.
fn accept_steps(context: &App, folder: &WatchFolder, note: &str) -> Result<Exit, Failure> {
    if note.trim().is_empty() {
        let hint = "say why the change is accepted: --accept 'new allocator'";
        return Err(UsageError::new("the note is empty", hint).into());
    }
    let archive = context.archive()?;
    let known = archive.read_accepted_steps()?;
    let measured = folder.state.tested.iter().filter(|one| one.outcome.is_measured());
    let measured: Vec<EarlierCommit<'_>> = measured.map(|one| one.as_earlier(&known)).collect();
    let last = measured.last();
    let runs = last.map_or(&[][..], |last| last.runs);
    let told = list_told_steps(&measured);
    let mut accepted = Vec::new();
    for step in told.iter().filter(|step| runs.contains(&step.last_bad)) {
        let is_own = |one: &&&SteppedMetric| one.case == step.subject && one.metric == step.metric;
        let Some(unit) = last.and_then(|last| last.steps.iter().find(is_own)) else { continue };
        accepted.push(AcceptedStep {
            subject: step.subject.clone(),
            metric: step.metric.clone(),
            unit: Unit::new(&unit.unit),
            run: step.first_bad.clone(),
            began: select_run(&archive, &step.first_bad)?.manifest()?.anchor.realtime,
            note: note.trim().to_owned(),
            accepted: read_clock_anchor().realtime,
        });
    }
    if accepted.is_empty() {
        let newest = last.map_or_else(|| "no commit".into(), |last| format!("commit {}", last.commit.short));
        let message = format!("{newest} was told to be worse than those before it");
        return Err(UsageError::new(message, "there is nothing to accept").into());
    }
    archive.accept_steps(&accepted)?;
    for step in &accepted {
        context.note_line(&format!("accepted: {} {}, from run {} on", step.subject, step.metric, step.run));
    }
    Ok(Exit::Fine)
}

/// What tells one version of a study from another: what it means, whatever its comments are; its text where it cannot be read by
/// itself.
fn digest_study(source: &TomlSource) -> String {
    let meant = source.parse_study().ok().and_then(|study| serde_json::to_vec(&study).ok());
    let bytes = meant.unwrap_or_else(|| source.text.clone().into_bytes());
    perflab_files::sha256_hex(&mut bytes.as_slice()).unwrap_or_default()
}
