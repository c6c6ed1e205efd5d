//! The answer to why a row changed: where its time went, and what goes with it.

use perflab_model::Unit;
use perflab_stats::ConfidenceInterval;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::change::MetricChange;
use crate::compare::failures::FailureComparison;
use crate::compare::run_differences::FactDifference;
use crate::why::cause_table::TimePart;
use crate::why::log_evidence::LogEvidence;
use crate::why::varied_setting::VariedSetting;

/// Version of the shape of [`Explanation`] as JSON; it goes up when an old reader would misread it.
pub const EXPLANATION_FORMAT: u32 = 1;

/// A number with its interval, in the unit that stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct IntervalValue {
    /// the estimate
    pub value: f64,
    /// lower limit
    pub low: f64,
    /// upper limit
    pub high: f64,
}

impl IntervalValue {
    pub(crate) fn new(value: f64, interval: ConfidenceInterval) -> Self {
        IntervalValue { value, low: interval.low, high: interval.high }
    }

    /// Whether zero is not in the interval.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    pub(crate) fn scaled(&self, factor: f64) -> Self {
        let (one, other) = (self.low * factor, self.high * factor);
        IntervalValue { value: self.value * factor, low: one.min(other), high: one.max(other) }
    }
}

/// What the data say of why a row changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// [`EXPLANATION_FORMAT`].
    pub format: u32,
    /// The writer: `perflab 0.1.0`.
    pub writer: String,
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// The factor whose levels are the sides, where they are not runs.
    pub by: Option<String>,
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the candidate.
    pub candidate: String,
    /// What `compare` says of the row.
    pub verdict: String,
    /// The study that was run.
    pub study: String,
    /// The metric on the baseline: the mean over units, in [`unit`](Explanation::unit); absent where it has no value there.
    pub before: Option<f64>,
    /// The change of the mean, with its interval; absent where a side has no value, as all of its iterations failed.
    pub change: Option<IntervalValue>,
    /// How often iterations failed on both sides, where any did.
    pub failures: Option<FailureEvidence>,
    /// Unit of the change and of everything that carries some of it.
    pub unit: Unit,
    /// Whether the change is of the time for as much work as an iteration of the baseline does, the metric being work a second.
    pub by_work: bool,
    /// What one unit is, and how they are compared.
    pub units: ComparedUnits,
    /// Where the time of the change is; empty where the metric is not the time of the iteration, or that was not recorded.
    pub places: Vec<TimePlace>,
    /// What goes with the change beyond chance, and can carry a part of it that matters: the likeliest first.
    pub suspects: Vec<Suspect>,
    /// What differs beyond chance, and is no suspect.
    pub ruled_out: Vec<RuledOut>,
    /// How many quantities were looked at.
    pub looked_at: QuantityCounts,
    /// What the study varied between the sides, where that is a setting: the suspects say through what it acts.
    pub varied: Vec<VariedSetting>,
    /// Facts that differ between the sides and often change results, the likeliest cause first.
    pub facts: Vec<FactDifference>,
    /// What kernels printed on one side in more iterations than chance explains, or in those that failed; what explains first.
    pub kernel_log: Vec<LogEvidence>,
    /// What was left out, and why.
    pub left_out: Vec<LeftOut>,
    /// What could be recorded to know more: commands.
    pub to_record: Vec<RecordingAdvice>,
    /// What the test of a suspect has shown, where one was made.
    pub tested: Option<SuspectTest>,
}

impl Explanation {
    /// Whether a cause is named.
    #[must_use]
    pub fn has_suspects(&self) -> bool {
        !self.suspects.is_empty() || self.kernel_log.iter().any(|line| line.explains)
    }

    /// Whether a suspect can carry half of the change, or trouble in the kernel's log explains it: where nothing does, most of it is not
    /// explained.
    #[must_use]
    pub fn is_mostly_carried(&self) -> bool {
        self.kernel_log.iter().any(|line| line.explains)
            || self.change.is_some_and(|change| can_carry_half(&self.suspects, change))
    }
}

/// How often iterations failed, and how.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FailureEvidence {
    /// how often, on both sides
    pub counts: FailureComparison,
    /// whether the verdict stands on them
    pub decides: bool,
    /// why the first iteration of the baseline failed; absent where none did
    pub baseline_reason: Option<String>,
    /// why the first iteration of the candidate failed; absent where none did
    pub candidate_reason: Option<String>,
}

pub(crate) fn can_carry_half(suspects: &[Suspect], change: IntervalValue) -> bool {
    let whole = change.value.abs();
    suspects.iter().any(|suspect| suspect.account.share_of(whole) >= 0.5)
}

/// What is compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComparedUnits {
    /// Units of the baseline, or pairs.
    pub baseline: usize,
    /// Units of the candidate, or pairs.
    pub candidate: usize,
    /// Whether they are pairs of a block or boot.
    pub paired: bool,
    /// `iterations`, `runs`, `boots`
    pub noun: &'static str,
    /// Whether the sides are one run each, or were measured in turn: what goes with the difference between these two may be their luck.
    pub these_two_only: bool,
}

/// A part of the time, and how it changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TimePlace {
    /// Which.
    pub part: TimePart,
    /// Seconds of it in a unit of the baseline.
    pub before: f64,
    /// Its change, in seconds.
    pub change: IntervalValue,
}

/// A quantity that goes with the change.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Suspect {
    /// What people call the cause that it measures; its series' name where none is known.
    pub cause: String,
    /// Whether the table of causes has it.
    pub known: bool,
    /// The quantity: `vmstat pgfault`.
    pub series: String,
    /// Others that say the same.
    pub twins: Vec<String>,
    /// Unit of the quantity.
    pub unit: Unit,
    /// Its mean on the baseline.
    pub before: f64,
    /// Its mean on the candidate.
    pub after: f64,
    /// (a) how it differs between the sides.
    pub difference: DifferenceEvidence,
    /// (b) whether units with more of it take longer, within the sides.
    pub dose: DoseEvidence,
    /// (c) how much of the change it can carry.
    pub account: AccountEvidence,
    /// What would test it: a command.
    pub test: String,
    /// What prints its figures.
    pub shown_by: String,
}

/// How a quantity differs between the sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct DifferenceEvidence {
    /// Candidate less baseline.
    pub difference: f64,
    /// The same without what comes with time that passes, or with CPU time that is needed, at the baseline's rate; absent of the
    /// workload's own quantities.
    pub excess: Option<f64>,
    /// Student's t of it.
    pub t: f64,
    /// p of "no difference" for this quantity alone, by exchanging sides.
    pub p: f64,
    /// The same for all quantities together.
    pub adjusted_p: f64,
}

/// What units with more of it show, sides held apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct DoseEvidence {
    /// What it amounts to.
    pub word: DoseWord,
    /// Change of the metric for one more of it, in the change's unit; absent where it does not vary within the sides.
    pub slope: Option<IntervalValue>,
}

/// Whether more of it goes with more of the metric, within the sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DoseWord {
    /// yes: the interval of the slope lies on the side of the change
    Agrees,
    /// the interval of the slope holds zero, or goes the other way over too small a part of the difference
    Undecided,
    /// it hardly varies within the sides
    Unvarying,
    /// no: more of it goes with a change the other way
    Contradicts,
}

/// How much of the change a quantity can carry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct AccountEvidence {
    /// What it carries by its slope; absent where that is not known.
    pub carries: Option<IntervalValue>,
    /// The most that it can carry, by its own time, by the most that one of it takes, or by where its time would show; never more than
    /// the change. Absent where nothing limits it.
    pub at_most: Option<f64>,
    /// What limits it.
    pub limit: Option<AccountLimit>,
    /// Of [`at_most`](AccountEvidence::at_most), what is beyond the CPU time that the change grew by where its time shows: waiting for a
    /// CPU, which comes with CPU time where other work takes turns with it. Absent where there is none.
    pub waiting: Option<f64>,
    /// What remains of the change when it is held constant; absent where that is not known.
    pub remains: Option<IntervalValue>,
}

impl AccountEvidence {
    /// How much of the whole it can carry, from 0 to 1: by its slope where that is known, within what limits it.
    pub(crate) fn share_of(&self, whole: f64) -> f64 {
        let most = self.at_most.unwrap_or(whole);
        let carried = self.carries.map_or(most, |carries| carries.value.abs().min(most));
        if whole > 0.0 { (carried / whole).min(1.0) } else { 0.0 }
    }
}

/// Why a quantity cannot carry more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccountLimit {
    /// it is a time, and grew by no more
    OwnTime,
    /// so many of it take no longer
    MostEach,
    /// each of it took no longer on the baseline, whatever else took time there
    PriceBefore,
    /// where its time would show, no more is there
    Places,
}

/// Something that differs, and is no suspect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RuledOut {
    /// What people call the cause.
    pub cause: String,
    /// The quantity.
    pub series: String,
    /// Its mean on the baseline.
    pub before: f64,
    /// Its mean on the candidate.
    pub after: f64,
    /// p adjusted for all quantities.
    pub adjusted_p: f64,
    /// Why it is none.
    pub reason: RuledOutReason,
}

/// Why something that differs is no suspect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuledOutReason {
    /// it can carry less than a tenth of the change
    TooSmall {
        /// the most that it can carry, in the change's unit
        at_most: f64,
    },
    /// more of it goes with the opposite of the change
    OtherWay,
}

/// How many quantities were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuantityCounts {
    /// quantities of which both sides have values
    pub quantities: usize,
    /// those that never vary
    pub constant: usize,
    /// families that were tested: quantities that say the same are one
    pub families: usize,
    /// families beyond the most that are tested
    pub beyond: usize,
    /// families that differ beyond chance
    pub differing: usize,
}

/// Something that was not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// one side has it, and the other does not
    OneSided {
        /// monitors or quantities
        names: Vec<String>,
    },
    /// more than a fifth of the units lack it
    Incomplete {
        /// quantities
        names: Vec<String>,
    },
    /// a monitor's table of a run could not be read
    Unreadable {
        /// the run's id
        run: String,
        /// the monitor
        monitor: String,
        /// why
        reason: String,
    },
    /// iterations of which a monitor has no numbers, or counters that went backwards
    Gap {
        /// the run's id
        run: String,
        /// the monitor
        monitor: String,
        /// iterations without any number
        iterations: usize,
        /// counters that went backwards in some
        went_back: usize,
    },
    /// so few units that nothing can be told from chance
    TooFewUnits {
        /// how many a side are needed
        needed: usize,
    },
}

/// What to record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordingAdvice {
    /// What it would tell.
    pub about: String,
    /// A command.
    pub command: String,
}

/// What the test of a suspect has shown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SuspectTest {
    /// What people call the cause.
    pub cause: String,
    /// The suspect's quantity.
    pub series: String,
    /// The setting that was varied beside the sides.
    pub factor: String,
    /// The run that tested it.
    pub run: String,
    /// The change between the sides under each level, in the order of the levels.
    pub levels: Vec<TestedLevel>,
    /// The share of the change, where it is largest, that is gone where it is smallest: 1 is all of it. Absent where a level has
    /// no interval, or the largest change may be none.
    pub share: Option<IntervalValue>,
    /// What that amounts to.
    pub word: SuspectTestWord,
}

/// The change under one level.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TestedLevel {
    /// The level.
    pub level: String,
    /// The change of the metric; absent where a side has no value.
    pub change: Option<MetricChange>,
}

/// What a test says of its suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SuspectTestWord {
    /// most of the change goes with it: the interval of the share is above a half
    Cause,
    /// most of the change stays without it: the interval is below a half
    NoCause,
    /// the interval holds a half, or there is none
    Undecided,
}
