//! Noise on several levels of repetition (iteration, process, boot): how much each adds, what follows for the mean, and
//! how many repetitions of each are worth their cost.
//!
//! Means of the highest level are independent values, which `student_t` and `mann_whitney` compare.
//!
//! Source: Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, and "Quantifying performance
//! changes with effect size confidence intervals", arXiv 2007.10899, sections 5 to 7.

use crate::descriptive::mean;
use crate::error::{StatsError, check_above_zero, check_at_least, finite_or_overflow};
use crate::interval::ConfidenceInterval;
use crate::power::TwoLevelNoise;
use crate::student_t::{t_interval, t_quantile_above};

/// Beyond this many repetitions a width counts as out of reach.
const MOST_REPETITIONS: usize = 1_000_000;

/// What a balanced nested experiment says about its noise. Levels count from the lowest: iteration first.
#[derive(Debug, Clone, PartialEq)]
pub struct VarianceComponents {
    /// Mean of all values, in their unit.
    pub mean: f64,
    /// Repetitions of each level, as passed.
    pub repetitions: Vec<usize>,
    /// Sᵢ², the variance of the means of level i around the mean of their group, averaged over groups; unit squared.
    pub observed: Vec<f64>,
    /// Tᵢ², what level i itself adds: T₁² = S₁², Tᵢ² = Sᵢ² - Sᵢ₋₁²/rᵢ₋₁, and 0 where that is negative; unit squared.
    pub components: Vec<f64>,
}

impl VarianceComponents {
    /// Of values in nested order: the iterations of the first process of the first boot first. `repetitions` has the
    /// number of each level, the lowest first: `[10, 5]` for 5 boots of 10 iterations.
    ///
    /// # Errors
    /// An empty sample, a value that is not finite, no level, a level with fewer than two repetitions, a number of values
    /// that is not the product of the repetitions, an overflow.
    pub fn from_nested_values(values: &[f64], repetitions: &[usize]) -> Result<Self, StatsError> {
        let mut means = check_at_least(values, 2)?.to_vec();
        check_nested_shape(values.len(), repetitions)?;
        let mut observed = Vec::with_capacity(repetitions.len());
        for count in repetitions {
            observed.push(finite_or_overflow(mean_group_variance(&means, *count))?);
            means = means.chunks(*count).map(mean).collect::<Result<_, _>>()?;
        }
        let components = level_variances(&observed, repetitions);
        Ok(Self { mean: mean(&means)?, repetitions: repetitions.to_vec(), observed, components })
    }

    /// Interval of the mean from the spread of the highest level alone, which has all noise in it: Ȳ ± t √(S_L²/r_L) with
    /// r_L - 1 degrees of freedom, in the unit of the values.
    ///
    /// # Errors
    /// A confidence outside (0, 1), limits that overflow.
    pub fn interval(&self, confidence: f64) -> Result<ConfidenceInterval, StatsError> {
        let (variance, count) = (self.observed.last().copied(), self.repetitions.last().copied());
        let count = count.unwrap_or_default() as f64;
        t_interval(self.mean, (variance.unwrap_or_default() / count).sqrt(), count - 1.0, confidence)
    }

    /// The repetitions of each level but the highest that give the narrowest interval for the time spent,
    /// rᵢ = ⌈√(cᵢ₊₁/cᵢ · Tᵢ²/Tᵢ₊₁²)⌉ and at least 1, lowest level first. `costs` holds what one repetition of each level
    /// adds by itself (time of an iteration, of a start with its warm-up, of a boot), in any one unit. `None` for a level
    /// above which nothing varies as far as the data say: repeat there as often as you like.
    ///
    /// # Errors
    /// Not one cost for each level, a cost that is not above zero.
    pub fn best_repetitions(&self, costs: &[f64]) -> Result<Vec<Option<usize>>, StatsError> {
        if costs.len() != self.components.len() {
            return Err(StatsError::Unpaired { left: costs.len(), right: self.components.len() });
        }
        costs.iter().try_for_each(|cost| check_above_zero("cost", *cost).map(drop))?;
        let pairs = costs.windows(2).zip(self.components.windows(2));
        let best = |(cost, component): (&[f64], &[f64])| {
            best_repetition_count(cost[1] / cost[0], component[0], component[1])
        };
        Ok(pairs.map(best).collect())
    }

    /// Repetitions of the highest level for which the interval of the mean reaches `half_width` (in the unit of the
    /// values) to either side on average, when each lower level is repeated as in `lower` (lowest first); `None` when a
    /// million do not suffice.
    ///
    /// # Errors
    /// Not one number for each level but the highest, a number of zero, a width that is not above zero, a confidence
    /// outside (0, 1).
    pub fn needed_highest_repetitions(
        &self,
        lower: &[usize],
        half_width: f64,
        confidence: f64,
    ) -> Result<Option<usize>, StatsError> {
        check_above_zero("half width", half_width)?;
        let tail = crate::interval::tail_probability(confidence)?;
        let sd = self.highest_level_variance(lower)?.sqrt();
        let enough = |n: usize| t_quantile_above(tail, (n - 1) as f64) * sd / (n as f64).sqrt() <= half_width;
        let (mut from, mut to) = (2, MOST_REPETITIONS);
        if !enough(to) {
            return Ok(None);
        }
        while from < to {
            let middle = from.midpoint(to);
            if enough(middle) { to = middle } else { from = middle + 1 }
        }
        Ok(Some(to))
    }

    /// Variance of one mean of the highest level under other numbers of repetitions below: Σ Tᵢ² / (rᵢ ⋯ r_L₋₁).
    fn highest_level_variance(&self, lower: &[usize]) -> Result<f64, StatsError> {
        if lower.len() + 1 != self.components.len() {
            return Err(StatsError::Unpaired { left: lower.len() + 1, right: self.components.len() });
        }
        if lower.contains(&0) {
            return Err(StatsError::OutOfRange { name: "repetitions", value: 0.0, range: "[1, infinity)" });
        }
        let below = |sum: f64, (component, count): (&f64, &usize)| (sum + component) / *count as f64;
        let lower_part = self.components.iter().zip(lower).fold(0.0, below);
        Ok(lower_part + self.components.last().copied().unwrap_or_default())
    }
}

impl TwoLevelNoise {
    /// The two standard deviations from the values of each boot, which may differ in number: the estimators of the
    /// one-way analysis of variance (Searle, Casella and McCulloch, Variance Components, 1992, section 3.6), with a
    /// negative variance between boots taken as zero. In the unit of the values; pass logarithms for ratios.
    ///
    /// # Errors
    /// Fewer than two boots, an empty one, a value that is not finite, no boot with two values, an overflow.
    pub fn from_boots(boots: &[&[f64]]) -> Result<Self, StatsError> {
        let means = boots.iter().map(|boot| mean(boot)).collect::<Result<Vec<_>, _>>()?;
        check_at_least(&means, 2)?;
        let total: usize = boots.iter().map(|boot| boot.len()).sum();
        if total == boots.len() {
            return Err(StatsError::TooFew { needed: total + 1, got: total });
        }
        let (k, n) = (boots.len() as f64, total as f64);
        let sizes = || boots.iter().map(|boot| boot.len() as f64);
        let grand = sizes().zip(&means).map(|(size, mean)| size * mean).sum::<f64>() / n;
        let within: f64 =
            boots.iter().zip(&means).map(|(boot, mean)| squared_deviations(boot, *mean)).sum::<f64>()
                / (n - k);
        let between: f64 =
            sizes().zip(&means).map(|(size, mean)| size * (mean - grand).powi(2)).sum::<f64>() / (k - 1.0);
        let usual_size = (n - sizes().map(|size| size * size).sum::<f64>() / n) / (k - 1.0);
        let between = ((between - within) / usual_size).max(0.0);
        Ok(Self { between: finite_or_overflow(between.sqrt())?, within: finite_or_overflow(within.sqrt())? })
    }

    /// Iterations in each boot that give the narrowest interval for the time spent,
    /// ⌈√(boot cost / iteration cost · σ_i² / σ_b²)⌉ and at least 1; `None` when boots add nothing. Costs in one unit.
    ///
    /// # Errors
    /// A cost that is not above zero.
    pub fn best_iterations(&self, boot_cost: f64, iteration_cost: f64) -> Result<Option<usize>, StatsError> {
        let costs =
            check_above_zero("boot cost", boot_cost)? / check_above_zero("iteration cost", iteration_cost)?;
        Ok(best_repetition_count(costs, self.within.powi(2), self.between.powi(2)))
    }
}

fn best_repetition_count(costs: f64, below: f64, above: f64) -> Option<usize> {
    let best = (costs * below / above).sqrt().ceil();
    best.is_finite().then_some(best.max(1.0) as usize)
}

fn check_nested_shape(got: usize, repetitions: &[usize]) -> Result<(), StatsError> {
    let few = repetitions.iter().copied().min().unwrap_or(0);
    if few < 2 {
        return Err(StatsError::TooFew { needed: 2, got: few });
    }
    let requested = repetitions.iter().fold(1_usize, |product, count| product.saturating_mul(*count));
    if requested == got { Ok(()) } else { Err(StatsError::Unpaired { left: got, right: requested }) }
}

fn squared_deviations(values: &[f64], centre: f64) -> f64 {
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// Variance inside groups of `count` neighbours, averaged over the groups.
fn mean_group_variance(values: &[f64], count: usize) -> f64 {
    let of_group = |group: &[f64]| {
        let centre = group.iter().sum::<f64>() / count as f64;
        squared_deviations(group, centre) / (count - 1) as f64
    };
    let groups = values.len() / count;
    values.chunks(count).map(of_group).sum::<f64>() / groups as f64
}

fn level_variances(observed: &[f64], repetitions: &[usize]) -> Vec<f64> {
    let mut below = 0.0;
    let own = |(variance, count): (&f64, &usize)| {
        let own = (variance - below).max(0.0);
        below = variance / *count as f64;
        own
    };
    observed.iter().zip(repetitions).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// √(18/2 · 4/1) = 6 iterations a boot; for a half width of one standard deviation of boots, t₆/√7 = 0.925 suffices and
    /// t₅/√6 = 1.050 does not (Student's quantiles 2.447 and 2.571).
    #[test]
    fn repetitions_follow_their_costs_and_the_quantile_its_freedom() {
        let levels = VarianceComponents {
            mean: 10.0,
            repetitions: vec![5, 5],
            observed: vec![4.0, 1.8],
            components: vec![4.0, 1.0],
        };
        assert_eq!(levels.best_repetitions(&[2.0, 18.0]).unwrap(), [Some(6)]);
        let lone = VarianceComponents {
            mean: 10.0,
            repetitions: vec![5],
            observed: vec![1.0],
            components: vec![1.0],
        };
        assert_eq!(lone.needed_highest_repetitions(&[], 1.0, 0.95).unwrap(), Some(7));
    }
}
