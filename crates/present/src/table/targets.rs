//! Targets in step, for people: how punctual they were, how evenly they were served, and what each of them measured.

use std::collections::BTreeMap;

use perflab_analyze::together::{self, IntervalEstimate};
use perflab_model::{Case, RunRecord, Sample};

use super::{Grid, GridCell, GridColumn};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// More targets than this have no row of their own.
const LISTED: usize = 8;

/// How far apart the targets of a run began, and how well that is known; `None` without two targets in step.
#[must_use]
pub fn synchronisation_text(record: &RunRecord) -> Option<String> {
    let skew = together::start_skew(record)?;
    let known = together::clock_bounds(record).map_or_else(String::new, |(middle, largest)| {
        format!("; at each release their clocks were known to {middle} (median), to {largest} at the worst")
    });
    Some(format!(
        "{} targets in step: they began within {} of one another (median of {} iterations), within {} at the most{known}; \
         a beginning is the start of the process, the work's own comes later",
        record.manifest.targets.len(),
        skew.median,
        skew.iterations,
        skew.largest,
    ))
}

/// How evenly the targets of each case were served in its primary metrics, a line each.
#[must_use]
pub fn fairness_lines(record: &RunRecord) -> Vec<String> {
    if record.manifest.targets.len() < 2 {
        return Vec::new();
    }
    let all = together::target_fairness(record, CONFIDENCE).into_iter();
    let line = |one: together::TargetFairness| {
        format!(
            "{}, {}: largest of {} targets over smallest {}, Jain's index {} (medians of {} iterations)",
            one.case,
            one.metric,
            one.targets,
            estimate_and_interval_text(&one.spread),
            estimate_and_interval_text(&one.jain),
            one.iterations,
        )
    };
    all.map(line).collect()
}

/// The same as a table, with each target's median.
#[must_use]
pub fn fairness_grid(record: &RunRecord) -> Grid {
    let left = ["case", "metric"].map(GridColumn::left);
    let right = ["targets", "n", "largest/smallest", "Jain's index", "median of each"].map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right));
    for one in together::target_fairness(record, CONFIDENCE) {
        let medians: Vec<String> = one.medians.iter().map(|value| format!("{value:.4}")).collect();
        grid.add_row([
            one.case.as_str().into(),
            one.metric.as_str().into(),
            (one.targets as u64).into(),
            (one.iterations as u64).into(),
            estimate_and_interval_text(&one.spread).as_str().into(),
            estimate_and_interval_text(&one.jain).as_str().into(),
            medians.join(" ").as_str().into(),
        ]);
    }
    grid
}

fn estimate_and_interval_text(estimate: &IntervalEstimate) -> String {
    match &estimate.interval {
        Some(interval) => format!("{:.3} [{:.3}, {:.3}]", estimate.value, interval.low, interval.high),
        None => format!("{:.3}", estimate.value),
    }
}

/// The median of each case and metric. Where several targets were at work a value is the mean over them, as in a comparison, and
/// each has a row of its own for the primary metrics.
#[must_use]
pub fn median_grid(record: &RunRecord) -> Grid {
    let names: Vec<&str> = record.manifest.targets.iter().map(|target| target.name.as_str()).collect();
    let by_target = record.samples.iter().any(|sample| sample.target.is_some());
    let target = by_target.then(|| GridColumn::left("target"));
    let left = ["case", "metric"].map(GridColumn::left).into_iter().chain(target);
    let mut grid = Grid::new(left.chain(["median", "min", "max", "n"].map(GridColumn::right)));
    let whole = together::average_over_targets(&record.samples);
    // What is all of them comes first, then each.
    let mut groups: BTreeMap<(u32, bool, &str, Option<u32>), Vec<&Sample>> = BTreeMap::new();
    let each = record.samples.iter().filter(|one| one.target.is_some() && one.primary);
    let each = each.filter(|_| (2..=LISTED).contains(&names.len()));
    for sample in whole.iter().chain(each) {
        let key = (sample.case, !sample.primary, sample.metric.as_str(), sample.target);
        groups.entry(key).or_default().push(sample);
    }
    for ((case, _, metric, target), samples) in groups {
        let mut values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        values.sort_by(f64::total_cmp);
        let unit = samples.first().map(|sample| sample.unit.0.clone()).unwrap_or_default();
        let show = |value: Option<f64>| {
            value.map_or_else(GridCell::missing, |value| GridCell::quantity(value, &unit))
        };
        let label = record.manifest.plan.case(case).map(Case::label).unwrap_or_default();
        let who = match target {
            Some(target) => names.get(target as usize).copied().unwrap_or_default(),
            None => "mean of all",
        };
        let front = [GridCell::from(label.as_str()), metric.into()].into_iter();
        let back = [
            show(together::median(&values).ok()),
            show(values.first().copied()),
            show(values.last().copied()),
            (values.len() as u64).into(),
        ];
        grid.add_row(front.chain(by_target.then(|| who.into())).chain(back));
    }
    grid
}
