//! Quantities that say the same are one family, with the best known of them in front: what is tested is few.

use crate::why::cause_table::cause_of;
use crate::why::evidence_table::Quantity;
use crate::why::iteration_quantities::is_of_workload;

/// Two quantities that correlate as closely are one.
const TWINS: f64 = 0.98;

/// So many families are tested.
pub(crate) const MOST_FAMILIES: usize = 200;

/// Quantities that say the same.
#[derive(Debug)]
pub(crate) struct QuantityFamily {
    /// Index of the one that speaks for them.
    pub(crate) leader: usize,
    /// The others.
    pub(crate) others: Vec<usize>,
    /// Place of its cause in the table.
    pub(crate) cause: Option<usize>,
}

/// The families, those that can be a cause first, and how many quantities never vary and how many families are beyond the most.
/// The order does not look at which side a unit is on, so that choosing the first ones leaves tests what they are.
pub(crate) fn group_quantities(
    quantities: &[Quantity],
    values: &[Vec<f64>],
) -> (Vec<QuantityFamily>, usize, usize) {
    let mut order: Vec<usize> = (0..quantities.len()).collect();
    let name = |at: usize| quantities.get(at).map_or("", |quantity| quantity.name.as_str());
    let causes: Vec<Option<(usize, usize)>> =
        quantities.iter().map(|quantity| cause_of(&quantity.name)).collect();
    let cause = |at: usize| causes.get(at).copied().flatten();
    order.sort_by_key(|at| {
        let (place, measure) = cause(*at).unwrap_or((usize::MAX, usize::MAX));
        (place, measure, !is_of_workload(name(*at)), name(*at).len(), name(*at).to_owned())
    });
    let standardised: Vec<Option<Vec<f64>>> =
        values.iter().map(|values| standardise_values(values)).collect();
    let of = |at: usize| standardised.get(at).and_then(Option::as_ref);
    let mut families: Vec<QuantityFamily> = Vec::new();
    let mut constant = 0;
    for at in order {
        let Some(own) = of(at) else {
            constant += 1;
            continue;
        };
        let place = cause(at).map(|(place, _)| place);
        let twin = families.iter_mut().find(|family| {
            let may_join = place.is_none() || place == family.cause;
            may_join && of(family.leader).is_some_and(|leader| dot_product(own, leader).abs() >= TWINS)
        });
        match twin {
            Some(family) => family.others.push(at),
            None => families.push(QuantityFamily { leader: at, others: Vec::new(), cause: place }),
        }
    }
    let beyond = families.len().saturating_sub(MOST_FAMILIES);
    families.truncate(MOST_FAMILIES);
    (families, constant, beyond)
}

/// Values less their mean, of length 1; 0 where there is none. `None` of a constant.
fn standardise_values(values: &[f64]) -> Option<Vec<f64>> {
    let known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let mean = perflab_stats::mean(&known).ok()?;
    let from_mean = |value: &f64| if value.is_finite() { value - mean } else { 0.0 };
    let centred: Vec<f64> = values.iter().map(from_mean).collect();
    let length = centred.iter().map(|value| value * value).sum::<f64>().sqrt();
    let is_constant = length <= 1e-9 * mean.abs() * (known.len() as f64).sqrt() || length == 0.0;
    (!is_constant).then(|| centred.iter().map(|value| value / length).collect())
}

/// The correlation of two that are standardised.
fn dot_product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use perflab_model::Unit;

    use super::*;

    #[test]
    fn twins_are_one_family_and_causes_stay_apart() {
        let quantity = |name: &str, values: &[f64]| Quantity {
            name: name.into(),
            unit: Unit::new("1"),
            values: values.to_vec(),
        };
        let rising = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0];
        let all = [
            quantity("vmstat pgfree", &rising.map(|value| value * 3.0 + 1.0)),
            quantity("vmstat numa_miss", &[4.0; 6]),
            quantity("minor-faults", &rising),
            quantity("max-rss", &rising.map(|value| value * 4096.0)),
            quantity("vmstat pgfault", &rising.map(|value| value + 100.0)),
            quantity("vmstat drop_slab", &[3.0, 1.0, 2.0, 2.0, 1.0, 3.0]),
        ];
        let values: Vec<Vec<f64>> = all.iter().map(|one| one.values.clone()).collect();
        let (families, constant, beyond) = group_quantities(&all, &values);
        let names: Vec<(&str, usize)> =
            families.iter().map(|one| (all[one.leader].name.as_str(), one.others.len())).collect();
        assert_eq!(names, [("minor-faults", 2), ("max-rss", 0), ("vmstat drop_slab", 0)]);
        assert_eq!((constant, beyond), (1, 0));
    }
}
