//! The correction for many metrics at once. The caller passes the p-values that belong together.

use crate::error::{StatsError, check_sample};

/// Benjamini and Hochberg's adjusted p-values (q), in the order passed: calling all with q ≤ 0.05 changed
/// makes at most 5 % of the calls wrong on average, for independent or positively dependent metrics.
/// q₍i₎ = min over j ≥ i of min(1, K p₍j₎ / j). Source: Benjamini and Hochberg, JRSS B 57 (1995).
/// An empty family gives an empty answer.
///
/// # Errors
/// A p-value outside [0, 1].
pub fn benjamini_hochberg(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    step_up_p_values(p_values)
}

/// Benjamini and Yekutieli's adjusted p-values: those of [`benjamini_hochberg`] times 1 + 1/2 + … + 1/K, at most 1, which
/// hold whatever the dependence between the metrics. Source: Benjamini and Yekutieli, "The control of the false discovery
/// rate in multiple testing under dependency", Annals of Statistics 29 (2001).
/// An empty family gives an empty answer.
///
/// # Errors
/// A p-value outside [0, 1].
pub fn benjamini_yekutieli(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let factor: f64 = (1..=p_values.len()).map(|i| (i as f64).recip()).sum();
    let adjusted = step_up_p_values(p_values)?;
    Ok(adjusted.iter().map(|q| (q * factor).min(1.0)).collect())
}

/// min over j ≥ i of min(1, K p₍j₎ / j). The cap changes nothing for Yekutieli, whose factor is at least 1.
fn step_up_p_values(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    if p_values.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(value) = check_sample(p_values)?.iter().copied().find(|p| !(0.0..=1.0).contains(p)) {
        return Err(StatsError::OutOfRange { name: "p-value", value, range: "[0, 1]" });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_unstable_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 1.0_f64;
    for (rank, index) in order.iter().enumerate().rev() {
        least = least.min(p_values[*index] * p_values.len() as f64 / (rank + 1) as f64);
        adjusted[*index] = least;
    }
    Ok(adjusted)
}
