//! Iterations that failed under the levels of two factors: counted for each effect, tested, and never to the good of who failed.
//!
//! As in a comparison of one factor (`compare::failure_verdict`): the level that fails more than chance explains is the worse
//! one, whatever its other iterations say; otherwise values decide only where those that are missing could not have turned it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexmap::{IndexMap, IndexSet};
use perflab_model::{Direction, Outcome, RunRecord};
use perflab_stats::benjamini_hochberg;

use crate::compare::comparison::Verdict;
use crate::compare::failure_verdict::adjust_changed_p;
use crate::compare::failures::{FailureComparison, FailureCount, VerdictBasis, failure_shares};
use crate::compare::missing_values::{bad_end, limits_beyond};
use crate::factorial_effect::{
    EffectRow, FactorContrast, FactorialKey, ImputedEffect, InteractionSamples, LevelPair, boot_key,
    is_within_ratio, subject_without,
};
use crate::{AnalysisOptions, ComparisonSide};

/// The iterations that runs tell of, by case and cell, each with whether it failed. Warm-up and what the user stopped are left out.
#[derive(Default)]
pub(crate) struct FactorialIterations {
    cells: HashMap<String, HashMap<LevelPair, BTreeMap<FactorialKey, bool>>>,
}

impl FactorialIterations {
    /// Adds those of a run; `number` is its place in the side.
    pub(crate) fn add_run(&mut self, number: usize, run: &RunRecord, [a, b]: [&str; 2]) {
        let plan = &run.manifest.plan;
        for iteration in run.iterations.iter().filter(|one| one.outcome != Outcome::Interrupted) {
            let Some(slot) = plan.slots.get(iteration.slot as usize).filter(|slot| !slot.warmup) else {
                continue;
            };
            let Some(case) = plan.case(slot.case) else { continue };
            let (Some(first), Some(second)) = (case.levels.get(a), case.levels.get(b)) else { continue };
            let cells = self.cells.entry(subject_without(case, [a, b])).or_default();
            let cell = cells.entry((first.clone(), second.clone())).or_default();
            // On several targets, an iteration failed where it failed on any.
            *cell.entry((number, slot.boot, slot.iteration)).or_default() |=
                iteration.outcome.failure_reason().is_some();
        }
    }

    /// Whether an iteration of the case failed.
    pub(crate) fn has_failures(&self, subject: &str) -> bool {
        self.cells.get(subject).into_iter().flatten().any(|(_, cell)| cell.values().any(|failed| *failed))
    }

    /// The iterations of a cell that failed.
    pub(crate) fn failed_in(&self, subject: &str, cell: &LevelPair) -> impl Iterator<Item = FactorialKey> {
        let of_cell = self.cells.get(subject).and_then(|cells| cells.get(cell));
        of_cell.into_iter().flatten().filter(|(_, failed)| **failed).map(|(key, _)| *key)
    }

    /// How often iterations failed in the cells with negative weight, and in the others; none where nothing failed.
    pub(crate) fn compare(
        &self,
        subject: &str,
        one: &InteractionSamples,
        contrast: &FactorContrast,
        side: &ComparisonSide,
    ) -> Option<FailureComparison> {
        let mut boots = IndexSet::new();
        let mut counts: [BTreeMap<(u32, u32), FailureCount>; 2] = Default::default();
        for (cell, weight) in &contrast.weights {
            let failed: BTreeSet<FactorialKey> = self.failed_in(subject, cell).collect();
            let told = self.cells.get(subject).and_then(|cells| cells.get(cell)).into_iter().flatten();
            let with_value = one.cells.get(cell).into_iter().flatten().map(|(key, _)| *key);
            let all: BTreeSet<FactorialKey> = told.map(|(key, _)| *key).chain(with_value).collect();
            for key in all {
                let boot = boots.insert_full(boot_key(side, key.0, key.1)).0;
                let place =
                    (u32::try_from(boot).unwrap_or(u32::MAX), u32::try_from(key.0).unwrap_or(u32::MAX));
                let [baseline, candidate] = &mut counts;
                let of_side = if *weight > 0.0 { candidate } else { baseline };
                let count = of_side.entry(place).or_default();
                count.of += 1;
                count.failed += usize::from(failed.contains(&key));
            }
        }
        let [baseline, candidate] = [&counts[0], &counts[1]].map(|side| {
            let mut sum = FailureCount::default();
            side.values().for_each(|one| sum += *one);
            sum
        });
        let units = failure_shares([&counts[0], &counts[1]]);
        (baseline.failed + candidate.failed > 0)
            .then(|| FailureComparison::from_counts(baseline, candidate, units))
    }
}

/// Values beyond all of a metric: the bad end, and the good one.
pub(crate) fn bad_and_good_ends(one: &InteractionSamples, direction: Direction) -> [f64; 2] {
    let values = one.cells.values().flat_map(|cell| cell.values()).flatten().copied();
    bad_end(limits_beyond(values), direction)
}

/// Judges the failures of all effects, and caps what the values of the others say. `families` are the p-values of the primary
/// rows and of the others, ascending.
pub(crate) fn judge_effect_failures(
    rows: &mut [EffectRow],
    families: &[Vec<f64>; 2],
    margin: impl Fn(&EffectRow) -> f64,
    options: &AnalysisOptions,
) {
    adjust_effect_failures(rows);
    let has_primary = rows.iter().any(|row| row.primary);
    for row in rows.iter_mut() {
        let Some(failures) = row.failures else { continue };
        let decides = (row.primary || !has_primary) && !row.is_interaction;
        if decides && options.is_significant(failures.q) {
            let is_worse = failures.candidate_fails_more();
            (row.verdict, row.basis) = match (is_worse, row.verdict) {
                (true, _) => (Verdict::Worse, VerdictBasis::Failures),
                // What is left of the level that fails was faster all the same.
                (false, Verdict::Worse) => (Verdict::Unclear, VerdictBasis::MissingValues),
                (false, _) => (Verdict::Better, VerdictBasis::Failures),
            };
            row.differs = false;
        } else if could_turn(row, &families[usize::from(!row.primary)], margin(row), options) {
            (row.verdict, row.basis, row.differs) = (Verdict::Unclear, VerdictBasis::MissingValues, false);
        }
        if row.is_interaction {
            row.failures = None;
        }
    }
}

/// One family: each effect in which something failed.
fn adjust_effect_failures(rows: &mut [EffectRow]) {
    let mut effects: IndexMap<(String, String), f64> = IndexMap::new();
    for row in rows.iter().filter(|row| !row.is_interaction) {
        if let Some(failures) = row.failures {
            effects.entry((row.subject.clone(), row.effect.clone())).or_insert(failures.p);
        }
    }
    let p_values: Vec<f64> = effects.values().copied().collect();
    let adjusted = benjamini_hochberg(&p_values).unwrap_or_default();
    for row in rows {
        let key = (row.subject.clone(), row.effect.clone());
        let q = effects.get_index_of(&key).and_then(|at| adjusted.get(at));
        if let (Some(failures), Some(q)) = (&mut row.failures, q) {
            failures.q = *q;
        }
    }
}

/// Whether the values that are missing could have turned the verdict.
fn could_turn(row: &EffectRow, family: &[f64], margin: f64, options: &AnalysisOptions) -> bool {
    let Some(change) = row.change else { return true };
    let Some(imputed) = &row.imputed else { return row.verdict != Verdict::Unclear || row.differs };
    match row.verdict {
        Verdict::Same => {
            let misses_more = row.failures.is_some_and(FailureComparison::candidate_fails_more);
            misses_more || !imputed.iter().all(|effect| is_within_ratio(&effect.change, margin))
        }
        Verdict::Unclear if !row.differs => false,
        _ => {
            let own = row.p.unwrap_or(1.0);
            let confirms = |effect: &ImputedEffect| {
                let same_way = (effect.change.value > 0.0) == (change.value > 0.0);
                same_way
                    && effect.change.excludes_none()
                    && options.is_significant(adjust_changed_p(family, own, effect.p))
            };
            !imputed.iter().all(confirms)
        }
    }
}
