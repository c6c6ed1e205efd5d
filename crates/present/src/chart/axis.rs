//! Owns scales: from numbers to pixels, with ticks. It refuses logarithms: bytes that add up need a zero.

use super::number::AxisUnit;
use super::ticks;

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChartAxis {
    low: f64,
    high: f64,
    /// pixels of `low` and `high`
    from_pixel: f64,
    to_pixel: f64,
    step: f64,
    divisor: f64,
    /// the unit as shown
    pub(super) name: String,
}

impl ChartAxis {
    /// From `low` to `high`, widened to whole ticks, between two pixels, with about `wanted` ticks.
    pub(super) fn with_rounded_ends(
        unit: &AxisUnit,
        (low, high): (f64, f64),
        pixels: (f64, f64),
        wanted: usize,
    ) -> Self {
        let mut axis = ChartAxis::with_exact_ends(unit, (low, high), pixels, wanted);
        axis.low = (axis.low / axis.step + 1e-9).floor() * axis.step;
        axis.high = (axis.high / axis.step - 1e-9).ceil() * axis.step;
        axis
    }

    /// From `low` to `high` exactly.
    pub(super) fn with_exact_ends(
        unit: &AxisUnit,
        (low, high): (f64, f64),
        pixels: (f64, f64),
        wanted: usize,
    ) -> Self {
        let shown = unit.scaled_for(low.abs().max(high.abs()));
        let (low, high) = (low / shown.divisor, high / shown.divisor);
        let high = if high > low { high } else { low + 1.0 };
        let step = ticks::nice_step(high - low, wanted);
        ChartAxis {
            low,
            high,
            from_pixel: pixels.0,
            to_pixel: pixels.1,
            step,
            divisor: shown.divisor,
            name: shown.name,
        }
    }

    /// Of things that are counted: no tick between two of them.
    pub(super) fn for_counts(ends: (f64, f64), pixels: (f64, f64), wanted: usize) -> Self {
        let axis = ChartAxis::with_exact_ends(&AxisUnit::Plain(String::new()), ends, pixels, wanted);
        ChartAxis { step: axis.step.max(1.0), ..axis }
    }

    /// The pixel of a value; values beyond the ends stay at them.
    pub(super) fn pixel_of(&self, value: f64) -> f64 {
        let part = (value / self.divisor - self.low) / (self.high - self.low);
        self.from_pixel + part.clamp(0.0, 1.0) * (self.to_pixel - self.from_pixel)
    }

    /// Pixel and text of every tick.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let decimals = ticks::tick_decimals(self.step);
        let text = |value: f64| {
            let text = format!("{value:.decimals$}");
            let zero = text.chars().all(|letter| matches!(letter, '-' | '0' | '.'));
            if zero { "0".to_owned() } else { text.replace('-', "−") }
        };
        let multiples = ticks::tick_values(self.low, self.high, self.step);
        multiples.into_iter().map(|value| (self.pixel_of(value * self.divisor), text(value))).collect()
    }
}
