//! Owns the jackknife over boots: the statistic without each of them in turn. It refuses single iterations.

use super::SidesStatistic;
use crate::StatsError;

/// How much each boot moves the statistic: (n - 1) (mean of the others - statistic without this one), by side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Jackknife {
    pub(super) influence: Vec<Vec<f64>>,
}

impl Jackknife {
    pub(super) fn from_sides<S: AsRef<[B]>, B: AsRef<[f64]>>(
        sides: &[S],
        statistic: SidesStatistic<'_>,
    ) -> Result<Self, StatsError> {
        let pool = |boots: &S| boots.as_ref().iter().flat_map(|boot| boot.as_ref().iter().copied()).collect();
        let mut pooled: Vec<Vec<f64>> = sides.iter().map(pool).collect();
        let mut influence = Vec::with_capacity(sides.len());
        for (side, boots) in sides.iter().enumerate() {
            let whole = pooled.get(side).cloned().unwrap_or_default();
            let mut without = Vec::with_capacity(boots.as_ref().len());
            let mut start = 0;
            for boot in boots.as_ref() {
                let end = start + boot.as_ref().len();
                let rest = whole.iter().take(start).chain(whole.iter().skip(end)).copied().collect();
                if let Some(values) = pooled.get_mut(side) {
                    *values = rest;
                }
                without.push(statistic(&pooled)?);
                start = end;
            }
            if let Some(values) = pooled.get_mut(side) {
                *values = whole;
            }
            influence.push(boot_influences(&without));
        }
        Ok(Self { influence })
    }

    /// √(Σ over sides of Σ U² / (n (n - 1))), in the unit of the statistic.
    pub(super) fn standard_error(&self) -> f64 {
        let of_side = |side: &Vec<f64>| {
            let n = side.len() as f64;
            side.iter().map(|u| u * u).sum::<f64>() / (n * (n - 1.0))
        };
        self.influence.iter().map(of_side).sum::<f64>().sqrt()
    }

    /// Σ ΣU³/n³ / (6 (Σ ΣU²/n²)^1.5); zero where nothing moves.
    pub(super) fn acceleration(&self) -> f64 {
        let power_sum = |power: i32| -> f64 {
            let of_side = |side: &Vec<f64>| {
                side.iter().map(|u| u.powi(power)).sum::<f64>() / (side.len() as f64).powi(power)
            };
            self.influence.iter().map(of_side).sum()
        };
        let squares = power_sum(2).powf(1.5);
        if squares > 0.0 { power_sum(3) / (6.0 * squares) } else { 0.0 }
    }
}

fn boot_influences(without: &[f64]) -> Vec<f64> {
    let n = without.len() as f64;
    let mean = without.iter().sum::<f64>() / n;
    without.iter().map(|value| (n - 1.0) * (mean - value)).collect()
}
