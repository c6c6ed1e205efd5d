//! Two or three boots or runs a side, whose spread earlier runs help to know.
//!
//! Of so few the spread is hardly known: with two a side, Student's quantile is above four. Earlier runs of the study on this machine,
//! or its noise card, know how much a boot or a run differs from the next. Where these here scatter no more than that makes half of
//! samples do, both variances are one, pooled with their degrees of freedom. Where they scatter more, today may be noisier, and they
//! stand alone: so coverage is at least 95 % however much noisier today is (docs/statistics.md).

use perflab_stats::{StatsError, pooled_t_with_variance};

use crate::compare::between_runs::{EarlierRuns, UnitNoiseQuery};
use crate::compare::change::{
    ChangeEstimate, EstimationMethod, PooledNoise, RepetitionLevel, change_of_test,
};
use crate::compare::experimental_unit::ComparisonUnits;

/// Fewest boots or runs a side: a single one borrows the other side's spread already.
const FEWEST: usize = 2;

/// The change with the spread that earlier runs agree on; none where there are too few of them, where they differ in size or spread,
/// or where the sides need no help.
pub(crate) fn pool_earlier_noise(
    units: &ComparisonUnits,
    method: EstimationMethod,
    query: &UnitNoiseQuery<'_>,
    earlier: &EarlierRuns,
    confidences: [f64; 2],
) -> Result<Option<(ChangeEstimate, PooledNoise)>, StatsError> {
    let is_repeated = matches!(units.level, RepetitionLevel::Boot | RepetitionLevel::Run);
    let fewest = units.baseline.len().min(units.candidate.len());
    if !method.by_means || !is_repeated || units.relation.between_runs || fewest < FEWEST {
        return Ok(None);
    }
    let scale = units.scale();
    let noise = earlier.noise_of_units(query, scale).filter(|noise| noise.variance.variance > 0.0);
    let Some(noise) = noise else { return Ok(None) };
    let on_scale = |values: &[f64]| values.iter().map(|value| scale.on_scale(*value)).collect::<Vec<f64>>();
    let (x, y) = (on_scale(&units.baseline), on_scale(&units.candidate));
    let Some(found) = pooled_t_with_variance(&x, &y, noise.variance)? else { return Ok(None) };
    let pooled = PooledNoise { pairs: noise.pairs, from_card: noise.from_card, freedom: found.freedom };
    Ok(Some((change_of_test(scale, &found, (&x, &y), confidences)?, pooled)))
}
