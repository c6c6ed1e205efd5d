//! Iterations that are far worse than the rest: how many each side has beyond a fence.

use perflab_model::Direction;
use perflab_stats::{StatsError, TukeyFences, fisher_exact, mann_whitney, quantile};

use crate::compare::alignment::MetricSamples;
use crate::compare::change::RepetitionLevel;
use crate::compare::comparison::{SamplePoint, TailComparison, TailCount, Verdict};

/// Inter-quartile ranges from the middle half to the fence: Tukey's outer one.
const REACH: f64 = 3.0;

/// Fewest values a side for quartiles that say where the middle half is.
const FEWEST: usize = 4;

/// The tails of a row; nothing where no value lies beyond, where no way is bad, or where there are too few to say.
pub(crate) fn compare_tails(
    baseline: &MetricSamples,
    candidate: &MetricSamples,
    direction: Direction,
    margin: f64,
    level: RepetitionLevel,
) -> Result<Option<TailComparison>, StatsError> {
    let orientation = match direction {
        Direction::Lower => 1.0,
        Direction::Higher => -1.0,
        Direction::Neither => return Ok(None),
    };
    let [ours, theirs] = [baseline, candidate].map(MetricSamples::values);
    if ours.len().min(theirs.len()) < FEWEST {
        return Ok(None);
    }
    let outer = |values: &[f64]| outer_fence(values, orientation, margin);
    // Mirrored where low values are bad.
    let fence = outer(&ours)?.max(outer(&theirs)?);
    let is_beyond = |value: f64| value * orientation > fence;
    let count = |values: &[f64]| TailCount {
        beyond: values.iter().filter(|value| is_beyond(**value)).count(),
        of: values.len(),
    };
    let counts = [count(&ours), count(&theirs)];
    if counts.iter().all(|count| count.beyond == 0) {
        return Ok(None);
    }
    let p = match level {
        RepetitionLevel::Iteration => fisher_exact(counts[0].into(), counts[1].into())?.p,
        RepetitionLevel::Boot | RepetitionLevel::Run => {
            let shares = |cell: &MetricSamples| -> Vec<f64> {
                let values = |points: &[SamplePoint]| points.iter().map(|point| point.value).collect();
                let repetitions: Vec<Vec<f64>> = match level {
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
        fence: fence * orientation,
        baseline,
        candidate,
        p,
        q: p,
        middle: Verdict::Unclear,
    }))
}

/// The outer fence at the upper end of the mirrored values; no nearer than the margin, within which nothing matters, and
/// nowhere where it would be no number.
fn outer_fence(values: &[f64], orientation: f64, margin: f64) -> Result<f64, StatsError> {
    let mut mirrored: Vec<f64> = values.iter().map(|value| value * orientation).collect();
    // What is sorted is sorted again at no cost.
    mirrored.sort_unstable_by(f64::total_cmp);
    let fences = match TukeyFences::from_values(&mirrored, REACH) {
        Err(StatsError::Overflow) => return Ok(f64::INFINITY),
        found => found?,
    };
    let quartile = quantile(&mirrored, 0.75)?;
    Ok(fences.high.max(quartile + margin * quartile.abs()))
}
