//! What got worse with a commit: what the guard suspects, and what a bisection made of it.

use perflab_analyze::{GuardReport, GuardRow, MetricHistories, StandingStep, ToldStep, Verdict};
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

/// The beginning of a step is known within so many runs.
const NEIGHBOURS: usize = 3;

/// What a suspicion rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuspicionEvidence {
    /// the guard alarms
    Alarm,
    /// a step of the history that was never told, and that came too early or too long ago for an alarm
    Standing,
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
    /// The first run of an alarm, or of a standing step.
    pub first_bad: Option<String>,
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

    /// Has the guard say so of its row: what is known of the commits decides.
    pub fn set_verdict(&self, judged: &mut GuardReport) {
        for row in judged.rows.iter_mut().filter(|row| self.is_of(row)) {
            row.verdict = Verdict::Worse;
        }
    }

    /// Whether it is about the same thing.
    fn is_of(&self, row: &GuardRow) -> bool {
        self.case == row.subject && self.metric == row.metric
    }

    /// Whether a value has it: it is nearer to the level since than to the one before.
    fn has(&self, value: f64) -> bool {
        self.before.is_none_or(|before| (value - self.after).abs() < (value - before).abs())
    }

    /// Whether a commit that was found lies between the good one and this one.
    fn is_explained_by(&self, culprits: &[Commit], tree: &std::path::Path, commit: &Commit) -> bool {
        let Some(good) = &self.good else { return false };
        let is_between =
            |one: &Commit| is_ancestor(tree, &one.id, &commit.id) && !is_ancestor(tree, &one.id, good);
        !culprits.is_empty() && culprits.iter().all(is_between)
    }
}

/// A metric that was worse, and is as it was before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepairedMetric {
    /// The case.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// What it was while it was worse.
    pub before: f64,
    /// The newest value.
    pub after: f64,
}

/// An earlier commit, as far as it tells what is new with a later one.
#[derive(Debug)]
pub struct EarlierCommit<'a> {
    /// The commit.
    pub commit: &'a Commit,
    /// Its runs.
    pub runs: &'a [String],
    /// What had got worse with it, and nobody has accepted since.
    pub steps: Vec<&'a SteppedMetric>,
}

impl<'a> EarlierCommit<'a> {
    /// What had got worse of this row.
    fn find_step(&self, row: &GuardRow) -> Option<&'a SteppedMetric> {
        self.steps.iter().copied().find(|step| step.is_of(row))
    }
}

/// The first run that is known to be worse by a step: of the commit to blame, where that was tested, or as the history has it.
fn find_first_bad_run<'a>(step: &'a SteppedMetric, earlier: &'a [EarlierCommit<'_>]) -> Option<&'a String> {
    let culprits = step.bisection.as_ref().map(|found| &found.culprits[..]);
    let culprit = culprits.and_then(|culprits| match culprits {
        [one] => earlier.iter().find(|tested| tested.commit.id == one.id),
        _ => None,
    });
    culprit.and_then(|culprit| culprit.runs.first()).or(step.first_bad.as_ref())
}

/// Whether one of the later commits is without a step.
fn is_over(step: &SteppedMetric, later: &[EarlierCommit<'_>]) -> bool {
    let is_same = |other: &&SteppedMetric| other.case == step.case && other.metric == step.metric;
    later.iter().any(|one| !one.steps.iter().any(is_same))
}

/// The steps that were told of these commits, the oldest first: one that several commits in a row had is one. A suspicion that nobody
/// followed is one, too, once a commit is without it.
pub fn list_told_steps(earlier: &[EarlierCommit<'_>]) -> Vec<ToldStep> {
    let mut told: Vec<ToldStep> = Vec::new();
    let mut last_runs: &[String] = &[];
    for (at, one) in earlier.iter().enumerate() {
        let later = &earlier[at + 1..];
        let is_told = |step: &SteppedMetric| step.is_worse() || (!step.is_refuted() && is_over(step, later));
        let Some((first, last)) = one.runs.first().zip(one.runs.last()) else { continue };
        for step in one.steps.iter().filter(|step| is_told(step)) {
            let goes_on = told.iter_mut().find(|known| {
                known.subject == step.case
                    && known.metric == step.metric
                    && last_runs.contains(&known.last_bad)
            });
            match goes_on {
                Some(known) => known.last_bad.clone_from(last),
                None => told.push(ToldStep {
                    subject: step.case.clone(),
                    metric: step.metric.clone(),
                    first_bad: find_first_bad_run(step, earlier).unwrap_or(first).clone(),
                    last_bad: last.clone(),
                }),
            }
        }
        last_runs = one.runs;
    }
    told
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
    /// All runs.
    pub history: &'a MetricHistories,
    /// What the guard says of the newest one.
    pub judged: &'a GuardReport,
}

impl StepSearch<'_> {
    /// What is suspected, the strongest suspicion first.
    pub fn find_steps(&self) -> Vec<SteppedMetric> {
        let suspects = self.judged.suspects(self.history);
        let standing = self.judged.deciding_rows().filter_map(|row| {
            let step = row.find_standing_step(self.history)?;
            (!suspects.contains(&row)).then_some((row, Some(step)))
        });
        let mut rows: Vec<(&GuardRow, Option<StandingStep>)> =
            suspects.iter().map(|row| (*row, None)).chain(standing).collect();
        let strength = |row: &GuardRow| {
            let evidence = row.alarm.as_ref().map_or(0.0, |alarm| alarm.e_value);
            (evidence, row.change.map_or(0.0, |change| change.value.abs()))
        };
        rows.sort_by(|(one, _), (other, _)| {
            let ((a, b), (c, d)) = (strength(other), strength(one));
            a.total_cmp(&c).then(b.total_cmp(&d))
        });
        rows.into_iter().filter_map(|(row, standing)| self.describe(row, standing)).collect()
    }

    /// What the commit before had that got worse, and this one has not.
    pub fn find_repaired(&self, steps: &[SteppedMetric]) -> Vec<RepairedMetric> {
        let worse = self.earlier.last().into_iter().flat_map(|last| &last.steps);
        let is_over = |step: &&&SteppedMetric| {
            step.is_worse() && !steps.iter().any(|now| now.case == step.case && now.metric == step.metric)
        };
        let repaired = worse.filter(is_over).filter_map(|step| {
            let is_own = |row: &&GuardRow| step.is_of(row) && row.failed.is_none();
            let row = self.judged.rows.iter().find(is_own)?;
            let is_judged = row.expected.is_some() && !step.has(row.value);
            is_judged.then(|| RepairedMetric {
                case: step.case.clone(),
                metric: step.metric.clone(),
                unit: step.unit.clone(),
                before: step.after,
                after: row.value,
            })
        });
        repaired.collect()
    }

    /// What is said of a suspicion; nothing where measuring side by side has refuted it already.
    fn describe(&self, row: &GuardRow, standing: Option<StandingStep>) -> Option<SteppedMetric> {
        let alarm = row.alarm.as_ref();
        let ends = alarm.map(|alarm| (&alarm.last_good, &alarm.first_bad));
        let ends = ends.or(standing.as_ref().map(|step| (&step.last_good, &step.first_bad)));
        let level = alarm.map(|alarm| alarm.before).or(standing.as_ref().map(|step| step.before));
        let mut step = SteppedMetric {
            case: row.subject.clone(),
            metric: row.metric.clone(),
            unit: row.unit.to_string(),
            before: level.or(row.level),
            after: row.value,
            evidence: match (alarm, &standing) {
                (Some(_), _) => SuspicionEvidence::Alarm,
                (None, Some(_)) => SuspicionEvidence::Standing,
                (None, None) => SuspicionEvidence::Outside,
            },
            seen: alarm.map(|alarm| alarm.seen.clone()),
            first_bad: ends.map(|(_, first_bad)| first_bad.clone()),
            good: self.find_good(row, ends.map(|(last_good, _)| last_good.as_str())),
            command: None,
            is_known: false,
            bisection: None,
            reason: None,
        };
        if let Some(told) = self.find_told(row, &step) {
            if !told.is_worse() {
                return None;
            }
            step.is_known = true;
        }
        step.is_known |= self.is_explained(&step);
        if let Some(args) = self.bisect_args(&step) {
            step.command = Some(bisect_command(&args, &self.watched.subject.archive));
        } else {
            step.reason = Some("no commit before it that is good was tested".into());
        }
        Some(step)
    }

    /// What an earlier commit was told of the same step: the last one had it already, or the step was seen with it.
    fn find_told(&self, row: &GuardRow, step: &SteppedMetric) -> Option<&SteppedMetric> {
        let mut all = self.list_told(row).map(|(_, told)| told);
        // Where the level before is the one that was worse, it is another step.
        let last = self.earlier.last().and_then(|last| last.find_step(row));
        let last = last.filter(|last| last.is_worse() && !step.before.is_some_and(|level| last.has(level)));
        let seen = || all.find(|one| step.seen.is_some() && one.seen == step.seen);
        last.or_else(seen).or_else(|| self.find_told_since(row, step))
    }

    /// What the earlier commits were told of a row, the newest first, without what was repaired since.
    fn list_told(&self, row: &GuardRow) -> impl Iterator<Item = (&EarlierCommit<'_>, &SteppedMetric)> {
        let told = self.earlier.iter().enumerate().rev();
        told.filter_map(move |(at, one)| {
            let step = one.find_step(row)?;
            let is_repaired = step.is_worse() && is_over(step, &self.earlier[at + 1..]);
            (!is_repaired).then_some((one, step))
        })
    }

    /// What was told of a standing step by the last commit that had it.
    fn find_told_since(&self, row: &GuardRow, step: &SteppedMetric) -> Option<&SteppedMetric> {
        let position = |id: &String| self.history.runs.iter().position(|run| run.id == *id);
        let is_standing = step.evidence == SuspicionEvidence::Standing;
        let first = step.first_bad.as_ref().filter(|_| is_standing).and_then(position)?;
        // Both may name neighbouring runs.
        let since = first.saturating_sub(NEIGHBOURS);
        let is_since =
            |one: &EarlierCommit<'_>| one.runs.last().and_then(position).is_some_and(|last| last >= since);
        let told = self.list_told(row).filter(|(one, _)| is_since(one));
        let mut told = told.map(|(_, step)| step);
        // A mere suspicion is measured where it was not; without bisections a standing step is told once.
        let is_suspected =
            |one: &SteppedMetric| !self.watched.bisects && one.evidence == SuspicionEvidence::Standing;
        let is_told = |one: &&SteppedMetric| one.is_worse() || one.bisection.is_some() || is_suspected(one);
        told.find(is_told)
    }

    /// Whether a commit that was found explains it: not one whose own step was repaired since.
    fn is_explained(&self, step: &SteppedMetric) -> bool {
        let tree = &self.watched.subject.tree;
        let explains = |told: &SteppedMetric| {
            told.bisection.as_ref().is_some_and(|bisection| {
                bisection.outcome == BisectionOutcome::Found
                    && step.is_explained_by(&bisection.culprits, tree, self.commit)
            })
        };
        let is_repaired_now = |told: &SteppedMetric| {
            self.judged.rows.iter().any(|row| told.is_of(row) && row.failed.is_none() && !told.has(row.value))
        };
        self.earlier.iter().enumerate().any(|(at, one)| {
            let mut standing = one.steps.iter().filter(|told| !is_over(told, &self.earlier[at + 1..]));
            standing.any(|told| !is_repaired_now(told) && explains(told))
        })
    }

    /// The last commit that was good in this respect, or where its line leaves that of the commit.
    fn find_good(&self, row: &GuardRow, last_good: Option<&str>) -> Option<String> {
        let others = || self.earlier.iter().filter(|one| one.commit.id != self.commit.id);
        let found = match last_good {
            Some(run) => others().find(|one| one.runs.iter().any(|id| id == run)),
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
fn bisect_command(args: &BisectArgs, archive: &str) -> String {
    let mut words = vec!["perflab".to_owned(), "bisect".to_owned()];
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), quote_word(value)]);
    add("--archive", archive);
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

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn make_commit(short: &str) -> Commit {
        let [author, date] = ["Jane Doe <jane@example.org>", "2026-01-01T00:00:00Z"].map(str::to_owned);
        Commit { id: short.repeat(10), short: short.into(), author, date, subject: "a <b>change</b>".into() }
    }

    pub fn make_step(bisection: Option<BisectedStep>) -> SteppedMetric {
        SteppedMetric {
            case: "sort".into(),
            metric: "time".into(),
            unit: "s".into(),
            before: Some(0.055),
            after: 0.16,
            evidence: SuspicionEvidence::Outside,
            seen: None,
            first_bad: None,
            good: None,
            command: Some("perflab bisect --good abcd".into()),
            is_known: false,
            bisection,
            reason: None,
        }
    }

    /// Commits that could not be judged yet are worse, too, where the bisection names one of them.
    #[test]
    fn a_step_begins_with_the_commit_to_blame() {
        let commits = ["aaaa", "bbbb", "cccc", "dddd"].map(make_commit);
        let runs = ["run-3", "run-4", "run-5", "run-6"].map(|run| vec![run.to_owned()]);
        let first_bad = |culprits: Vec<Commit>| {
            let found = BisectedStep { outcome: BisectionOutcome::Found, culprits };
            let step = SteppedMetric { first_bad: Some("run-6".into()), ..make_step(Some(found)) };
            let tested = commits.iter().zip(&runs).enumerate();
            let earlier: Vec<EarlierCommit<'_>> = tested
                .map(|(at, (commit, runs))| {
                    let steps = if at == 3 { vec![&step] } else { Vec::new() };
                    EarlierCommit { commit, runs, steps }
                })
                .collect();
            list_told_steps(&earlier).remove(0).first_bad
        };
        assert_eq!(first_bad(vec![make_commit("bbbb")]), "run-4");
        assert_eq!(first_bad(vec![make_commit("eeee")]), "run-6", "it was not tested itself");
        assert_eq!(first_bad(vec![make_commit("bbbb"), make_commit("cccc")]), "run-6");
    }
}
