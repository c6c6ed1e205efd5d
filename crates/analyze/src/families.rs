//! Owns which rows are looked at together, so that many metrics do not make many false alarms: primary metrics are
//! one family, explanatory metrics another. It refuses to mix them: a hundred counters must not hide the one
//! number that decides.

use perflab_stats::benjamini_hochberg;

use crate::AnalysisOptions;
use crate::comparison::{RepetitionLevel, Verdict};
use crate::flag::RowFlag;
use crate::judge::set_verdict;
use crate::needed::PowerPlanner;
use crate::rows::RowEstimate;
use crate::warning::ComparisonDiagnostic;

/// Sizes of the two families, and what is to be said of the one that decides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestFamilySizes {
    pub(crate) primary: usize,
    pub(crate) explanatory: usize,
    pub(crate) too_many_rows: Option<ComparisonDiagnostic>,
}

/// Adjusts the p-values of each family and judges its rows.
pub(crate) fn set_verdicts(drafts: &mut [RowEstimate], options: &AnalysisOptions) -> TestFamilySizes {
    let primary = set_family_verdicts(drafts, true, options);
    let explanatory = set_family_verdicts(drafts, false, options);
    let (decides, size) = if primary > 0 { (true, primary) } else { (false, explanatory) };
    let members: Vec<&RowEstimate> =
        drafts.iter().filter(|draft| draft.row.primary == decides && draft.row.p.is_some()).collect();
    TestFamilySizes { primary, explanatory, too_many_rows: too_many_rows_diagnostic(&members, size, options) }
}

/// Whether there are so many rows that none of them could be significant alone, whatever it measured.
fn too_many_rows_diagnostic(
    members: &[&RowEstimate],
    size: usize,
    options: &AnalysisOptions,
) -> Option<ComparisonDiagnostic> {
    let decided = |draft: &&&RowEstimate| {
        draft.row.verdict != Verdict::Unclear || draft.row.flags.contains(&RowFlag::Changed)
    };
    let is_judged = |draft: &&&RowEstimate| {
        !draft.constant && draft.row.change.is_some_and(|change| change.interval.is_some())
    };
    // Rows that show no change are the same without q.
    let changed = |draft: &&&RowEstimate| decided(draft) && draft.row.verdict != Verdict::Same;
    if members.iter().any(|draft| changed(&draft)) {
        return None;
    }
    let methods = members
        .iter()
        .filter(is_judged)
        .filter_map(|draft| draft.row.method)
        .filter(|method| !method.by_means);
    let most = methods.max_by_key(|method| method.baseline.min(method.candidate))?;
    let repetitions = most.baseline.min(most.candidate);
    let needed = PowerPlanner::new(size, options).fewest_repetitions(most.paired);
    let noun = match (most.level, most.paired) {
        (RepetitionLevel::Boot, _) => "boots",
        (RepetitionLevel::Iteration, true) => "blocks",
        (RepetitionLevel::Iteration, false) => "iterations",
    };
    (repetitions < needed).then(|| ComparisonDiagnostic::TooManyRows {
        rows: size,
        repetitions,
        needed,
        noun: noun.into(),
    })
}

fn set_family_verdicts(drafts: &mut [RowEstimate], primary: bool, options: &AnalysisOptions) -> usize {
    let belongs = |draft: &&mut RowEstimate| draft.row.primary == primary && draft.row.p.is_some();
    let mut members: Vec<&mut RowEstimate> = drafts.iter_mut().filter(belongs).collect();
    let p_values: Vec<f64> = members.iter().filter_map(|draft| draft.row.p).collect();
    let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
    let size = q_values.len();
    let mut planner = PowerPlanner::new(size, options);
    for (draft, q) in members.iter_mut().zip(q_values) {
        draft.row.q = Some(q);
        set_verdict(draft, &mut planner, options);
    }
    size
}
