//! The warm-up in the values of a side, run by run and boot by boot: found in every comparison, left out where the user says so.

use std::collections::{BTreeMap, BTreeSet};

use perflab_stats::WarmUpPeriod;

use crate::compare::alignment::{AlignedSide, IterationKey, MetricSamples};
use crate::compare::comparison::{SamplePoint, SampleValues};
use crate::warm_up::find_value_warm_up;

/// A warm-up of one boot of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SideWarmUp {
    /// run and boot, as the values name them
    pub(crate) origin: (u32, u32),
    pub(crate) period: WarmUpPeriod,
    /// all values of that boot
    pub(crate) values: usize,
}

/// The warm-ups of a metric that decides.
pub(crate) fn side_warm_ups(samples: &MetricSamples) -> Vec<SideWarmUp> {
    if !samples.primary || samples.exact {
        return Vec::new();
    }
    let of = |(origin, values): ((u32, u32), Vec<f64>)| {
        let period = find_value_warm_up(&values, samples.direction)?;
        Some(SideWarmUp { origin, period, values: values.len() })
    };
    samples.by_run().into_iter().filter_map(of).collect()
}

/// Takes the warm-ups out of a side: in each metric that decides the values that are one, in the other metrics of the case the
/// iterations that went whole. Gives how many values went.
pub(crate) fn leave_out_warm_up(side: &mut AlignedSide) -> usize {
    let mut count = 0;
    let mut gone: BTreeSet<(usize, IterationKey)> = BTreeSet::new();
    let mut cut: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (key, samples) in &mut side.cells {
        let found = side_warm_ups(samples);
        if found.is_empty() {
            continue;
        }
        let mut left: BTreeMap<(u32, u32), usize> =
            found.iter().map(|warm_up| (warm_up.origin, warm_up.period.values)).collect();
        let (mut kept, mut removed) = (Vec::new(), BTreeSet::new());
        for point in samples.points.iter() {
            match left.get_mut(&(point.run, point.boot)).filter(|left| **left > 0) {
                Some(left) => {
                    *left -= 1;
                    removed.insert(point.iteration_key());
                }
                None => kept.push(*point),
            }
        }
        count += samples.points.len() - kept.len();
        let still: BTreeSet<IterationKey> = kept.iter().map(SamplePoint::iteration_key).collect();
        gone.extend(removed.difference(&still).map(|iteration| (key.0, *iteration)));
        samples.points = SampleValues::from(kept);
        cut.insert(*key);
    }
    let others = side.cells.iter_mut().filter(|(key, _)| !gone.is_empty() && !cut.contains(key));
    for ((subject, _), samples) in others {
        let before = samples.points.len();
        samples.points.to_mut().retain(|point| !gone.contains(&(*subject, point.iteration_key())));
        count += before - samples.points.len();
    }
    count
}
