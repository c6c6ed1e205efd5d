//! Owns where a time stands on an axis of pixels: linear, or by its logarithm, the latter through a table, since it is
//! asked for millions of times.

/// How times are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleKind {
    /// as they are
    Linear,
    /// by their logarithm: what is small is seen too
    #[default]
    Log,
}

/// Bits of the mantissa that the table looks at: 0.2 % of the value, a quarter of a pixel.
const FINE: u32 = 8;

/// From nanoseconds to rows of pixels, 0 at the top.
#[derive(Debug, Clone)]
pub struct TimeScale {
    kind: ScaleKind,
    low: f64,
    high: f64,
    height: usize,
    table: Vec<u16>,
}

impl TimeScale {
    /// From `low` (which a linear one takes for zero) to `high` nanoseconds over `height` rows.
    #[must_use]
    pub fn new(spread: ScaleKind, low: f64, high: f64, height: usize) -> Self {
        let (low, high) = match spread {
            ScaleKind::Linear => (0.0, high.max(1.0)),
            ScaleKind::Log => (low.max(1.0), high.max(low.max(1.0) * 10.0)),
        };
        let mut scale = TimeScale { kind: spread, low, high, height, table: Vec::new() };
        if spread == ScaleKind::Log {
            let value = |key: usize| {
                let (power, part) = (key >> FINE, key & ((1 << FINE) - 1));
                (power as f64).exp2() * (1.0 + (part as f64 + 0.5) / f64::from(1 << FINE))
            };
            scale.table = (0..64 << FINE).map(|key| scale.exact_row(value(key)) as u16).collect();
        }
        scale
    }

    /// The row of a value, worked out.
    fn exact_row(&self, value: f64) -> usize {
        let part = match self.kind {
            ScaleKind::Linear => value / self.high,
            ScaleKind::Log => (value.max(1.0) / self.low).ln() / (self.high / self.low).ln(),
        };
        let last = self.height.saturating_sub(1) as f64;
        ((1.0 - part.clamp(0.0, 1.0)) * last).round() as usize
    }

    /// The row of a value in nanoseconds.
    #[inline]
    #[must_use]
    pub fn row(&self, ns: i64) -> usize {
        if self.kind == ScaleKind::Linear {
            return self.exact_row(ns as f64);
        }
        let ns = ns.max(1) as u64;
        let power = ns.ilog2();
        let part =
            if power >= FINE { ns >> (power - FINE) } else { ns << (FINE - power) } & ((1 << FINE) - 1);
        let key = (power as usize) << FINE | part as usize;
        self.table.get(key).copied().map_or(0, usize::from)
    }

    /// Value in nanoseconds and row of every tick.
    #[must_use]
    pub fn ticks(&self) -> Vec<(f64, usize)> {
        let values: Vec<f64> = match self.kind {
            ScaleKind::Linear => {
                let step = crate::chart::ticks::nice_step(self.high, 8);
                (0..100).map(|n| f64::from(n) * step).take_while(|value| *value <= self.high).collect()
            }
            ScaleKind::Log => {
                let first = self.low.log10().ceil() as i32;
                (first..first + 20)
                    .map(|power| 10_f64.powi(power))
                    .take_while(|value| *value <= self.high)
                    .collect()
            }
        };
        values.into_iter().map(|value| (value, self.exact_row(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_within_a_pixel_of_the_logarithm() {
        let scale = TimeScale::new(ScaleKind::Log, 50.0, 5e6, 1800);
        for ns in (1..5_000_000).step_by(997).chain([50, 51, 4_999_999]) {
            let (table, exact) = (scale.row(ns), scale.exact_row(ns as f64));
            assert!(table.abs_diff(exact) <= 1, "{ns}: {table} {exact}");
        }
        assert_eq!((scale.row(5_000_000), scale.row(1)), (0, 1799));
    }
}
