//! Owns nice ticks: 1, 2 or 5 times a power of ten, as few as fit. It refuses units: scales divide first.

/// The distance between ticks, where about `wanted` of them cover `span`.
pub(crate) fn nice_step(span: f64, wanted: usize) -> f64 {
    if span <= 0.0 || !span.is_finite() {
        return 1.0;
    }
    let rough = span / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * power >= rough * 0.999);
    nice.unwrap_or(10.0) * power
}

/// Every multiple of `step` from `low` to `high`.
pub(super) fn tick_values(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil();
    let last = (high / step + 1e-9).floor();
    // A scale that would need more is a mistake of its caller; the figure stays readable.
    let count = (last - first + 1.0).clamp(0.0, 100.0) as usize;
    (0..count).map(|index| (first + index as f64) * step).collect()
}

/// As many decimals as tell neighbouring ticks apart.
pub(super) fn tick_decimals(step: f64) -> usize {
    usize::try_from(-step.log10().floor() as i64).unwrap_or(0).min(9)
}
