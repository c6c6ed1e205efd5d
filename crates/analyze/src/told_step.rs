//! Steps for the worse that somebody was told of: what is worse for a known reason is no measure for the runs after it.

use perflab_model::Direction;
use perflab_stats::{StatsError, prediction_interval};

use crate::compare::options::AnalysisOptions;
use crate::error::AnalyzeError;
use crate::guard::FEWEST_HISTORY_RUNS;
use crate::history::{MetricHistories, MetricHistory, change_point_indexes};

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
    /// Leaves the runs of these steps out of their series, as far as they lie outside of the level before the step; the newest run stays.
    /// Where the level before rests on too few runs, all stay.
    ///
    /// # Errors
    /// Numbers that no statistic takes.
    pub fn leave_out_told_steps(
        &mut self,
        told: &[ToldStep],
        options: &AnalysisOptions,
    ) -> Result<(), AnalyzeError> {
        let newest = self.runs.len().saturating_sub(1);
        for step in told {
            let find = |id: &String| self.runs.iter().position(|run| run.id == *id || run.parts.contains(id));
            let Some((first, last)) = find(&step.first_bad).zip(find(&step.last_bad)) else { continue };
            let is_own = |one: &&mut MetricHistory| one.subject == step.subject && one.metric == step.metric;
            for series in self.series.iter_mut().filter(is_own) {
                let left_out = series.leave_out_worse(first..newest.min(last + 1), options);
                left_out.map_err(|source| series.statistic_error(source))?;
            }
        }
        Ok(())
    }
}

impl MetricHistory {
    /// Leaves out the points of these runs that are worse than the level before them.
    fn leave_out_worse(
        &mut self,
        runs: std::ops::Range<usize>,
        options: &AnalysisOptions,
    ) -> Result<(), StatsError> {
        let before = self.points.iter().take_while(|point| point.run < runs.start).count();
        let steps = change_point_indexes(self, before)?;
        let step = steps.iter().map(|(at, _)| *at).rfind(|at| before - at >= FEWEST_HISTORY_RUNS);
        let accepted = self.baselines.iter().map(|baseline| baseline.at).rfind(|at| *at < before);
        let start = step.unwrap_or(0).max(accepted.unwrap_or(0));
        let scaled = self.scaled_values();
        let level = scaled.get(start..before).unwrap_or_default();
        if level.len() < FEWEST_HISTORY_RUNS {
            return Ok(());
        }
        let Some(expected) = prediction_interval(level, options.confidence)?.interval else { return Ok(()) };
        let is_worse = |value: f64| match self.direction {
            Direction::Higher => value < expected.low,
            Direction::Lower => value > expected.high,
            Direction::Neither => value < expected.low || value > expected.high,
        };
        let is_left_out: Vec<bool> = self
            .points
            .iter()
            .zip(scaled)
            .map(|(point, value)| runs.contains(&point.run) && is_worse(value))
            .collect();
        for baseline in &mut self.baselines {
            let before = is_left_out.iter().take(baseline.at);
            baseline.at -= before.filter(|is_left_out| **is_left_out).count();
        }
        let mut left_out = is_left_out.into_iter();
        self.points.retain(|_| !left_out.next().unwrap_or_default());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::Nanos;

    use super::*;
    use crate::compare::comparison::Verdict;
    use crate::guard::{GuardRow, check_newest_run};
    use crate::history::metric_histories;
    use fixtures::run_builder::{RunBuilder, SplitMixNoise};

    /// What the guard says of the last of these times, where runs from one to another were told to be worse.
    fn judge_newest(values: &[f64], told: &[[usize; 2]]) -> GuardRow {
        let mut noise = SplitMixNoise(7);
        let run = |(at, value): (usize, &f64)| {
            let lab = RunBuilder::new(&format!("01JD{at:04}")).with(|lab| lab.iterations = 4);
            let mut run = lab.build_run(|_| Some(noise.lognormal_around(*value, 0.01)));
            run.manifest.anchor.realtime.0 += Nanos::from_secs(at as u64).0;
            run
        };
        let runs: Vec<_> = values.iter().enumerate().map(run).collect();
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
    }

    #[test]
    fn what_is_not_worse_stays() {
        let mut values = vec![55.0; 8];
        values.extend([55.0, 30.0, 160.0, 55.0, 55.0]);
        assert_eq!(judge_newest(&values, &[[8, 10]]).runs, 11);
    }
}
