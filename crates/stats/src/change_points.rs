//! Steps of a series: energy distance with permutations ([`EDivisive`]).
//!
//! A step lies between two values; which revision is to blame takes a new measurement on both sides. A p-value is never
//! zero: (b + 1) / (m + 1) is the least that m permutations can show.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::error::{StatsError, check_at_least, check_open_fraction};

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
}

impl Default for EDivisive {
    fn default() -> Self {
        Self { level: 0.05, permutations: 199, shortest: 5, seed: 1 }
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
            let p = self.p_value(series, &indexes, found, &mut random);
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
            Some(StepCandidate { index: found.index + start, ..found })
        };
        let found = segment_ranges(steps, series.len()).into_iter().filter_map(of_range);
        found.max_by(|a, b| a.distance.total_cmp(&b.distance)).filter(|best| best.distance > 0.0)
    }

    fn p_value(&self, series: &[f64], steps: &[usize], found: StepCandidate, random: &mut ChaCha8Rng) -> f64 {
        let mut shuffled = series.to_vec();
        let all = (self.permutations + 1) as f64;
        let mut at_least = 0;
        for _ in 0..self.permutations {
            for range in segment_ranges(steps, series.len()) {
                if let Some(values) = shuffled.get_mut(range) {
                    values.shuffle(random);
                }
            }
            // Sums in another order differ in the last digits; equal arrangements must count as equal.
            let far = found.distance * (1.0 - 1e-12);
            at_least +=
                usize::from(self.best_step(&shuffled, steps).is_some_and(|best| best.distance >= far));
            // So many shuffles as far already refuse the step: the others cannot make it less likely by chance.
            if (at_least + 1) as f64 > self.level * all {
                break;
            }
        }
        (at_least + 1) as f64 / all
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
    /// Scaled energy distance, in the unit of the values.
    distance: f64,
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
                best = Some(StepCandidate { index: tau, distance });
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

    use super::{ChangePoint, EDivisive, best_candidate};
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
        let divisive = EDivisive { level: 0.05, permutations: 199, shortest: 1, seed: 1 };
        assert_eq!(step_indexes(divisive.find(&SEQUENCE)), [5, 8]);
        assert_eq!(step_indexes(divisive.find(&HALVED)), [10]);
    }

    #[test]
    fn a_step_carries_its_means_and_an_honest_p() {
        let [step] = EDivisive { permutations: 99, ..EDivisive::default() }.find(&HALVED).unwrap()[..] else {
            panic!()
        };
        assert_eq!((step.index, step.p), (10, 0.01));
        assert!((step.before - 1.004).abs() < 1e-12 && (step.after - 0.501).abs() < 1e-12);
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
