//! Owns scales: from numbers to pixels, with ticks. It refuses logarithms: bytes that add up need a zero.

use super::number::Unit;
use super::ticks;

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// pixels of `low` and `high`
    from: f64,
    to: f64,
    step: f64,
    divisor: f64,
    /// the unit as shown
    pub(super) name: String,
}

impl Axis {
    /// From `low` to `high`, widened to whole ticks, between two pixels, with about `wanted` ticks.
    pub(super) fn rounded(unit: &Unit, (low, high): (f64, f64), pixels: (f64, f64), wanted: usize) -> Self {
        let mut axis = Axis::exact(unit, (low, high), pixels, wanted);
        axis.low = (axis.low / axis.step + 1e-9).floor() * axis.step;
        axis.high = (axis.high / axis.step - 1e-9).ceil() * axis.step;
        axis
    }

    /// From `low` to `high` exactly.
    pub(super) fn exact(unit: &Unit, (low, high): (f64, f64), pixels: (f64, f64), wanted: usize) -> Self {
        let shown = unit.shown(low.abs().max(high.abs()));
        let (low, high) = (low / shown.divisor, high / shown.divisor);
        let high = if high > low { high } else { low + 1.0 };
        let step = ticks::step(high - low, wanted);
        Axis { low, high, from: pixels.0, to: pixels.1, step, divisor: shown.divisor, name: shown.name }
    }

    /// Of things that are counted: no tick between two of them.
    pub(super) fn counting(ends: (f64, f64), pixels: (f64, f64), wanted: usize) -> Self {
        let axis = Axis::exact(&Unit::Plain(String::new()), ends, pixels, wanted);
        Axis { step: axis.step.max(1.0), ..axis }
    }

    /// The pixel of a value; values beyond the ends stay at them.
    pub(super) fn place(&self, value: f64) -> f64 {
        let part = (value / self.divisor - self.low) / (self.high - self.low);
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Pixel and text of every tick.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let decimals = ticks::decimals(self.step);
        let text = |value: f64| {
            let text = format!("{value:.decimals$}");
            let zero = text.chars().all(|letter| matches!(letter, '-' | '0' | '.'));
            if zero { "0".to_owned() } else { text.replace('-', "−") }
        };
        let multiples = ticks::multiples(self.low, self.high, self.step);
        multiples.into_iter().map(|value| (self.place(value * self.divisor), text(value))).collect()
    }
}
