//! The shift function with a band that holds all of it at once: by how much each quantile of the candidate lies above that of the
//! baseline.
//!
//! Source: Doksum and Sievers, "Plotting with confidence: graphical comparisons of two populations", Biometrika 63 (1976): the
//! band that inverts the two-sample test of Kolmogorov and Smirnov, x ↦ G⁻¹(F(x) ± c) - x with c = λ √(1/m + 1/n). It holds for
//! every pair of continuous distributions, for all x together, and is safe with ties. λ is the limit's quantile, which is a
//! little wide for few values.

use crate::descriptive::quantile_of_sorted;
use crate::error::{StatsError, check_above_zero, check_open_fraction, finite_or_overflow, sorted_sample};

/// One decile of the shift function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecileBand {
    /// Which: 0.1 to 0.9.
    pub fraction: f64,
    /// The decile of the baseline (type 7), in the unit of the values.
    pub baseline: f64,
    /// That of the candidate minus that of the baseline.
    pub shift: f64,
    /// The band's lower end; none where the candidate has too few values below.
    pub low: Option<f64>,
    /// The band's upper end; none where the candidate has too few values above.
    pub high: Option<f64>,
}

impl DecileBand {
    /// Whether the band excludes "no shift" here.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.low.is_some_and(|low| low > 0.0) || self.high.is_some_and(|high| high < 0.0)
    }
}

/// The nine deciles with their band. `effective` says how many independent values each side is worth: no more than it has; fewer
/// where values share the luck of a boot.
///
/// # Errors
/// An empty side, a value that is not finite, a confidence outside (0, 1), an effective size that is not above zero, an overflow.
pub fn shift_band(
    baseline: &[f64],
    candidate: &[f64],
    effective: (f64, f64),
    confidence: f64,
) -> Result<[DecileBand; 9], StatsError> {
    let (x, y) = (sorted_sample(baseline)?, sorted_sample(candidate)?);
    check_open_fraction("confidence", confidence)?;
    let (m, n) = (
        check_above_zero("effective size", effective.0.min(x.len() as f64))?,
        check_above_zero("effective size", effective.1.min(y.len() as f64))?,
    );
    let reach = kolmogorov_quantile(confidence) * (m.recip() + n.recip()).sqrt();
    let mut bands = [DecileBand { fraction: 0.0, baseline: 0.0, shift: 0.0, low: None, high: None }; 9];
    for (tenth, band) in (1..=9_u8).zip(&mut bands) {
        let fraction = f64::from(tenth) / 10.0;
        let at = quantile_of_sorted(&x, fraction);
        let share = |count: usize| count as f64 / x.len() as f64;
        let (below, up_to) =
            (share(x.partition_point(|value| *value < at)), share(x.partition_point(|value| *value <= at)));
        let least = (((below - reach) * y.len() as f64).ceil() - 1.0).max(-1.0);
        let most = ((up_to + reach) * y.len() as f64).floor();
        let place = |index: f64| y.get(index as usize).map(|value| value - at);
        *band = DecileBand {
            fraction,
            baseline: at,
            shift: finite_or_overflow(quantile_of_sorted(&y, fraction) - at)?,
            low: if least >= 0.0 { place(least) } else { None },
            high: place(most),
        };
    }
    Ok(bands)
}

/// Where Kolmogorov's distribution reaches a confidence: 1 - 2 Σ (-1)ᵏ⁻¹ exp(-2 k² λ²).
fn kolmogorov_quantile(confidence: f64) -> f64 {
    let reached = |lambda: f64| {
        let term = |k: i32| {
            let size = (-2.0 * f64::from(k * k) * lambda * lambda).exp();
            if k % 2 == 1 { size } else { -size }
        };
        1.0 - 2.0 * (1..=100).map(term).sum::<f64>()
    };
    let (mut low, mut high) = (0.2, 10.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if reached(middle) < confidence { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Smirnov's table: 1.3581 at 95 %, 1.2238 at 90 %, 1.6276 at 99 %.
    #[test]
    fn the_limits_quantiles_are_those_of_the_table() {
        for (confidence, expected) in [(0.95, 1.358_1), (0.9, 1.223_8), (0.99, 1.627_6)] {
            assert!((kolmogorov_quantile(confidence) - expected).abs() < 1e-4);
        }
    }

    /// All nine deciles at once, of plain shifts and of a spread that doubles.
    #[test]
    fn the_band_holds_the_whole_function() {
        let mut random = ChaCha8Rng::seed_from_u64(1976);
        for (m, n, spread, step) in
            [(10, 10, 1.0, 0.0), (30, 30, 1.0, 0.0), (30, 100, 2.0, 0.0), (200, 200, 1.0, 0.25)]
        {
            let mut held = 0;
            for _ in 0..500 {
                let mut draw = |count: usize, spread: f64, shift: f64| -> Vec<f64> {
                    let value = |random: &mut ChaCha8Rng| {
                        let uniform: f64 = random.random();
                        let value = shift + spread * uniform;
                        if step > 0.0 { (value / step).floor() * step } else { value }
                    };
                    (0..count).map(|_| value(&mut random)).collect()
                };
                let (x, y) = (draw(m, 1.0, 0.0), draw(n, spread, 0.0));
                let bands = shift_band(&x, &y, (m as f64, n as f64), 0.95).unwrap();
                // Uniform values: the quantile at x of the baseline lies at spread * x of the candidate.
                held += usize::from(bands.iter().all(|band| {
                    let truth = spread * band.baseline - band.baseline;
                    band.low.is_none_or(|low| low <= truth + 1e-12)
                        && band.high.is_none_or(|high| truth - 1e-12 <= high)
                }));
            }
            eprintln!("{m} against {n}, spread {spread}: {held} of 500");
            assert!(held >= 466, "{m} {n} {spread}: {held}");
        }
    }

    #[test]
    fn a_large_shift_is_excluded_and_bad_input_refused() {
        let x: Vec<f64> = (0..40).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|value| value + 100.0).collect();
        let bands = shift_band(&x, &y, (40.0, 40.0), 0.95).unwrap();
        assert!(bands.iter().all(|band| (band.shift - 100.0).abs() < 1e-9));
        assert!(bands[4].excludes_zero() && bands[0].low.is_none() && bands[8].high.is_none());
        assert!(shift_band(&[], &y, (1.0, 1.0), 0.95).is_err());
        assert!(shift_band(&x, &y, (0.0, 1.0), 0.95).is_err());
        assert!(shift_band(&x, &y, (40.0, 40.0), 1.0).is_err());
        assert!(shift_band(&[f64::NAN], &y, (1.0, 40.0), 0.95).is_err());
    }
}
