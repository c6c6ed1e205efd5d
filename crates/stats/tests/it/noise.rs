//! Noise with a seed, for the simulations.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Normal numbers by Box and Muller.
pub struct NormalNoise(ChaCha8Rng);

impl NormalNoise {
    pub fn from_seed(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn uniform(&mut self) -> f64 {
        1.0 - self.0.random::<f64>()
    }

    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub fn normals(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.normal()).collect()
    }
}

/// How often it happens in so many tries.
pub fn share_of_hits(tries: usize, mut hit: impl FnMut() -> bool) -> f64 {
    (0..tries).filter(|_| hit()).count() as f64 / tries as f64
}
