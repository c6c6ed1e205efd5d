//! The shift of paired samples while pairs keep coming: an interval and a p-value that hold at every look.
//!
//! Where nothing but a shift θ sets the two sides of a block apart, and their order within the block is drawn, a difference
//! minus θ is as likely above zero as below, whatever the noise is: dependent, drifting, skewed. So with any stake λ that is
//! chosen before the difference is seen, the product of exp(λ(d - θ)) / cosh(λ(d - θ)) is a martingale that starts at 1
//! (Ramdas, Ruf, Larsson and Koolen, "Admissible anytime-valid sequential inference must rely on nonnegative martingales",
//! 2020, section on symmetric distributions; Vovk and Wang, "Efficiency of nonparametric e-tests", 2022), and ever reaches
//! 2/α with a chance of at most α/2 (Ville). The evidence that the shift is more than θ is the mean of the products of the
//! [`STAKES`], the evidence that it is less their mirror image; the shifts against which neither ever reached 2/α are the
//! interval (a confidence sequence: Darling and Robbins 1967; Howard, Ramdas, McAuliffe and Sekhon, Annals of Statistics 49,
//! 2021). What was once excluded stays excluded.

use crate::descriptive::{MAD_TO_SD, median, median_of_sorted};
use crate::error::{StatsError, check_sample};
use crate::interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate, tail_probability};
use crate::signed_rank::WalshAverages;

/// Stakes in inverse standard deviations of the differences; each is twice the one before.
const STAKES: [f64; 4] = [0.25, 0.5, 1.0, 2.0];

/// A difference counts for no more than so many standard deviations of those before it.
const CLIP: f64 = 4.0;

/// Fewest differences from which a spread is known: the first ones are not staked on.
const FEWEST_FOR_SPREAD: usize = 2;

/// The spread is that of so many differences before.
const SPREAD_WINDOW: usize = 64;

/// Deviations count up to so many robust standard deviations.
const FARTHEST: f64 = 3.0;

/// Mean absolute deviation of a normal sample, times this, is its standard deviation: √(π/2).
const MEAN_DEVIATION_TO_SD: f64 = 1.253_314_137_315_5;

/// Halvings of the distance between a shift that is excluded and one that is not.
const HALVINGS: u32 = 60;

/// All pairs of so many differences are looked at; of more, those of the medians of neighbours.
const MOST_DIFFERENCES: usize = 400;

/// Evidence beyond this is as good as certain.
const MOST_EVIDENCE: f64 = 1e280;

/// Differences candidate - baseline in time order, as someone sees them who looks after each.
#[derive(Debug, Clone, PartialEq)]
pub struct ShiftSequence {
    differences: Vec<f64>,
    /// The spread that was known before each difference; absent for the first ones.
    spreads: Vec<Option<f64>>,
}

impl ShiftSequence {
    /// Of the differences of all blocks so far, in time order.
    ///
    /// # Errors
    /// No difference, one that is not finite, or differences whose own differences overflow.
    pub fn new(in_time_order: &[f64]) -> Result<Self, StatsError> {
        let differences = check_sample(in_time_order)?.to_vec();
        if differences.iter().any(|difference| difference.abs() > f64::MAX / 16.0) {
            return Err(StatsError::Overflow);
        }
        let spreads = (0..differences.len()).map(|at| spread_of(differences.get(..at)?)).collect();
        Ok(ShiftSequence { differences, spreads })
    }

    /// The pseudo-median of the differences (Hodges and Lehmann 1963), no farther off than the [`interval`](Self::interval), which
    /// comes with it.
    ///
    /// # Errors
    /// A confidence outside (0, 1).
    pub fn estimate(&self, confidence: f64) -> Result<IntervalEstimate, StatsError> {
        let interval = self.interval(confidence)?;
        let batch = self.differences.len().div_ceil(MOST_DIFFERENCES).max(1);
        let batches: Vec<f64> = self.differences.chunks(batch).map(median).collect::<Result<_, _>>()?;
        let value = WalshAverages::absolute(&vec![0.0; batches.len()], &batches)?.pseudo_median();
        let value = interval.map_or(value, |interval| value.clamp(interval.low, interval.high));
        Ok(IntervalEstimate { value, interval, method: InferenceMethod::AlwaysValid })
    }

    /// The shifts that no look so far excluded: over all looks that ever come, the true one is among them with a chance of at
    /// least the confidence. `None` where every shift on a side is still possible, or none is left.
    ///
    /// # Errors
    /// A confidence outside (0, 1).
    pub fn interval(&self, confidence: f64) -> Result<Option<ConfidenceInterval>, StatsError> {
        let enough = 1.0 / tail_probability(confidence)?;
        let (Some(low), Some(high)) = (self.limit(1.0, enough), self.limit(-1.0, enough)) else {
            return Ok(None);
        };
        Ok((low <= high).then_some(ConfidenceInterval { low, high, level: confidence }))
    }

    /// Two-sided p-value of "no shift": at most α at any look, ever, with a chance of at most α where there is none.
    #[must_use]
    pub fn p(&self) -> f64 {
        let most =
            self.most_evidence(0.0, 1.0, MOST_EVIDENCE).max(self.most_evidence(0.0, -1.0, MOST_EVIDENCE));
        (2.0 / most).min(1.0)
    }

    /// The farthest shift on one side (1: below, -1: above) that is excluded; absent where none is.
    fn limit(&self, side: f64, enough: f64) -> Option<f64> {
        let ends = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NEG_INFINITY, f64::max);
        let farthest = ends(&mut self.differences.iter().map(|difference| -side * difference));
        let nearest = ends(&mut self.differences.iter().map(|difference| side * difference));
        let reach =
            2.0 * CLIP * self.spreads.iter().flatten().fold(0.0, |most: f64, spread| most.max(*spread));
        // Beyond all differences each counts for the most it can; at the last of them none speaks for a shift beyond.
        let (mut excluded, mut possible) = (-farthest - reach, nearest);
        if self.most_evidence(side * f64::NEG_INFINITY, side, enough) < enough {
            return None;
        }
        for _ in 0..HALVINGS {
            let middle = excluded.midpoint(possible);
            if self.most_evidence(side * middle, side, enough) < enough {
                possible = middle;
            } else {
                excluded = middle;
            }
        }
        Some(side * excluded)
    }

    /// The most evidence at any look that the shift lies beyond `shift` (side 1: above it, -1: below); what is beyond `enough`
    /// is not worked out.
    fn most_evidence(&self, shift: f64, side: f64, enough: f64) -> f64 {
        let mut products = STAKES.map(|_| 1.0 / STAKES.len() as f64);
        let mut most = 1.0_f64;
        for (difference, spread) in self.differences.iter().zip(&self.spreads) {
            let Some(spread) = spread else { continue };
            let distance = side * (difference - shift);
            let score = match distance {
                0.0 => 0.0,
                _ if *spread > 0.0 => (distance / spread).clamp(-CLIP, CLIP),
                _ => CLIP.copysign(distance),
            };
            // exp(λx) / cosh(λx) = 2 / (1 + exp(-2λx)), and each stake's exponential is the square of the one before.
            let mut odds = (-2.0 * STAKES[0] * score).exp();
            for product in &mut products {
                *product *= 2.0 / (1.0 + odds);
                odds *= odds;
            }
            most = most.max(products.iter().sum());
            if most >= enough {
                break;
            }
        }
        most
    }
}

/// Standard deviation of the last differences by their mean absolute deviation, those far from the rest counting for less;
/// absent where there are too few.
fn spread_of(before: &[f64]) -> Option<f64> {
    let window = before.get(before.len().saturating_sub(SPREAD_WINDOW)..)?;
    if window.len() < FEWEST_FOR_SPREAD {
        return None;
    }
    let sorted = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let middle = median_of_sorted(&sorted(window.to_vec()));
    let deviations = sorted(window.iter().map(|value| (value - middle).abs()).collect());
    let robust = FARTHEST * MAD_TO_SD * median_of_sorted(&deviations);
    let bounded = |deviation: &f64| if robust > 0.0 { deviation.min(robust) } else { *deviation };
    let sum: f64 = deviations.iter().map(bounded).sum();
    Some(MEAN_DEVIATION_TO_SD * sum / (window.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fourteen differences around 0.5, none of them tied.
    const DIFFERENCES: [f64; 14] =
        [0.9, 0.2, 0.61, 0.48, -0.3, 1.1, 0.33, 0.75, 0.52, 0.07, 1.4, 0.41, 0.66, 0.19];

    #[test]
    fn evidence_is_the_product_of_the_source() {
        let sequence = ShiftSequence::new(&DIFFERENCES).unwrap();
        // Written out with hyperbolic functions, the most of all looks.
        let mut most = 1.0_f64;
        for end in 1..=DIFFERENCES.len() {
            let product = |stake: &f64| -> f64 {
                let factors = DIFFERENCES[..end].iter().enumerate().skip(2).map(|(at, difference)| {
                    let score = (difference / spread_of(&DIFFERENCES[..at]).unwrap()).clamp(-4.0, 4.0);
                    (stake * score).exp() / (stake * score).cosh()
                });
                factors.product()
            };
            most = most.max(STAKES.iter().map(product).sum::<f64>() / 4.0);
        }
        let found = sequence.most_evidence(0.0, 1.0, f64::INFINITY);
        assert!((found / most - 1.0).abs() < 1e-12, "{found} {most}");
        assert!((sequence.p() - 2.0 / most).abs() < 1e-12);
    }

    #[test]
    fn the_spread_of_two_is_what_sets_them_apart() {
        // Deviations of 1 and 3 from their median: 1 and 1; √(π/2) · 2 / 1.
        assert!((spread_of(&[1.0, 3.0]).unwrap() - 2.0 * MEAN_DEVIATION_TO_SD).abs() < 1e-12);
        assert_eq!(spread_of(&[1.0]), None);
        let (clean, wild) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6000.0]);
        assert!(spread_of(&wild).unwrap() < 3.0 * spread_of(&clean).unwrap());
    }

    #[test]
    fn the_interval_inverts_the_test() {
        let sequence = ShiftSequence::new(&DIFFERENCES).unwrap();
        for confidence in [0.5, 0.9, 0.95] {
            let interval = sequence.interval(confidence).unwrap().unwrap();
            assert!(interval.low < 0.5 && 0.5 < interval.high, "{interval:?}");
            let moved = |by: f64| {
                let moved: Vec<f64> = DIFFERENCES.iter().map(|difference| difference - by).collect();
                ShiftSequence::new(&moved).unwrap().p()
            };
            for (limit, outwards) in [(interval.low, -1e-6), (interval.high, 1e-6)] {
                assert!(moved(limit + outwards) <= 1.0 - confidence + 1e-12);
                assert!(moved(limit - outwards) > 1.0 - confidence);
            }
        }
    }

    #[test]
    fn the_estimate_is_the_pseudo_median() {
        let found = ShiftSequence::new(&DIFFERENCES).unwrap().estimate(0.9).unwrap();
        let expected = WalshAverages::absolute(&[0.0; 14], &DIFFERENCES).unwrap().estimate(0.9).unwrap();
        assert_eq!(found.value, expected.value);
        let always_valid = found.interval.unwrap();
        assert!(always_valid.half_width() > expected.interval.unwrap().half_width());
        assert_eq!(ShiftSequence::new(&[3.0, 1.0]).unwrap().estimate(0.9).unwrap().value, 2.0);
    }

    #[test]
    fn what_was_excluded_stays_excluded() {
        let mut before = (f64::NEG_INFINITY, f64::INFINITY);
        for end in 1..=DIFFERENCES.len() {
            let found = ShiftSequence::new(&DIFFERENCES[..end]).unwrap().interval(0.9).unwrap();
            let Some(interval) = found else { continue };
            assert!(interval.low >= before.0 - 1e-9 && interval.high <= before.1 + 1e-9);
            before = (interval.low, interval.high);
        }
        assert!(before.0.is_finite());
    }

    #[test]
    fn few_differences_exclude_nothing_and_equal_ones_everything_else() {
        let sequence = |n: usize, value: f64| ShiftSequence::new(&vec![value; n]).unwrap();
        assert_eq!(sequence(7, 0.25).interval(0.95).unwrap(), None);
        let interval = sequence(8, 0.25).interval(0.95).unwrap().unwrap();
        assert_eq!((interval.low, interval.high), (0.25, 0.25));
        assert_eq!(sequence(400, 0.0).p(), 1.0);
        assert!(sequence(400, 1.0).p() < 1e-100);
    }

    #[test]
    fn differences_of_any_size() {
        assert_eq!(ShiftSequence::new(&[]), Err(StatsError::Empty));
        assert_eq!(ShiftSequence::new(&[1.0, f64::NAN]), Err(StatsError::NotFinite { index: 1 }));
        assert_eq!(ShiftSequence::new(&[1.0, 1e308]), Err(StatsError::Overflow));
        let scaled = |by: f64| {
            let values: Vec<f64> = DIFFERENCES.iter().map(|difference| difference * by).collect();
            let interval = ShiftSequence::new(&values).unwrap().interval(0.9).unwrap().unwrap();
            (interval.low / by, interval.high / by)
        };
        let (plain, large, small) = (scaled(1.0), scaled(2.0_f64.powi(900)), scaled(2.0_f64.powi(-900)));
        assert!((plain.0 - large.0).abs() < 1e-9 && (plain.1 - small.1).abs() < 1e-9);
        assert!(matches!(
            ShiftSequence::new(&DIFFERENCES).unwrap().interval(1.0),
            Err(StatsError::OutOfRange { .. })
        ));
    }
}
