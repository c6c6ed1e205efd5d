//! The answer of a comparison: verdict rows, their sides, samples, runs and method descriptions.
//!
//! What is not known is absent, never a made-up number.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use indexmap::IndexMap;
use perflab_model::study::StoppingRule;
use perflab_model::{Direction, Facts, Nanos, RunRecord, RunStatus, Unit, fact_table};
use perflab_stats::{EventCount, rarest_visible_share};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::compare::change::{
    BetweenRuns, ChangeInterval, ChangeScale, EstimationMethod, LayoutEffect, MetricChange, PooledNoise,
};
use crate::compare::compared_part::PartComparison;
use crate::compare::diagnostic::{ComparisonDiagnostic, RowFlag};
use crate::compare::failures::{FailureComparison, VerdictBasis};
use crate::compare::row_suspect::RowSuspect;
use crate::compare::run_differences::FactDifference;
use crate::kernel_log_rows::KernelLogComparison;
use crate::method_description::MethodDescription;

/// Version of the shape of [`Comparison`] as JSON; it goes up when an old reader would misread it.
pub const COMPARISON_FORMAT: u32 = 1;

/// One side against the others, row by row.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// [`COMPARISON_FORMAT`].
    pub format: u32,
    /// The writer: `perflab 0.1.0`.
    pub writer: String,
    /// Name of the baseline.
    pub baseline: String,
    /// Names of the candidates, in the order asked for.
    pub candidates: Vec<String>,
    /// The factor whose levels are the sides, where they are not runs.
    pub by: Option<String>,
    /// Confidence of the intervals, such as 0.95.
    pub confidence: f64,
    /// All runs on all sides.
    pub runs: Vec<ComparedRun>,
    /// One row a case, metric and candidate, in that order; primary metrics first within a case.
    pub rows: Vec<VerdictRow>,
    /// What to be careful about; who writes JSON adds them with their texts.
    #[serde(skip)]
    pub warnings: Vec<ComparisonDiagnostic>,
    /// Facts that are not the same on both sides, the likely causes first.
    pub facts: Vec<FactDifference>,
    /// How the numbers came about; who writes JSON adds them as sentences.
    #[serde(skip)]
    pub notes: Vec<MethodDescription>,
    /// What the kernel printed, where runs kept that; whoever reads runs adds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_log: Option<KernelLogComparison>,
    /// Whether metrics were chosen by name or kind: a table then folds none of them away.
    #[serde(skip)]
    pub chosen: bool,
}

/// A run that takes part.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRun {
    /// The side it is on; empty where the sides are levels of a factor.
    pub side: String,
    /// ULID.
    pub id: String,
    /// The beginning of it that tells it from others: the time of its making, unless whoever knows the archive puts in more.
    #[serde(skip)]
    pub short: String,
    /// The user's name for it.
    pub label: Option<String>,
    /// Its study's title.
    pub study: String,
    /// How it stands.
    pub status: RunStatus,
    /// Order of its iterations.
    pub order: String,
    /// Seed of the order; 0 for a sequential order.
    pub seed: u64,
    /// What ended it, where that was no number of iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<StoppingRule>,
    /// The kernel's boot id; empty where unknown.
    pub boot_id: String,
    /// The machines that measured, by their fact `machine.id`; empty where unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// When it began, nanoseconds since 1970.
    pub began: Nanos,
    /// The commit of the tree that it measured, else of the kernel that it ran on, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether another tool measured it: perflab cannot repeat it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// The ids of what it was joined from, the oldest first, where an interrupted run was gone on with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
}

/// Letters of a ULID that are its time.
const TIME_LETTERS: usize = 10;

impl ComparedRun {
    /// What an answer says of a run on `side`.
    pub(crate) fn from_record(run: &RunRecord, side: &str) -> Self {
        let manifest = &run.manifest;
        ComparedRun {
            side: side.into(),
            id: manifest.id.clone(),
            short: manifest.id.chars().take(TIME_LETTERS).collect(),
            label: manifest.label.clone(),
            study: manifest.study.title.clone(),
            status: manifest.status,
            order: manifest.plan.order.clone(),
            seed: manifest.plan.seed,
            until: manifest.study.run.until,
            boot_id: manifest.boot_id.clone(),
            machine: manifest.machine_id(),
            began: manifest.anchor.realtime,
            commit: measured_commit(&manifest.facts),
            imported: manifest.facts.value(&fact_table::IMPORT_KIND).is_some(),
            parts: run.parts.iter().map(|part| part.id.clone()).collect(),
        }
    }
}

/// The commit of the tree that was measured, else of the kernel that measured it.
pub(crate) fn measured_commit(facts: &Facts) -> Option<String> {
    let known = [fact_table::TREE_COMMIT, fact_table::KERNEL_COMMIT].iter().map(|key| facts.text(key));
    known.into_iter().find(|commit| !commit.is_empty())
}

/// One metric of one case: baseline against one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerdictRow {
    /// The case in one line, without what is compared: `sweep threads=2`.
    pub subject: String,
    /// The workload's name in the study.
    pub workload: String,
    /// Matrix parameters and levels of the factors that are not compared, as texts.
    pub point: IndexMap<String, String>,
    /// Name of the candidate side.
    pub candidate_name: String,
    /// The metric's name.
    pub metric: String,
    /// Other metrics with the very same values, which have no rows of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub twins: Vec<String>,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// What the baseline measured; absent where it has no value.
    pub baseline: Option<SideSummary>,
    /// What the candidate measured; absent where it has no value.
    pub candidate: Option<SideSummary>,
    /// The change from baseline to candidate; absent where one of them is.
    pub change: Option<MetricChange>,
    /// What it means.
    pub verdict: Verdict,
    /// Two-sided p-value of "no change".
    pub p: Option<f64>,
    /// The p-value adjusted for all rows of the family (Benjamini and Hochberg).
    pub q: Option<f64>,
    /// The relative change that matters, such as 0.03.
    pub margin: f64,
    /// Whether its values are assumed to be the same each time: any difference is a change. Where they are not, the row is
    /// compared by statistics, and has a [`method`](VerdictRow::method).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// What to be careful about, as letters with a footnote.
    pub flags: Vec<RowFlag>,
    /// How the change was estimated; absent without a change.
    pub method: Option<EstimationMethod>,
    /// Why there is no verdict though there are numbers: what differs between the two sides' cases of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
    /// About how many repetitions (of [`EstimationMethod::level`]) a side would decide an unclear row.
    pub needed: Option<usize>,
    /// How often the case failed on both sides; absent where it never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailureComparison>,
    /// Values far beyond the rest on the bad side; absent where neither side has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailComparison>,
    /// The mean, and tail quantiles where each side has ten values beyond them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartComparison>,
    /// What the middle of the values says, where the verdict stands on the tail or on a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub middle: Option<Verdict>,
    /// Where nothing changed: bad iterations that are rarer than this share would not have shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_share: Option<f64>,
    /// What the verdict stands on.
    #[serde(skip_serializing_if = "VerdictBasis::is_values")]
    pub basis: VerdictBasis,
    /// Where the row, or its middle, is the same although its interval excludes "no change": whether q agrees that there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small_change: Option<SmallChange>,
    /// The smallest margin at which the row would be the same: no change is larger, at the confidence of "same". Relative, as
    /// [`margin`](VerdictRow::margin); of the difference between two single runs where the interval is. Absent without an interval,
    /// or for a baseline of zero.
    pub no_larger_than: Option<f64>,
    /// The smallest relative change that as many repetitions find in 80 % of experiments, this row being the only one; of the
    /// difference between two single runs where the interval is. Absent where nothing is known of the noise.
    pub detectable: Option<f64>,
    /// What its interval allows for where a side has one run, and the sides were not interleaved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_runs: Option<BetweenRuns>,
    /// What earlier runs add to the spread of two or three boots or runs a side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooled_noise: Option<PooledNoise>,
    /// How much of the change is where code and stack lie, where both sides ran under several layouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<LayoutEffect>,
    /// What goes with the change and can carry most of it; whoever reads runs adds it, to the rows that changed most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspect: Option<RowSuspect>,
}

/// What one side measured of one metric in one case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SideSummary {
    /// Median of all values, in the row's unit.
    pub median: f64,
    /// Number of values.
    pub n: usize,
    /// Boots that they come from.
    pub boots: usize,
    /// Iterations of the case that gave no value.
    pub failed: usize,
    /// Every value, in order of time.
    pub values: SampleValues,
}

/// How many values of a side lie beyond the fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TailCount {
    /// Values beyond it.
    pub beyond: usize,
    /// All values.
    pub of: usize,
}

impl From<TailCount> for EventCount {
    fn from(count: TailCount) -> Self {
        EventCount { events: count.beyond as u64, trials: count.of as u64 }
    }
}

impl TailCount {
    /// The share of the values that lie beyond.
    #[must_use]
    pub fn share(self) -> f64 {
        self.beyond as f64 / self.of.max(1) as f64
    }
}

/// The bad tails of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TailComparison {
    /// Values beyond it, on the bad side, are far from the rest of both sides, in the row's unit: the farther of both sides'
    /// outer fences (Tukey 1977), and farther than the margin.
    pub fence: f64,
    /// In the baseline.
    pub baseline: TailCount,
    /// In the candidate.
    pub candidate: TailCount,
    /// Two-sided p-value of "both have as many" (Fisher's exact test; shares of boots by Mann and Whitney's).
    pub p: f64,
    /// In other runs of the study on this machine, each beyond a fence of its own; absent where none was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<TailCount>,
    /// The p-value adjusted for the parts of the row (Holm), and for all rows of the family that have such values.
    pub q: f64,
    /// What the middle of the values says.
    pub middle: Verdict,
}

/// The values of a metric in a case on one side, held once for all rows in which they stand: fifty runs that are compared
/// with one are fifty rows with the same baseline.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampleValues(Arc<Vec<SamplePoint>>);

impl SampleValues {
    /// The values, to be changed: those who share them keep them as they were.
    pub(crate) fn to_mut(&mut self) -> &mut Vec<SamplePoint> {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Vec<SamplePoint>> for SampleValues {
    fn from(points: Vec<SamplePoint>) -> Self {
        SampleValues(Arc::new(points))
    }
}

impl Deref for SampleValues {
    type Target = [SamplePoint];

    fn deref(&self) -> &[SamplePoint] {
        &self.0
    }
}

impl JsonSchema for SampleValues {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Vec::<SamplePoint>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<SamplePoint>::json_schema(generator)
    }
}

impl Serialize for SampleValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// One measured value, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SamplePoint {
    /// In the row's unit.
    pub value: f64,
    /// When its iteration began, nanoseconds since 1970.
    pub at: Nanos,
    /// Index of its run in [`Comparison::runs`].
    pub run: u32,
    /// Index of its boot, counted over the whole comparison from 0.
    pub boot: u32,
    /// Index of its iteration in that run, from 0.
    pub iteration: u32,
}

impl SamplePoint {
    /// Run, boot and iteration.
    pub(crate) fn iteration_key(&self) -> (u32, u32, u32) {
        (self.run, self.boot, self.iteration)
    }
}

/// What a change means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// a change the good way
    Better,
    /// a change the bad way
    Worse,
    /// no change that matters
    Same,
    /// the data do not decide; also a clear change of a metric without a direction, see [`RowFlag::Changed`]
    Unclear,
    /// one run a side, not interleaved: these two differ, which may be their luck
    Differs,
    /// one run a side, not interleaved: these two show no change that matters
    SameHere,
}

/// A change that is smaller than the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SmallChange {
    /// the interval excludes "no change", and q does, too
    There,
    /// the interval of this row excludes "no change", but q, for all rows together, does not call it one
    PerhapsThere,
}

impl SmallChange {
    /// Its name in JSON and CSV.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            SmallChange::There => "there",
            SmallChange::PerhapsThere => "perhaps-there",
        }
    }
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 6] = [
        Verdict::Better,
        Verdict::Worse,
        Verdict::Same,
        Verdict::Unclear,
        Verdict::Differs,
        Verdict::SameHere,
    ];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::Unclear => "unclear",
            Verdict::Differs => "differs",
            Verdict::SameHere => "same here",
        }
    }
}

impl Comparison {
    /// The rows that answer the question: those of the metrics that decide; all of them where metrics were chosen, or none
    /// decides.
    #[must_use]
    pub fn deciding_rows(&self) -> Vec<&VerdictRow> {
        let primary: Vec<&VerdictRow> = self.rows.iter().filter(|row| row.primary).collect();
        if self.chosen || primary.is_empty() { self.rows.iter().collect() } else { primary }
    }
}

impl VerdictRow {
    /// The word that people should read: the verdict's, or "changed" for a clear change of a metric without a
    /// direction, "missing" where one side has no value, or "withheld" where the sides did different things.
    #[must_use]
    pub fn verdict_word(&self) -> &'static str {
        if self.flags.contains(&RowFlag::OneSided) && self.basis.is_values() {
            "missing"
        } else if self.withheld.is_some() {
            "withheld"
        } else if self.flags.contains(&RowFlag::Changed) {
            "changed"
        } else {
            self.verdict.word()
        }
    }

    /// Whether more of the same measurements would change nothing: the row is better, worse or the same, or a metric without a
    /// direction changed.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        matches!(self.verdict, Verdict::Better | Verdict::Worse | Verdict::Same)
            || self.flags.contains(&RowFlag::Changed)
    }

    /// Whether the row, or the middle of its values, is the same although its interval excludes "no change": there is one, and it
    /// is smaller than the margin.
    #[must_use]
    pub fn is_small_change(&self) -> bool {
        self.is_same_in_the_middle() && self.change.is_some_and(|change| change.excludes_none())
    }

    /// Whether the middle of the values is the same, whatever the verdict stands on.
    #[must_use]
    pub fn is_same_in_the_middle(&self) -> bool {
        match self.middle {
            Some(middle) => matches!(middle, Verdict::Same | Verdict::SameHere),
            None => matches!(self.verdict, Verdict::Same | Verdict::SameHere) && self.basis.is_values(),
        }
    }

    /// The interval that the row is the same by, where the one beside it leaves the margin and so does not show it.
    #[must_use]
    pub fn interval_of_same(&self) -> Option<ChangeInterval> {
        let (interval, narrow) = (self.change?.interval?, self.change?.narrow?);
        let reach = |interval: ChangeInterval| {
            Some(self.relative(interval.low)?.abs().max(self.relative(interval.high)?.abs()))
        };
        let is_shown = reach(interval)? < self.margin || reach(narrow)? >= self.margin;
        (self.is_same_in_the_middle() && !is_shown).then_some(narrow)
    }

    /// Says whether there is a change smaller than the margin. `is_significant` judges a q.
    pub(crate) fn set_small_change(&mut self, is_significant: impl Fn(f64) -> bool) {
        self.small_change = self.is_small_change().then(|| match self.q {
            Some(q) if is_significant(q) => SmallChange::There,
            _ => SmallChange::PerhapsThere,
        });
    }

    /// The q of what the verdict stands on: the row's, or that of the tail, of a part or of the failures.
    #[must_use]
    pub fn deciding_q(&self) -> Option<f64> {
        match self.basis {
            VerdictBasis::Values | VerdictBasis::MissingValues => self.q,
            VerdictBasis::Failures => self.failures.map(|failures| failures.q),
            VerdictBasis::Tail => self.tail.map(|tail| tail.q),
            _ => self.deciding_part().map(|part| part.q),
        }
    }

    /// Whether what the verdict stands on goes the good way (`Some(true)`) or the bad way; `None` without a direction or a change.
    #[must_use]
    pub fn is_good_change(&self) -> Option<bool> {
        let is_less = |before: f64, after: f64| (before != after).then_some(after < before);
        match (self.basis, self.tail, self.failures) {
            (VerdictBasis::Tail, Some(tail), _) => {
                return is_less(tail.baseline.share(), tail.candidate.share());
            }
            (VerdictBasis::Failures, _, Some(failures)) => {
                return is_less(failures.baseline.share(), failures.candidate.share());
            }
            _ => {}
        }
        let value = self.deciding_change()?.value;
        match self.direction {
            Direction::Neither => None,
            _ if value == 0.0 => None,
            Direction::Higher => Some(value > 0.0),
            Direction::Lower => Some(value < 0.0),
        }
    }

    /// The part on which the verdict stands, where it is the mean or a quantile.
    #[must_use]
    pub fn deciding_part(&self) -> Option<&PartComparison> {
        self.parts.iter().find(|part| VerdictBasis::of_part(part.part) == self.basis)
    }

    /// The change on which the verdict stands: the row's, or that of a part.
    fn deciding_change(&self) -> Option<MetricChange> {
        self.deciding_part().map(|part| part.change).or(self.change)
    }

    /// Whether nothing but far values of the candidate, which may be usual here, keeps the row from being the same.
    #[must_use]
    pub fn has_open_tail(&self) -> bool {
        self.basis == VerdictBasis::Tail
            && self.verdict == Verdict::Unclear
            && matches!(self.middle, Some(Verdict::Same | Verdict::SameHere))
    }

    /// A change on the row's scale as a fraction of the baseline.
    pub(crate) fn relative(&self, change: f64) -> Option<f64> {
        match self.change?.scale {
            ChangeScale::Ratio => Some(change),
            ChangeScale::Absolute => {
                let median = self.baseline.as_ref()?.median.abs();
                (median > 0.0).then(|| change / median)
            }
        }
    }

    /// Says how large a change may still be.
    pub(crate) fn set_no_larger_than(&mut self) {
        let narrow = self.change.and_then(|change| change.narrow);
        let largest = narrow.map(|narrow| narrow.low.abs().max(narrow.high.abs()));
        self.no_larger_than =
            largest.and_then(|largest| self.relative(largest)).filter(|size| size.is_finite());
    }

    /// Says what a row that is the same could not have seen.
    pub(crate) fn set_unseen_share(&mut self) {
        let is_same = matches!(self.verdict, Verdict::Same | Verdict::SameHere);
        let is_sampled = self.method.is_some();
        let has_bad_tail = is_sampled && is_same && self.direction != Direction::Neither;
        let values = self.candidate.as_ref().map(|side| side.n).filter(|_| has_bad_tail);
        self.unseen_share = values.map(|values| rarest_visible_share(values, 0.95));
    }

    /// The same of the change on which the verdict stands.
    #[must_use]
    pub fn deciding_relative_change(&self) -> Option<f64> {
        self.relative(self.deciding_change()?.value)
    }

    /// The change as a fraction of the baseline, also where it was estimated in the metric's unit; absent
    /// without a change, or for a baseline of zero.
    #[must_use]
    pub fn relative_change(&self) -> Option<f64> {
        self.relative(self.change?.value)
    }
}
