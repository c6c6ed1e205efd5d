//! Owns the steps of a series: where, how large, between which runs, and with what else. It refuses series that are too
//! short for one.

use std::collections::HashMap;

use perflab_model::{Direction, RunRecord};
use perflab_stats::{EDivisive, PairwiseShifts, StatsError};

use super::{HistoryChangePoint, MetricHistory, SHORTEST_SEGMENT};
use crate::comparison::{ChangeInterval, ChangeScale, MetricChange, Verdict};
use crate::{AnalysisOptions, AnalyzeError, environment};

/// Longer histories are searched from here back only: the search takes time with the square.
pub(super) const LONGEST_HISTORY: usize = 1_000;

/// The steps of one series.
pub(super) fn find_change_points(
    series: &MetricHistory,
    runs: &[&RunRecord],
    options: &AnalysisOptions,
) -> Result<Vec<HistoryChangePoint>, AnalyzeError> {
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let error = |source| AnalyzeError::Statistic {
        subject: series.subject.clone(),
        metric: series.metric.clone(),
        source,
    };
    let found = change_point_indexes(&values).map_err(error)?;
    let ends: Vec<usize> = found.iter().map(|(at, _)| *at).chain([values.len()]).collect();
    let mut steps = Vec::new();
    let mut start = 0;
    for ((at, p), end) in found.iter().zip(ends.iter().skip(1)) {
        let (before, after) =
            (values.get(start..*at).unwrap_or_default(), values.get(*at..*end).unwrap_or_default());
        let change = estimate_step_change(before, after, options).map_err(error)?;
        steps.extend(describe_change_point(series, runs, *at, *p, change));
        start = *at;
    }
    Ok(steps)
}

/// Index and p of each step, on logarithms where there are such.
pub(super) fn change_point_indexes(values: &[f64]) -> Result<Vec<(usize, f64)>, StatsError> {
    let skipped = values.len().saturating_sub(LONGEST_HISTORY);
    let recent = values.get(skipped..).unwrap_or_default();
    if recent.len() < 2 * SHORTEST_SEGMENT {
        return Ok(Vec::new());
    }
    let positive = recent.iter().all(|value| *value > 0.0);
    let scaled: Vec<f64> =
        if positive { recent.iter().map(|value| value.ln()).collect() } else { recent.to_vec() };
    let found = EDivisive { shortest: SHORTEST_SEGMENT, ..EDivisive::default() }.find(&scaled)?;
    Ok(found.into_iter().map(|step| (step.index + skipped, step.p)).collect())
}

/// From one segment to the next.
pub(super) fn estimate_step_change(
    before: &[f64],
    after: &[f64],
    options: &AnalysisOptions,
) -> Result<MetricChange, StatsError> {
    let positive = before.iter().chain(after).all(|value| *value > 0.0);
    let shifts = if positive {
        let logarithms = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        PairwiseShifts::absolute(&logarithms(before), &logarithms(after))?
    } else {
        PairwiseShifts::absolute(before, after)?
    };
    let on = |shift: f64| if positive { shift.exp_m1() } else { shift };
    let (wide, narrow) =
        (shifts.estimate(options.confidence)?, shifts.estimate(options.narrow_confidence())?);
    let interval = |i: perflab_stats::ConfidenceInterval| ChangeInterval {
        low: on(i.low),
        high: on(i.high),
        level: i.level,
    };
    Ok(MetricChange {
        scale: if positive { ChangeScale::Ratio } else { ChangeScale::Absolute },
        value: on(wide.value),
        interval: wide.interval.map(interval),
        narrow: narrow.interval.map(interval),
    })
}

fn describe_change_point(
    series: &MetricHistory,
    runs: &[&RunRecord],
    at: usize,
    p: f64,
    change: MetricChange,
) -> Option<HistoryChangePoint> {
    let (last, first) = (series.points.get(at.checked_sub(1)?)?, series.points.get(at)?);
    let (good, bad) = (runs.get(last.run)?, runs.get(first.run)?);
    let id = |run: &&RunRecord| run.manifest.id.clone();
    let between = runs.get(last.run + 1..first.run).unwrap_or_default();
    let differences = environment::facts_between(good, "after", bad);
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let facts = differences.iter().filter(|fact| fact.important);
    Some(HistoryChangePoint {
        at,
        last_good: id(good),
        first_bad: id(bad),
        between: between.iter().map(id).collect(),
        verdict: step_verdict(change, last.value, series),
        change,
        p,
        together: 0,
        facts: facts
            .map(|fact| format!("{}: {} -> {}", fact.key, value(&fact.baseline), value(&fact.candidate)))
            .collect(),
    })
}

/// What a change means for a series.
pub(super) fn step_verdict(change: MetricChange, before: f64, series: &MetricHistory) -> Verdict {
    let margin =
        if change.scale == ChangeScale::Ratio { series.margin } else { series.margin * before.abs() };
    if change.value.abs() <= margin {
        return Verdict::Same;
    }
    match (series.direction, change.value > 0.0) {
        (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Better,
        (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Worse,
        (Direction::Neither, _) => Verdict::Unclear,
    }
}

/// Tells every step how many other series moved at the same run.
pub(super) fn count_simultaneous(series: &mut [MetricHistory]) {
    let mut moved: HashMap<String, usize> = HashMap::new();
    for step in series.iter().flat_map(|one| &one.steps) {
        *moved.entry(step.first_bad.clone()).or_default() += 1;
    }
    for step in series.iter_mut().flat_map(|one| &mut one.steps) {
        step.together = moved.get(&step.first_bad).copied().unwrap_or(1).saturating_sub(1);
    }
}
