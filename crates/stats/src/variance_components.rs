//! Noise within boots and between them: how much each adds, and how many iterations of a boot are worth their cost. More levels:
//! `nested_components`.
//!
//! Source: Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, and "Quantifying performance
//! changes with effect size confidence intervals", arXiv 2007.10899, sections 5 to 7.

use crate::descriptive::mean;
use crate::error::{StatsError, check_above_zero, check_at_least, finite_or_overflow};
use crate::power::TwoLevelNoise;

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
        let best = (costs * self.within.powi(2) / self.between.powi(2)).sqrt().ceil();
        Ok(best.is_finite().then_some(best.max(1.0) as usize))
    }
}

fn squared_deviations(values: &[f64], centre: f64) -> f64 {
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// √(18/2 · 4/1) = 6 iterations a boot.
    #[test]
    fn iterations_follow_their_costs() {
        let noise = TwoLevelNoise { between: 1.0, within: 2.0 };
        assert_eq!(noise.best_iterations(18.0, 2.0).unwrap(), Some(6));
    }
}
