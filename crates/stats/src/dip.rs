//! Hartigan's dip: how far a sample's distribution function is from the nearest one with a single mode, and how likely
//! one mode would be as far.
//!
//! Values that repeat are steps of the distribution function, which a dip counts as such: readings of a coarse clock
//! look like many modes to it. Where modes are, `sample_shape` says.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::StatsError;
use crate::error::{check_at_least, sorted_sample};

/// Fewest values of which modes can be detected.
const FEWEST: usize = 4;

/// Most values, as each resample costs as much as the sample.
const MOST: usize = 100_000;

/// Result of the dip test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DipTest {
    /// The largest distance between the sample's distribution function and the nearest unimodal one, from 1/2n to 1/4.
    pub dip: f64,
    /// How likely values spread evenly, the hardest case with one mode, would have such a dip.
    pub p: f64,
}

/// The dip test of whether one mode can explain a sample: p = (b + 1) / (m + 1), where b of m `resamples` (such as 1,000)
/// from the uniform distribution have as large a dip. Source: Hartigan and Hartigan, "The dip test of unimodality", Annals of
/// Statistics 13 (1985). Record the seed.
///
/// # Errors
/// Fewer than four values or more than 100,000, one that is not finite, no resamples.
pub fn dip_test(values: &[f64], resamples: usize, seed: u64) -> Result<DipTest, StatsError> {
    let sorted = sorted_sample(check_at_least(values, FEWEST)?)?;
    if sorted.len() > MOST {
        return Err(StatsError::TooMany { limit: MOST, got: sorted.len() });
    }
    if resamples == 0 {
        return Err(StatsError::TooFew { needed: 1, got: 0 });
    }
    let dip = dip_of_sorted(&sorted);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut reaches = || {
        let mut drawn: Vec<f64> = (0..sorted.len()).map(|_| random.random()).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        dip_of_sorted(&drawn) >= dip
    };
    let found = (0..resamples).filter(|_| reaches()).count();
    Ok(DipTest { dip, p: (found + 1) as f64 / (resamples + 1) as f64 })
}

/// A corner of the distribution function: value, and how many values are below (or up to) it.
type DistributionCorner = (f64, f64);

/// The dip of sorted values. A unimodal function is convex before its mode and concave behind it: the modal interval is
/// narrowed from all values on, to where the greatest convex function below and the least concave one above are furthest
/// apart, for as long as they are further apart there than the function had to be bent outside.
fn dip_of_sorted(sorted: &[f64]) -> f64 {
    let count = sorted.len() as f64;
    let lower = |at: usize| (sorted[at], at as f64);
    let upper = |at: usize| (sorted[at], at as f64 + 1.0);
    let (mut low, mut high, mut dip) = (0, sorted.len() - 1, 1.0_f64);
    while sorted[low] < sorted[high] {
        let (convex, concave) = (convex_hull(low..=high, lower, 1.0), convex_hull(low..=high, upper, -1.0));
        let Some((gap, left, right)) = widest_hull_gap(&convex, &concave, lower, upper) else { break };
        if gap <= dip {
            break;
        }
        let below = largest_bend(&convex, low..=left, lower, |at, line| upper(at).1 - line);
        let above = largest_bend(&concave, right..=high, upper, |at, line| line - lower(at).1);
        dip = dip.max(below).max(above);
        if (left, right) == (low, high) {
            break;
        }
        (low, high) = (left, right);
    }
    dip / (2.0 * count)
}

/// The corners of the convex hull: its lower side for a `turn` of 1, its upper side for -1.
fn convex_hull(
    all: std::ops::RangeInclusive<usize>,
    corner: impl Fn(usize) -> DistributionCorner,
    turn: f64,
) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for at in all {
        while let [.., before, last] = kept[..] {
            if turn * cross_product(corner(before), corner(last), corner(at)) > 0.0 {
                break;
            }
            kept.pop();
        }
        kept.push(at);
    }
    kept
}

/// Above zero for a turn to the left.
fn cross_product(a: DistributionCorner, b: DistributionCorner, c: DistributionCorner) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

/// Where the hulls are furthest apart, and the corners left and right of there: one of each hull.
fn widest_hull_gap(
    convex: &[usize],
    concave: &[usize],
    lower: impl Fn(usize) -> DistributionCorner,
    upper: impl Fn(usize) -> DistributionCorner,
) -> Option<(f64, usize, usize)> {
    let at_convex = convex.iter().filter_map(|at| {
        let (from, to) = neighbouring_corners(concave, *at)?;
        Some((interpolate_line(upper(from), upper(to), lower(*at).0) - lower(*at).1, *at, to))
    });
    let at_concave = concave.iter().filter_map(|at| {
        let (from, to) = neighbouring_corners(convex, *at)?;
        Some((upper(*at).1 - interpolate_line(lower(from), lower(to), upper(*at).0), from, *at))
    });
    let in_order = at_convex.chain(at_concave).filter(|(_, left, right)| left <= right);
    in_order.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The corners of a hull on both sides of a place.
fn neighbouring_corners(hull: &[usize], place: usize) -> Option<(usize, usize)> {
    let behind = hull.partition_point(|corner| *corner < place);
    let to = *hull.get(behind)?;
    Some((hull.get(behind.wrapping_sub(1)).copied().unwrap_or(to), to))
}

fn interpolate_line(from: DistributionCorner, to: DistributionCorner, x: f64) -> f64 {
    if to.0 > from.0 { from.1 + (to.1 - from.1) * (x - from.0) / (to.0 - from.0) } else { from.1 }
}

/// The largest distance of the distribution function from a hull within some values.
fn largest_bend(
    hull: &[usize],
    within: std::ops::RangeInclusive<usize>,
    corner: impl Fn(usize) -> DistributionCorner,
    distance: impl Fn(usize, f64) -> f64,
) -> f64 {
    let pieces = hull.windows(2).filter(|pair| within.contains(&pair[0]) && within.contains(&pair[1]));
    let of = |pair: &[usize]| {
        let [from, to] = [pair[0], pair[1]].map(&corner);
        let each = (pair[0]..=pair[1]).map(|at| (at, interpolate_line(from, to, corner(at).0)));
        each.map(|(at, line)| distance(at, line)).fold(0.0, f64::max)
    };
    pieces.map(of).fold(0.0, f64::max)
}
