//! A step for the worse that the newest run still has and that does not alarm: it was seen too long ago, or too early in the history.

use perflab_model::Direction;
use perflab_stats::median;

use crate::compare::comparison::Verdict;
use crate::guard::GuardRow;
use crate::history::{MetricHistories, MetricHistory, SHORTEST_SEGMENT};

/// A step for the worse that stands.
#[derive(Debug, Clone, PartialEq)]
pub struct StandingStep {
    /// The last run before it.
    pub last_good: String,
    /// The first run after it.
    pub first_bad: String,
    /// The level before it.
    pub before: f64,
    /// The level since.
    pub after: f64,
}

impl StandingStep {
    /// The last step of a series, where that is for the worse and no baseline was accepted with it or after it.
    fn of_series(series: &MetricHistory) -> Option<Self> {
        let step = series.steps.last().filter(|step| step.verdict == Verdict::Worse)?;
        let accepted = series.baselines.last().map_or(0, |baseline| baseline.at + SHORTEST_SEGMENT);
        let start = series.steps.iter().rev().nth(1).map_or(0, |earlier| earlier.at);
        let level = |range| median(&series.units_of(range).ok()?).ok();
        let levels = level(start..step.at).zip(level(step.at..series.points.len()));
        let (before, after) = levels.filter(|_| accepted <= step.at)?;
        let (last_good, first_bad) = (step.last_good.clone(), step.first_bad.clone());
        Some(StandingStep { last_good, first_bad, before, after })
    }

    /// Whether the newest run of this row has it, too.
    fn is_in(&self, row: &GuardRow, series: &MetricHistory) -> bool {
        match (row.expected, series.direction) {
            (Some(expected), Direction::Higher) if row.outside => row.value < expected.low,
            (Some(expected), Direction::Lower) if row.outside => row.value > expected.high,
            _ => (row.value - self.after).abs() <= (row.value - self.before).abs(),
        }
    }
}

impl GuardRow {
    /// The step for the worse that stands in its series, as long as the row does not alarm, nobody has accepted the step, and the newest
    /// run has it, too.
    #[must_use]
    pub fn find_standing_step(&self, history: &MetricHistories) -> Option<StandingStep> {
        if self.step().is_some() {
            return None;
        }
        let series = self.find_series(history)?;
        let found = match &self.standing {
            Some(step) => StandingStep {
                last_good: step.last_good.clone(),
                first_bad: step.first_bad.clone(),
                before: step.before,
                after: step.after,
            },
            None => StandingStep::of_series(series)?,
        };
        found.is_in(self, series).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::{AcceptedStep, Nanos, Unit};

    use super::*;
    use crate::compare::options::AnalysisOptions;
    use crate::guard::check_newest_run;
    use crate::history::metric_histories;
    use fixtures::run_builder::{SplitMixNoise, build_daily_runs};

    /// The step that stands with the last of these times; with a baseline that begins at a run, where one does.
    fn find_step(values: &[f64], accepted: Option<usize>) -> Option<StandingStep> {
        let runs = build_daily_runs(values, 0.01, SplitMixNoise(7));
        let options = AnalysisOptions::default();
        let mut found = metric_histories(&runs, &options).unwrap();
        let accepted = accepted.map(|at| AcceptedStep {
            subject: found.series[0].subject.clone(),
            metric: found.series[0].metric.clone(),
            unit: Unit::new("s"),
            run: runs[at].manifest.id.clone(),
            began: runs[at].manifest.anchor.realtime,
            note: "meant".into(),
            accepted: Nanos(0),
        });
        found.begin_accepted_baselines(accepted.as_slice());
        let judged = check_newest_run(&found, &options).unwrap();
        judged.rows[0].find_standing_step(&found)
    }

    #[test]
    fn a_step_among_the_first_runs_stands_until_it_is_mended_or_accepted() {
        let mut values = vec![144.0; 4];
        values.extend([188.0; 8]);
        let step = find_step(&values, None).unwrap();
        assert_eq!((step.last_good.as_str(), step.first_bad.as_str()), ("01JD0003", "01JD0004"));
        assert!((step.before - 144.0).abs() < 5.0 && (step.after - 188.0).abs() < 5.0, "{step:?}");
        assert_eq!(find_step(&values, Some(4)), None);
        assert_eq!(find_step(&[&values[..], &[144.0]].concat(), None), None);
        assert_eq!(find_step(&[144.0; 12], None), None);
        // A step for the better is none.
        values.reverse();
        assert_eq!(find_step(&values, None), None);
    }
}
