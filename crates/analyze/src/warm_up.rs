//! Warm-up within a run: iterations of a case at its beginning that are worse than the steady state that follows.
//!
//! Looked for in metrics that decide and have a direction, in each boot of each run for itself: what was started anew warms up
//! anew. Reported always, and left out only where the user says so. The estimator is
//! [`WarmupRules::find_warm_up`](perflab_stats::WarmupRules::find_warm_up).

use indexmap::IndexMap;
use perflab_model::{Direction, RunRecord, Sample};
use perflab_stats::{BetterDirection, WarmUpPeriod, WarmupRules};

/// Fewest values among which a warm-up is looked for.
const FEWEST: usize = 8;

/// So many values at the beginning are looked at: the search takes time with their square.
const MOST: usize = 1000;

/// A warm-up of one metric of one case in one boot of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWarmUp {
    /// The case in one line.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// Which boot of the run, from 0.
    pub boot: u32,
    /// How many of its values are warm-up, and their mean beside that of the others.
    pub period: WarmUpPeriod,
    /// All its values.
    pub values: usize,
}

/// The warm-up at the beginning of values in order of time, if there is one.
pub(crate) fn find_value_warm_up(in_time_order: &[f64], direction: Direction) -> Option<WarmUpPeriod> {
    let better = match direction {
        Direction::Higher => BetterDirection::Higher,
        Direction::Lower => BetterDirection::Lower,
        Direction::Neither => return None,
    };
    let begin = in_time_order.get(..MOST.min(in_time_order.len())).filter(|begin| begin.len() >= FEWEST)?;
    // What cannot be computed shows no warm-up.
    WarmupRules::default().find_warm_up(begin, better).ok().flatten()
}

/// The warm-ups of a run, in the order of its samples.
#[must_use]
pub fn find_warm_ups(record: &RunRecord) -> Vec<RunWarmUp> {
    let samples = crate::fairness::average_over_targets(&record.samples);
    let mut series: IndexMap<(u32, &str, u32), Vec<&Sample>> = IndexMap::new();
    for sample in samples.iter().filter(|sample| sample.primary && sample.value.is_finite()) {
        series.entry((sample.case, sample.metric.as_str(), sample.boot)).or_default().push(sample);
    }
    let mut found = Vec::new();
    for ((case, metric, boot), mut samples) in series {
        samples.sort_by_key(|sample| (sample.start, sample.iteration));
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        let Some(period) = samples.first().and_then(|first| find_value_warm_up(&values, first.direction))
        else {
            continue;
        };
        let case = record.manifest.plan.case(case).map(perflab_model::Case::label).unwrap_or_default();
        found.push(RunWarmUp { case, metric: metric.to_owned(), boot, period, values: values.len() });
    }
    found
}
