//! Iterations that are far worse than the rest: how many each side has beyond a fence.

use perflab_model::Direction;
use perflab_stats::{EventCount, StatsError, TukeyFences, fisher_exact, mann_whitney};

use crate::compare::alignment::MetricSamples;
use crate::compare::change::RepetitionLevel;
use crate::compare::comparison::{TailComparison, TailCount, Verdict};

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
    let sign = match direction {
        Direction::Lower => 1.0,
        Direction::Higher => -1.0,
        Direction::Neither => return Ok(None),
    };
    let [ours, theirs] = [baseline, candidate].map(MetricSamples::values);
    if ours.len().min(theirs.len()) < FEWEST {
        return Ok(None);
    }
    let outer = |values: &[f64]| outer_fence(values, sign, margin);
    // Mirrored where low values are bad.
    let fence = outer(&ours)?.max(outer(&theirs)?);
    let is_beyond = |value: f64| value * sign > fence;
    let count = |values: &[f64]| TailCount {
        beyond: values.iter().filter(|value| is_beyond(**value)).count(),
        of: values.len(),
    };
    let counts = [count(&ours), count(&theirs)];
    if counts.iter().all(|count| count.beyond == 0) {
        return Ok(None);
    }
    let p = match level {
        RepetitionLevel::Iteration => fisher_exact(events(counts[0]), events(counts[1]))?.p,
        RepetitionLevel::Boot => {
            let shares = |cell: &MetricSamples| -> Vec<f64> {
                let of_boot = |values: &[f64]| count(values).share();
                let boots = cell.by_boot().into_values();
                boots
                    .map(|points| of_boot(&points.iter().map(|point| point.value).collect::<Vec<_>>()))
                    .collect()
            };
            mann_whitney(&shares(baseline), &shares(candidate))?.p
        }
    };
    let [baseline, candidate] = counts;
    Ok(Some(TailComparison { fence: fence * sign, baseline, candidate, p, q: p, middle: Verdict::Unclear }))
}

/// The outer fence at the upper end of the mirrored values; no nearer than the margin, within which nothing matters.
fn outer_fence(values: &[f64], sign: f64, margin: f64) -> Result<f64, StatsError> {
    let mirrored: Vec<f64> = values.iter().map(|value| value * sign).collect();
    let fences = TukeyFences::from_values(&mirrored, REACH)?;
    let quartile = perflab_stats::quantile(&mirrored, 0.75)?;
    Ok(fences.high.max(quartile + margin * quartile.abs()))
}

fn events(count: TailCount) -> EventCount {
    EventCount { events: count.beyond as u64, trials: count.of as u64 }
}
