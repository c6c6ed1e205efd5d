//! What to be careful about, as values, and the letters that mark rows.
//!
//! Every finding is one value; whoever shows them has the texts, and may fold those of one kind. A row's letter has a
//! footnote, the details are in the diagnostic.

use perflab_model::RunStatus;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::change::RepetitionLevel;

/// Where in a comparison a finding stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiagnosticLocation {
    /// Name of the side.
    pub side: String,
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ComparisonDiagnostic {
    /// A run did not reach its end.
    NotFinished {
        /// Name of the side.
        side: String,
        /// The run's id.
        run: String,
        /// How it stands.
        status: RunStatus,
    },
    /// Runs of one side were imported from the very same files or values, and one of them counts.
    CountedOnce {
        /// Name of the side.
        side: String,
        /// The id of the run that counts.
        run: String,
        /// The ids of the others.
        left_out: Vec<String>,
    },
    /// A run of either side was imported from the very same files or values.
    SameContent {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
        /// The candidate's runs of this kind, by id.
        runs: Vec<String>,
    },
    /// Iterations gave no value.
    FailedIterations {
        /// Name of the side.
        side: String,
        /// The case.
        subject: String,
        /// How many.
        failed: usize,
        /// Why the first one did.
        reason: String,
    },
    /// Rows of files that a run was imported from could not be used.
    UnusableRows {
        /// Name of the side.
        side: String,
        /// The run's id.
        run: String,
        /// The files, each with its counts of rows; of many files one line.
        files: Vec<String>,
    },
    /// Values that are not numbers were left out.
    NotNumbers {
        /// Where.
        place: DiagnosticLocation,
        /// How many.
        values: usize,
    },
    /// The first values of a run are worse than its steady state.
    WarmUp {
        /// Where.
        place: DiagnosticLocation,
        /// The run's id.
        run: String,
        /// How many values are warm-up.
        values: usize,
        /// Of so many of that boot.
        of: usize,
        /// Their mean.
        before: f64,
        /// The mean of the others.
        steady: f64,
    },
    /// Values are assumed to be the same each time, and are not.
    NotExact {
        /// Where.
        place: DiagnosticLocation,
        /// The smallest.
        least: f64,
        /// The largest.
        most: f64,
    },
    /// A case or metric was measured on one side only.
    OneSided {
        /// The side that has it.
        present: String,
        /// The side that has not.
        absent: String,
        /// The case.
        subject: String,
        /// The metrics.
        metrics: Vec<String>,
    },
    /// A case was planned, and gave no value on any side.
    NoValues {
        /// The case.
        subject: String,
    },
    /// One boot on a side, and another one on the other.
    OneBoot {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
    },
    /// Of some of several runs nobody knows whether they are of one boot.
    UnknownBoot {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
    },
    /// Too few values for an interval.
    TooFew {
        /// The candidate.
        place: DiagnosticLocation,
        /// Baseline values (or pairs) that were compared.
        baseline: usize,
        /// Candidate values (or pairs) that were compared.
        candidate: usize,
        /// What was compared.
        level: RepetitionLevel,
    },
    /// So many rows that none could be significant alone.
    TooManyRows {
        /// Rows that are judged together.
        rows: usize,
        /// Repetitions of those that have most.
        repetitions: usize,
        /// The fewest with which a lone change could be detected.
        needed: usize,
        /// What is repeated: blocks, iterations or boots.
        noun: String,
    },
    /// A change could not be computed.
    NotComputed {
        /// The candidate.
        place: DiagnosticLocation,
        /// Why.
        reason: String,
    },
    /// Runs contradict each other in what a metric is, and there is no verdict.
    NotJudged {
        /// The candidate.
        place: DiagnosticLocation,
        /// What differs.
        reason: String,
    },
    /// The sides were measured one after the other.
    NotInterleaved {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
    },
    /// A run in the order in which its cases are written.
    SequentialOrder {
        /// The run's id.
        run: String,
    },
    /// The values drift over a run, or from run to run in one boot.
    Drift {
        /// Where.
        place: DiagnosticLocation,
        /// Spearman's correlation with time.
        rho: f64,
        /// How surprising it is.
        p: f64,
    },
    /// The values fall into two groups.
    Modes {
        /// Where.
        place: DiagnosticLocation,
        /// Mean of the lower group.
        low: f64,
        /// Mean of the upper group.
        high: f64,
        /// Share of the upper group.
        high_share: f64,
    },
    /// Values far from the rest.
    Outliers {
        /// Where.
        place: DiagnosticLocation,
        /// Which iterations.
        iterations: Vec<u32>,
    },
    /// The environment differs.
    DifferentEnvironment {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
        /// Number of facts that differ.
        facts: usize,
        /// Of them, those of a kind that often changes results: rows are flagged for these only.
        important: usize,
        /// All of those, likely causes first, as `key: ours -> theirs`.
        first: Vec<String>,
    },
    /// Cases of one name that did different things.
    DifferentCase {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
        /// The case.
        subject: String,
        /// What, as `key: ours -> theirs`.
        differences: Vec<String>,
        /// Whether the verdict was withheld for it.
        withheld: bool,
    },
    /// The same case was run in another way.
    DifferentStudy {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
        /// What, as `key: ours -> theirs`.
        differences: Vec<String>,
    },
    /// A change is no larger than what the machine shows without one.
    WithinNoise {
        /// Where.
        place: DiagnosticLocation,
        /// The relative change.
        change: f64,
        /// The largest relative change of the noise card.
        reach: f64,
    },
    /// The noise card may not hold here.
    OldNoiseCard {
        /// Why.
        #[serde(skip)]
        doubts: Vec<NoiseCardDoubt>,
    },
    /// Somebody else changed settings while a run had set them.
    OverwrittenSettings {
        /// Name of the side.
        side: String,
        /// The run's id.
        run: String,
        /// The settings, each with in how many iterations.
        settings: Vec<String>,
    },
    /// A monitor has gaps.
    MonitorGaps {
        /// Name of the side.
        side: String,
        /// The run's id.
        run: String,
        /// The monitors, each with the reason of its first gap.
        monitors: Vec<String>,
    },
}

impl ComparisonDiagnostic {
    /// The kind, as a name for programs; findings of one kind share their advice.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            ComparisonDiagnostic::NotFinished { .. } => "not-finished",
            ComparisonDiagnostic::CountedOnce { .. } => "counted-once",
            ComparisonDiagnostic::SameContent { .. } => "same-content",
            ComparisonDiagnostic::FailedIterations { .. } => "failed-iterations",
            ComparisonDiagnostic::UnusableRows { .. } => "unusable-rows",
            ComparisonDiagnostic::NotNumbers { .. } => "not-numbers",
            ComparisonDiagnostic::NotExact { .. } => "not-exact",
            ComparisonDiagnostic::WarmUp { .. } => "warm-up",
            ComparisonDiagnostic::OneSided { .. } => "one-sided",
            ComparisonDiagnostic::NoValues { .. } => "no-values",
            ComparisonDiagnostic::OneBoot { .. } => "one-boot",
            ComparisonDiagnostic::UnknownBoot { .. } => "unknown-boot",
            ComparisonDiagnostic::TooFew { level: RepetitionLevel::Machine, .. } => "too-few-machines",
            ComparisonDiagnostic::TooFew { level: RepetitionLevel::Boot, .. } => "too-few-boots",
            ComparisonDiagnostic::TooManyRows { .. } => "too-many-rows",
            ComparisonDiagnostic::NotComputed { .. } => "not-computed",
            ComparisonDiagnostic::NotJudged { .. } => "not-judged",
            ComparisonDiagnostic::TooFew { level: RepetitionLevel::Run, .. } => "too-few-runs",
            ComparisonDiagnostic::TooFew { level: RepetitionLevel::Layout, .. } => "too-few-layouts",
            ComparisonDiagnostic::TooFew { .. } => "too-few",
            ComparisonDiagnostic::NotInterleaved { .. } => "not-interleaved",
            ComparisonDiagnostic::SequentialOrder { .. } => "sequential-order",
            ComparisonDiagnostic::Drift { .. } => "drift",
            ComparisonDiagnostic::Modes { .. } => "modes",
            ComparisonDiagnostic::Outliers { .. } => "outliers",
            ComparisonDiagnostic::DifferentEnvironment { .. } => "different-environment",
            ComparisonDiagnostic::DifferentCase { .. } => "different-case",
            ComparisonDiagnostic::DifferentStudy { .. } => "different-study",
            ComparisonDiagnostic::WithinNoise { .. } => "within-noise",
            ComparisonDiagnostic::OldNoiseCard { .. } => "old-noise-card",
            ComparisonDiagnostic::OverwrittenSettings { .. } => "overwritten-settings",
            ComparisonDiagnostic::MonitorGaps { .. } => "monitor-gaps",
        }
    }

    /// The flag that marks the rows concerned, where there is one.
    #[must_use]
    pub fn flag(&self) -> Option<RowFlag> {
        Some(match self {
            ComparisonDiagnostic::FailedIterations { .. } | ComparisonDiagnostic::NotNumbers { .. } => {
                RowFlag::Failed
            }
            ComparisonDiagnostic::OneSided { .. } => RowFlag::OneSided,
            ComparisonDiagnostic::DifferentCase { .. } => RowFlag::OtherCase,
            ComparisonDiagnostic::OneBoot { .. } => RowFlag::OneBoot,
            ComparisonDiagnostic::UnknownBoot { .. } => RowFlag::UnknownBoot,
            ComparisonDiagnostic::TooFew { .. } | ComparisonDiagnostic::NotComputed { .. } => RowFlag::Few,
            ComparisonDiagnostic::TooManyRows { .. } | ComparisonDiagnostic::NotJudged { .. } => return None,
            ComparisonDiagnostic::NotInterleaved { .. } | ComparisonDiagnostic::SequentialOrder { .. } => {
                RowFlag::Sequential
            }
            ComparisonDiagnostic::Drift { .. } => RowFlag::Drift,
            ComparisonDiagnostic::Modes { .. } => RowFlag::Modes,
            ComparisonDiagnostic::Outliers { .. } => RowFlag::Outliers,
            ComparisonDiagnostic::DifferentEnvironment { .. } => RowFlag::Environment,
            ComparisonDiagnostic::OverwrittenSettings { .. } => RowFlag::Environment,
            ComparisonDiagnostic::MonitorGaps { .. } => RowFlag::Gaps,
            ComparisonDiagnostic::WithinNoise { .. } => RowFlag::Noise,
            ComparisonDiagnostic::OldNoiseCard { .. }
            | ComparisonDiagnostic::WarmUp { .. }
            | ComparisonDiagnostic::NotExact { .. } => return None,
            ComparisonDiagnostic::NotFinished { .. }
            | ComparisonDiagnostic::CountedOnce { .. }
            | ComparisonDiagnostic::SameContent { .. }
            | ComparisonDiagnostic::NoValues { .. }
            | ComparisonDiagnostic::UnusableRows { .. }
            | ComparisonDiagnostic::DifferentStudy { .. } => {
                return None;
            }
        })
    }
}

/// Why a noise card may not hold for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoiseCardDoubt {
    /// It is old.
    Age {
        /// Days since it was made.
        days: u64,
    },
    /// It was made under another kernel.
    Kernel {
        /// The card's.
        card: String,
        /// The run's.
        run: String,
    },
    /// It was made on another processor.
    Processor {
        /// The card's.
        card: String,
        /// The run's.
        run: String,
    },
}

/// Something to be careful about in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowFlag {
    /// clearly different, but the metric has no direction
    Changed,
    /// one side has no value
    OneSided,
    /// the sides did different things under one name
    OtherCase,
    /// one boot on a side, and another one on the other
    OneBoot,
    /// of some runs nobody knows whether they are of one boot
    UnknownBoot,
    /// too few values for an interval
    Few,
    /// the values drift over a run, or from run to run in one boot
    Drift,
    /// the values have two modes
    Modes,
    /// some values lie far from the rest
    Outliers,
    /// iterations failed
    Failed,
    /// the sides were not interleaved
    Sequential,
    /// facts differ that often change results
    Environment,
    /// a monitor has gaps
    Gaps,
    /// no larger than what this machine shows where nothing changed
    Noise,
    /// the change is that of pairs, and the medians alone would show another
    Paired,
}

impl RowFlag {
    /// The letter in the table.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            RowFlag::Changed => 'n',
            RowFlag::OneSided => '1',
            RowFlag::OtherCase => 'w',
            RowFlag::OneBoot => 'h',
            RowFlag::UnknownBoot => 'u',
            RowFlag::Few => 'f',
            RowFlag::Drift => 'd',
            RowFlag::Modes => 'm',
            RowFlag::Outliers => 'o',
            RowFlag::Failed => 'x',
            RowFlag::Sequential => 's',
            RowFlag::Environment => 'e',
            RowFlag::Gaps => 'c',
            RowFlag::Noise => 'a',
            RowFlag::Paired => 'p',
        }
    }
}
