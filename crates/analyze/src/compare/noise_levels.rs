//! The noise of one metric level by level, as a card has it.

use perflab_model::Nanos;
use perflab_stats::{LevelComponent, SuccessiveDifferences};
use serde::{Deserialize, Serialize};

/// The noise of one metric by level; standard deviations are relative, 0.01 being 1 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoiseLevels {
    /// Boots of the machine.
    pub boots: LevelNoise,
    /// Runs within a boot.
    pub runs: LevelNoise,
    /// Blocks within a run: what all cases of a block share.
    pub blocks: LevelNoise,
    /// Iterations within a block.
    pub iterations: LevelNoise,
    /// How much a block resembles the one before it, within a run: lag-one autocorrelation.
    pub autocorrelation: f64,
    /// Relative change an hour within runs, the median of them; absent where no run has three blocks, or where they are so short that
    /// an hour would make it ten times as much.
    pub drift: Option<f64>,
    /// How much a run differs from the next one.
    pub next_run: Option<NextRun>,
    /// How much a run differs from the next one of another boot.
    pub next_boot: Option<NextRun>,
    /// How long an iteration takes, ns.
    pub iteration_time: Nanos,
}

/// What a level adds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LevelNoise {
    /// How many there were.
    pub n: usize,
    /// Standard deviation, without what lower levels add; absent where the level does not repeat: then the next level above that
    /// does has it, too.
    pub sd: Option<f64>,
}

/// Differences between medians of successive runs, of their logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NextRun {
    /// Mean of their squares.
    pub mean_square: f64,
    /// Degrees of freedom of it.
    pub freedom: f64,
    /// How many differences.
    pub pairs: usize,
}

impl From<LevelComponent> for LevelNoise {
    fn from(level: LevelComponent) -> Self {
        LevelNoise { n: level.groups, sd: level.variance.map(f64::sqrt) }
    }
}

impl NextRun {
    /// As statistics have it.
    pub(crate) fn differences(self) -> SuccessiveDifferences {
        SuccessiveDifferences { mean_square: self.mean_square, freedom: self.freedom }
    }

    /// Nothing of no difference.
    pub(crate) fn from_differences(differences: &[f64]) -> Option<Self> {
        let found = SuccessiveDifferences::from_differences(differences).ok()?;
        Some(NextRun { mean_square: found.mean_square, freedom: found.freedom, pairs: differences.len() })
    }
}
