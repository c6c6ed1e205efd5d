//! One value out of several finds.

use crate::definition::MetricAggregate;

/// None where nothing was found.
pub(super) fn aggregate_numbers(numbers: &[f64], aggregate: MetricAggregate) -> Option<f64> {
    let count = numbers.len() as f64;
    match aggregate {
        MetricAggregate::Last => numbers.last().copied(),
        MetricAggregate::First => numbers.first().copied(),
        MetricAggregate::Sum => (!numbers.is_empty()).then(|| numbers.iter().sum()),
        MetricAggregate::Mean => (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / count),
        MetricAggregate::Min => numbers.iter().copied().reduce(f64::min),
        MetricAggregate::Max => numbers.iter().copied().reduce(f64::max),
        MetricAggregate::Median => median(numbers),
    }
}

pub(crate) fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(sorted.len() / 2 - 1).map(|lower| (lower + upper) / 2.0)
}
