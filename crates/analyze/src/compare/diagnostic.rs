//! What to be careful about, as values with advice, and the letters that mark rows.
//!
//! Every finding is one value; whoever shows them may fold those of one kind. A row's letter has a footnote, the
//! details are in the diagnostic.

use perflab_model::RunStatus;
use serde::{Serialize, Serializer};

use crate::compare::change::RepetitionLevel;

/// Where in a comparison a finding stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiagnosticLocation {
    /// Name of the side.
    pub side: String,
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
}

impl std::fmt::Display for DiagnosticLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} ({})", self.subject, self.metric, self.side)
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
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
    /// Values that are not numbers were left out.
    NotNumbers {
        /// Where.
        place: DiagnosticLocation,
        /// How many.
        values: usize,
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
    /// The values drift over the run.
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
        doubts: Vec<String>,
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
    /// The kind, as in JSON; findings of one kind share their advice.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind_texts().0
    }

    /// What to do about it now.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        self.kind_texts().1
    }

    /// The headline of all findings of this kind.
    #[must_use]
    pub fn headline(&self) -> &'static str {
        self.kind_texts().2
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
            ComparisonDiagnostic::TooManyRows { .. } => return None,
            ComparisonDiagnostic::NotInterleaved { .. } | ComparisonDiagnostic::SequentialOrder { .. } => {
                RowFlag::Sequential
            }
            ComparisonDiagnostic::Drift { .. } => RowFlag::Drift,
            ComparisonDiagnostic::Modes { .. } => RowFlag::Modes,
            ComparisonDiagnostic::Outliers { .. } => RowFlag::Outliers,
            ComparisonDiagnostic::DifferentEnvironment { .. } => RowFlag::Environment,
            ComparisonDiagnostic::MonitorGaps { .. } => RowFlag::Gaps,
            ComparisonDiagnostic::WithinNoise { .. } => RowFlag::Noise,
            ComparisonDiagnostic::OldNoiseCard { .. } => return None,
            ComparisonDiagnostic::NotFinished { .. }
            | ComparisonDiagnostic::NoValues { .. }
            | ComparisonDiagnostic::DifferentStudy { .. } => {
                return None;
            }
        })
    }

    /// Kind, advice and headline: one line a kind, so that a new one is written in one place.
    #[rustfmt::skip]
    fn kind_texts(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            ComparisonDiagnostic::NotFinished { .. } => ("not-finished", "compare it for a first impression only, and run the study again", "runs that did not reach their end"),
            ComparisonDiagnostic::FailedIterations { .. } => ("failed-iterations", "read their output with `perflab show RUN`: values that remain may be a biased choice", "iterations failed"),
            ComparisonDiagnostic::NotNumbers { .. } => ("not-numbers", "check how the workload's output becomes metrics (`perflab workload try`)", "values that are not numbers were left out"),
            ComparisonDiagnostic::OneSided { .. } => ("one-sided", "run the missing side, or leave the case out with a filter", "measured on one side only, so not compared"),
            ComparisonDiagnostic::NoValues { .. } => ("no-values", "look at the failing iterations with `perflab show RUN`", "planned, but without a single value"),
            ComparisonDiagnostic::OneBoot { .. } => ("one-boot", "repeat both sides over several boots (5 or more each): the luck of one boot looks like a change", "different boots, and too few of them for a verdict"),
            ComparisonDiagnostic::UnknownBoot { .. } => ("unknown-boot", "if each run is of a boot of its own, say so with --boots-differ; else the luck of a boot may look like a change", "iterations only: whether these imports are of one boot is not known"),
            ComparisonDiagnostic::TooFew { level: RepetitionLevel::Boot, .. } => ("too-few-boots", "repeat over more boots, 5 or more a side: iterations within a boot do not replace them", "too few boots for an interval"),
            ComparisonDiagnostic::TooManyRows { .. } => ("too-many-rows", "repeat it so often, or choose with --metric the rows that the question is about", "too few repetitions for so many rows"),
            ComparisonDiagnostic::NotComputed { .. } => ("not-computed", "look at the values in `--format json`: they are too large or too many for the statistic", "changes that could not be computed"),
            ComparisonDiagnostic::TooFew { .. } => ("too-few", "raise `iterations` in the study to 10 or more", "too few values for an interval"),
            ComparisonDiagnostic::NotInterleaved { .. } => ("not-interleaved", "make the difference a factor of one study, so that perflab interleaves its levels: drift of the machine looks like a change", "one side was measured after the other"),
            ComparisonDiagnostic::SequentialOrder { .. } => ("sequential-order", "remove `order = \"sequential\"` from the study, unless the order is what you study: drift looks like a change", "iterations were not in random order"),
            ComparisonDiagnostic::Drift { .. } => ("drift", "add warm-up iterations, let the machine cool, or look for something that fills up; the report shows every iteration in time order", "values drift over the run"),
            ComparisonDiagnostic::Modes { .. } => ("modes", "look at the dots in the report: one middle does not describe two groups; find what decides between them (placement, frequency, a background task)", "values fall into two groups"),
            ComparisonDiagnostic::Outliers { .. } => ("outliers", "they are kept; the report shows what the monitors saw in those iterations", "some values lie far from the rest"),
            ComparisonDiagnostic::DifferentEnvironment { .. } => ("different-environment", "make sure that what differs is what you mean to compare", "the environment differs"),
            ComparisonDiagnostic::DifferentCase { withheld: true, .. } => ("different-case", "compare runs of the same case; --across judges them although they differ, for whoever changed just that", "another benchmark under the same name: no verdict"),
            ComparisonDiagnostic::DifferentCase { withheld: false, .. } => ("different-case", "make sure that what differs is what you mean to compare", "another benchmark under the same name, judged because of --across"),
            ComparisonDiagnostic::DifferentStudy { .. } => ("different-study", "run both sides with the same study, or make the difference a factor", "the sides were run in different ways"),
            ComparisonDiagnostic::WithinNoise { .. } => ("within-noise", "repeat it in a study that interleaves both sides, or over more boots", "changes no larger than what this machine shows where nothing changed"),
            ComparisonDiagnostic::OldNoiseCard { .. } => ("old-noise-card", "measure the machine's noise again: `perflab noise`", "the noise card may not hold"),
            ComparisonDiagnostic::MonitorGaps { .. } => ("monitor-gaps", "the comparison stands; the timelines of these monitors have holes", "monitors have gaps"),
        }
    }

    /// What was found, in one line without the headline.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            ComparisonDiagnostic::NotFinished { side, run, status } => {
                format!("{side}: run {run} is {status}")
            }
            ComparisonDiagnostic::FailedIterations { side, subject, failed, reason } => {
                format!("{subject} ({side}): {failed}, the first: {reason}")
            }
            ComparisonDiagnostic::NotNumbers { place, values } => format!("{place}: {values}"),
            ComparisonDiagnostic::OneSided { present, absent, subject, metrics } => {
                format!("{subject}: {} in {present}, not in {absent}", metrics.join(", "))
            }
            ComparisonDiagnostic::NoValues { subject } => subject.clone(),
            ComparisonDiagnostic::OneBoot { baseline, candidate }
            | ComparisonDiagnostic::UnknownBoot { baseline, candidate }
            | ComparisonDiagnostic::NotInterleaved { baseline, candidate } => {
                format!("{baseline} and {candidate}")
            }
            ComparisonDiagnostic::TooFew { place, baseline, candidate, level } => {
                let noun = if *level == RepetitionLevel::Boot { "boots" } else { "iterations" };
                format!("{place}: {baseline} against {candidate} {noun}")
            }
            ComparisonDiagnostic::TooManyRows { rows, repetitions, needed, noun } => {
                format!(
                    "one row that changes alone among {rows} cannot be decided with {repetitions} {noun}: with {needed} it can"
                )
            }
            ComparisonDiagnostic::NotComputed { place, reason } => format!("{place}: {reason}"),
            ComparisonDiagnostic::SequentialOrder { run } => format!("run {run}"),
            ComparisonDiagnostic::Drift { place, rho, p } => {
                format!("{place}: correlation with time {rho:.2}, p = {p:.1e}")
            }
            ComparisonDiagnostic::Modes { .. } | ComparisonDiagnostic::Outliers { .. } => self.shape_detail(),
            ComparisonDiagnostic::DifferentEnvironment { candidate, first, .. } => {
                list_items(candidate, first)
            }
            ComparisonDiagnostic::DifferentCase { candidate, subject, differences, .. } => {
                list_items(&format!("{subject} ({candidate})"), differences)
            }
            ComparisonDiagnostic::DifferentStudy { candidate, differences, .. } => {
                list_items(candidate, differences)
            }
            ComparisonDiagnostic::WithinNoise { place, change, reach } => {
                format!("{place}: {:+.2} %, of ± {:.2} %", change * 100.0, reach * 100.0)
            }
            ComparisonDiagnostic::OldNoiseCard { doubts } => doubts.join("; "),
            ComparisonDiagnostic::MonitorGaps { side, run, monitors } => {
                list_items(&format!("{side}, run {run}"), monitors)
            }
        }
    }

    /// The details about the shape of a sample.
    fn shape_detail(&self) -> String {
        match self {
            ComparisonDiagnostic::Modes { place, low, high, high_share } => {
                format!("{place}: around {low:.4} and {high:.4}, {:.0} % in the upper", high_share * 100.0)
            }
            ComparisonDiagnostic::Outliers { place, iterations } => {
                let which: Vec<String> = iterations.iter().map(ToString::to_string).collect();
                let noun = if which.len() == 1 { "iteration" } else { "iterations" };
                format!("{place}: {noun} {}", which.join(", "))
            }
            _ => String::new(),
        }
    }
}

fn list_items(head: &str, items: &[String]) -> String {
    format!("{head}: {}", items.join("; "))
}

impl std::fmt::Display for ComparisonDiagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.headline(), self.detail())
    }
}

/// A warning for readers that do not have this program's texts.
#[derive(Serialize)]
struct DiagnosticWithTexts<'a> {
    #[serde(flatten)]
    warning: &'a ComparisonDiagnostic,
    message: String,
    advice: &'static str,
}

/// Serialises warnings with their message and advice.
pub(crate) fn serialize_with_texts<S: Serializer>(
    warnings: &[ComparisonDiagnostic],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let texts = |warning| DiagnosticWithTexts {
        warning,
        message: ComparisonDiagnostic::to_string(warning),
        advice: warning.advice(),
    };
    serializer.collect_seq(warnings.iter().map(texts))
}

/// Something to be careful about in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
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
    /// the values drift over the run
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

    /// The footnote.
    #[must_use]
    pub fn footnote(self) -> &'static str {
        match self {
            RowFlag::Changed => "differs clearly, but the metric has no better or worse",
            RowFlag::OneSided => "measured on one side only",
            RowFlag::OtherCase => {
                "command, parameters or definition differ: another benchmark under the same name"
            }
            RowFlag::OneBoot => "different boots, too few of them to tell a change from the luck of a boot",
            RowFlag::UnknownBoot => {
                "iterations only: nobody knows whether these imports are of one boot (--boots-differ says no)"
            }
            RowFlag::Few => "too few values for an interval",
            RowFlag::Drift => "the values drift over the run",
            RowFlag::Modes => "the values fall into two groups",
            RowFlag::Outliers => "some values lie far from the rest (they are kept)",
            RowFlag::Failed => "some iterations failed",
            RowFlag::Sequential => "one side was measured after the other",
            RowFlag::Environment => "the environment differs",
            RowFlag::Gaps => "a monitor has gaps",
            RowFlag::Paired => {
                "the change is that of pairs (iterations of one block, or boots), not of the two medians, which scatter more"
            }
            RowFlag::Noise => {
                "no larger than what this machine shows where nothing changed (`perflab noise`)"
            }
        }
    }
}
