//! How evenly targets of a synchronised run were served, and the skew of their starts.
//!
//! The value of an iteration is the mean over its targets: they share one host, so none is a repetition of another, and
//! counting them as such would make every interval too narrow.

use std::borrow::Cow;
use std::collections::BTreeMap;

use perflab_model::{Case, Nanos, Outcome, RunRecord, Sample};
use perflab_stats::median_with_interval;

pub use perflab_stats::{IntervalEstimate, median};

/// Samples with one value for each iteration: the mean over the targets of each.
pub fn average_over_targets(samples: &[Sample]) -> Cow<'_, [Sample]> {
    if samples.iter().all(|sample| sample.target.is_none()) {
        return Cow::Borrowed(samples);
    }
    let mut all: Vec<Sample> = Vec::new();
    for group in group_by_iteration(samples).into_values() {
        let Some(first) = group.first() else { continue };
        let value = group.iter().map(|sample| sample.value).sum::<f64>() / group.len() as f64;
        let start = group.iter().map(|sample| sample.start).min().unwrap_or(first.start);
        let end = group.iter().map(|sample| sample.end).max().unwrap_or(first.end);
        all.push(Sample { target: None, value, start, end, ..(*first).clone() });
    }
    all.sort_by_key(|sample| sample.start);
    Cow::Owned(all)
}

/// Case, metric, boot, iteration.
type IterationGroupKey<'a> = (u32, &'a str, u32, u32);

fn group_by_iteration(samples: &[Sample]) -> BTreeMap<IterationGroupKey<'_>, Vec<&Sample>> {
    let mut groups: BTreeMap<IterationGroupKey<'_>, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let key = (sample.case, sample.metric.as_str(), sample.boot, sample.iteration);
        groups.entry(key).or_default().push(sample);
    }
    groups
}

/// How evenly the targets of a case were served in one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetFairness {
    /// The case: `memory-sweep guests=4`.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// Targets that took part.
    pub targets: usize,
    /// Iterations in which all of them gave a value.
    pub iterations: usize,
    /// The largest value of an iteration over its smallest: median over iterations, with its interval. 1 is even.
    pub spread: IntervalEstimate,
    /// Jain's index of an iteration, (Σx)² / (n Σx²): from 1/n (one gets all) to 1 (even); median, with its interval.
    /// R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness, DEC-TR-301, 1984.
    pub jain: IntervalEstimate,
    /// The median of each target, in the order of the run's targets: a lasting difference shows here.
    pub medians: Vec<f64>,
    /// The metric's unit.
    pub unit: String,
    /// Every whole iteration in order, with its boot: each target's value, by the target's number.
    pub values: Vec<(u32, Vec<(u32, f64)>)>,
}

/// The fairness of each case and primary metric with two targets or more, and three iterations or more.
pub fn target_fairness(record: &RunRecord, confidence: f64) -> Vec<TargetFairness> {
    let mut cases: BTreeMap<(u32, &str), Vec<Vec<&Sample>>> = BTreeMap::new();
    let primary = |group: &Vec<&Sample>| group.iter().all(|sample| sample.primary && sample.target.is_some());
    for ((case, metric, ..), group) in
        group_by_iteration(&record.samples).into_iter().filter(|(_, group)| primary(group))
    {
        cases.entry((case, metric)).or_default().push(group);
    }
    let each = |((case, metric), iterations): ((u32, &str), Vec<Vec<&Sample>>)| {
        let label = record.manifest.plan.case(case).map(Case::label).unwrap_or_default();
        case_fairness(label, metric, &iterations, confidence)
    };
    cases.into_iter().filter_map(each).collect()
}

/// The fairness of iterations of one case and metric, each the samples of its targets; `None` where no two targets have one.
pub fn case_fairness(
    case: String,
    metric: &str,
    iterations: &[Vec<&Sample>],
    confidence: f64,
) -> Option<TargetFairness> {
    let targets = iterations.iter().map(Vec::len).max().filter(|targets| *targets > 1)?;
    let whole: Vec<&Vec<&Sample>> = iterations.iter().filter(|group| group.len() == targets).collect();
    let values = |group: &&Vec<&Sample>| group.iter().map(|sample| sample.value).collect::<Vec<f64>>();
    let all: Vec<Vec<f64>> = whole.iter().map(values).collect();
    let over = |of: fn(&[f64]) -> Option<f64>| {
        let each: Vec<f64> = all.iter().filter_map(|values| of(values)).collect();
        median_with_interval(&each, confidence).ok()
    };
    let (spread, jain) = (over(largest_over_smallest)?, over(jain_index)?);
    Some(TargetFairness {
        case,
        metric: metric.into(),
        targets,
        iterations: all.len(),
        spread,
        jain,
        medians: target_medians(&whole),
        unit: whole.first()?.first()?.unit.to_string(),
        values: whole
            .iter()
            .map(|group| (group.first().map_or(0, |one| one.boot), values_by_target(group)))
            .collect(),
    })
}

fn largest_over_smallest(values: &[f64]) -> Option<f64> {
    let (smallest, largest) =
        (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
    (smallest > 0.0).then(|| largest / smallest)
}

fn jain_index(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

fn values_by_target(group: &[&Sample]) -> Vec<(u32, f64)> {
    group.iter().filter_map(|sample| Some((sample.target?, sample.value))).collect()
}

fn target_medians(iterations: &[&Vec<&Sample>]) -> Vec<f64> {
    let mut by_target: BTreeMap<Option<u32>, Vec<f64>> = BTreeMap::new();
    for sample in iterations.iter().flat_map(|group| group.iter()) {
        by_target.entry(sample.target).or_default().push(sample.value);
    }
    by_target.into_values().filter_map(|values| median(&values).ok()).collect()
}

/// How far apart the targets of iterations began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartSkew {
    /// Iterations with two targets or more.
    pub iterations: usize,
    /// The median of their spreads,
    pub median: Nanos,
    /// and the largest.
    pub largest: Nanos,
}

/// The skew of a run's starts, warm-ups included; `None` without two synchronised targets.
pub fn start_skew(record: &RunRecord) -> Option<StartSkew> {
    let mut starts: BTreeMap<u32, Vec<Nanos>> = BTreeMap::new();
    let began = |one: &&perflab_model::IterationRecord| one.target.is_some() && one.outcome == Outcome::Ok;
    for one in record.iterations.iter().filter(began) {
        starts.entry(one.slot).or_default().push(one.start);
    }
    let apart = |starts: &Vec<Nanos>| Some(starts.iter().max()?.since(*starts.iter().min()?));
    let mut apart: Vec<Nanos> = starts.values().filter(|starts| starts.len() > 1).filter_map(apart).collect();
    apart.sort_unstable();
    Some(StartSkew { iterations: apart.len(), median: *apart.get(apart.len() / 2)?, largest: *apart.last()? })
}

/// To what bound the targets' clocks were known when iterations were released: the median and the largest; `None` where nothing
/// was told of it.
pub fn clock_bounds(record: &RunRecord) -> Option<(Nanos, Nanos)> {
    let mut bounds = record.clock_bounds.clone();
    bounds.sort_unstable();
    Some((*bounds.get(bounds.len() / 2)?, *bounds.last()?))
}

#[cfg(test)]
mod tests {
    use perflab_model::{Direction, Unit};

    use super::*;

    fn make_sample(target: u32, iteration: u32, value: f64) -> Sample {
        Sample {
            boot: 0,
            target: Some(target),
            case: 0,
            iteration,
            metric: "speed".into(),
            value,
            unit: Unit::new("ops/s"),
            direction: Direction::Higher,
            primary: true,
            start: Nanos(u64::from(iteration) * 100 + u64::from(target)),
            end: Nanos(u64::from(iteration) * 100 + 50),
        }
    }

    #[test]
    fn an_iteration_of_several_targets_is_one_value() {
        let samples =
            [make_sample(0, 0, 1.0), make_sample(1, 0, 3.0), make_sample(0, 1, 5.0), make_sample(1, 1, 7.0)];
        let together = average_over_targets(&samples);
        let values: Vec<(u32, f64)> = together.iter().map(|one| (one.iteration, one.value)).collect();
        assert_eq!(values, [(0, 2.0), (1, 6.0)]);
        assert_eq!((together[0].start, together[0].end, together[0].target), (Nanos(0), Nanos(50), None));
        let alone = [Sample { target: None, ..samples[0].clone() }];
        assert!(matches!(super::average_over_targets(&alone), Cow::Borrowed(_)));
    }

    /// Jain, Chiu and Hawe's own example: 20 of 100 users get a dollar each, the others nothing: 0.2.
    #[test]
    fn jains_index_is_the_share_of_those_who_are_served() {
        let dollars: Vec<f64> = (0..100).map(|user| if user < 20 { 1.0 } else { 0.0 }).collect();
        assert!((jain_index(&dollars).unwrap() - 0.2).abs() < 1e-12);
        assert!((jain_index(&[3.0, 3.0, 3.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }

    #[test]
    fn only_whole_iterations_say_how_even_the_targets_were() {
        let mut samples: Vec<Sample> = (0..8)
            .flat_map(|n| [make_sample(0, n, 10.0), make_sample(1, n, 12.0), make_sample(2, n, 20.0)])
            .collect();
        samples.push(make_sample(0, 8, 1.0));
        let groups: Vec<Vec<&Sample>> = group_by_iteration(&samples).into_values().collect();
        let fair = case_fairness("case".into(), "speed", &groups, 0.95).unwrap();
        assert_eq!((fair.targets, fair.iterations, fair.medians), (3, 8, vec![10.0, 12.0, 20.0]));
        assert_eq!(
            (fair.unit.as_str(), &fair.values[0]),
            ("ops/s", &(0, vec![(0, 10.0), (1, 12.0), (2, 20.0)]))
        );
        assert!((fair.spread.value - 2.0).abs() < 1e-12, "{:?}", fair.spread);
    }
}
