//! Owns the drawing of whole boots with replacement. It refuses to mix the sides.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Draws from the boots of each side.
pub(super) struct BootDraws<'a> {
    sides: &'a [&'a [&'a [f64]]],
    random: ChaCha8Rng,
}

/// As many boots as there are, some of them several times.
pub(super) struct BootResample {
    /// The values of each side, boots one after the other.
    pub(super) values: Vec<Vec<f64>>,
    /// Which boots of each side were drawn.
    pub(super) chosen: Vec<Vec<usize>>,
}

impl<'a> BootDraws<'a> {
    pub(super) fn new(sides: &'a [&'a [&'a [f64]]], seed: u64) -> Self {
        Self { sides, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    pub(super) fn draw_next(&mut self) -> BootResample {
        let mut drawn = BootResample { values: Vec::new(), chosen: Vec::new() };
        for boots in self.sides {
            let chosen: Vec<usize> = boots.iter().map(|_| self.random.random_range(0..boots.len())).collect();
            let values = chosen.iter().filter_map(|index| boots.get(*index));
            drawn.values.push(values.flat_map(|boot| boot.iter().copied()).collect());
            drawn.chosen.push(chosen);
        }
        drawn
    }
}

impl BootResample {
    /// The boots that were drawn, as [`super::Jackknife`] takes them.
    pub(super) fn boots<'a>(&self, sides: &[&[&'a [f64]]]) -> Vec<Vec<&'a [f64]>> {
        let of_side = |(chosen, boots): (&Vec<usize>, &&[&'a [f64]])| {
            chosen.iter().filter_map(|index| boots.get(*index).copied()).collect()
        };
        self.chosen.iter().zip(sides).map(of_side).collect()
    }
}
