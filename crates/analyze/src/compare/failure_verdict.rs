//! Failures are results: iterations without a value are counted on both sides, and judged.
//!
//! A side that fails more than chance explains is the worse one, whatever its other iterations say. Otherwise the values
//! decide, but only where those that are missing could not have turned the verdict: it is worked out once more with the
//! missing ones at the worst end, and at the best.

use indexmap::IndexMap;
use perflab_stats::benjamini_hochberg;

use crate::compare::change::ChangeEstimate;
use crate::compare::comparison::Verdict;
use crate::compare::diagnostic::RowFlag;
use crate::compare::failures::{FailureComparison, VerdictBasis};
use crate::compare::options::AnalysisOptions;
use crate::compare::row_estimate::RowEstimate;

/// Judges the failures of all cases, and caps what the values of the others say.
pub(crate) fn judge_failures(drafts: &mut [RowEstimate], options: &AnalysisOptions) {
    adjust_failures(drafts);
    let families = [true, false].map(|primary| sorted_family(drafts, primary));
    let has_primary = drafts.iter().any(|draft| draft.row.primary);
    for draft in drafts.iter_mut() {
        let Some(failures) = draft.row.failures else { continue };
        let decides = draft.row.primary || !has_primary;
        if decides && options.is_significant(failures.q) {
            set_failure_verdict(draft, failures);
        } else if could_turn(draft, &families[usize::from(!draft.row.primary)], options) {
            draft.row.flags.retain(|flag| *flag != RowFlag::Changed);
            (draft.row.verdict, draft.row.basis) = (Verdict::Unclear, VerdictBasis::MissingValues);
            (draft.row.needed, draft.row.middle) = (None, None);
        }
    }
}

/// One family: each case of each candidate in which something failed. In the others nothing can be significant, whichever
/// side failed.
fn adjust_failures(drafts: &mut [RowEstimate]) {
    let mut cases: IndexMap<(String, String), f64> = IndexMap::new();
    for row in drafts.iter().map(|draft| &draft.row) {
        if let Some(failures) = row.failures {
            cases.entry((row.candidate_name.clone(), row.subject.clone())).or_insert(failures.p);
        }
    }
    let p_values: Vec<f64> = cases.values().copied().collect();
    let adjusted = benjamini_hochberg(&p_values).unwrap_or_default();
    for row in drafts.iter_mut().map(|draft| &mut draft.row) {
        let key = (row.candidate_name.clone(), row.subject.clone());
        let q = cases.get_index_of(&key).and_then(|at| adjusted.get(at));
        if let (Some(failures), Some(q)) = (&mut row.failures, q) {
            failures.q = *q;
        }
    }
}

/// The side that fails more is the worse one. Where that is the baseline, and what is left of it was faster all the same, the
/// two contradict each other.
fn set_failure_verdict(draft: &mut RowEstimate, failures: FailureComparison) {
    let row = &mut draft.row;
    let is_worse = failures.candidate_fails_more();
    row.flags.retain(|flag| *flag != RowFlag::Changed);
    (row.needed, row.middle) = (None, None);
    let contradicts = match row.verdict {
        Verdict::Worse => true,
        Verdict::Differs => row.is_good_change() == Some(false),
        _ => false,
    };
    (row.verdict, row.basis) = match (is_worse, contradicts) {
        (true, _) => (Verdict::Worse, VerdictBasis::Failures),
        (false, true) => (Verdict::Unclear, VerdictBasis::MissingValues),
        (false, false) => (Verdict::Better, VerdictBasis::Failures),
    };
}

/// The p-values of a family of rows, ascending.
fn sorted_family(drafts: &[RowEstimate], primary: bool) -> Vec<f64> {
    let members = drafts.iter().map(|draft| &draft.row).filter(|row| row.primary == primary);
    let mut family: Vec<f64> = members.filter_map(|row| row.p).collect();
    family.sort_unstable_by(f64::total_cmp);
    family
}

/// The q that a row would have if its p were another (Benjamini and Hochberg).
pub(crate) fn adjust_changed_p(family: &[f64], own: f64, changed: f64) -> f64 {
    let own_place = family.partition_point(|p| *p < own);
    let others = family.iter().enumerate().filter(|(place, _)| *place != own_place).map(|(_, p)| *p);
    let smaller = others.clone().filter(|p| *p < changed).count();
    let larger = std::iter::once(changed).chain(others.filter(|p| *p >= changed));
    let adjusted = larger.zip(smaller + 1..).map(|(p, rank)| p * family.len() as f64 / rank as f64);
    adjusted.fold(1.0, f64::min)
}

/// Whether the values that are missing could have turned the verdict.
fn could_turn(draft: &RowEstimate, family: &[f64], options: &AnalysisOptions) -> bool {
    let Some(imputed) = draft.imputed.as_ref().filter(|_| draft.row.basis.is_values()) else { return false };
    let Some(change) = draft.row.change else { return false };
    let is_changed = draft.row.flags.contains(&RowFlag::Changed);
    match draft.row.verdict {
        Verdict::Unclear if !is_changed => false,
        Verdict::Same | Verdict::SameHere => {
            let Some(margin) = draft.margin_on_scale() else { return true };
            let misses_more = draft.row.failures.is_some_and(FailureComparison::candidate_fails_more);
            misses_more || !imputed.iter().all(|estimate| estimate.change.is_within(margin))
        }
        _ => {
            let own = draft.row.p.unwrap_or(1.0);
            let confirms = |estimate: &ChangeEstimate| {
                let same_way = (estimate.change.value > 0.0) == (change.value > 0.0);
                let is_changed = same_way && estimate.change.excludes_none();
                is_changed && options.is_significant(adjust_changed_p(family, own, estimate.p))
            };
            !imputed.iter().all(confirms)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_p_is_adjusted_as_if_the_family_had_it() {
        let family = [0.001, 0.004, 0.02, 0.03, 0.2, 0.2, 0.9];
        for own in 0..family.len() {
            for changed in [0.0, 0.002, 0.02, 0.034, 0.2, 0.5, 1.0] {
                let mut other = family;
                other[own] = changed;
                let expected = benjamini_hochberg(&other).unwrap()[own];
                assert!(
                    (adjust_changed_p(&family, family[own], changed) - expected).abs() < 1e-15,
                    "{own} {changed}"
                );
            }
        }
    }
}
