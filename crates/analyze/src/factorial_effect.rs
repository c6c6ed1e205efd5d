//! One effect or interaction of two factors, and the cells and contrasts that it is estimated from.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use perflab_model::{Case, Direction, Metric, Unit};
use serde::Serialize;

use crate::ComparisonSide;
use crate::compare::change::{ChangeScale, MetricChange, RepetitionLevel};
use crate::compare::comparison::Verdict;
use crate::compare::failures::{FailureComparison, VerdictBasis};

/// One effect or interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectRow {
    /// The case without the two factors.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// `guest: new against old`, or `host × guest: new, new`.
    pub effect: String,
    /// Whether it is an interaction.
    pub is_interaction: bool,
    /// Its size; absent where a cell has no value, all of its iterations having failed.
    pub change: Option<MetricChange>,
    /// Two-sided p-value of none.
    pub p: Option<f64>,
    /// The same, adjusted over all rows of the family.
    pub q: Option<f64>,
    /// For an effect as ever; for an interaction *same* means none that matters, and anything else is *unclear* unless
    /// `differs` says that it is there.
    pub verdict: Verdict,
    /// The interval excludes none, and q is small.
    pub differs: bool,
    /// What was compared.
    pub level: RepetitionLevel,
    /// Blocks, boots or machines that all cells share; absent where the cells were compared by their means.
    pub blocks: Option<usize>,
    /// Cells were measured in different boots which do not repeat: no verdict on the values.
    pub one_boot: bool,
    /// How often iterations failed under the first level of an effect and under the other; absent where none did, and of an
    /// interaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailureComparison>,
    /// What the verdict stands on.
    #[serde(skip_serializing_if = "VerdictBasis::is_values")]
    pub basis: VerdictBasis,
    /// What the data would say with values for the iterations that failed.
    #[serde(skip)]
    pub(crate) imputed: Option<[ImputedEffect; 2]>,
}

impl EffectRow {
    /// The word that people should read.
    #[must_use]
    pub fn verdict_word(&self) -> &'static str {
        match (self.verdict, self.is_interaction, self.differs) {
            (Verdict::Same, true, _) => "none",
            (_, true, true) => "interacts",
            (Verdict::Unclear, false, true) => "changed",
            (verdict, ..) => verdict.word(),
        }
    }
}

/// What the data would say if iterations that failed had values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ImputedEffect {
    pub(crate) change: MetricChange,
    pub(crate) p: f64,
}

/// Run, boot and iteration; of boots, the iteration is 0.
pub(crate) type FactorialKey = (usize, u32, u32);

/// Values of one cell.
pub(crate) type FactorialCell = BTreeMap<FactorialKey, Vec<f64>>;

/// A level of each of the two factors.
pub(crate) type LevelPair = (String, String);

/// One metric of a case without the two factors.
#[derive(Clone)]
pub(crate) struct InteractionSamples {
    pub(crate) metric: Metric,
    pub(crate) margin: f64,
    pub(crate) cells: IndexMap<LevelPair, FactorialCell>,
}

/// One contrast to be estimated.
pub(crate) struct FactorContrast {
    pub(crate) effect: String,
    pub(crate) is_interaction: bool,
    pub(crate) weights: Vec<(LevelPair, f64)>,
}

/// The case without two factors.
pub(crate) fn subject_without(case: &Case, factors: [&str; 2]) -> String {
    let others = case.levels.iter().filter(|(name, _)| !factors.contains(&name.as_str()));
    others.fold(case.label_without_levels(), |text, (name, level)| format!("{text} {name}={level}"))
}

/// Which boot of the machine it was.
pub(crate) fn boot_key(side: &ComparisonSide, run: usize, boot: u32) -> Option<(String, u32)> {
    side.runs.get(run).map(|run| run.manifest.boot_key(boot, false))
}

/// Whether a change is a ratio within ± the margin.
pub(crate) fn is_within_ratio(change: &MetricChange, margin: f64) -> bool {
    change.scale == ChangeScale::Ratio && change.is_within(margin)
}
