//! What the study itself varied between the sides: where levels are interleaved, it is the cause, and the suspects say through what
//! it acts.

use perflab_model::study::{Factor, FactorKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::alignment::compared_factors;
use crate::compare::comparison::{Comparison, VerdictRow};
use crate::compare::options::ComparisonSide;

/// A setting of the machine, or of what a workload may use, that a factor sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VariedSetting {
    /// the factor's name
    pub factor: String,
    /// its kind
    pub kind: FactorKind,
    /// what it sets: `cpu-max`, `vm.swappiness`, a path
    pub key: String,
    /// its value on the baseline
    pub baseline: String,
    /// its value on the candidate
    pub candidate: String,
    /// Whether iterations of both levels took turns in blocks: nothing else differs between them by design.
    pub in_blocks: bool,
}

/// The factors that set something, and differ between the sides of a row.
pub(crate) fn find_varied_settings(
    comparison: &Comparison,
    row: &VerdictRow,
    sides: &[ComparisonSide],
) -> Vec<VariedSetting> {
    let (names, of_levels) = match &comparison.by {
        Some(factor) => (vec![factor.clone()], true),
        None => {
            let all: Vec<&ComparisonSide> = sides.iter().collect();
            (compared_factors(&all).into_iter().map(|factor| factor.name).collect(), false)
        }
    };
    let factor = |name: &str| -> Option<&Factor> {
        sides.iter().flat_map(|side| &side.runs).find_map(|run| run.manifest.study.factor.get(name))
    };
    let only_level = |side: &str, name: &str| -> Option<String> {
        let runs = &sides.iter().find(|one| one.name == side)?.runs;
        runs.first()?.manifest.plan.factors.get(name)?.first().cloned()
    };
    let varied = |name: String| {
        let found = factor(&name).filter(|factor| is_told(factor.kind))?;
        let (ours, theirs) = match of_levels {
            true => (comparison.baseline.clone(), row.candidate_name.clone()),
            false => (only_level(&comparison.baseline, &name)?, only_level(&row.candidate_name, &name)?),
        };
        Some(VariedSetting {
            kind: found.kind,
            key: found.key.clone().unwrap_or_else(|| name.clone()),
            baseline: ours,
            candidate: theirs,
            in_blocks: of_levels && row.method.is_some_and(|method| method.paired),
            factor: name,
        })
    };
    names.into_iter().filter_map(varied).collect()
}

/// Kinds that set something; what a workload is told to do, and what people change by hand, stands in the names of the sides.
fn is_told(kind: FactorKind) -> bool {
    kind.is_set_on_machine()
        || matches!(
            kind,
            FactorKind::Disk
                | FactorKind::Target
                | FactorKind::Beside
                | FactorKind::Placement
                | FactorKind::Monitors
                | FactorKind::Syscall
        )
}
