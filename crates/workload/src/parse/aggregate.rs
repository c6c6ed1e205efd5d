//! One value out of several finds.

use crate::definition::Aggregate;

/// None where nothing was found.
pub(super) fn one(numbers: &[f64], aggregate: Aggregate) -> Option<f64> {
    let count = numbers.len() as f64;
    match aggregate {
        Aggregate::Last => numbers.last().copied(),
        Aggregate::First => numbers.first().copied(),
        Aggregate::Sum => (!numbers.is_empty()).then(|| numbers.iter().sum()),
        Aggregate::Mean => (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / count),
        Aggregate::Min => numbers.iter().copied().reduce(f64::min),
        Aggregate::Max => numbers.iter().copied().reduce(f64::max),
        Aggregate::Median => median(numbers),
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
