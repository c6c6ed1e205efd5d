//! How a bisection ended: for people as a text, for tools as JSON.

use perflab_analyze::bisection::{Bisection, BisectionEnd};
use perflab_analyze::{
    AnalysisOptions, ChangeScale, ComparisonSide, MetricChange, RowFlag, Verdict, VerdictRow, compare_levels,
};
use perflab_archive::Archive;
use perflab_model::quantity::{format_quantity, format_share};
use perflab_present::comparison::format_change;
use perflab_stats::IntervalEstimate;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};
use crate::measure::bisection::bisection_journal::{BisectionEntry, BisectionJournal};
use crate::measure::bisection::commit_line::{Commit, CommitLine};
use crate::measure::bisection::commit_runs::{BisectedMetric, FACTOR};
use crate::measure::bisection::metric_scale::MetricScale;

/// The version of the JSON document.
const FORMAT: u32 = 1;

/// How a bisection ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BisectionResult {
    /// [`FORMAT`]
    pub format: u32,
    /// How it ended.
    pub outcome: BisectionOutcome,
    /// What was bisected.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The first commit of the line.
    pub good: Commit,
    /// The last one.
    pub bad: Commit,
    /// Commits between them, the bad one included.
    pub commits: usize,
    /// The error of the walk that was asked for, at most.
    pub error: f64,
    /// The culprit; several where neighbours could not be measured.
    pub culprits: Vec<Commit>,
    /// The last good commit before, which was measured.
    pub parent: Option<Commit>,
    /// The change: at the culprit against its parent, or from good to bad where there is no culprit.
    pub change: Option<BisectedChange>,
    /// The error at which the measurements exclude all other commits.
    pub excluded_at: Option<f64>,
    /// The probability that it is among the culprits, as far as noise is normal.
    pub probability: Option<f64>,
    /// What else differs between the culprit and its parent.
    pub also_changed: Vec<AlsoChanged>,
    /// Commits that could not be measured.
    pub skipped: Vec<SkippedCommit>,
    /// Starts, or boots, of a commit.
    pub boots: usize,
    /// Commits that were built.
    pub builds: usize,
    /// Minutes of building and measuring.
    pub minutes: f64,
    /// The runs, in order.
    pub runs: Vec<String>,
}

/// How a bisection ended, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BisectionOutcome {
    /// The culprit is named.
    Found,
    /// What was left does not differ from its parent.
    Contradicted,
    /// No single commit explains what was measured.
    NoSingleStep,
    /// Good and bad do not differ.
    EndsEqual,
    /// Bad is better than good.
    Swapped,
    /// It took too many boots.
    Exhausted,
}

/// A change with its interval, which holds at every look.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BisectedChange {
    /// `ratio` (0.05 is 5 % more) or `absolute` (in the metric's unit).
    pub scale: ChangeScale,
    /// The estimate.
    pub value: f64,
    /// The interval.
    pub low: Option<f64>,
    /// The interval.
    pub high: Option<f64>,
    /// Its confidence.
    pub confidence: f64,
    /// Blocks that it comes from; of the ends, all that hold both.
    pub blocks: Option<usize>,
}

/// A metric that changed, too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlsoChanged {
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The word of its row: better, worse, or that it changed where neither is meant.
    pub verdict: String,
    /// How much.
    pub change: MetricChange,
    /// The p-value, adjusted for all metrics.
    pub q: Option<f64>,
}

/// A commit that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedCommit {
    /// The commit.
    pub commit: Commit,
    /// Why.
    pub reason: String,
}

/// What a result is made of.
#[derive(Debug)]
pub struct BisectionParts<'a> {
    /// The commits.
    pub line: &'a CommitLine,
    /// What was done.
    pub journal: &'a BisectionJournal,
    /// What follows from it.
    pub walk: &'a Bisection,
    /// The metric.
    pub metric: &'a BisectedMetric,
    /// How its values are compared.
    pub scale: MetricScale,
    /// The error of the walk.
    pub error: f64,
}

impl BisectionParts<'_> {
    /// The result of a walk that ended.
    ///
    /// # Errors
    /// Runs of the confirmation that cannot be read.
    pub fn conclude(&self, archive: &Archive, end: &BisectionEnd) -> Result<BisectionResult, Failure> {
        let commit = |index: usize| self.line.get(index).cloned();
        let (outcome, confirmation, ends) = match end {
            BisectionEnd::Found(found) => (BisectionOutcome::Found, Some(found), None),
            BisectionEnd::Contradicted(found) => (BisectionOutcome::Contradicted, Some(found), None),
            BisectionEnd::NoSingleStep => (BisectionOutcome::NoSingleStep, None, self.walk.end_change()),
            BisectionEnd::EndsEqual(change) => (BisectionOutcome::EndsEqual, None, Some(*change)),
            BisectionEnd::Swapped(change) => (BisectionOutcome::Swapped, None, Some(*change)),
            BisectionEnd::Exhausted => (BisectionOutcome::Exhausted, None, self.walk.end_change()),
        };
        let found = confirmation.filter(|_| outcome == BisectionOutcome::Found);
        let candidates = self.walk.candidates();
        let change = match (confirmation, ends) {
            (Some(found), _) => Some(self.change(&found.change, Some(found.blocks))),
            (None, Some(ends)) => Some(self.change(&ends, None)),
            (None, None) => None,
        };
        let open = self.walk.open_ranges().0;
        let culprits = match outcome {
            BisectionOutcome::Found => confirmation.map(|found| found.range).into_iter().collect(),
            BisectionOutcome::Exhausted => open,
            _ => Vec::new(),
        };
        let entries = self.journal.entries();
        let runs = entries.iter().filter_map(|entry| match entry {
            BisectionEntry::Measured { run, .. } => Some(run.clone()),
            _ => None,
        });
        let skipped = entries.iter().filter_map(|entry| match entry {
            BisectionEntry::Skipped { commit: index, reason } => {
                Some(SkippedCommit { commit: commit(*index)?, reason: reason.clone() })
            }
            _ => None,
        });
        let missing = || crate::failure::UnexpectedError("the line of commits is empty".into());
        Ok(BisectionResult {
            format: FORMAT,
            outcome,
            metric: self.metric.name.clone(),
            unit: self.metric.unit.clone(),
            good: commit(0).ok_or_else(missing)?,
            bad: commit(self.line.bad()).ok_or_else(missing)?,
            commits: self.line.bad(),
            error: self.error,
            culprits: culprits.iter().flat_map(|range| range.first..=range.last).filter_map(commit).collect(),
            parent: found.and_then(|found| commit(found.range.parent())),
            change,
            excluded_at: found.map(|found| candidates.error_of(found.range.first..=found.range.last)),
            probability: found
                .map(|found| candidates.probability_between(found.range.parent(), found.range.last)),
            also_changed: match found {
                Some(found) => self.other_changes(archive, [found.range.parent(), found.range.last])?,
                None => Vec::new(),
            },
            skipped: skipped.collect(),
            boots: self.walk.boots(),
            builds: entries.iter().filter(|entry| matches!(entry, BisectionEntry::Built { .. })).count(),
            minutes: self.journal.minutes(),
            runs: runs.collect(),
        })
    }

    /// As people read it: larger is larger, whichever way is worse.
    fn change(&self, estimate: &IntervalEstimate, blocks: Option<usize>) -> BisectedChange {
        let shown = |shift: f64| self.scale.shown(shift);
        let ends = estimate.interval.map(|interval| (shown(interval.low), shown(interval.high)));
        BisectedChange {
            scale: self.scale.change_scale(),
            value: shown(estimate.value),
            low: ends.map(|(one, other)| one.min(other)),
            high: ends.map(|(one, other)| one.max(other)),
            confidence: 1.0 - self.error,
            blocks,
        }
    }

    /// Other metrics that differ between the culprit and its parent beyond chance, in the runs that measured just these two.
    fn other_changes(&self, archive: &Archive, pair: [usize; 2]) -> Result<Vec<AlsoChanged>, Failure> {
        let runs = self.journal.entries().iter().filter_map(|entry| match entry {
            BisectionEntry::Measured { run, commits, .. } if *commits == pair => Some(run),
            _ => None,
        });
        let mut records = Vec::new();
        for id in runs {
            // One that was removed since tells nothing.
            for run in archive.find_runs(id).unwrap_or_default() {
                records.push(run.read_record()?);
            }
        }
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let side = ComparisonSide { name: self.line.names(&pair), runs: records };
        let options = AnalysisOptions { metrics: vec!["*".into()], ..AnalysisOptions::default() };
        let compared = compare_levels(&side, FACTOR, &options)?;
        let is_other = |row: &&VerdictRow| row.metric != self.metric.name;
        Ok(compared.rows.iter().filter(is_other).filter_map(AlsoChanged::of_row).collect())
    }
}

impl AlsoChanged {
    fn of_row(row: &VerdictRow) -> Option<Self> {
        let is_changed =
            matches!(row.verdict, Verdict::Better | Verdict::Worse) || row.flags.contains(&RowFlag::Changed);
        Some(AlsoChanged {
            metric: row.metric.clone(),
            unit: row.unit.to_string(),
            verdict: row.verdict_word().to_string(),
            change: row.change.filter(|_| is_changed)?,
            q: row.q,
        })
    }
}

impl BisectedChange {
    /// `+5.2 % (95 %: 4.1 to 6.3 %)`
    fn describe(&self, unit: &str) -> String {
        let shown = |value: f64| match self.scale {
            ChangeScale::Ratio => {
                format!("{}{}", if value < 0.0 { "-" } else { "+" }, format_share(value.abs()))
            }
            ChangeScale::Absolute => format_quantity(value, unit),
        };
        let interval = match self.low.zip(self.high) {
            Some((low, high)) => {
                format!(" ({}: {} to {})", format_share(self.confidence), shown(low), shown(high))
            }
            None => " (too few blocks for an interval)".into(),
        };
        format!("{}{interval}", shown(self.value))
    }
}

impl BisectionResult {
    /// What the process ends with.
    pub fn exit(&self) -> Exit {
        match self.outcome {
            BisectionOutcome::Found => Exit::Fine,
            _ => Exit::NothingJudged,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let change = self.change.map_or_else(|| "unknown".into(), |change| change.describe(&self.unit));
        let metric = &self.metric;
        let ends = format!("{} to {}", self.good.short, self.bad.short);
        let mut text = match self.outcome {
            BisectionOutcome::Found => self.culprit_text(&change),
            BisectionOutcome::Contradicted => format!(
                "No single commit of {ends} explains the change of {metric}: the last one left does not differ from its parent ({change}).\n\
                 There may be several steps, or builds that differ by luck: see the runs.\n"
            ),
            BisectionOutcome::NoSingleStep => format!(
                "No single commit of {ends} explains the change of {metric} ({change}): there are several steps, or builds differ by \
                 luck.\n"
            ),
            BisectionOutcome::EndsEqual => format!(
                "No difference between good and bad was seen: {metric} {change} from {ends}. A change beyond that interval would have been.\n"
            ),
            BisectionOutcome::Swapped => format!(
                "Bad is better than good: {metric} {change} from {ends}. Look for what made it better with --worse turned \
                 round.\n"
            ),
            BisectionOutcome::Exhausted => {
                let open: Vec<&str> =
                    self.culprits.iter().map(|commit| commit.short.as_str()).take(20).collect();
                format!(
                    "Not decided after as many boots as --at-most allows: {} of {} commits are left: {}\n",
                    self.culprits.len(),
                    self.commits,
                    open.join(", ")
                )
            }
        };
        for also in &self.also_changed {
            text += &format!(
                "also {}: {} {}\n",
                also.verdict,
                also.metric,
                format_change(also.change, &also.unit)
            );
        }
        for skipped in &self.skipped {
            text += &format!("left out: {}: {}\n", skipped.commit.short, skipped.reason);
        }
        text + &format!(
            "{} starts of commits in {} runs, {} builds, {:.1} min\n",
            self.boots,
            self.runs.len(),
            self.builds,
            self.minutes
        )
    }

    fn culprit_text(&self, change: &str) -> String {
        let mut text = match &self.culprits[..] {
            [_] => format!("The commit that made {} worse:\n", self.metric),
            several => format!("One of these {} commits made {} worse:\n", several.len(), self.metric),
        };
        for commit in &self.culprits {
            text += &format!("  {}  {}  {}  {}\n", commit.short, commit.date, commit.author, commit.subject);
        }
        if let Some(parent) = &self.parent {
            text += &format!("{} {change} against {}\n", self.metric, parent.short);
        }
        let excluded = self.excluded_at.map(format_share).unwrap_or_default();
        let probability = self.probability.map(format_share).unwrap_or_default();
        text += &format!(
            "all others are excluded with an error of {excluded} (asked for: {}); probability {probability}\n",
            format_share(self.error)
        );
        text
    }
}
