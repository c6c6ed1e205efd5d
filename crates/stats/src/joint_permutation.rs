//! Which of many quantities differ between two sides, by size, with one bound on the chance of any false one.
//!
//! All quantities were measured in the same repetitions, so whatever is exchanged between the sides is exchanged in all of them at
//! once. The largest |t| over all quantities, for each exchange, is what each quantity's own |t| has to beat (max-T): what goes
//! together is not paid for twice, as Bonferroni and Holm would. Source: Westfall and Young, Resampling-Based Multiple Testing
//! (1993), algorithm 2.8 (single step). Holds whatever the quantities' distributions are, where the sides could be exchanged.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::error::StatsError;

/// Up to so many exchanges, all of them are counted.
const MOST_COUNTED: usize = 16_384;

/// A variance is at least this part of the mean square: a difference that is always the same has a large t, not an infinite one.
const LEAST_VARIANCE: f64 = 1e-12;

/// Statistics this close to the observed one count as equal to it.
const ROUNDING: f64 = 1e-9;

/// How exchanges are drawn where they are too many to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JointPermutation {
    /// Exchanges drawn; the least p is 1 / (draws + 1).
    pub draws: usize,
    /// Where the random numbers start.
    pub seed: u64,
}

impl Default for JointPermutation {
    fn default() -> Self {
        JointPermutation { draws: 4_999, seed: 1 }
    }
}

/// What a quantity shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointShift {
    /// Mean of the candidate less that of the baseline, over its standard error; above 0 where the candidate has more.
    pub t: f64,
    /// Two-sided p-value of this quantity alone.
    pub p: f64,
    /// Two-sided p-value adjusted for all quantities: in at most this share of experiments without any difference does one of them
    /// show as large a t.
    pub adjusted: f64,
}

impl JointPermutation {
    /// Of pairs: `differences` holds, for each quantity, candidate less baseline of every pair, NaN where a pair has none. The sides
    /// of each pair are exchanged.
    ///
    /// # Errors
    /// Quantities with unequal numbers of pairs; fewer than two pairs; no draws.
    pub fn of_pairs(&self, differences: &[Vec<f64>]) -> Result<Vec<JointShift>, StatsError> {
        let pairs = self.check(differences)?;
        let observed = vec![1.0; pairs];
        let t = |values: &[f64], signs: &[f64]| paired_t(values, signs);
        // Exchanging all pairs turns the sign of every t, which changes no |t|: one pair stays.
        let all = 1_usize.checked_shl(pairs as u32 - 1).filter(|all| *all <= MOST_COUNTED);
        match all {
            Some(all) => {
                let signs = (0..all).map(|number| {
                    let sign = |pair: usize| if number >> pair & 1 == 1 { -1.0 } else { 1.0 };
                    (0..pairs).map(sign).collect::<Vec<f64>>()
                });
                Ok(count_exchanges(differences, &observed, signs, true, t))
            }
            None => {
                let mut random = ChaCha8Rng::seed_from_u64(self.seed);
                let mut draw =
                    || (0..pairs).map(|_| if random.random::<bool>() { -1.0 } else { 1.0 }).collect();
                let signs = (0..self.draws).map(|_| draw());
                Ok(count_exchanges(differences, &observed, signs, false, t))
            }
        }
    }

    /// Of independent repetitions: `values` holds, for each quantity, one value a repetition, NaN where there is none; `is_candidate`
    /// says on which side each repetition is. Repetitions change sides.
    ///
    /// # Errors
    /// Quantities with unequal numbers of values; fewer than two; no draws.
    pub fn of_samples(
        &self,
        values: &[Vec<f64>],
        is_candidate: &[bool],
    ) -> Result<Vec<JointShift>, StatsError> {
        let count = self.check(values)?;
        if is_candidate.len() != count {
            return Err(StatsError::Unpaired { left: is_candidate.len(), right: count });
        }
        let observed: Vec<f64> = is_candidate.iter().map(|one| if *one { 1.0 } else { 0.0 }).collect();
        let t = |values: &[f64], sides: &[f64]| two_sample_t(values, sides);
        let candidates = is_candidate.iter().filter(|one| **one).count();
        if let Some(all) = choices(count, candidates).filter(|all| *all <= MOST_COUNTED) {
            let mut sides: Vec<usize> = (0..candidates).collect();
            let exchanges = (0..all).map(|_| {
                let chosen = (0..count).map(|at| if sides.contains(&at) { 1.0 } else { 0.0 }).collect();
                next_choice(&mut sides, count);
                chosen
            });
            return Ok(count_exchanges(values, &observed, exchanges, true, t));
        }
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let exchanges = (0..self.draws).map(|_| {
            let mut sides = observed.clone();
            for at in (1..count).rev() {
                sides.swap(at, random.random_range(0..=at));
            }
            sides
        });
        Ok(count_exchanges(values, &observed, exchanges, false, t))
    }

    fn check(&self, quantities: &[Vec<f64>]) -> Result<usize, StatsError> {
        let count = quantities.first().map_or(0, Vec::len);
        if let Some(other) = quantities.iter().find(|one| one.len() != count) {
            return Err(StatsError::Unpaired { left: count, right: other.len() });
        }
        if count < 2 {
            return Err(StatsError::TooFew { needed: 2, got: count });
        }
        if self.draws == 0 {
            return Err(StatsError::OutOfRange {
                name: "the number of draws",
                value: 0.0,
                range: "[1, ...)",
            });
        }
        Ok(count)
    }
}

/// How many ways there are to choose the candidates; none where they are far too many.
fn choices(count: usize, chosen: usize) -> Option<usize> {
    (0..chosen.min(count - chosen)).try_fold(1_usize, |ways, at| {
        ways.checked_mul(count - at).map(|ways| ways / (at + 1)).filter(|ways| *ways < usize::MAX >> 16)
    })
}

/// The next choice of positions in the order of dictionaries; the last one stays.
fn next_choice(chosen: &mut [usize], count: usize) {
    let most = chosen.len();
    let moves = |at: &usize| chosen.get(*at).is_some_and(|position| *position < count - most + at);
    let Some(at) = (0..most).rev().find(moves) else { return };
    let first = chosen.get(at).map_or(0, |position| position + 1);
    for (offset, position) in chosen.iter_mut().skip(at).enumerate() {
        *position = first + offset;
    }
}

/// Counts the exchanges in which |t| is at least the observed one, of each quantity and of the largest.
fn count_exchanges(
    quantities: &[Vec<f64>],
    observed: &[f64],
    exchanges: impl Iterator<Item = Vec<f64>>,
    is_all: bool,
    t: impl Fn(&[f64], &[f64]) -> f64,
) -> Vec<JointShift> {
    let seen: Vec<f64> = quantities.iter().map(|values| t(values, observed)).collect();
    let mut own = vec![0_usize; seen.len()];
    let mut joint = vec![0_usize; seen.len()];
    let mut total = 0_usize;
    for exchange in exchanges {
        total += 1;
        let mut largest = 0.0_f64;
        for ((values, seen), own) in quantities.iter().zip(&seen).zip(&mut own) {
            let size = t(values, &exchange).abs();
            largest = largest.max(size);
            *own += usize::from(size >= seen.abs() * (1.0 - ROUNDING));
        }
        for (seen, joint) in seen.iter().zip(&mut joint) {
            *joint += usize::from(largest >= seen.abs() * (1.0 - ROUNDING));
        }
    }
    // What was observed is one of all exchanges; of drawn ones it is counted beside them.
    let beside = usize::from(!is_all);
    let share = |count: usize| (count + beside) as f64 / (total + beside) as f64;
    let of = |((t, own), joint): ((&f64, &usize), &usize)| JointShift {
        t: *t,
        p: share(*own),
        adjusted: share(*joint),
    };
    seen.iter().zip(&own).zip(&joint).map(of).collect()
}

/// Student's t of the differences with these signs.
fn paired_t(differences: &[f64], signs: &[f64]) -> f64 {
    let (mut n, mut sum, mut squares) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (difference, sign) in differences.iter().zip(signs) {
        if !difference.is_nan() {
            n += 1.0;
            sum += difference * sign;
            squares += difference * difference;
        }
    }
    if n < 2.0 || squares == 0.0 {
        return 0.0;
    }
    let mean = sum / n;
    let variance = ((squares - n * mean * mean) / (n - 1.0)).max(LEAST_VARIANCE * squares / n);
    mean / (variance / n).sqrt()
}

/// Student's t of those on side 1 against those on side 0, with one variance.
fn two_sample_t(values: &[f64], sides: &[f64]) -> f64 {
    let (mut n, mut sum) = ([0.0_f64; 2], [0.0_f64; 2]);
    let (mut of_all, mut centre) = (0.0, 0.0);
    for value in values.iter().filter(|value| !value.is_nan()) {
        of_all += 1.0;
        centre += value;
    }
    centre /= f64::max(of_all, 1.0);
    let mut squares = 0.0;
    for (value, side) in values.iter().zip(sides).filter(|(value, _)| !value.is_nan()) {
        let [ours, theirs] = &mut n;
        let [our_sum, their_sum] = &mut sum;
        let from_centre = value - centre;
        let (n, sum) = if *side > 0.5 { (theirs, their_sum) } else { (ours, our_sum) };
        *n += 1.0;
        *sum += from_centre;
        squares += from_centre * from_centre;
    }
    let ([a, b], [sum_a, sum_b]) = (n, sum);
    if a < 1.0 || b < 1.0 || a + b < 3.0 || squares == 0.0 {
        return 0.0;
    }
    let difference = sum_b / b - sum_a / a;
    let within = squares - a * b / (a + b) * difference * difference;
    let variance = (within / (a + b - 2.0)).max(LEAST_VARIANCE * squares / (a + b));
    difference / (variance * (1.0 / a + 1.0 / b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Darwin's maize: heights of cross-fertilised less self-fertilised plants in eighths of an inch. Fisher, The Design of
    /// Experiments (1935), section 21: of 32,768 ways to sign them, 835 have a larger sum than 314 and 28 the same, on each side:
    /// 5.267 %.
    #[test]
    fn maize_of_darwin_and_fisher() {
        let differences = vec![49., -67., 8., 16., 6., 23., 28., 41., 14., 29., 56., 24., 75., 60., -48.];
        let found = JointPermutation::default().of_pairs(std::slice::from_ref(&differences)).unwrap()[0];
        // Student's t of the same, also there: 2.148.
        assert!((found.t - 2.148).abs() < 5e-4, "{}", found.t);
        assert!((found.p - 2.0 * 863.0 / 32_768.0).abs() < 1e-15, "{}", found.p);
        let twice = [differences.clone(), differences].concat();
        let drawn = JointPermutation { draws: 4_000, seed: 7 }.of_pairs(&[twice]).unwrap()[0];
        // Student's t of each pair twice is t x sqrt(29 / 14): 3.092, beyond which 0.4 % of the t distribution lies.
        assert!((drawn.t - 3.092).abs() < 1e-3 && (drawn.p - 0.004).abs() < 0.004, "{drawn:?}");
    }

    /// All sign patterns of Darwin's first pairs, counted by sums in whole numbers.
    #[test]
    fn all_exchanges_of_few_pairs_are_counted() {
        let differences = [49_i32, -67, 8, 16, 6, 23, 28, 41];
        let total: i32 = differences.iter().sum();
        let sums = (0..256_u32).map(|number| {
            let signed = |(at, value): (usize, &i32)| if number >> at & 1 == 1 { -value } else { *value };
            differences.iter().enumerate().map(signed).sum::<i32>()
        });
        let beyond = sums.filter(|sum| sum.abs() >= total.abs()).count();
        let found = JointPermutation::default().of_pairs(&[differences.map(f64::from).to_vec()]).unwrap();
        assert_eq!(found[0].p, beyond as f64 / 256.0);
    }

    /// Efron and Tibshirani, An Introduction to the Bootstrap (1993), table 2.1 and section 15.2: survival of 7 treated mice and 9
    /// controls; their 1,000 permutations of the means gave 0.132 for one side; of all 11,440, 1,613 are as far up and 3,184 as far either way.
    #[test]
    fn mice_of_efron_and_tibshirani() {
        let mice = [52., 104., 146., 10., 51., 30., 40., 27., 46., 94., 197., 16., 38., 99., 141., 23.];
        let is_treated: Vec<bool> = (0..16).map(|mouse| mouse >= 9).collect();
        let found = JointPermutation::default().of_samples(&[mice.to_vec()], &is_treated).unwrap();
        assert!((found[0].t - 1.121).abs() < 1e-3, "{}", found[0].t);
        assert_eq!(found[0].p, 3_184.0 / 11_440.0);
    }

    #[test]
    fn few_samples_are_chosen_in_all_ways() {
        let found = JointPermutation::default()
            .of_samples(&[vec![1.0, 2.0, 3.0, 11.0, 12.0, 13.0]], &[false, false, false, true, true, true])
            .unwrap();
        assert_eq!(found[0].p, 2.0 / 20.0);
    }

    #[test]
    fn quantities_that_go_together_cost_nothing_and_others_do() {
        let own = vec![3.0, 4.0, 5.0, 3.5, 4.5, 5.5, 2.5, 3.2];
        let noise = |step: usize| (0..8).map(|at| ((at * step + 3) % 7) as f64 - 3.0).collect::<Vec<f64>>();
        let joint = JointPermutation::default();
        let alone = joint.of_pairs(std::slice::from_ref(&own)).unwrap();
        let twin = joint.of_pairs(&[own.clone(), own.iter().map(|value| value * 9.0).collect()]).unwrap();
        assert_eq!((alone[0].adjusted, twin[0].adjusted), (2.0 / 256.0, 2.0 / 256.0));
        let with: Vec<Vec<f64>> = std::iter::once(own).chain((2..6).map(noise)).collect();
        let found = joint.of_pairs(&with).unwrap();
        assert!(found.iter().all(|one| one.adjusted >= one.p));
        assert!(found[1..].iter().all(|one| one.adjusted > 0.05), "{found:?}");
    }

    #[test]
    fn a_difference_that_is_always_the_same_is_large_and_finite() {
        let joint = JointPermutation::default();
        let found = joint.of_pairs(&[vec![1.0; 8], vec![0.0; 8], vec![f64::NAN; 8]]).unwrap();
        assert!(found[0].t.is_finite() && found[0].t > 1e3);
        assert_eq!((found[0].adjusted, found[1].t, found[2].t), (2.0 / 256.0, 0.0, 0.0));
        assert_eq!((found[1].adjusted, found[2].adjusted), (1.0, 1.0));
        assert_eq!(joint.of_pairs(&[]), Err(StatsError::TooFew { needed: 2, got: 0 }));
    }
}
