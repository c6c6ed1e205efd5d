//! The size of the next experiment: what a number of repetitions detects, and how many a goal needs.
//!
//! Formulas are those of the t-test with n lowered by 0.955, the efficiency of rank methods on normal data (Lehmann,
//! Nonparametrics, 1975, section 2.4); clean noise is the worst case for them. A spread that is estimated from few values makes
//! the next experiment too small as often as too large, and the former costs more: the power is then that on average over
//! the estimate (Julious and Owen, "Sample size calculations for clinical studies allowing for uncertainty about the
//! variance", Pharmaceutical Statistics 5, 2006).

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

use crate::error::{StatsError, check_above_zero, check_open_fraction};
use crate::mann_whitney::smallest_p;
use crate::rank_distribution::{EXACT_PAIRS, EXACT_SIGNS, rank_sum_distribution, signed_rank_distribution};

/// Efficiency of rank methods against t on normal noise, 3/π.
const RANK_EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;

/// An estimated spread is averaged over so many of its values.
const NOISE_ERRORS: u32 = 100;

/// Halvings of the search for a reach, and where it ends.
const REACH_STEPS: usize = 24;
const FARTHEST_REACH: f64 = 1e4;

/// Beyond this many repetitions a goal counts as out of reach.
const MOST: usize = 1_000_000;

/// How the two sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplePairing {
    /// Independent samples, compared by Hodges-Lehmann and Mann-Whitney.
    Independent,
    /// Interleaved blocks, compared by pseudo-median and signed ranks; the noise is that of the differences.
    Paired,
}

/// Standard deviations of a measurement on two levels, both in the same unit: of the metric, or (for ratios)
/// of its logarithm, where 0.02 is about 2 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoLevelNoise {
    /// Between boots (the unit of comparison).
    pub between: f64,
    /// Between the iterations of one boot.
    pub within: f64,
}

impl TwoLevelNoise {
    /// Standard deviation of the mean over one boot of so many iterations: √(σ_b² + σ_i² / I).
    #[must_use]
    pub fn boot_mean_sd(&self, iterations: usize) -> f64 {
        (self.between.powi(2) + self.within.powi(2) / iterations.max(1) as f64).sqrt()
    }

    /// Standard deviation of the median over one boot of so many iterations, of normal values: that of a mean of
    /// (I + π/2 - 1) / (π/2) of them, which is right for one, and within 4 % for more (Kendall and Stuart, The Advanced Theory of
    /// Statistics, volume 1, section 14.6).
    #[must_use]
    pub fn boot_median_sd(&self, iterations: usize) -> f64 {
        let half_pi = std::f64::consts::FRAC_PI_2;
        let share = half_pi / (iterations.max(1) as f64 + half_pi - 1.0);
        (self.between.powi(2) + self.within.powi(2) * share).sqrt()
    }

    /// Degrees of freedom of [`boot_median_sd`](Self::boot_median_sd) learnt from so many boots with so many values in all
    /// (Satterthwaite 1946).
    #[must_use]
    pub fn freedom(&self, iterations: usize, boots: usize, values: usize) -> f64 {
        let (k, n) = (boots as f64, values as f64);
        let (between, within) = (self.between.powi(2), self.within.powi(2));
        let of_boots = between + within * k / n;
        let rest = self.boot_median_sd(iterations).powi(2) - of_boots;
        let spread = of_boots.powi(2) / (k - 1.0).max(1.0) + rest.powi(2) / (n - k).max(1.0);
        let found = (of_boots + rest).powi(2) / spread;
        if found.is_finite() { found.max(1.0) } else { 1.0 }
    }
}

/// What the repetitions are for; each number in the unit of the noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PowerGoal {
    /// An interval that reaches so far to either side of the estimate, on average.
    HalfWidth(f64),
    /// A real change of this size is found.
    Detect(f64),
    /// No change at all is shown to be inside ± this margin.
    ShowSame(f64),
    /// A verdict either way: both [`PowerGoal::Detect`] and [`PowerGoal::ShowSame`] at this margin.
    Decide(f64),
}

/// The rules of an experiment that are set before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerRules {
    /// How the sides are compared.
    pub pairing: SamplePairing,
    /// Confidence of the interval, such as 0.95. "Same" is judged at the level with twice the α (0.90), which
    /// is the usual pair of one-sided tests.
    pub confidence: f64,
    /// Chance to reach the goal, such as 0.8. [`PowerGoal::HalfWidth`] does not use it.
    pub power: f64,
    /// Degrees of freedom of the spread, where it is an estimate: then the chance holds on average over the error of it. `None`
    /// takes the spread for known.
    pub noise_freedom: Option<f64>,
    /// Whether the α is what rank intervals of so few values really leave out, which comes in steps, and not the one asked for.
    pub ranked_levels: bool,
}

impl Default for PowerRules {
    fn default() -> Self {
        Self {
            pairing: SamplePairing::Independent,
            confidence: 0.95,
            power: 0.8,
            noise_freedom: None,
            ranked_levels: false,
        }
    }
}

impl PowerRules {
    /// The smallest change, in the unit of `sd`, that this many repetitions a side find with the plan's power:
    /// (t₁₋α/₂ + t_power) √(2 sd² / 0.955 n) for independent samples, without the 2 for pairs. `sd` is that of
    /// one repetition, such as [`TwoLevelNoise::boot_mean_sd`], or of one difference.
    ///
    /// # Errors
    /// Fewer than two repetitions, an `sd` that is not above zero, confidence or power outside (0, 1).
    pub fn detectable_change(&self, sd: f64, repetitions: usize) -> Result<f64, StatsError> {
        self.check()?;
        check_above_zero("standard deviation", sd)?;
        if repetitions < 2 {
            return Err(StatsError::TooFew { needed: 2, got: repetitions });
        }
        Ok(sd * self.reached_size(PowerGoal::Detect(1.0), repetitions, self.noise_errors().as_deref()))
    }

    /// Repetitions a side (or pairs) that the goal needs; `None` when a million do not suffice. Never fewer
    /// than it takes for any interval at this confidence: 4 a side, or 6 pairs, at 0.95.
    ///
    /// # Errors
    /// An `sd` or a goal that is not above zero, confidence or power outside (0, 1).
    pub fn needed_repetitions(&self, sd: f64, goal: PowerGoal) -> Result<Option<usize>, StatsError> {
        self.check()?;
        check_above_zero("standard deviation", sd)?;
        if let PowerGoal::Decide(margin) = goal {
            let detect = self.needed_repetitions(sd, PowerGoal::Detect(margin))?;
            let same = self.needed_repetitions(sd, PowerGoal::ShowSame(margin))?;
            return Ok(detect.zip(same).map(|(detect, same)| detect.max(same)));
        }
        let requested = check_above_zero("goal", goal.size())? / sd;
        let errors = self.noise_errors();
        let errors = errors.as_deref();
        let start = self.normal_guess(goal, requested, errors).max(self.fewest_repetitions());
        let enough = |n: &usize| self.is_reached(goal, *n, requested, errors);
        let found = (start..=MOST).find(enough);
        Ok(found.map(|n| (self.fewest_repetitions()..n).rev().take_while(enough).last().unwrap_or(n)))
    }

    fn check(&self) -> Result<(), StatsError> {
        check_open_fraction("confidence", self.confidence)?;
        check_open_fraction("power", self.power).map(|_| ())
    }

    /// What n repetitions reach of a goal, in standard deviations.
    fn reached_size(&self, goal: PowerGoal, n: usize, errors: Option<&[f64]>) -> f64 {
        let Ok(student) = StudentsT::new(0.0, 1.0, self.noise_terms() * (n - 1) as f64) else {
            return f64::INFINITY;
        };
        let [limit, power] = self.goal_probabilities(goal, Some(n));
        let limit = student.inverse_cdf(limit);
        let sum = match errors {
            Some(errors) if power != 0.5 => averaged_reach(limit, power, errors, |t| student.cdf(t)),
            _ => limit + student.inverse_cdf(power),
        };
        sum * self.standard_error(n)
    }

    /// Whether n repetitions reach so much of a goal, in standard deviations: [`reached_size`](Self::reached_size) is at most
    /// that. A search for the size would take the sum over all errors two dozen times.
    fn is_reached(&self, goal: PowerGoal, n: usize, requested: f64, errors: Option<&[f64]>) -> bool {
        let [limit, power] = self.goal_probabilities(goal, Some(n));
        let Some(errors) = errors.filter(|_| power != 0.5) else {
            return self.reached_size(goal, n, errors) <= requested;
        };
        let Ok(student) = StudentsT::new(0.0, 1.0, self.noise_terms() * (n - 1) as f64) else { return false };
        let size = requested / self.standard_error(n);
        averaged_chance(size, student.inverse_cdf(limit), errors, |t| student.cdf(t)) >= power
    }

    /// Of an estimated change, in standard deviations of one repetition.
    fn standard_error(&self, n: usize) -> f64 {
        (self.noise_terms() / (RANK_EFFICIENCY * n as f64)).sqrt()
    }

    /// The repetitions needed, were the spread known: a few too low, and a good place to start.
    fn normal_guess(&self, goal: PowerGoal, requested: f64, errors: Option<&[f64]>) -> usize {
        let normal = Normal::standard();
        let [limit, power] = self.goal_probabilities(goal, None);
        let limit = normal.inverse_cdf(limit);
        let sum = match errors {
            Some(errors) if power != 0.5 => averaged_reach(limit, power, errors, |z| normal.cdf(z)),
            _ => limit + normal.inverse_cdf(power),
        };
        (self.noise_terms() / RANK_EFFICIENCY * (sum.max(0.0) / requested).powi(2)) as usize
    }

    /// How many noises add up in the change.
    fn noise_terms(&self) -> f64 {
        match self.pairing {
            SamplePairing::Independent => 2.0,
            SamplePairing::Paired => 1.0,
        }
    }

    /// Where to take the two quantiles whose sum, in standard errors, the goal must exceed; ½ adds nothing.
    fn goal_probabilities(&self, goal: PowerGoal, repetitions: Option<usize>) -> [f64; 2] {
        let alpha = 1.0 - self.confidence;
        let above = |tail: f64| 1.0 - self.tail_reached(tail, repetitions);
        match goal {
            PowerGoal::HalfWidth(_) => [above(alpha / 2.0), 0.5],
            PowerGoal::Detect(_) | PowerGoal::Decide(_) => [above(alpha / 2.0), self.power],
            // Both one-sided tests must succeed, so each may fail with half of 1 - power.
            PowerGoal::ShowSame(_) => [above(alpha), self.power.midpoint(1.0)],
        }
    }

    /// What the interval by ranks leaves out on a side.
    fn tail_reached(&self, tail: f64, repetitions: Option<usize>) -> f64 {
        let Some(n) = repetitions.filter(|_| self.ranked_levels) else { return tail };
        let cut = match self.pairing {
            SamplePairing::Independent if n * n <= EXACT_PAIRS => rank_sum_distribution(n, n).rank_cut(tail),
            SamplePairing::Paired if n <= EXACT_SIGNS => signed_rank_distribution(n).rank_cut(tail),
            _ => None,
        };
        cut.map_or(tail, |cut| (1.0 - cut.level) / 2.0)
    }

    /// Equally likely ratios of an estimated spread to the true one.
    fn noise_errors(&self) -> Option<Vec<f64>> {
        let freedom = self.noise_freedom?.max(1.0);
        let squares = ChiSquared::new(freedom).ok()?;
        let error = |at: u32| {
            let share = (f64::from(at) + 0.5) / f64::from(NOISE_ERRORS);
            (squares.inverse_cdf(share) / freedom).sqrt()
        };
        Some((0..NOISE_ERRORS).map(error).collect())
    }

    /// The least repetitions with which an interval at this confidence exists.
    fn fewest_repetitions(&self) -> usize {
        let alpha = (1.0 - self.confidence) * (1.0 + 1e-9);
        let enough = |n: usize| match self.pairing {
            SamplePairing::Independent => smallest_p(n, n) <= alpha,
            SamplePairing::Paired => 2.0 * 0.5_f64.powf(n as f64) <= alpha,
        };
        (2..64).find(|n| enough(*n)).unwrap_or(64)
    }
}

/// How many standard errors a change must be as estimated, so that it exceeds the limit with this chance on average over the
/// error of the spread: C with E P(T ≤ C s - limit) = power, s being the ratio of the estimated spread to the true one.
fn averaged_reach(limit: f64, power: f64, errors: &[f64], cumulative: impl Fn(f64) -> f64) -> f64 {
    let reached = |size: f64| averaged_chance(size, limit, errors, &cumulative);
    let (mut low, mut high) = (0.0, 4.0);
    while reached(high) < power && high < FARTHEST_REACH {
        high *= 2.0;
    }
    for _ in 0..REACH_STEPS {
        let middle = f64::midpoint(low, high);
        if reached(middle) < power { low = middle } else { high = middle }
    }
    high
}

/// The chance, on average over the error of the spread, that a change of so many standard errors exceeds the limit.
fn averaged_chance(size: f64, limit: f64, errors: &[f64], cumulative: impl Fn(f64) -> f64) -> f64 {
    errors.iter().map(|error| cumulative(size * error - limit)).sum::<f64>() / errors.len() as f64
}

impl PowerGoal {
    fn size(self) -> f64 {
        match self {
            Self::HalfWidth(size) | Self::Detect(size) | Self::ShowSame(size) | Self::Decide(size) => size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_lessen_the_noise_within_boots_alone() {
        let noise = TwoLevelNoise { between: 3.0, within: 4.0 };
        assert!((noise.boot_mean_sd(16) - 10.0_f64.sqrt()).abs() < 1e-12);
        assert!((noise.boot_mean_sd(1) - 5.0).abs() < 1e-12);
        assert!((noise.boot_median_sd(1) - 5.0).abs() < 1e-12);
        // As many iterations as were seen: what boots show of their spread is nearly all there is.
        assert!((TwoLevelNoise { between: 1.0, within: 0.0 }.freedom(10, 5, 50) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_goal_is_reached_where_the_reached_size_is_at_most_that() {
        for (noise_freedom, pairing) in
            [(Some(4.0), SamplePairing::Independent), (Some(30.0), SamplePairing::Paired)]
        {
            let rules = PowerRules { noise_freedom, pairing, ranked_levels: true, ..PowerRules::default() };
            let errors = rules.noise_errors();
            let errors = errors.as_deref();
            for goal in [PowerGoal::Detect(1.0), PowerGoal::ShowSame(1.0), PowerGoal::HalfWidth(1.0)] {
                for n in [6, 9, 40, 300] {
                    let size = rules.reached_size(goal, n, errors);
                    let reached = [0.999, 1.001].map(|share| rules.is_reached(goal, n, share * size, errors));
                    assert_eq!(reached, [false, true], "{goal:?}, {n} repetitions");
                }
            }
        }
    }

    /// Julious and Owen's example in the limit of a known spread, and more repetitions the less is known of it.
    #[test]
    fn an_estimated_spread_costs_repetitions() {
        let needed = |noise_freedom| {
            let rules = PowerRules { noise_freedom, ..PowerRules::default() };
            rules.needed_repetitions(1.0, PowerGoal::Detect(0.5)).unwrap().unwrap()
        };
        let (known, well, badly) = (needed(None), needed(Some(1e6)), needed(Some(4.0)));
        assert!(known.abs_diff(well) <= 1 && badly > known + known / 3, "{known} {well} {badly}");
    }
}
