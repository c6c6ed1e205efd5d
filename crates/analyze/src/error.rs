//! Why there is no comparison, history or plan at all. What concerns a single row is a diagnostic.

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{nearest_name, suggest_name};
use perflab_stats::StatsError;

/// Why runs cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// A side without a run.
    #[error("`{side}` holds no run")]
    NoRun {
        /// Its name.
        side: String,
    },
    /// A comparison without anything to compare with.
    #[error("nothing to compare `{baseline}` with: name a second run, or a factor with --by")]
    NoCandidate {
        /// The lonely side.
        baseline: String,
    },
    /// No measured value on a side.
    #[error("`{side}` has no samples{}", no_samples_message(filter, known))]
    NoSamples {
        /// Its name.
        side: String,
        /// The filters in force, as text; empty without.
        filter: String,
        /// Workloads and metrics that its runs have samples of, whatever the filters.
        known: Vec<String>,
    },
    /// The two sides measured different things.
    #[error(
        "`{baseline}` and `{candidate}` have no metric in common: `{baseline}` has {}; `{candidate}` has {}",
        list_side_metrics(baseline_metrics),
        list_side_metrics(candidate_metrics)
    )]
    NoCommonMetric {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
        /// What the baseline measured.
        baseline_metrics: Vec<String>,
        /// What the candidate measured.
        candidate_metrics: Vec<String>,
    },
    /// The two sides measured the same metrics in different cases.
    #[error(
        "`{baseline}` and `{candidate}` have no case in common: `{baseline}` has {}; `{candidate}` has {}",
        baseline_cases.join(", "), candidate_cases.join(", ")
    )]
    NoCommonCase {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
        /// The first cases of the baseline.
        baseline_cases: Vec<String>,
        /// The first cases of the candidate.
        candidate_cases: Vec<String>,
    },
    /// `--by` names something that was not varied.
    #[error("no factor `{factor}` in `{side}`{}", list_known_factors(known))]
    UnknownFactor {
        /// What was asked for.
        factor: String,
        /// Where.
        side: String,
        /// What was varied.
        known: Vec<String>,
    },
    /// A condition on something that no case has.
    #[error("no case has a factor or parameter `{key}`{}", list_known_keys(known))]
    UnknownConditionKey {
        /// What was asked for.
        key: String,
        /// What cases have.
        known: Vec<String>,
    },
    /// A condition that no case meets.
    #[error("no case has `{key}={values}`: `{key}` is {}", known.join(", "))]
    UnknownConditionValue {
        /// The factor or parameter.
        key: String,
        /// What was asked for.
        values: String,
        /// What it is in the cases.
        known: Vec<String>,
    },
    /// A column that a monitor has not.
    #[error("{monitor} has no column `{column}`: {}", list_or_nearest(column, known))]
    UnknownColumn {
        /// The monitor.
        monitor: String,
        /// What was asked for.
        column: String,
        /// Its columns that are numbers.
        known: Vec<String>,
    },
    /// Rows that a monitor's table has not.
    #[error("{column} has no row {keys}: it has {}", known.join(", "))]
    UnknownRow {
        /// Monitor and column.
        column: String,
        /// What was asked for.
        keys: String,
        /// Keys of its rows.
        known: Vec<String>,
    },
    /// A line of which several rows could be meant.
    #[error("{column} has several rows: choose one of {}", known.join(", "))]
    SeveralRows {
        /// The column.
        column: String,
        /// Keys of its rows.
        known: Vec<String>,
    },
    /// A column without a value.
    #[error("{column} was not read, or has no value that can be drawn")]
    NothingRead {
        /// Monitor and column.
        column: String,
    },
    /// A parameter over which nothing can be drawn.
    #[error("`{key}` is `{value}`, which is no number")]
    NoNumber {
        /// The parameter.
        key: String,
        /// Its value in a case.
        value: String,
    },
    /// A law of scaling for what is no rate.
    #[error("a law of scaling is about rates, of which more is better: `{metric}` ({unit}) is none")]
    NoRate {
        /// The metric.
        metric: String,
        /// Its unit.
        unit: String,
    },
    /// No factor whose levels are numbers, of which iterations took turns.
    #[error(
        "`{side}` has no dose: a factor whose levels are numbers, such as 0us, 20us and 50us, in turns{}",
        list_left_out(left_out)
    )]
    NoDose {
        /// Where.
        side: String,
        /// Why factors and metrics that there are have no price.
        left_out: Vec<String>,
    },
    /// Runs whose values mean nothing together.
    #[error(
        "runs {one} and {other} differ in the {what}: a price is of one program under the same doses; name one of them"
    )]
    UnlikeRuns {
        /// Id of a run.
        one: String,
        /// That of another.
        other: String,
        /// What differs: `factor \`write\``.
        what: String,
    },
    /// Two values for one place.
    #[error("{one} and {other} are in one cell: choose with --metric, --workload and --where")]
    SeveralInCell {
        /// Case and metric.
        one: String,
        /// Those of another.
        other: String,
    },
    /// `--by` names a factor that had one level only.
    #[error("factor `{factor}` has only the level `{level}` in `{side}`: compare this run with another one")]
    OneLevel {
        /// The factor.
        factor: String,
        /// Its only level.
        level: String,
        /// Where.
        side: String,
    },
    /// `--baseline` names a level that the factor has not.
    #[error("no level `{level}` of factor `{factor}` in `{side}`: it has {}", known.join(", "))]
    UnknownLevel {
        /// The factor.
        factor: String,
        /// What was asked for.
        level: String,
        /// Where.
        side: String,
        /// The levels that it has.
        known: Vec<String>,
    },
    /// A confidence that makes no interval.
    #[error("confidence {value} is not between 0.5 and 1: write 0.95 for 95 %")]
    Confidence {
        /// What was passed.
        value: f64,
    },
    /// A margin below zero.
    #[error("margin {value} is not zero or more: write 0.02 for 2 %")]
    Margin {
        /// What was passed.
        value: f64,
    },
    /// A statistic that has no answer for values that were checked before.
    #[error("{subject}, {metric}")]
    Statistic {
        /// The case.
        subject: String,
        /// The metric.
        metric: String,
        /// Why.
        source: StatsError,
    },
}

impl Classify for AnalyzeError {
    fn class(&self) -> ErrorClass {
        match self {
            AnalyzeError::NoRun { .. }
            | AnalyzeError::NoCandidate { .. }
            | AnalyzeError::NoSamples { .. }
            | AnalyzeError::NoCommonMetric { .. }
            | AnalyzeError::NoCommonCase { .. }
            | AnalyzeError::UnknownFactor { .. }
            | AnalyzeError::UnknownConditionKey { .. }
            | AnalyzeError::UnknownColumn { .. }
            | AnalyzeError::UnknownRow { .. }
            | AnalyzeError::SeveralRows { .. }
            | AnalyzeError::NothingRead { .. }
            | AnalyzeError::NoNumber { .. }
            | AnalyzeError::NoRate { .. }
            | AnalyzeError::NoDose { .. }
            | AnalyzeError::UnlikeRuns { .. }
            | AnalyzeError::SeveralInCell { .. }
            | AnalyzeError::UnknownConditionValue { .. }
            | AnalyzeError::OneLevel { .. }
            | AnalyzeError::UnknownLevel { .. }
            | AnalyzeError::Confidence { .. }
            | AnalyzeError::Margin { .. }
            | AnalyzeError::Statistic { .. } => ErrorClass::Usage,
        }
    }
}

fn no_samples_message(filter: &str, known: &[String]) -> String {
    if filter.is_empty() || known.is_empty() {
        return ": it was stopped before its first iteration ended, nothing was recorded in its iterations, or it has none".into();
    }
    let near = nearest_name(filter, known.iter().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!(" of {filter}: it has {}{near}", known.join(", "))
}

/// Metrics of a side. Of a run every iteration of which failed there are none.
fn list_side_metrics(metrics: &[String]) -> String {
    if metrics.is_empty() { "none, since no iteration gave a value".into() } else { metrics.join(", ") }
}

/// Names that there are; of many those that a mistyped one may have meant.
fn list_or_nearest(name: &str, known: &[String]) -> String {
    match known.len() {
        0..=MOST_LISTED => format!("it has {}", known.join(", ")),
        _ => suggest_name(name, known.iter().map(String::as_str)),
    }
}

/// So many names are listed.
const MOST_LISTED: usize = 20;

fn list_left_out(reasons: &[String]) -> String {
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}

/// What cases have, in the order of how much it says.
fn list_known_keys(known: &[String]) -> String {
    if known.is_empty() { ": cases have none".into() } else { format!(": they have {}", known.join(", ")) }
}

fn list_known_factors(known: &[String]) -> String {
    if known.is_empty() { ": nothing was varied".into() } else { format!(": it has {}", known.join(", ")) }
}
