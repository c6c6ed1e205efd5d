//! Owns a metric over the runs of an archive: one value a run, the steps between them, and whether the newest run falls out
//! of its history. It refuses to blame: a step lies between two runs, and whoever wants to know measures those again.
//!
//! Steps are found by E-divisive (energy distance, permutations with a seed) on the logarithms where all values are above
//! zero. Hunter's t-test is not used: at its usual level of 0.001 it alarms on 1 to 3.5 % of flat series, since its p-value
//! belongs to a place chosen beforehand (`crates/stats/tests/simulation_history.rs`).

mod guard;
mod points;
mod steps;
#[cfg(test)]
mod tests;

use perflab_model::{Direction, RunRecord, Unit};
use serde::Serialize;

use crate::AnalysisOptions;
use crate::AnalyzeError;
use crate::comparison::{ComparedRun, MetricChange, Verdict};

pub use guard::{AlarmReason, FEWEST_HISTORY_RUNS, GuardAlarm, GuardReport, GuardRow, check_newest_run};
pub use points::HistoryPoint;

/// Version of the shape of [`MetricHistories`] as JSON.
pub const HISTORY_FORMAT: u32 = 1;
/// Fewest runs between two steps, so at least twice as many for a step to be found at all.
pub const SHORTEST_SEGMENT: usize = 3;

/// Metrics over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricHistories {
    /// [`HISTORY_FORMAT`].
    pub format: u32,
    /// The writer: `perflab 0.1.0`.
    pub writer: String,
    /// The runs, the oldest first.
    pub runs: Vec<ComparedRun>,
    /// One series a case, metric and unit.
    pub series: Vec<MetricHistory>,
    /// How the numbers came about, and what was left out.
    pub notes: Vec<String>,
}

/// One metric of one case over the runs that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricHistory {
    /// The case, with the levels of its factors.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// The relative change that matters.
    pub margin: f64,
    /// Where the case was edited since the series of this name before it: what differs, as `key: before -> after`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
    /// One value a run, the oldest first.
    pub points: Vec<HistoryPoint>,
    /// The steps, the oldest first.
    pub steps: Vec<HistoryChangePoint>,
}

/// A step between two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryChangePoint {
    /// First point after the step, index into [`MetricHistory::points`].
    pub at: usize,
    /// The last run before it.
    pub last_good: String,
    /// The first run after it.
    pub first_bad: String,
    /// Runs of the archive between the two that do not have the metric: the step may lie at any of them.
    pub between: Vec<String>,
    /// From the segment before to the segment after.
    pub change: MetricChange,
    /// What it means: *same* where it is smaller than the margin, *unclear* where the metric has no direction.
    pub verdict: Verdict,
    /// How surprising it is, were there none; no smaller than one over the number of permutations.
    pub p: f64,
    /// Other series that have a step at the same run.
    pub together: usize,
    /// Facts that differ between the two runs, the likely causes first, as `key: before -> after`.
    pub facts: Vec<String>,
}

/// The history of the metrics chosen in the options.
///
/// # Errors
/// No run; no sample of what was chosen; options out of range.
pub fn metric_histories(
    runs: &[RunRecord],
    options: &AnalysisOptions,
) -> Result<MetricHistories, AnalyzeError> {
    options.validate()?;
    let mut ordered: Vec<&RunRecord> = runs.iter().collect();
    ordered.sort_by_key(|run| (run.manifest.anchor.realtime, run.manifest.id.clone()));
    if ordered.is_empty() {
        return Err(AnalyzeError::NoRun { side: "the history".into() });
    }
    let mut series = points::collect_series(&ordered, options)?;
    for one in &mut series {
        one.steps = steps::find_change_points(one, &ordered, options)?;
    }
    steps::count_simultaneous(&mut series);
    Ok(MetricHistories {
        format: HISTORY_FORMAT,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        runs: ordered.iter().map(|run| points::compared_run(run)).collect(),
        notes: describe_history_methods(&series, &ordered),
        series,
    })
}

fn describe_history_methods(series: &[MetricHistory], runs: &[&RunRecord]) -> Vec<String> {
    let mut notes = vec![
        "one value a run: the median of its boots' medians; steps: E-divisive, 199 permutations, at 5 % a series; the change \
         and its interval: Hodges and Lehmann's, from the runs between the steps on either side"
            .to_owned(),
    ];
    let mut named = std::collections::BTreeSet::new();
    for one in series.iter().filter(|one| !one.edited.is_empty()) {
        let run = one.points.first().and_then(|point| runs.get(point.run));
        let id = run.map_or("", |run| run.manifest.id.as_str());
        if named.insert((one.subject.clone(), id)) {
            notes.push(format!(
                "{} was edited at run {id} and is a series of its own since: {}",
                one.subject,
                one.edited.join("; ")
            ));
        }
    }
    let short = series.iter().filter(|one| one.points.len() < 2 * SHORTEST_SEGMENT).count();
    if short > 0 {
        notes.push(format!(
            "{short} series have fewer than {} runs: too few to look for steps",
            2 * SHORTEST_SEGMENT
        ));
    }
    notes
}
