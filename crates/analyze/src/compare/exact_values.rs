//! Metrics that are assumed exact, such as the size of a program: one value a side, compared without statistics.
//!
//! The assumption is whoever made the results' (`Unit NAME assume=exact` in Go's benchmark format; `benchmath.AssumeExact` of
//! golang.org/x/perf). Where the values of a side differ all the same, it does not hold, and the row is compared as any other.

use crate::compare::alignment::MetricSamples;
use crate::compare::change::{ChangeScale, IntervalMeaning, MetricChange};

/// The smallest and the largest value of a side, if they are not one.
pub(crate) fn differing_range(samples: &MetricSamples) -> Option<(f64, f64)> {
    let values = || samples.points.iter().map(|point| point.value);
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    (least < most).then_some((least, most))
}

/// The change between two sides of one value each.
pub(crate) fn exact_change(baseline: &MetricSamples, candidate: &MetricSamples) -> Option<MetricChange> {
    if !(baseline.exact && candidate.exact)
        || [baseline, candidate].into_iter().any(|side| differing_range(side).is_some())
    {
        return None;
    }
    let (old, new) = (baseline.points.first()?.value, candidate.points.first()?.value);
    let (scale, value) = match old > 0.0 {
        true => (ChangeScale::Ratio, new / old - 1.0),
        false => (ChangeScale::Absolute, new - old),
    };
    value.is_finite().then_some(MetricChange {
        scale,
        value,
        interval: None,
        narrow: None,
        covers: IntervalMeaning::Change,
    })
}
