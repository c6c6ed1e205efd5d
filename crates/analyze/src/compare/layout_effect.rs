//! How much of a change is where code and stack happen to lie: layouts are draws of one level, not what is compared.
//!
//! The change is that over all layouts. What it is in the layout as built, and how far it varies from one layout to the next,
//! stands beside it: an experiment without layouts measures the former, and has no error for the latter.

use std::collections::BTreeMap;

use perflab_stats::{StatsError, TwoLevelNoise, median};

use crate::compare::alignment::{MetricSamples, SampleIndex};
use crate::compare::change::{LayoutEffect, MetricChange};

/// What the layouts of two sides say, where both have two or more.
pub(crate) fn compare_layouts(
    baseline: &MetricSamples,
    candidate: &MetricSamples,
    change: MetricChange,
    index: &SampleIndex,
) -> Result<Option<LayoutEffect>, StatsError> {
    let scale = change.scale;
    let on_scale = |values: Vec<f64>| values.into_iter().map(|value| scale.on_scale(value)).collect();
    let [ours, theirs] = [baseline, candidate].map(|side| -> BTreeMap<usize, Vec<f64>> {
        let by_layout = side.by_layout(index).into_iter();
        by_layout.map(|(layout, values)| (layout, on_scale(values))).collect()
    });
    if ours.len().min(theirs.len()) < 2 {
        return Ok(None);
    }
    let shared: Vec<(usize, &Vec<f64>, &Vec<f64>)> =
        ours.iter().filter_map(|(layout, values)| Some((*layout, values, theirs.get(layout)?))).collect();
    let differences: Vec<Vec<f64>> =
        shared.iter().map(|(_, ours, theirs)| pair_differences(ours, theirs)).collect();
    let noise = if differences.len() >= 2 {
        variance_of_layouts(&differences)
    } else {
        let sides =
            [&ours, &theirs].map(|side| variance_of_layouts(&side.values().cloned().collect::<Vec<_>>()));
        match sides {
            [Some(ours), Some(theirs)] => Some(TwoLevelNoise {
                between: ours.between.hypot(theirs.between),
                within: ours.within.hypot(theirs.within),
            }),
            _ => None,
        }
    };
    let built = shared.iter().find(|(layout, ..)| index.is_as_built(*layout));
    let as_built = built.map(|(_, ours, theirs)| Ok(median(theirs)? - median(ours)?)).transpose()?;
    let overall = scale.shift_of_change(change.value);
    let total = noise.map(|noise| noise.between.powi(2) + noise.within.powi(2));
    Ok(Some(LayoutEffect {
        layouts: shared.len(),
        as_built: as_built.map(|shift| scale.change_of_shift(shift)),
        explained: as_built.map(|shift| scale.change_of_shift(shift - overall)),
        sd: noise.map(|noise| scale.change_of_shift(noise.between)),
        share: noise
            .zip(total)
            .and_then(|(noise, total)| (total > 0.0).then(|| noise.between.powi(2) / total)),
    }))
}

/// Values of one layout against each other, in their order: those of a block stand at the same place.
fn pair_differences(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| theirs - ours).collect()
}

/// None where no layout has two values, so that layouts cannot be told from iterations.
fn variance_of_layouts(layouts: &[Vec<f64>]) -> Option<TwoLevelNoise> {
    let layouts: Vec<&[f64]> =
        layouts.iter().map(Vec::as_slice).filter(|values| !values.is_empty()).collect();
    TwoLevelNoise::from_boots(&layouts).ok()
}
