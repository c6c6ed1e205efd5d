//! How far the candidate's values lie from the baseline's, by whichever test suits the values.
//!
//! Signed ranks ([`WalshAverages`]) look at the differences within pairs only. Where a pair shares most of its luck, as under
//! drift, that is all there is to know. Where it does not, and the values lie in two modes or have a long tail, a difference of two
//! such values is noisier than they are: of 30 pairs in two modes signed ranks find a change of 1 % half as often as a test of
//! unpaired samples. The ranks of all values together know where a value lies among its like; what the *pairs* know then goes into
//! the error, so that it holds for whatever order the two of a pair were drawn in ([`JointRanks`]).
//!
//! A few pairs tell that error badly. Where they scatter no more than unpaired values would, they know nothing that the values do
//! not, and the test of two samples is as right as that of pairs, and sharper ([`PairwiseShifts`]).
//!
//! Values on a coarse scale, most of which are equal to another one, have ranks that say little: limits by ranks are whole steps
//! apart, or all on one, and exclude a true change that is less than a step. Their means tell it.
//!
//! To choose by the width of the intervals costs at most one alarm in a hundred (simulated: the table of truth in
//! docs/statistics.md, and docs/decisions/location-shift.md).

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::descriptive::sd;
use crate::error::{StatsError, check_paired};
use crate::interval::{InferenceMethod, IntervalEstimate, RankCut, tail_probability};
use crate::mann_whitney::PairwiseShifts;
use crate::mean_shift::{MeanScale, paired_mean_shift};
use crate::rank_distribution::MidRanks;
use crate::sample_shape::{has_coarse_scale, value_resolution};
use crate::signed_rank::{WalshAverages, signed_rank};
use crate::student_t::{WelchTest, t_quantile_above, t_two_sided, welch};

/// Fewest pairs from which the error of joint ranks is taken: with fewer, ranks that need none are at least as sharp.
const FEWEST_JOINT_PAIRS: usize = 10;

/// Fewest values a side whose means are compared.
const FEWEST_MEAN_VALUES: usize = 5;

/// The confidence at which the widths are compared.
const CHOICE_CONFIDENCE: f64 = 0.9;

/// How wide the interval of joint ranks may be, in widths of that of signed ranks: two that are about equal are not chosen between
/// by luck.
const JOINT_WIDTH: f64 = 0.92;

/// How wide the interval of two samples may be, in widths of that of signed ranks. Both vary much from one set of few pairs to the
/// next, even where neither is sharper.
const SAMPLES_WIDTH: f64 = 0.8;

/// Most pairs that are looked at as two samples: of more, joint ranks know their error well enough.
const MOST_SAMPLE_PAIRS: usize = 20;

/// The share of independent pairs that scatter more than this is taken for: those are not looked at as two samples.
const SCATTER_TAIL: f64 = 0.05;

/// How wide the interval of means may be, in widths of that of ranks: a mean that a few far values pull about is no
/// better than ranks in steps.
const MEAN_WIDTH: f64 = 2.0;

/// A shift candidate - baseline, in the unit of the values.
#[derive(Debug, Clone)]
pub enum LocationShift {
    /// of pairs, by their differences: the means of these by twos, and the p-value of Wilcoxon's signed-rank test
    SignedRanks(WalshAverages, f64),
    /// of pairs, by the ranks of all values
    JointRanks(JointRanks),
    /// of two samples, by the differences of all their values: Mann and Whitney's test
    RankSum(PairwiseShifts),
    /// of the means: Student's t of pairs, Welch's of two samples
    Means(WelchTest),
}

impl LocationShift {
    /// Of pairs: the i-th values of both samples come from the same one.
    ///
    /// # Errors
    /// Those of [`WalshAverages::absolute`].
    pub fn of_pairs(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        Self::of_pairs_and_rest(baseline, candidate, [&[], &[]])
    }

    /// The same where both samples have more values, whose partners are missing: they count where pairs are looked at as two samples.
    ///
    /// # Errors
    /// Those of [`WalshAverages::absolute`].
    pub fn of_pairs_and_rest(
        baseline: &[f64],
        candidate: &[f64],
        rest: [&[f64]; 2],
    ) -> Result<Self, StatsError> {
        let averages = WalshAverages::absolute(baseline, candidate)?;
        let p = signed_rank(baseline, candidate)?.p;
        let ranks = LocationShift::SignedRanks(averages, p);
        if baseline.len() < FEWEST_MEAN_VALUES {
            return Ok(ranks);
        }
        let all = [baseline, candidate].concat();
        let better = if has_coarse_scale(&all) {
            ranks.better_means(paired_mean_shift(baseline, candidate, MeanScale::Difference), &all)?
        } else {
            ranks.sharper_ranks_of_all(JointRanks::new(baseline, candidate), [baseline, candidate], rest)?
        };
        Ok(better.unwrap_or(ranks))
    }

    /// Of two samples that have nothing to do with each other.
    ///
    /// # Errors
    /// Those of [`PairwiseShifts::absolute`].
    pub fn of_samples(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        let shifts = PairwiseShifts::absolute(baseline, candidate)?;
        let ranks = LocationShift::RankSum(shifts);
        let all = [baseline, candidate].concat();
        if baseline.len().min(candidate.len()) < FEWEST_MEAN_VALUES || !has_coarse_scale(&all) {
            return Ok(ranks);
        }
        Ok(ranks.better_means(welch(baseline, candidate), &all)?.unwrap_or(ranks))
    }

    /// The shift with its interval at a confidence, such as 0.95.
    ///
    /// # Errors
    /// A confidence outside (0, 1), an overflow.
    pub fn estimate(&self, confidence: f64) -> Result<IntervalEstimate, StatsError> {
        match self {
            LocationShift::SignedRanks(averages, _) => averages.estimate(confidence),
            LocationShift::JointRanks(joint) => joint.estimate(confidence),
            LocationShift::RankSum(shifts) => shifts.estimate(confidence),
            LocationShift::Means(test) => Ok(IntervalEstimate {
                value: test.difference,
                interval: Some(test.interval(confidence)?),
                method: InferenceMethod::StudentT,
            }),
        }
    }

    /// Two-sided p-value of no shift.
    #[must_use]
    pub fn p(&self) -> f64 {
        match self {
            LocationShift::SignedRanks(_, p) => *p,
            LocationShift::RankSum(shifts) => shifts.p(),
            LocationShift::JointRanks(joint) => joint.p,
            LocationShift::Means(test) => test.p,
        }
    }

    /// Half of the width of the interval by which is chosen.
    fn half_width(&self) -> Result<Option<f64>, StatsError> {
        Ok(self.estimate(CHOICE_CONFIDENCE)?.interval.map(|interval| interval.half_width()))
    }

    /// The ranks of all values, where they are clearly sharper than these of differences: of the values as two samples where the
    /// pairs allow it, unless the error that the pairs show is clearly smaller.
    fn sharper_ranks_of_all(
        &self,
        joint: Result<JointRanks, StatsError>,
        pairs: [&[f64]; 2],
        rest: [&[f64]; 2],
    ) -> Result<Option<Self>, StatsError> {
        let (Some(joint), Some(signed)) = (if_any(joint)?, self.half_width()?) else { return Ok(None) };
        let samples = if joint.pairs <= MOST_SAMPLE_PAIRS && joint.scatters_like_samples() {
            let [x, y] = [0, 1].map(|side| [pairs[side], rest[side]].concat());
            Some(LocationShift::RankSum(PairwiseShifts::absolute(&x, &y)?))
        } else {
            None
        };
        let joint = (joint.pairs >= FEWEST_JOINT_PAIRS).then_some(LocationShift::JointRanks(joint));
        let width = |shift: &Option<Self>| match shift {
            Some(shift) => Ok(shift.half_width()?.unwrap_or(f64::INFINITY)),
            None => Ok::<_, StatsError>(f64::INFINITY),
        };
        let (joint_width, samples_width) = (width(&joint)?, width(&samples)?);
        // What more values narrow is no luck.
        let has_rest = rest.iter().any(|side| !side.is_empty());
        let most = if has_rest { JOINT_WIDTH } else { SAMPLES_WIDTH };
        if samples_width < most * signed && joint_width >= JOINT_WIDTH * samples_width {
            return Ok(samples);
        }
        Ok(joint.filter(|_| joint_width < JOINT_WIDTH * signed))
    }

    /// Means, unless far values make them much worse than these ranks, whose limits are whole steps apart.
    fn better_means(
        &self,
        means: Result<WelchTest, StatsError>,
        all: &[f64],
    ) -> Result<Option<Self>, StatsError> {
        let Some(means) = if_any(means)?.map(LocationShift::Means) else { return Ok(None) };
        let step = value_resolution(all).unwrap_or(0.0);
        let widest = (MEAN_WIDTH * self.half_width()?.unwrap_or(0.0)).max(step / 2.0);
        Ok(means.half_width()?.is_some_and(|width| width <= widest).then_some(means))
    }
}

/// What an estimator says, unless all values are alike and leave no error to go by, or are too many for it.
fn if_any<T>(found: Result<T, StatsError>) -> Result<Option<T>, StatsError> {
    match found {
        Err(StatsError::NoSpread | StatsError::TooMany { .. }) => Ok(None),
        found => found.map(Some),
    }
}

/// The shift of paired samples by the ranks of all their values, with the error that the pairs show.
///
/// The estimate is the median of all differences between a value of one sample and one of the other. The limits are the C-th
/// differences from either end, C by Student's t with one degree of freedom fewer than there are pairs: the error of the rank sum is
/// that of the differences of ranks within pairs, once the shift is taken off.
#[derive(Debug, Clone)]
pub struct JointRanks {
    shifts: PairwiseShifts,
    /// Of Mann and Whitney's U.
    standard_error: f64,
    pairs: usize,
    p: f64,
}

impl JointRanks {
    /// For a shift candidate - baseline in the unit of the values. The i-th values of both come from the same pair.
    ///
    /// # Errors
    /// Samples of different length, an empty one, a value that is not finite, a difference that overflows, more than 2,048 pairs,
    /// pairs that are all alike.
    pub fn new(baseline: &[f64], candidate: &[f64]) -> Result<Self, StatsError> {
        let (baseline, candidate) = check_paired(baseline, candidate)?;
        let pairs = baseline.len();
        let shifts = PairwiseShifts::absolute(baseline, candidate)?;
        let standard_error = rank_sum_error(baseline, candidate, shifts.median())?;
        if standard_error <= 0.0 {
            return Err(StatsError::NoSpread);
        }
        let distance = shifts.rank_distance_from_none() - 0.5;
        let p = t_two_sided(distance.max(0.0) / standard_error, pairs as f64 - 1.0);
        Ok(Self { shifts, standard_error, pairs, p })
    }

    /// The shift with its interval at a confidence, such as 0.95; without one where there are too few pairs for it.
    ///
    /// # Errors
    /// A confidence outside (0, 1).
    pub fn estimate(&self, confidence: f64) -> Result<IntervalEstimate, StatsError> {
        let tail = tail_probability(confidence)?;
        let n = self.pairs as f64;
        let reach = t_quantile_above(tail, n - 1.0) * self.standard_error;
        let rank = (n * n / 2.0 - reach + 0.5).floor();
        let cut = (rank >= 1.0).then(|| RankCut {
            rank: rank as usize,
            level: 1.0 - t_two_sided((n * n / 2.0 + 0.5 - rank) / self.standard_error, n - 1.0),
        });
        Ok(self.shifts.estimate_at_cut(cut, InferenceMethod::StudentT))
    }

    /// Whether the pairs scatter no more than independent ones do, but for [`SCATTER_TAIL`] of these: whoever is paired then
    /// with whom tells nothing. Where what is high in one of a pair is low in the other (alternating modes), they scatter more.
    fn scatters_like_samples(&self) -> bool {
        let n = self.pairs as f64;
        let independent = n * n * (2.0 * n + 1.0) / 12.0;
        ChiSquared::new(n - 1.0).is_ok_and(|squares| {
            self.standard_error.powi(2) * (n - 1.0) <= independent * squares.inverse_cdf(1.0 - SCATTER_TAIL)
        })
    }

    /// Two-sided p-value of no shift. It is below 1 - confidence where the interval excludes 0: both are of one test.
    #[must_use]
    pub fn p(&self) -> f64 {
        self.p
    }
}

/// Standard error of U: from the differences of joint ranks within pairs, once the shift is taken off the candidate.
fn rank_sum_error(baseline: &[f64], candidate: &[f64], shift: f64) -> Result<f64, StatsError> {
    let aligned: Vec<f64> =
        baseline.iter().copied().chain(candidate.iter().map(|value| value - shift)).collect();
    let ranks = MidRanks::from_values(&aligned).midranks();
    let (ours, theirs) = ranks.split_at(baseline.len());
    let differences: Vec<f64> = theirs.iter().zip(ours).map(|(y, x)| y - x).collect();
    // U is half the sum of these differences, and a constant.
    Ok(sd(&differences)? * (differences.len() as f64).sqrt() / 2.0)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Values in two modes a twentieth apart, the candidate's a hundredth above.
    fn modal_pairs(rng: &mut ChaCha8Rng, pairs: usize, shift: f64) -> (Vec<f64>, Vec<f64>) {
        let mut value = |shift: f64| {
            let mode = if rng.random_bool(0.5) { 0.05 } else { 0.0 };
            mode + shift + rng.random_range(-0.01..0.01)
        };
        (0..pairs).map(|_| (value(0.0), value(shift))).unzip()
    }

    /// By hand: the shift is 2 (the median of 1, 2, 2, 2, 3, ... ), off which the joint ranks within the four pairs differ by
    /// 1, -1, 1 and -1; their standard deviation is √(4/3), and the error of U half of it times √4.
    #[test]
    fn the_error_is_that_of_the_differences_of_ranks() {
        let (x, y) = ([10.0, 20.0, 30.0, 40.0], [12.1, 21.9, 32.1, 41.9]);
        let error = rank_sum_error(&x, &y, 2.0).unwrap();
        assert!((error - (4.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{error}");
    }

    /// The t approximation against all 2^12 ways to swap the values of pairs, which is the exact distribution of U in any order
    /// in which pairs were drawn.
    #[test]
    fn p_is_close_to_that_of_all_swaps_within_pairs() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let u = |x: &[f64], y: &[f64]| -> f64 {
            let above = |b: f64| x.iter().map(|a| f64::from(u8::from(b > *a))).sum::<f64>();
            y.iter().map(|b| above(*b)).sum()
        };
        for shift in [0.0, 0.01, 0.02, 0.03] {
            let (x, y) = modal_pairs(&mut rng, 12, shift);
            let seen = (u(&x, &y) - 72.0).abs();
            let as_far = (0..1_u32 << 12).filter(|swaps| {
                let pair = |i: usize| if swaps >> i & 1 == 1 { (y[i], x[i]) } else { (x[i], y[i]) };
                let (one, other): (Vec<f64>, Vec<f64>) = (0..12).map(pair).unzip();
                (u(&one, &other) - 72.0).abs() >= seen
            });
            let exact = as_far.count() as f64 / f64::from(1 << 12);
            let p = JointRanks::new(&x, &y).unwrap().p();
            assert!((p - exact).abs() < 0.02 + 0.2 * exact, "shift {shift}: {p}, exact {exact}");
        }
    }

    #[test]
    fn the_interval_excludes_no_shift_where_p_is_below_its_error() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut excluded, mut of_all) = (0, 0);
        for round in 0..600_u32 {
            let (x, y) = modal_pairs(&mut rng, 10 + round as usize % 40, f64::from(round % 5) * 0.005);
            let found = LocationShift::of_pairs(&x, &y).unwrap();
            of_all += u32::from(!matches!(found, LocationShift::SignedRanks(..)));
            for confidence in [0.9, 0.95, 0.99] {
                let excludes = found.estimate(confidence).unwrap().interval.unwrap().excludes(0.0);
                assert_eq!(excludes, found.p() < 1.0 - confidence, "{x:?} {y:?}");
                excluded += u32::from(excludes);
            }
        }
        assert!(excluded > 300 && excluded < 1_500 && of_all > 400, "{excluded} {of_all}");
    }

    /// Modes that alternate: of the two of a pair, in an order that is drawn, one is always in the upper mode.
    fn alternating_pairs(rng: &mut ChaCha8Rng, pairs: usize) -> (Vec<f64>, Vec<f64>) {
        let mut one = |_| {
            let (lower, upper) = (rng.random_range(-0.01..0.01), 0.05 + rng.random_range(-0.01..0.01));
            if rng.random_bool(0.5) { (lower, upper) } else { (upper, lower) }
        };
        (0..pairs).map(&mut one).unzip()
    }

    #[test]
    fn few_pairs_are_taken_as_two_samples_unless_they_scatter_more_than_these() {
        let mut rng = ChaCha8Rng::seed_from_u64(17);
        let mut count_alarms = |pairs: usize| {
            let (mut of_pairs, mut of_samples) = (0, 0);
            for _ in 0..2_000 {
                let (x, y) = alternating_pairs(&mut rng, pairs);
                of_pairs += u32::from(LocationShift::of_pairs(&x, &y).unwrap().p() < 0.05);
                of_samples += u32::from(LocationShift::of_samples(&x, &y).unwrap().p() < 0.05);
            }
            (of_pairs, of_samples)
        };
        let (few, many) = (count_alarms(10), count_alarms(30));
        assert!(few.0 < 150 && few.1 > 200 && many.0 < 120 && many.1 > 200, "{few:?} {many:?}");
        let independent = (0..400).filter(|_| {
            let (x, y) = modal_pairs(&mut rng, 10, 0.0);
            matches!(LocationShift::of_pairs(&x, &y), Ok(LocationShift::RankSum(_)))
        });
        assert!(independent.count() > 60);
    }

    /// Twelve pairs, of which one value in five is missing: the values that have lost their partner count.
    #[test]
    fn values_without_a_partner_sharpen_few_pairs_and_raise_no_alarms() {
        let mut rng = ChaCha8Rng::seed_from_u64(23);
        let mut count = |shift: f64| {
            let (mut with_rest, mut complete) = (0, 0);
            for _ in 0..2_000 {
                let mut value =
                    |shift: f64| shift + (0..4).map(|_| rng.random_range(-0.01..0.01)).sum::<f64>();
                let (mut x, mut y, mut rest) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
                for at in 0..12 {
                    let (ours, theirs) = (value(0.0), value(shift));
                    match at {
                        0 | 1 => rest[0].push(ours),
                        2 | 3 => rest[1].push(theirs),
                        _ => (x.push(ours), y.push(theirs)).0,
                    }
                }
                let found = LocationShift::of_pairs_and_rest(&x, &y, [&rest[0], &rest[1]]).unwrap();
                with_rest += u32::from(found.p() < 0.05);
                complete += u32::from(LocationShift::of_pairs(&x, &y).unwrap().p() < 0.05);
            }
            (with_rest, complete)
        };
        let (alarms, found) = (count(0.0), count(0.014));
        // 5 % of 2,000 and three standard errors.
        assert!(alarms.0 < 130 && found.0 > found.1 + 100, "{alarms:?} {found:?}");
    }

    #[test]
    fn samples_with_ties_have_a_p_value_that_agrees_with_their_interval() {
        let mut rng = ChaCha8Rng::seed_from_u64(13);
        let mut excluded = 0;
        for round in 0..2_000_u32 {
            let size = 4 + round as usize % 60;
            let mut sample = |from: i32| -> Vec<f64> {
                (0..size).map(|_| f64::from(rng.random_range(from..from + 6))).collect()
            };
            let (x, y) = (sample(0), sample((round % 3) as i32));
            let shifts = PairwiseShifts::absolute(&x, &y).unwrap();
            for confidence in [0.9, 0.95, 0.99] {
                let interval = shifts.estimate(confidence).unwrap().interval;
                let excludes = interval.is_some_and(|interval| interval.excludes(0.0));
                assert_eq!(excludes, shifts.p() <= 1.0 - confidence + 1e-9, "{x:?} {y:?} {}", shifts.p());
                excluded += u32::from(excludes);
            }
        }
        assert!(excluded > 500, "{excluded}");
    }

    #[test]
    fn drift_pairs_that_are_alike_and_too_many_leave_it_to_signed_ranks() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let drifting: Vec<f64> = (0..30).map(|i| f64::from(i) + rng.random_range(-0.1..0.1)).collect();
        let candidate: Vec<f64> = drifting.iter().map(|x| x + rng.random_range(-0.1..0.2)).collect();
        assert!(matches!(LocationShift::of_pairs(&drifting, &candidate), Ok(LocationShift::SignedRanks(..))));
        let (x, _) = modal_pairs(&mut rng, 30, 0.0);
        let same: Vec<f64> = x.iter().map(|x| x + 0.5).collect();
        let (many, others) = modal_pairs(&mut rng, 2_100, 0.0);
        assert!(matches!(LocationShift::of_pairs(&many, &others), Ok(LocationShift::SignedRanks(..))));
        assert!(matches!(LocationShift::of_pairs(&x, &same), Ok(LocationShift::SignedRanks(..))));
    }

    /// Values on a scale whose step is five times their spread: ranks say that nothing moved, whatever moved by less than a step.
    #[test]
    fn means_tell_what_moved_by_less_than_a_step() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut value = |centre: f64| (centre + rng.random_range(-0.6..0.6_f64)).round();
        let (x, y): (Vec<f64>, Vec<f64>) = (0..400).map(|_| (value(10.0), value(10.3))).unzip();
        let found = LocationShift::of_pairs(&x, &y).unwrap();
        assert!(matches!(found, LocationShift::Means(_)), "{found:?}");
        let interval = found.estimate(0.95).unwrap().interval.unwrap();
        // What rounding does to the uniform noise: means 10 and 10 + 0.4 / 1.2.
        assert!(!interval.excludes(1.0 / 3.0) && interval.excludes(0.0), "{interval:?}");
        let ranks = WalshAverages::absolute(&x, &y).unwrap().estimate(0.95).unwrap().interval.unwrap();
        assert!(ranks.excludes(1.0 / 3.0), "{ranks:?}");
        let apart = LocationShift::of_samples(&x, &y).unwrap();
        assert!(matches!(apart, LocationShift::Means(_)), "{apart:?}");
        assert!(!apart.estimate(0.95).unwrap().interval.unwrap().excludes(1.0 / 3.0), "{apart:?}");
        // One far value makes the mean worthless, which ranks in steps are not.
        let far: Vec<f64> =
            x.iter().enumerate().map(|(i, x)| if i % 20 == 0 { x * 50.0 } else { *x }).collect();
        assert!(matches!(LocationShift::of_pairs(&far, &y), Ok(LocationShift::SignedRanks(..))));
    }
}
