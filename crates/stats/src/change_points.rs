//! Steps of a series: energy distance with permutations ([`EDivisive`]).
//!
//! A step lies between two values; which revision is to blame takes a new measurement on both sides. A p-value is never
//! zero: it is (b + 1) / (m + 1), or where fewer than ten of m permutations reach the step, the tail of an exponential
//! distribution fitted to the largest quarter, down to 1 / (m + 1)². Source: Knijnenburg, Wessels, Reinders and Shmulevich,
//! "Fewer permutations, more accurate P-values", Bioinformatics 25 (2009), with a shape of zero: the energy distance is a
//! quadratic form of the values' distributions, whose tail is exponential.
//!
//! Values that depend on the ones before make shuffling lie: of flat series with a lag-one correlation of 0.5, 82 % have
//! a "step". With [`EDivisive::autocorrelated`] the permuted innovations of an AR(1) model are filtered back into
//! dependent series before they are searched. Source: Bühlmann, "Sieve bootstrap for time series", Bernoulli 3 (1997); the
//! permutation of residuals is Freedman and Lane's (Journal of Business and Economic Statistics 1, 1983).
//!
//! Where neighbours come in groups that share their luck, as the runs of one day may, the groups are blocks of the permutation
//! ([`EDivisive::find_in_groups`]): a level of many days' luck is no step.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::error::{StatsError, check_at_least, check_open_fraction};
use crate::series_groups::SeriesGroups;

/// How to search; see [`EDivisive::find`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EDivisive {
    /// Steps with a p-value at or below this are accepted, such as 0.05.
    pub level: f64,
    /// Permutations for each step, such as 199.
    pub permutations: usize,
    /// Fewest values between two steps.
    pub shortest: usize,
    /// Where the random numbers start. Record it with the result.
    pub seed: u64,
    /// Whether values may depend on the ones before them (AR(1)); otherwise they are independent but for the steps.
    pub autocorrelated: bool,
}

impl Default for EDivisive {
    fn default() -> Self {
        Self { level: 0.05, permutations: 199, shortest: 5, seed: 1, autocorrelated: false }
    }
}

impl EDivisive {
    /// The steps of a series in time order, ascending. The best candidate over all ranges is tested by shuffling each
    /// range in itself: p = (b + 1) / (m + 1), where b of m shuffles have a candidate at least as far. An accepted one
    /// splits its range; the first that is not ends the search. So a series without steps has one found with
    /// probability `level`. p is that of the step when it was found. Shuffling ends as soon as a step cannot be accepted any more (Besag and
    /// Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991), so a flat series takes a fifth of the time. Time
    /// grows with permutations · n²: 200 values with 199 permutations take about 65 ms, 2,000 a hundred times that. Source: Matteson and James (2014), section 2.
    ///
    /// # Errors
    /// Fewer than two segments' worth of values, one that is not finite, more than 10,000, a level outside (0, 1), a
    /// shortest segment or a number of permutations of zero, values whose distances overflow.
    pub fn find(&self, in_time_order: &[f64]) -> Result<Vec<ChangePoint>, StatsError> {
        self.search(in_time_order, None)
    }

    /// The same in a series whose groups of neighbours share their luck: from two segments' worth of groups on, their means are
    /// permuted as values otherwise are, with what lies within them; of fewer, nobody can tell a step between two groups from their
    /// luck, and values are permuted within groups only. Groups that do not differ by more than their values
    /// ([`SeriesGroups::share_luck`]) change nothing.
    ///
    /// # Errors
    /// As [`find`](Self::find); groups of another number of values.
    pub fn find_in_groups(
        &self,
        in_time_order: &[f64],
        groups: &SeriesGroups,
    ) -> Result<Vec<ChangePoint>, StatsError> {
        let shared = groups.share_luck(in_time_order)?;
        self.search(in_time_order, shared.then_some(groups))
    }

    fn search(
        &self,
        in_time_order: &[f64],
        groups: Option<&SeriesGroups>,
    ) -> Result<Vec<ChangePoint>, StatsError> {
        let series = check_searchable(in_time_order, self.shortest)?;
        check_open_fraction("level", self.level)?;
        if self.permutations == 0 {
            return Err(StatsError::TooFew { needed: 1, got: 0 });
        }
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut steps: Vec<(usize, f64)> = Vec::new();
        loop {
            let indexes: Vec<usize> = steps.iter().map(|(index, _)| *index).collect();
            let Some(found) = self.best_step(series, &indexes) else { break };
            let p = self.p_value(series, &indexes, (found, groups), &mut random);
            if p > self.level {
                break;
            }
            steps.push((found.index, p));
            steps.sort_unstable_by_key(|(index, _)| *index);
        }
        Ok(describe_steps(series, &steps))
    }

    /// The farthest candidate of all ranges; `None` where nothing differs.
    fn best_step(&self, series: &[f64], steps: &[usize]) -> Option<StepCandidate> {
        let of_range = |range: std::ops::Range<usize>| {
            let start = range.start;
            let found = best_candidate(series.get(range)?, self.shortest)?;
            Some(StepCandidate { index: found.index + start, end: found.end + start, ..found })
        };
        let found = segment_ranges(steps, series.len()).into_iter().filter_map(of_range);
        found.max_by(|a, b| a.distance.total_cmp(&b.distance)).filter(|best| best.distance > 0.0)
    }

    fn p_value(
        &self,
        series: &[f64],
        steps: &[usize],
        (found, groups): (StepCandidate, Option<&SeriesGroups>),
        random: &mut ChaCha8Rng,
    ) -> f64 {
        let mut null = match groups {
            None => SeriesNull::Values {
                ranges: segment_ranges(steps, series.len()),
                values: self.null_of(series, steps, self.evident_cuts(series, steps, found)),
            },
            Some(groups) => SeriesNull::Groups(self.grouped_null(series, steps, found, groups)),
        };
        let all = (self.permutations + 1) as f64;
        // Sums in another order differ in the last digits; equal arrangements must count as equal.
        let far = found.distance * (1.0 - 1e-12);
        let mut distances = Vec::with_capacity(self.permutations);
        let mut at_least = 0;
        for _ in 0..self.permutations {
            let shuffled = null.draw_series(random);
            let distance = self.best_step(shuffled, steps).map_or(0.0, |best| best.distance);
            distances.push(distance);
            at_least += usize::from(distance >= far);
            // So many shuffles as far already refuse the step: the others cannot make it less likely by chance.
            if (at_least + 1) as f64 > self.level * all {
                break;
            }
        }
        let counted = (at_least + 1) as f64 / all;
        if at_least >= FEWEST_EXCEEDANCES || distances.len() < self.permutations {
            return counted;
        }
        exponential_tail(&mut distances, far).map_or(counted, |tail| tail.clamp(1.0 / (all * all), counted))
    }

    /// The candidate's cuts, and those of further levels that stand out of the noise between neighbours: steps that were not come to
    /// yet would pass for values that depend on one another, and hide each other.
    fn evident_cuts(&self, series: &[f64], steps: &[usize], found: StepCandidate) -> Vec<usize> {
        let mut cuts = found.cuts(steps, series.len());
        if !self.autocorrelated {
            return cuts;
        }
        loop {
            let known = sorted_cuts(steps, &cuts);
            let further = self.best_step(series, &known);
            let Some(further) = further.filter(|further| further.stands_out(series, &known)) else {
                return cuts;
            };
            cuts.extend(further.cuts(&known, series.len()));
        }
    }

    fn null_of(&self, series: &[f64], steps: &[usize], cuts: Vec<usize>) -> DependentNull {
        if self.autocorrelated {
            DependentNull::from_series(series, steps, &cuts)
        } else {
            DependentNull::independent(series)
        }
    }

    fn grouped_null(
        &self,
        series: &[f64],
        steps: &[usize],
        found: StepCandidate,
        groups: &SeriesGroups,
    ) -> GroupedNull {
        let cuts = found.cuts(steps, series.len());
        let pieces = groups.cut_at(steps);
        let ranges: Vec<std::ops::Range<usize>> = pieces.ranges().collect();
        let means: Vec<f64> = ranges.iter().map(|range| segment_mean(&series[range.clone()])).collect();
        let mut within = series.to_vec();
        for (range, mean) in ranges.iter().zip(&means) {
            within[range.clone()].iter_mut().for_each(|value| *value -= mean);
        }
        let drawn = series.to_vec();
        if groups.count() < 2 * self.shortest {
            // The means stay where they are.
            let values = self.null_of(&within, pieces.starts().get(1..).unwrap_or_default(), cuts);
            return GroupedNull { level: GroupLevel::Fixed { values, means }, pieces: ranges, drawn };
        }
        let piece_of = |index: usize| ranges.partition_point(|range| range.start < index);
        let piece_steps: Vec<usize> = steps.iter().map(|step| piece_of(*step)).collect();
        let piece_cuts = cuts.iter().map(|cut| piece_of(*cut).clamp(1, means.len() - 1)).collect();
        let of_means = self.null_of(&means, &piece_steps, piece_cuts);
        // Taking the mean out left a value of n with 1 - 1/n of its variance.
        for range in ranges.iter().filter(|range| range.len() > 1) {
            let n = range.len() as f64;
            within[range.clone()].iter_mut().for_each(|value| *value *= (n / (n - 1.0)).sqrt());
        }
        // A value alone in its group says nothing of what lies within.
        let alone: Vec<usize> =
            ranges.iter().filter(|range| range.len() == 1).map(|range| range.start).collect();
        let pool: Vec<f64> = within
            .iter()
            .enumerate()
            .filter(|(at, _)| !alone.contains(at))
            .map(|(_, value)| *value)
            .collect();
        let segments = segment_ranges(&piece_steps, means.len());
        let level = GroupLevel::Drawn { means: of_means, segments, within: pool };
        GroupedNull { level, pieces: ranges, drawn }
    }
}

/// Series without further steps, to hold a candidate against.
enum SeriesNull {
    Values { ranges: Vec<std::ops::Range<usize>>, values: DependentNull },
    Groups(GroupedNull),
}

impl SeriesNull {
    fn draw_series(&mut self, random: &mut ChaCha8Rng) -> &[f64] {
        match self {
            SeriesNull::Values { ranges, values } => values.draw_series(ranges, random),
            SeriesNull::Groups(groups) => groups.draw_series(random),
        }
    }
}

/// Series whose groups of neighbours share their luck.
struct GroupedNull {
    level: GroupLevel,
    /// The groups, cut at the steps.
    pieces: Vec<std::ops::Range<usize>>,
    drawn: Vec<f64>,
}

/// What the luck of the groups is taken to be.
enum GroupLevel {
    /// That which they had: values are drawn within groups only.
    Fixed { values: DependentNull, means: Vec<f64> },
    /// Drawn like values, within segments; and what lies within groups, from all of them.
    Drawn { means: DependentNull, segments: Vec<std::ops::Range<usize>>, within: Vec<f64> },
}

impl GroupedNull {
    fn draw_series(&mut self, random: &mut ChaCha8Rng) -> &[f64] {
        match &mut self.level {
            GroupLevel::Fixed { values, means } => {
                self.drawn.copy_from_slice(values.draw_series(&self.pieces, random));
                for (piece, mean) in self.pieces.iter().zip(means) {
                    self.drawn[piece.clone()].iter_mut().for_each(|value| *value += *mean);
                }
            }
            GroupLevel::Drawn { means, segments, within } => {
                within.shuffle(random);
                let mut rest = within.iter();
                for (piece, mean) in self.pieces.iter().zip(means.draw_series(segments, random)) {
                    let values = &mut self.drawn[piece.clone()];
                    if let [only] = values {
                        *only = *mean;
                        continue;
                    }
                    values.iter_mut().zip(&mut rest).for_each(|(value, within)| *value = *within);
                    let centre = segment_mean(values);
                    values.iter_mut().for_each(|value| *value += mean - centre);
                }
            }
        }
        &self.drawn
    }
}

/// Fewer permutations than these beyond a step are too few to count: the tail is fitted.
const FEWEST_EXCEEDANCES: usize = 10;

/// The share of distances beyond `far`, by an exponential tail through the largest quarter; `None` where they do not
/// differ, or are too few.
fn exponential_tail(distances: &mut [f64], far: f64) -> Option<f64> {
    let largest = distances.len() / 4;
    if largest < FEWEST_EXCEEDANCES {
        return None;
    }
    distances.sort_unstable_by(|a, b| b.total_cmp(a));
    let threshold = distances.get(largest - 1)?.midpoint(*distances.get(largest)?);
    let excess: f64 = distances.iter().take(largest).map(|distance| distance - threshold).sum();
    let mean = excess / largest as f64;
    let share = largest as f64 / distances.len() as f64;
    (mean > 0.0 && far > threshold).then(|| share * (-(far - threshold) / mean).exp())
}

/// A second cut, where values may have gone back, is chosen to fit as the first is, and takes away more of the correlation than its
/// mean: it counts as so many further means. Simulated for flat series of 30 to 100 values with correlations of 0 to 0.6: as few show a
/// step as with one cut, and of levels that came for 5 of 60 values, four standard deviations away, 98 instead of 12 % are found.
const WHERE_IT_WENT_BACK: f64 = 3.0;

/// Levels of so many standard errors' difference are steps, whatever the values' dependence. Simulated for flat series of 20 to 100 values with
/// correlations of 0 to 0.6: as few show a step as without; of series of 40 whose level goes up by 4 standard deviations and
/// down by 8, both are found in 99 instead of 37 %.
const EVIDENT: f64 = 6.0;

/// Values without further steps: the values shuffled, or the innovations of an AR(1) model
/// shuffled and filtered back.
#[derive(Debug)]
struct DependentNull {
    /// Lag-one correlation; 0 where the values themselves are shuffled.
    correlation: f64,
    innovations: Vec<f64>,
    drawn: Vec<f64>,
}

impl DependentNull {
    fn independent(series: &[f64]) -> Self {
        Self { correlation: 0.0, innovations: series.to_vec(), drawn: series.to_vec() }
    }

    /// The lag-one correlation of what remains when the steps and what was found beside them are taken out, leaning upwards: by twice
    /// its bias of (1 + 2ρ) / n for each mean that was taken out (Marriott and Pope, Biometrika 41, 1954; Kendall, the same
    /// volume), twice because the means were chosen where they fit best, and by 0.4 standard errors.
    fn from_series(series: &[f64], steps: &[usize], found: &[usize]) -> Self {
        let segments = segment_ranges(&sorted_cuts(steps, found), series.len());
        let mut residuals = series.to_vec();
        let (mut products, mut squares) = (0.0, 0.0);
        for range in &segments {
            let Some(values) = residuals.get_mut(range.clone()) else { continue };
            let mean = segment_mean(values);
            values.iter_mut().for_each(|value| *value -= mean);
            squares += values.iter().map(|value| value * value).sum::<f64>();
            products += values.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        }
        let n = series.len() as f64;
        let raw = if squares > 0.0 { products / squares } else { 0.0 };
        let chosen = segments.len() as f64 + WHERE_IT_WENT_BACK * found.len().saturating_sub(1) as f64;
        let bias = 2.0 * chosen * (1.0 + 2.0 * raw.max(0.0)) / n;
        let correlation = (raw + bias + 0.4 / n.sqrt()).clamp(0.0, 0.9);
        if correlation == 0.0 || squares == 0.0 {
            return Self::independent(series);
        }
        // Taking means out made the residuals too small.
        let freedom = (n / (n - segments.len() as f64).max(1.0)).sqrt();
        let stationary = (1.0 - correlation * correlation).sqrt();
        let mut innovations = Vec::with_capacity(series.len());
        for range in segment_ranges(steps, series.len()) {
            let values = residuals.get(range).unwrap_or_default();
            innovations.extend(values.first().map(|first| first * stationary * freedom));
            innovations.extend(values.windows(2).map(|pair| (pair[1] - correlation * pair[0]) * freedom));
        }
        Self { correlation, drawn: innovations.clone(), innovations }
    }

    /// The next series: each range is shuffled in itself.
    fn draw_series(&mut self, ranges: &[std::ops::Range<usize>], random: &mut ChaCha8Rng) -> &[f64] {
        for range in ranges {
            if let Some(values) = self.innovations.get_mut(range.clone()) {
                values.shuffle(random);
            }
        }
        self.drawn.copy_from_slice(&self.innovations);
        if self.correlation > 0.0 {
            let stationary = (1.0 - self.correlation * self.correlation).sqrt();
            for values in ranges.iter().cloned() {
                let Some(values) = self.drawn.get_mut(values) else { continue };
                let mut before = None;
                for value in values {
                    *value +=
                        before.map_or(*value / stationary - *value, |before: f64| self.correlation * before);
                    before = Some(*value);
                }
            }
        }
        &self.drawn
    }
}

fn describe_steps(series: &[f64], steps: &[(usize, f64)]) -> Vec<ChangePoint> {
    let indexes: Vec<usize> = steps.iter().map(|(index, _)| *index).collect();
    let means: Vec<f64> =
        segment_ranges(&indexes, series.len()).into_iter().map(|s| segment_mean(&series[s])).collect();
    let sides = means.windows(2).map(|pair| (pair[0], pair[1]));
    let point = |((index, p), (before, after)): (&(usize, f64), _)| ChangePoint {
        index: *index,
        p: *p,
        before,
        after,
    };
    steps.iter().zip(sides).map(point).collect()
}

/// The best place for a step, and how large its distance is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct StepCandidate {
    /// First value after the step.
    index: usize,
    /// First value beyond those after the step that it was found with: where these end before the range does, values may go back.
    end: usize,
    /// Scaled energy distance, in the unit of the values.
    distance: f64,
}

impl StepCandidate {
    /// Where values of another level begin if the candidate is a step: there, and where they go back before the range ends. A level
    /// that came and went would otherwise pass for values that depend on one another.
    fn cuts(&self, steps: &[usize], length: usize) -> Vec<usize> {
        let is_inside = self.end < length && !steps.contains(&self.end);
        std::iter::once(self.index).chain(is_inside.then_some(self.end)).collect()
    }

    /// Whether the means on its sides differ by [`EVIDENT`] standard errors, of which the mean square of the differences between
    /// neighbours tells: those across a cut are left out.
    fn stands_out(&self, series: &[f64], cuts: &[usize]) -> bool {
        let start = cuts.iter().copied().filter(|cut| *cut <= self.index).max().unwrap_or(0);
        let (Some(before), Some(after)) = (series.get(start..self.index), series.get(self.index..self.end))
        else {
            return false;
        };
        let is_cut = |at: usize| at == self.index || at == self.end || cuts.contains(&at);
        let neighbours = (1..).zip(series.windows(2)).filter(|(at, _)| !is_cut(*at));
        let squares: Vec<f64> = neighbours.map(|(_, pair)| (pair[1] - pair[0]).powi(2)).collect();
        let variance = segment_mean(&squares) / 2.0;
        let error = (variance * ((before.len() as f64).recip() + (after.len() as f64).recip())).sqrt();
        (segment_mean(before) - segment_mean(after)).abs() > EVIDENT * error
    }
}

/// The (τ, κ) that maximises Q = ab/(a+b) · E(x[..τ], x[τ..κ]), a = τ, b = κ - τ, both at least `shortest`, where
/// E = 2/(ab) Σ|x - y| - Σ|x - x'| / C(a, 2) - Σ|y - y'| / C(b, 2) and a sum over one value is zero. Source: Matteson and
/// James, "A nonparametric approach for multiple change point analysis of multivariate data", Journal of the American
/// Statistical Association 109 (2014), α = 1. Takes n² time and n memory. `None` for fewer than two segments' worth.
fn best_candidate(series: &[f64], shortest: usize) -> Option<StepCandidate> {
    // to_here[k] = Σ |x_i - x_k| over i < τ, kept up while τ moves; from_start[k] is the same at τ = k.
    let from_start: Vec<f64> = (0..series.len()).map(|k| sum_distances(series, k)).collect();
    let mut to_here = vec![0.0; series.len()];
    let mut left_within = 0.0;
    let mut best: Option<StepCandidate> = None;
    for (tau, last) in (1..series.len()).zip(series) {
        left_within += from_start[tau - 1];
        for (sum, value) in to_here.iter_mut().zip(series).skip(tau) {
            *sum += (value - last).abs();
        }
        if tau < shortest {
            continue;
        }
        let (mut cross, mut right_within) = (0.0, 0.0);
        for (kappa, (here, all)) in (tau + 1..).zip(to_here.iter().zip(&from_start).skip(tau)) {
            cross += here;
            right_within += all - here;
            let distance =
                scaled_distance(tau as f64, (kappa - tau) as f64, cross, left_within, right_within);
            if kappa - tau >= shortest && best.is_none_or(|best| distance > best.distance) {
                best = Some(StepCandidate { index: tau, end: kappa, distance });
            }
        }
    }
    best
}

/// Σ |x_i - x_k| over i < k.
fn sum_distances(series: &[f64], k: usize) -> f64 {
    series.iter().take(k).map(|value| (value - series[k]).abs()).sum()
}

fn scaled_distance(a: f64, b: f64, cross: f64, left: f64, right: f64) -> f64 {
    let inner = |sum: f64, n: f64| if n > 1.0 { sum / (n - 1.0) } else { 0.0 };
    2.0 / (a + b) * (cross - b * inner(left, a) - a * inner(right, b))
}

/// A step in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value after the step, from 0.
    pub index: usize,
    /// How surprising the step is, were there none.
    pub p: f64,
    /// Mean of the segment before, back to the step before it, in the unit of the values.
    pub before: f64,
    /// Mean of the segment after, up to the next step, in the unit of the values.
    pub after: f64,
}

/// Most values of a series: the search takes time with their square.
const MOST_VALUES: usize = 10_000;

/// Passes a series that can be searched with segments of at least `shortest` values.
fn check_searchable(series: &[f64], shortest: usize) -> Result<&[f64], StatsError> {
    if shortest == 0 {
        return Err(StatsError::OutOfRange { name: "shortest segment", value: 0.0, range: "[1, infinity)" });
    }
    let series = check_at_least(series, shortest.saturating_mul(2))?;
    let got = series.len();
    if got > MOST_VALUES {
        return Err(StatsError::TooMany { limit: MOST_VALUES * MOST_VALUES, got: got.saturating_mul(got) });
    }
    // A sum of so many distances must stay a number.
    let widest = series.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if widest > f64::MAX / 1e10 { Err(StatsError::Overflow) } else { Ok(series) }
}

/// Steps and cuts in their order, each once.
fn sorted_cuts(steps: &[usize], cuts: &[usize]) -> Vec<usize> {
    let mut all = [steps, cuts].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// The ranges between steps.
fn segment_ranges(steps: &[usize], length: usize) -> Vec<std::ops::Range<usize>> {
    let starts = std::iter::once(0).chain(steps.iter().copied());
    starts.zip(steps.iter().copied().chain([length])).map(|(start, end)| start..end).collect()
}

fn segment_mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{ChangePoint, DependentNull, EDivisive, best_candidate, exponential_tail};
    use crate::error::StatsError;

    fn parse_numbers(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().map(|item| item.as_f64().unwrap()).collect()
    }

    /// Against sums over all pairs for all (τ, κ): `tests/data/make_more_tables.py`.
    #[test]
    fn the_farthest_candidate_is_found() {
        let rows: Vec<Value> = serde_json::from_str(include_str!("../tests/data/energy.json")).unwrap();
        for row in rows {
            let shortest = row["shortest"].as_u64().unwrap() as usize;
            let found = best_candidate(&parse_numbers(&row["x"]), shortest).unwrap();
            assert_eq!(found.index as u64, row["index"].as_u64().unwrap());
            let requested = row["distance"].as_f64().unwrap();
            assert!((found.distance - requested).abs() <= 1e-9 * requested.abs(), "{found:?} {requested}");
        }
    }

    /// Apache Otava, tests/change_point_divisive_test.py: steps at 5 and 8.
    const SEQUENCE: [f64; 14] =
        [0.3, 2.4, 1.5, -0.9, -0.5, 99.7, 98.3, 99.1, 149.0, 149.7, 149.5, 149.1, 148.8, 150.0];

    /// Apache Otava, tests/analysis_test.py: a step at 10.
    const HALVED: [f64; 20] = [
        1.02, 0.95, 0.99, 1.00, 1.12, 1.00, 1.01, 0.98, 1.01, 0.96, 0.50, 0.51, 0.48, 0.48, 0.55, 0.50, 0.49,
        0.51, 0.50, 0.49,
    ];

    fn step_indexes(found: Result<Vec<ChangePoint>, StatsError>) -> Vec<usize> {
        found.unwrap().iter().map(|step| step.index).collect()
    }

    #[test]
    fn steps_of_otava() {
        let divisive =
            EDivisive { level: 0.05, permutations: 199, shortest: 1, seed: 1, autocorrelated: false };
        assert_eq!(step_indexes(divisive.find(&SEQUENCE)), [5, 8]);
        assert_eq!(step_indexes(divisive.find(&HALVED)), [10]);
    }

    #[test]
    fn a_step_carries_its_means_and_an_honest_p() {
        let [step] = EDivisive { permutations: 99, ..EDivisive::default() }.find(&HALVED).unwrap()[..] else {
            panic!()
        };
        assert_eq!(step.index, 10);
        // No permutation reaches it: the tail says how far beyond them it is, and no less than m permutations could.
        assert!((0.000_1..0.001).contains(&step.p), "{}", step.p);
        assert!((step.before - 1.004).abs() < 1e-12 && (step.after - 0.501).abs() < 1e-12);
    }

    /// Excesses of 1, 2, ..., 10 over a threshold of 100 have a mean of 5.5: a quarter of the values lies beyond it.
    #[test]
    fn a_tail_of_known_excesses_is_exponential() {
        let mut distances: Vec<f64> =
            (0..30).map(f64::from).chain((1..=10).map(|i| 100.0 + f64::from(i))).collect();
        distances[29] = 99.0;
        let threshold = (99.0 + 101.0) / 2.0;
        let share = exponential_tail(&mut distances, threshold + 11.0).unwrap();
        assert!((share - 0.25 * (-2.0_f64).exp()).abs() < 1e-15, "{share}");
        assert_eq!(exponential_tail(&mut [1.0; 40], 2.0), None);
        assert_eq!(exponential_tail(&mut [1.0, 2.0, 3.0], 4.0), None);
    }

    #[test]
    fn innovations_filtered_in_their_own_order_are_the_residuals() {
        let series = [1.0, 1.5, 1.8, 1.2, 0.7, 5.1, 5.9, 5.6, 4.8, 4.6];
        let mut null = DependentNull::from_series(&series, &[], &[5]);
        assert!(null.correlation > 0.5, "{null:?}");
        let stationary = (1.0 - null.correlation.powi(2)).sqrt();
        let mut before = None;
        let mut filtered = Vec::new();
        for innovation in null.innovations.clone() {
            let value =
                before.map_or(innovation / stationary, |before: f64| null.correlation * before + innovation);
            before = Some(value);
            filtered.push(value / (10.0_f64 / 8.0).sqrt());
        }
        let means = [[1.0, 1.5, 1.8, 1.2, 0.7].iter().sum::<f64>() / 5.0, 5.2];
        for (at, (value, residual)) in series.iter().zip(filtered).enumerate() {
            assert!((value - means[at / 5] - residual).abs() < 1e-12, "{at}");
        }
        let mut random = <rand_chacha::ChaCha8Rng as rand::SeedableRng>::seed_from_u64(1);
        assert_eq!(null.draw_series(std::slice::from_ref(&(0..10)), &mut random).len(), 10);
    }

    #[test]
    fn nothing_changes_in_equal_values() {
        assert_eq!(EDivisive::default().find(&[3.0; 40]), Ok(vec![]));
    }

    #[test]
    fn a_step_between_constants_is_certain() {
        let series: Vec<f64> = (0..40).map(|i| if i < 20 { 1.0 } else { 2.0 }).collect();
        assert_eq!(step_indexes(EDivisive::default().find(&series)), [20]);
    }

    #[test]
    fn settings_outside_their_range() {
        let few = EDivisive { permutations: 0, ..EDivisive::default() };
        assert_eq!(few.find(&HALVED), Err(StatsError::TooFew { needed: 1, got: 0 }));
        assert!(matches!(EDivisive::default().find(&vec![1.0; 10_001]), Err(StatsError::TooMany { .. })));
    }
}
