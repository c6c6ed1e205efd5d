//! Steps for the worse that somebody was told of: what is worse for a known reason is no measure for the runs after it.

use std::ops::Range;

use perflab_model::Direction;
use perflab_stats::{StatsError, prediction_interval};

use crate::compare::options::AnalysisOptions;
use crate::error::AnalyzeError;
use crate::guard::FEWEST_HISTORY_RUNS;
use crate::history::{HistoryPoint, MetricHistories, MetricHistory, change_point_indexes};

/// A step that was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldStep {
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// The first run that is worse.
    pub first_bad: String,
    /// The last run of which that was told.
    pub last_bad: String,
}

impl MetricHistories {
    /// Leaves the runs of these steps out of their series, as far as they lie outside of the level before and after; the newest run stays.
    /// Where that level rests on too few runs, all stay.
    ///
    /// # Errors
    /// Numbers that no statistic takes.
    pub fn leave_out_told_steps(
        &mut self,
        told: &[ToldStep],
        options: &AnalysisOptions,
    ) -> Result<(), AnalyzeError> {
        let newest = self.runs.len().saturating_sub(1);
        let find = |id: &String| self.runs.iter().position(|run| run.id == *id || run.parts.contains(id));
        let range = |step: &ToldStep| Some(find(&step.first_bad)?..newest.min(find(&step.last_bad)? + 1));
        let ranges: Vec<(&ToldStep, Range<usize>)> =
            told.iter().filter_map(|step| Some((step, range(step)?))).collect();
        for series in &mut self.series {
            let is_own = |step: &ToldStep| step.subject == series.subject && step.metric == series.metric;
            let own = ranges.iter().filter(|(step, _)| is_own(step)).map(|(_, range)| range.clone());
            let own: Vec<Range<usize>> = own.collect();
            if !own.is_empty() {
                let left_out = series.leave_out_worse(&own, newest, options);
                left_out.map_err(|source| series.statistic_error(source))?;
            }
        }
        Ok(())
    }
}

impl MetricHistory {
    /// Leaves out the points of these ranges of runs that are worse than the level around them.
    fn leave_out_worse(
        &mut self,
        told: &[Range<usize>],
        newest: usize,
        options: &AnalysisOptions,
    ) -> Result<(), StatsError> {
        let scaled = self.scaled_values();
        let is_told = |point: &HistoryPoint| told.iter().any(|range| range.contains(&point.run));
        let rest: Vec<HistoryPoint> = self.points.iter().filter(|point| !is_told(point)).cloned().collect();
        let rest = MetricHistory { points: rest, ..self.clone() };
        let judged = rest.points.iter().filter(|point| point.run < newest).count();
        let steps = change_point_indexes(&rest, judged)?;
        let steps = steps.iter().filter_map(|(at, _)| rest.points.get(*at));
        let accepted = self.baselines.iter().filter_map(|baseline| self.points.get(baseline.at));
        let mut levels: Vec<usize> = steps.chain(accepted).map(|point| point.run).collect();
        levels.sort_unstable();
        let mut is_left_out = vec![false; self.points.len()];
        for range in told {
            let start = levels.iter().copied().rfind(|run| *run <= range.start).unwrap_or(0);
            let end = levels.iter().copied().find(|run| *run > range.start).unwrap_or(newest);
            let values = self.points.iter().zip(&scaled);
            let level = values.filter(|(point, _)| (start..end).contains(&point.run) && !is_told(point));
            let level: Vec<f64> = level.map(|(_, value)| *value).collect();
            if level.len() < FEWEST_HISTORY_RUNS {
                continue;
            }
            let expected = prediction_interval(&level, options.confidence)?.interval;
            let is_worse = |value: f64| match (expected, self.direction) {
                (Some(expected), Direction::Higher) => value < expected.low,
                (Some(expected), Direction::Lower) => value > expected.high,
                (Some(expected), Direction::Neither) => value < expected.low || value > expected.high,
                (None, _) => false,
            };
            for ((left_out, point), value) in is_left_out.iter_mut().zip(&self.points).zip(&scaled) {
                *left_out |= range.contains(&point.run) && is_worse(*value);
            }
        }
        for baseline in &mut self.baselines {
            baseline.at -= is_left_out.iter().take(baseline.at).filter(|left_out| **left_out).count();
        }
        let mut left_out = is_left_out.into_iter();
        self.points.retain(|_| !left_out.next().unwrap_or_default());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::comparison::Verdict;
    use crate::guard::{GuardRow, check_newest_run};
    use crate::history::metric_histories;
    use fixtures::run_builder::{SplitMixNoise, build_daily_runs};

    /// What the guard says of the last of these times, where runs from one to another were told to be worse.
    fn judge_newest(values: &[f64], told: &[[usize; 2]]) -> GuardRow {
        let runs = build_daily_runs(values, 0.01, SplitMixNoise(7));
        let options = AnalysisOptions::default();
        let mut found = metric_histories(&runs, &options).unwrap();
        let id = |at: usize| runs[at].manifest.id.clone();
        let told = told.iter().map(|[first, last]| ToldStep {
            subject: found.series[0].subject.clone(),
            metric: found.series[0].metric.clone(),
            first_bad: id(*first),
            last_bad: id(*last),
        });
        let told: Vec<ToldStep> = told.collect();
        found.leave_out_told_steps(&told, &options).unwrap();
        check_newest_run(&found, &options).unwrap().rows.remove(0)
    }

    #[test]
    fn what_was_told_to_be_worse_is_no_measure_for_what_comes_after() {
        let mut values = vec![55.0; 8];
        values.extend([160.0, 160.0, 55.0]);
        let repaired = judge_newest(&values, &[[8, 9]]);
        assert_eq!((repaired.verdict, repaired.outside, repaired.runs), (Verdict::Same, false, 8));
        values.extend([55.0, 160.0]);
        let again = judge_newest(&values, &[[8, 9]]);
        assert!(again.outside && again.runs == 10, "{again:?}");
        assert!(!judge_newest(&values, &[]).outside, "without, it is usual");
        values.extend([160.0, 160.0, 55.0]);
        let repaired = judge_newest(&values, &[[8, 9], [12, 14]]);
        assert_eq!((repaired.verdict, repaired.runs), (Verdict::Same, 10));
    }

    #[test]
    fn a_level_that_rests_on_too_few_runs_leaves_none_out() {
        let values = [55.0, 55.0, 55.0, 55.0, 160.0, 160.0, 160.0, 160.0, 160.0, 160.0];
        assert_eq!(judge_newest(&values, &[[4, 8]]).runs, judge_newest(&values, &[]).runs);
        // Those after it count, too.
        let repaired = [&values[..9], &[55.0, 55.0, 160.0]].concat();
        let again = judge_newest(&repaired, &[[4, 8]]);
        assert!(again.outside && again.runs == 6, "{again:?}");
    }

    #[test]
    fn what_is_not_worse_stays() {
        let mut values = vec![55.0; 8];
        values.extend([55.0, 30.0, 160.0, 55.0, 55.0]);
        assert_eq!(judge_newest(&values, &[[8, 10]]).runs, 11);
    }
}
