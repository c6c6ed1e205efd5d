//! Two modes, where one middle does not describe a sample, and values far from the rest.
//!
//! The sorted sample is cut in two where the gap between neighbours is largest compared with the pooled standard
//! deviation inside the two parts, each holding at least a fifth of the values and at least two (fewer are outliers).
//! The gap must exceed 4 (n/10)^-0.95 of those standard deviations, and, when all values are positive, the widest gap
//! of their logarithms must too: a long right tail has gaps on one scale only. The limit was fitted to simulations
//! (20,000 samples a size, n = 8..200). It is passed by 1.1 % or fewer of normal and log-normal samples at every size,
//! and by 2 to 3 % of uniform ones (the flattest shape with one mode) up to n = 60, 5 % at 200. Equal modes eight
//! standard deviations apart are found in 71 % of samples at n = 8, 84 % at 10, 97 % at 15; ten apart in 92 % at n = 8,
//! 98 % at 10. `tests/it/simulation.rs` repeats the check. Three modes, or modes that overlap, need a picture.
//!
//! The steps of a coarse clock are no modes: a gap must be wider than three of the usual distances between values that differ.
//!
//! Outliers are labelled and never removed: a slow iteration is a finding.

use crate::descriptive::{distances_from_median, mean, median, quantile_of_sorted};
use crate::error::{
    StatsError, check_above_zero, check_at_least, finite_or_overflow, logarithms, sorted_sample,
};
use crate::student_t::t_quantile_above;

/// By as much the limit grows with the logarithm of the number of samples that are looked at: a tenth of the chance needs a gap
/// 1.57 times as wide at n = 10 (1.44 at 15, 1.33 at 30).
const GROWTH_OF_LIMIT: f64 = 0.3;

/// Fewest values in which two modes are looked for.
const FEWEST_FOR_MODES: usize = 8;

/// As many usual distances of neighbours is a gap wide at least.
const STEPS: f64 = 3.0;

/// Two groups of values with a gap between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoModes {
    /// Mean of the lower group, in the unit of the values.
    pub low: f64,
    /// Mean of the upper group, in the unit of the values.
    pub high: f64,
    /// Share of the values in the upper group, as a fraction.
    pub high_share: f64,
    /// Width of the gap in standard deviations within the groups; infinite when both groups are constant.
    pub gap: f64,
}

/// Two modes if the sample clearly has them, `None` if one mode can explain it. `samples` is how many are looked at for one
/// answer: the more, the wider the gap must be for the same chance of any false one.
///
/// Values that take two neighbouring steps of a coarse clock have two modes too: compare the distance of the
/// modes with what matters before warning.
///
/// # Errors
/// Fewer than eight values, one that is not finite.
pub fn find_two_modes(values: &[f64], samples: usize) -> Result<Option<TwoModes>, StatsError> {
    let sorted = sorted_sample(check_at_least(values, FEWEST_FOR_MODES)?)?;
    let limit = 4.0
        * (sorted.len() as f64 / 10.0).powf(-0.95)
        * (1.0 + GROWTH_OF_LIMIT * (samples.max(1) as f64).ln());
    let best = widest_gap(&sorted);
    let on_logarithms = || logarithms(&sorted).map_or(f64::INFINITY, |logs| widest_gap(&logs).gap);
    if best.gap <= limit || is_clock_step(&sorted, best.at) || on_logarithms() <= limit {
        return Ok(None);
    }
    let (low, high) = sorted.split_at(best.at);
    let high_share = high.len() as f64 / sorted.len() as f64;
    Ok(Some(TwoModes { low: mean(low)?, high: mean(high)?, high_share, gap: best.gap }))
}

/// Whether the gap is like those between other neighbours that differ: of thousands of readings of a coarse clock every
/// step is wide beside the limit, which shrinks with their number.
fn is_clock_step(sorted: &[f64], at: usize) -> bool {
    let step = |at: usize| sorted[at] - sorted[at - 1];
    let mut others: Vec<f64> =
        (1..sorted.len()).filter(|other| *other != at).map(step).filter(|step| *step > 0.0).collect();
    let middle = others.len() / 2;
    if others.is_empty() {
        return false;
    }
    let (_, median, _) = others.select_nth_unstable_by(middle, f64::total_cmp);
    step(at) <= STEPS * *median
}

#[derive(Clone, Copy)]
struct ModeSplit {
    at: usize,
    gap: f64,
}

/// The split of sorted values with the widest gap in units of the spread within.
fn widest_gap(sorted: &[f64]) -> ModeSplit {
    let fewest = sorted.len().div_ceil(5).max(2);
    let (below, above) = (running_squares(sorted.iter()), running_squares(sorted.iter().rev()));
    let freedom = (sorted.len() - 2) as f64;
    let mut best = ModeSplit { at: fewest, gap: 0.0 };
    for at in fewest..=sorted.len() - fewest {
        let width = sorted[at] - sorted[at - 1];
        let within = (below[at - 1] + above[sorted.len() - at - 1]) / freedom;
        let gap = if width > 0.0 { width / within.sqrt() } else { 0.0 };
        if gap > best.gap {
            best = ModeSplit { at, gap };
        }
    }
    best
}

/// Sums of squared distances from the mean of the first 1, 2, … values, by Welford's update (Technometrics 4,
/// 1962), which does not lose small spreads around a large mean.
fn running_squares<'a>(values: impl Iterator<Item = &'a f64>) -> Vec<f64> {
    let (mut mean, mut squares) = (0.0, 0.0);
    let update = |(index, value): (usize, &f64)| {
        let distance = value - mean;
        mean += distance / (index + 1) as f64;
        squares += distance * (value - mean);
        squares
    };
    values.enumerate().map(update).collect()
}

/// No more values than this are looked at as outliers, whatever the size of the sample.
const MOST_OUTLIERS: usize = 100;

/// A value far from the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlyingValue {
    /// Where it stands in the sample, from 0.
    pub index: usize,
    /// Its distance from the mean in standard deviations, of the values that are no farther: the sign tells the side.
    pub score: f64,
}

/// The step of the scale on which values stand: the smallest distance between two of them that differ. Of two different values it
/// is one only where both are multiples of it, as those of a coarse clock are. None where all are equal, or none is a number.
#[must_use]
pub fn value_resolution(values: &[f64]) -> Option<f64> {
    let mut distinct: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup();
    let gaps = distinct.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?));
    let step = gaps.reduce(f64::min).filter(|step| step.is_finite() && *step > 0.0)?;
    let steps = distinct.first()? / step;
    let is_multiple = (steps - steps.round()).abs() < WHOLE;
    (distinct.len() > 2 || is_multiple).then_some(step)
}

/// Whether the values stand on a scale so coarse that most of them are equal to another one: times of a coarse clock, small
/// counts. Medians and ranks of such values move by whole steps.
#[must_use]
pub fn has_coarse_scale(values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let tied: usize = sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).filter(|equal| *equal > 1).sum();
    tied as f64 > COARSE_SHARE * sorted.len() as f64
}

/// Above this share of values that are equal to another one a scale is coarse.
const COARSE_SHARE: f64 = 0.5;

/// A number of steps so close to a whole one is whole.
const WHOLE: f64 = 1e-6;

/// Outliers by the generalised extreme Studentised deviate, in the order of the sample: a clean sample has any with the
/// chance `alpha`.
///
/// The farthest value is taken out again and again, at most a quarter of the sample and a hundred; as many are outliers as
/// the last one that is farther than chance explains. Where all values are positive, an outlier must be one of the logarithms,
/// too: a long right tail is none. Equal values have no outliers. Source: Rosner, "Percentage Points for a Generalized ESD
/// Many-Outlier Procedure", Technometrics 25 (1983).
///
/// # Errors
/// An empty sample, a value that is not finite, a difference that overflows, an `alpha` that is not above zero.
pub fn find_outlying_values(values: &[f64], alpha: f64) -> Result<Vec<OutlyingValue>, StatsError> {
    check_above_zero("alpha", alpha)?;
    let found = extreme_deviates(values, alpha)?;
    if found.is_empty() {
        return Ok(found);
    }
    // Where a value is not positive there are none.
    let Ok(logarithms) = logarithms(values) else { return Ok(found) };
    let on_logarithms = extreme_deviates(&logarithms, alpha)?;
    let is_far = |outlier: &OutlyingValue| on_logarithms.iter().any(|other| other.index == outlier.index);
    Ok(found.into_iter().filter(is_far).collect())
}

/// The generalised extreme Studentised deviates on one scale, in the order of the sample.
fn extreme_deviates(values: &[f64], alpha: f64) -> Result<Vec<OutlyingValue>, StatsError> {
    let centre = median(values)?;
    let widest = distances_from_median(values)?.into_iter().fold(0.0, f64::max);
    if widest == 0.0 {
        return Ok(Vec::new());
    }
    // In units of the widest distance no square overflows.
    let mut sorted: Vec<(f64, usize)> =
        values.iter().enumerate().map(|(index, value)| ((value - centre) / widest, index)).collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut sum, mut squares) = (0.0, 0.0);
    for (value, _) in &sorted {
        sum += value;
        squares += value * value;
    }
    let (mut candidates, mut outliers) = (Vec::new(), 0);
    let mut rest = sorted.as_slice();
    for _ in 0..(values.len() / 4).min(MOST_OUTLIERS) {
        let [lowest, .., highest] = rest else { break };
        let n = rest.len() as f64;
        let mean = sum / n;
        let variance = (squares - sum * mean) / (n - 1.0);
        // Rounding leaves as much of a variance that is none.
        if variance <= f64::EPSILON * squares.max(f64::MIN_POSITIVE) {
            break;
        }
        let from_top = highest.0 - mean >= mean - lowest.0;
        let farthest = if from_top { highest } else { lowest };
        let score = (farthest.0 - mean) / variance.sqrt();
        candidates.push(OutlyingValue { index: farthest.1, score });
        if score.abs() > critical_deviate(n, alpha) {
            outliers = candidates.len();
        }
        sum -= farthest.0;
        squares -= farthest.0 * farthest.0;
        rest = if from_top { &rest[..rest.len() - 1] } else { &rest[1..] };
    }
    candidates.truncate(outliers);
    candidates.sort_by_key(|outlier| outlier.index);
    Ok(candidates)
}

/// What the farthest of `n` normal values exceeds with the chance `alpha`, in standard deviations.
fn critical_deviate(n: f64, alpha: f64) -> f64 {
    let t = t_quantile_above(alpha / (2.0 * n), n - 2.0);
    (n - 1.0) * t / ((n - 2.0 + t * t) * n).sqrt()
}

/// A fence around the middle half of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TukeyFences {
    /// Q1 minus `reach` inter-quartile ranges, in the unit of the values.
    pub low: f64,
    /// Q3 plus as many.
    pub high: f64,
}

impl TukeyFences {
    /// Tukey's fences with type 7 quartiles: `reach` 1.5 for values that are mildly far, 3 for those that are severely.
    /// Source: Tukey, Exploratory Data Analysis (1977), section 2D.
    ///
    /// # Errors
    /// An empty sample, a value that is not finite, a reach that is not above zero, an overflow.
    pub fn from_values(values: &[f64], reach: f64) -> Result<Self, StatsError> {
        let sorted = sorted_sample(values)?;
        check_above_zero("reach", reach)?;
        let [low, high] = [0.25, 0.75].map(|fraction| quantile_of_sorted(&sorted, fraction));
        let width = finite_or_overflow((high - low) * reach)?;
        Ok(Self { low: finite_or_overflow(low - width)?, high: finite_or_overflow(high + width)? })
    }

    /// Whether a value lies beyond either fence.
    #[must_use]
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quartiles of type 7 are 2.75 and 6.25.
    #[test]
    fn values_of_a_coarse_clock_have_a_step() {
        assert_eq!(value_resolution(&[40.0, 44.0, 40.0, 48.0]), Some(4.0));
        assert_eq!(value_resolution(&[10.0, 11.0, 10.0]), Some(1.0));
        assert_eq!(value_resolution(&[10.02, 30.57, 10.02]), None);
        assert_eq!(value_resolution(&[5.0, 5.0]), None);
    }

    #[test]
    fn fences_exclude_what_lies_beyond_them() {
        let fences = TukeyFences::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 1.5).unwrap();
        assert_eq!((fences.low, fences.high), (-2.5, 11.5));
        let inside = [-2.5, 0.0, 5.0, 11.5].map(|value| fences.excludes(value));
        let beyond = [-2.6, 11.6, f64::INFINITY].map(|value| fences.excludes(value));
        assert_eq!((inside, beyond), ([false; 4], [true; 3]));
    }

    #[test]
    fn readings_of_a_coarse_clock_are_one_group() {
        let even: Vec<f64> = (0..5_000).map(|n| f64::from(n % 11) / 1_000.0 + 0.1).collect();
        assert_eq!(find_two_modes(&even, 1), Ok(None));
        let mut apart = even;
        apart.iter_mut().step_by(2).for_each(|value| *value += 0.1);
        assert!(
            find_two_modes(&apart, 1)
                .is_ok_and(|found| found.is_some_and(|modes| (modes.high_share - 0.5).abs() < 0.01))
        );
    }
}
