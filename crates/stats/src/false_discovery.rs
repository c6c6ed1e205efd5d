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

/// Holm's adjusted p-values, in the order passed: calling all at or below 0.05 changed makes any wrong call in at most 5 % of
/// families, whatever the dependence. max over j ≤ i of min(1, (K - j + 1) p₍j₎). Source: Holm, "A simple sequentially rejective
/// multiple test procedure", Scandinavian Journal of Statistics 6 (1979). An empty family gives an empty answer.
///
/// # Errors
/// A p-value outside [0, 1].
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let order = ascending_order(p_values)?;
    let mut adjusted = vec![1.0; p_values.len()];
    let mut most = 0.0_f64;
    for (smaller, index) in order.iter().enumerate() {
        most = most.max((p_values[*index] * (p_values.len() - smaller) as f64).min(1.0));
        adjusted[*index] = most;
    }
    Ok(adjusted)
}

/// The indexes of p-values in ascending order.
fn ascending_order(p_values: &[f64]) -> Result<Vec<usize>, StatsError> {
    if p_values.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(value) = check_sample(p_values)?.iter().copied().find(|p| !(0.0..=1.0).contains(p)) {
        return Err(StatsError::OutOfRange { name: "p-value", value, range: "[0, 1]" });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_unstable_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    Ok(order)
}

/// min over j ≥ i of min(1, K p₍j₎ / j). The cap changes nothing for Yekutieli, whose factor is at least 1.
fn step_up_p_values(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let order = ascending_order(p_values)?;
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 1.0_f64;
    for (rank, index) in order.iter().enumerate().rev() {
        least = least.min(p_values[*index] * p_values.len() as f64 / (rank + 1) as f64);
        adjusted[*index] = least;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") is 0.03 0.06 0.06 0.02.
    #[test]
    fn holm_is_that_of_r() {
        let found = holm(&[0.01, 0.04, 0.03, 0.005]).unwrap();
        for (found, expected) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert_eq!(holm(&[]), Ok(Vec::new()));
        assert!(holm(&[1.5]).is_err());
    }
}
