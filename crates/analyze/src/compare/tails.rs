//! Iterations that are far worse than the rest: how many each side has beyond a fence.

use perflab_model::Direction;
use perflab_stats::{StatsError, TukeyFences, fisher_exact, mann_whitney, quantile, value_resolution};

use crate::compare::alignment::{MetricKey, MetricSamples, SampleIndex};
use crate::compare::between_runs::EarlierRuns;
use crate::compare::change::RepetitionLevel;
use crate::compare::comparison::{SamplePoint, TailComparison, TailCount, Verdict};

/// Inter-quartile ranges from the middle half to the fence: Tukey's outer one.
pub(crate) const REACH: f64 = 3.0;

/// Fewest values a side for quartiles that say where the middle half is.
const FEWEST: usize = 4;

/// Where values are far from the rest of both sides: the farther of both sides' outer fences (Tukey 1977), no nearer than the
/// margin, within which nothing matters, nor than three steps of a coarse scale, and nowhere where it would be no number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FarFences {
    low: f64,
    high: f64,
}

impl FarFences {
    /// Those of both sides; none where there are too few values to say.
    pub(crate) fn of_sides(
        baseline: &MetricSamples,
        candidate: &MetricSamples,
        margin: f64,
    ) -> Result<Option<Self>, StatsError> {
        if baseline.points.len().min(candidate.points.len()) < FEWEST {
            return Ok(None);
        }
        let [ours, theirs] = [baseline, candidate].map(|side| Self::of_values(side.values(), margin));
        let (ours, theirs) = (ours?, theirs?);
        Ok(Some(FarFences { low: ours.low.min(theirs.low), high: ours.high.max(theirs.high) }))
    }

    /// Those of some values.
    pub(crate) fn of_values(mut values: Vec<f64>, margin: f64) -> Result<Self, StatsError> {
        // What is sorted is sorted again at no cost.
        values.sort_unstable_by(f64::total_cmp);
        let fences = match TukeyFences::from_values(&values, REACH) {
            Err(StatsError::Overflow) => {
                return Ok(FarFences { low: f64::NEG_INFINITY, high: f64::INFINITY });
            }
            found => found?,
        };
        let (first, third) = (quantile(&values, 0.25)?, quantile(&values, 0.75)?);
        let steps = REACH * value_resolution(&values).unwrap_or(0.0);
        let near = |middle: f64| steps.max(margin * middle.abs());
        Ok(FarFences { low: fences.low.min(first - near(first)), high: fences.high.max(third + near(third)) })
    }

    /// A value no farther off than the fences.
    pub(crate) fn bound(self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }

    /// Whether a value lies beyond.
    pub(crate) fn excludes(self, value: f64) -> bool {
        self.bound(value) != value
    }

    /// How many values lie beyond on the bad side; none where no end is bad.
    fn count(self, values: &[f64], direction: Direction) -> TailCount {
        let is_beyond = |value: &&f64| match direction {
            Direction::Lower => **value > self.high,
            Direction::Higher => **value < self.low,
            Direction::Neither => false,
        };
        TailCount { beyond: values.iter().filter(is_beyond).count(), of: values.len() }
    }
}

/// How many values of earlier runs of a metric lie far from the rest of their own run: each may have had another level.
pub(crate) fn count_earlier_tails(
    earlier: &EarlierRuns,
    subject: &str,
    metric: &MetricKey,
    direction: Direction,
    margin: f64,
) -> Option<TailCount> {
    let runs = earlier.values(subject, metric).filter(|values| values.len() >= FEWEST);
    let counts = runs.filter_map(|values| {
        Some(FarFences::of_values(values.to_vec(), margin).ok()?.count(values, direction))
    });
    counts.reduce(|sum, one| TailCount { beyond: sum.beyond + one.beyond, of: sum.of + one.of })
}

/// The tails of a row; nothing where no value lies beyond, or no end is bad.
pub(crate) fn compare_tails(
    baseline: &MetricSamples,
    candidate: &MetricSamples,
    index: &SampleIndex,
    fences: FarFences,
    direction: Direction,
    level: RepetitionLevel,
) -> Result<Option<TailComparison>, StatsError> {
    let count = |values: &[f64]| fences.count(values, direction);
    let counts = [baseline, candidate].map(|side| count(&side.values()));
    if counts.iter().all(|count| count.beyond == 0) {
        return Ok(None);
    }
    let p = match level {
        RepetitionLevel::Iteration => fisher_exact(counts[0].into(), counts[1].into())?.p,
        RepetitionLevel::Machine | RepetitionLevel::Boot | RepetitionLevel::Run | RepetitionLevel::Layout => {
            let shares = |cell: &MetricSamples| -> Vec<f64> {
                let values = |points: &[SamplePoint]| points.iter().map(|point| point.value).collect();
                let repetitions: Vec<Vec<f64>> = match level {
                    RepetitionLevel::Machine => cell.by_machine(index).into_values().collect(),
                    RepetitionLevel::Layout => cell.by_layout(index).into_values().collect(),
                    RepetitionLevel::Run => cell.by_run().into_values().collect(),
                    _ => cell.by_boot().values().map(|points| values(points)).collect(),
                };
                repetitions.iter().map(|values| count(values).share()).collect()
            };
            mann_whitney(&shares(baseline), &shares(candidate))?.p
        }
    };
    let [baseline, candidate] = counts;
    Ok(Some(TailComparison {
        fence: if direction == Direction::Higher { fences.low } else { fences.high },
        baseline,
        candidate,
        p,
        earlier: None,
        q: p,
        middle: Verdict::Unclear,
    }))
}
