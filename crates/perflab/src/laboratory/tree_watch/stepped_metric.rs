//! What got worse with a commit: what the guard suspects, and what a bisection made of it.

use perflab_analyze::{GuardReport, GuardRow, MetricHistories};
use perflab_model::error_class::ErrorClass;
use perflab_model::{Case, Manifest, StopRequest};
use perflab_workload::argv_element::quote_word;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::laboratory::tree_watch::watched_tree::{TreeBuilder, WatchedTree};
use crate::measure::bisect::{BISECTION_ERROR, BISECTION_MARGIN, BisectArgs, walk_commits};
use crate::measure::bisection::bisection_result::{BisectionOutcome, BisectionResult};
use crate::measure::bisection::commit_line::{Commit, find_merge_base, is_ancestor};

/// What a suspicion rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuspicionEvidence {
    /// the guard alarms
    Alarm,
    /// the newest value falls out of its history, which alone is no alarm
    Outside,
}

/// A metric that may have got worse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteppedMetric {
    /// The case.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Its level before.
    pub before: Option<f64>,
    /// The newest value.
    pub after: f64,
    /// What the suspicion rests on.
    pub evidence: SuspicionEvidence,
    /// The run with which an alarm was seen first.
    pub seen: Option<String>,
    /// The last commit that was tested and is good.
    pub good: Option<String>,
    /// What bisects it, as somebody would type it.
    pub command: Option<String>,
    /// Whether an earlier commit brought it, and was told to.
    pub is_known: bool,
    /// What the bisection came to.
    pub bisection: Option<BisectedStep>,
    /// Why it could not be bisected.
    pub reason: Option<String>,
}

/// What a bisection came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BisectedStep {
    /// How it ended.
    pub outcome: BisectionOutcome,
    /// The commit that is to blame; several where neighbours could not be measured.
    pub culprits: Vec<Commit>,
}

impl SteppedMetric {
    /// Whether measuring both ends side by side showed that there is nothing.
    pub fn is_refuted(&self) -> bool {
        let outcome = self.bisection.as_ref().map(|bisection| bisection.outcome);
        matches!(outcome, Some(BisectionOutcome::EndsEqual | BisectionOutcome::Swapped))
    }

    /// Whether it is no mere suspicion: one run that falls out of its history is no step before it is measured side by side.
    pub fn is_worse(&self) -> bool {
        let is_sure = self.evidence == SuspicionEvidence::Alarm || self.is_known || self.bisection.is_some();
        is_sure && !self.is_refuted()
    }

    /// Whether it is about the same thing.
    fn is_of(&self, row: &GuardRow) -> bool {
        self.case == row.subject && self.metric == row.metric
    }

    /// Whether a commit that was found lies between the good one and this one.
    fn is_explained_by(&self, culprits: &[Commit], tree: &std::path::Path, commit: &Commit) -> bool {
        let Some(good) = &self.good else { return false };
        let is_between =
            |one: &Commit| is_ancestor(tree, &one.id, &commit.id) && !is_ancestor(tree, &one.id, good);
        !culprits.is_empty() && culprits.iter().all(is_between)
    }
}

/// An earlier commit, as far as it tells what is new with a later one.
#[derive(Debug)]
pub struct EarlierCommit<'a> {
    /// The commit.
    pub commit: &'a Commit,
    /// Its runs.
    pub runs: &'a [String],
    /// What had got worse with it.
    pub steps: &'a [SteppedMetric],
}

/// What is needed to say what got worse.
pub struct StepSearch<'a> {
    /// The global options.
    pub context: &'a App,
    /// What is watched.
    pub watched: &'a WatchedTree,
    /// The commit.
    pub commit: &'a Commit,
    /// Commits that were measured before, with the same study, the oldest first.
    pub earlier: Vec<EarlierCommit<'a>>,
    /// Of the newest run.
    pub manifest: &'a Manifest,
}

impl StepSearch<'_> {
    /// What the guard suspects, the strongest suspicion first.
    pub fn find_steps(&self, found: &MetricHistories, judged: &GuardReport) -> Vec<SteppedMetric> {
        let mut rows = judged.suspects(found);
        let strength = |row: &GuardRow| {
            let evidence = row.alarm.as_ref().map_or(0.0, |alarm| alarm.e_value);
            (evidence, row.change.map_or(0.0, |change| change.value.abs()))
        };
        rows.sort_by(|one, other| {
            let ((a, b), (c, d)) = (strength(other), strength(one));
            a.total_cmp(&c).then(b.total_cmp(&d))
        });
        rows.into_iter().map(|row| self.describe(row)).collect()
    }

    fn describe(&self, row: &GuardRow) -> SteppedMetric {
        let good = self.find_good(row);
        let mut step = SteppedMetric {
            case: row.subject.clone(),
            metric: row.metric.clone(),
            unit: row.unit.to_string(),
            before: row.alarm.as_ref().map(|alarm| alarm.before).or(row.level),
            after: row.value,
            evidence: if row.alarm.is_some() { SuspicionEvidence::Alarm } else { SuspicionEvidence::Outside },
            seen: row.alarm.as_ref().map(|alarm| alarm.seen.clone()),
            good,
            command: None,
            is_known: false,
            bisection: None,
            reason: None,
        };
        step.is_known = self.is_known(row, &step);
        if let Some(args) = self.bisect_args(&step) {
            step.command = Some(bisect_command(&args));
        } else {
            step.reason = Some("no commit before it that is good was tested".into());
        }
        step
    }

    /// Whether an earlier commit had it already, or brought it.
    fn is_known(&self, row: &GuardRow, step: &SteppedMetric) -> bool {
        let had = |one: &SteppedMetric| one.is_of(row) && one.is_worse();
        let is_standing = self.earlier.last().is_some_and(|last| last.steps.iter().any(had));
        let all = || self.earlier.iter().flat_map(|one| one.steps);
        let is_seen = step.seen.is_some() && all().any(|one| one.is_of(row) && one.seen == step.seen);
        let mut found = all().filter_map(|one| one.bisection.as_ref());
        let tree = &self.watched.subject.tree;
        is_standing
            || is_seen
            || found.any(|bisection| {
                bisection.outcome == BisectionOutcome::Found
                    && step.is_explained_by(&bisection.culprits, tree, self.commit)
            })
    }

    /// The last commit that was good in this respect, or where its line leaves that of the commit.
    fn find_good(&self, row: &GuardRow) -> Option<String> {
        let others = || self.earlier.iter().filter(|one| one.commit.id != self.commit.id);
        let found = match &row.alarm {
            Some(alarm) => others().find(|one| one.runs.contains(&alarm.last_good)),
            None => others().rfind(|one| !one.steps.iter().any(|step| step.is_of(row) && !step.is_refuted())),
        };
        let (tree, good) = (&self.watched.subject.tree, &found?.commit.id);
        // The branch may have been rewritten since.
        let base = match is_ancestor(tree, good, &self.commit.id) {
            true => Some(good.clone()),
            false => find_merge_base(tree, good, &self.commit.id),
        };
        base.filter(|base| *base != self.commit.id)
    }

    fn bisect_args(&self, step: &SteppedMetric) -> Option<BisectArgs> {
        let subject = &self.watched.subject;
        let case = self.manifest.plan.cases.iter().find(|case| case.label() == step.case)?;
        let (build, kernel) = match &subject.builder {
            TreeBuilder::Command(build) => (build.clone(), None),
            TreeBuilder::Kernel(recipe) => (None, Some(recipe.clone())),
        };
        Some(BisectArgs {
            good: step.good.clone()?,
            bad: self.commit.id.clone(),
            tree: subject.tree.clone(),
            study: Some(subject.study.clone()),
            command: Vec::new(),
            metric: Some(step.metric.clone()),
            worse: None,
            build,
            kernel,
            build_limit: self.watched.build_limit,
            error: BISECTION_ERROR,
            margin: BISECTION_MARGIN,
            set: case_levels(case),
            only: Some(case.workload.clone()),
            at_most: self.watched.at_most,
            state: None,
            restart: false,
        })
    }

    /// Bisects what is new, one after the other; what one commit explains is not bisected again. False where it was stopped.
    ///
    /// # Errors
    /// What is no answer: no room, a program that is missing.
    pub fn bisect(
        &self,
        steps: &mut [SteppedMetric],
        stop: &StopRequest,
    ) -> Result<Option<Vec<BisectionResult>>, Failure> {
        let mut results: Vec<BisectionResult> = Vec::new();
        for step in steps.iter_mut().filter(|step| !step.is_known) {
            let tree = &self.watched.subject.tree;
            let explains = |result: &&BisectionResult| {
                result.outcome == BisectionOutcome::Found
                    && step.is_explained_by(&result.culprits, tree, self.commit)
            };
            if let Some(result) = results.iter().find(explains) {
                step.bisection = Some(BisectedStep::of_result(result));
                continue;
            }
            let Some(args) = self.bisect_args(step) else { continue };
            let command = step.command.as_deref().unwrap_or_default();
            self.context.note_line(&format!("{} {}: bisecting: {command}", step.case, step.metric));
            match walk_commits(self.context, &args, stop) {
                Ok(None) => return Ok(None),
                Ok(Some(result)) => {
                    step.bisection = Some(BisectedStep::of_result(&result));
                    results.push(result);
                }
                Err(failure) if failure.exit() == Exit::Class(ErrorClass::Usage) => {
                    step.reason = Some(failure.to_string());
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(Some(results))
    }
}

impl BisectedStep {
    fn of_result(result: &BisectionResult) -> Self {
        let is_found = result.outcome == BisectionOutcome::Found;
        let culprits = if is_found { result.culprits.clone() } else { Vec::new() };
        BisectedStep { outcome: result.outcome, culprits }
    }
}

/// The levels of a case, as `--set` takes them.
fn case_levels(case: &Case) -> Vec<String> {
    case.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect()
}

/// The arguments as a command for a shell.
fn bisect_command(args: &BisectArgs) -> String {
    let mut words = vec!["perflab".to_owned(), "bisect".to_owned()];
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), quote_word(value)]);
    add("--good", &args.good);
    add("--bad", &args.bad);
    add("--tree", &args.tree.display().to_string());
    let named = [
        ("--build", &args.build),
        ("--kernel", &args.kernel),
        ("--study", &args.study),
        ("--only", &args.only),
        ("--metric", &args.metric),
    ];
    for (option, value) in named {
        if let Some(value) = value {
            add(option, value);
        }
    }
    for level in &args.set {
        add("--set", level);
    }
    words.join(" ")
}
