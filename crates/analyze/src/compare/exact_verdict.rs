//! The verdict on rows whose values are exact: there is nothing to be unsure of.

use crate::compare::comparison::Verdict;
use crate::compare::diagnostic::RowFlag;
use crate::compare::row_estimate::RowEstimate;
use crate::compare::verdict::set_changed_verdict;

/// Any difference is a change, whatever the margin; q and the families of tests know nothing of it.
pub(crate) fn judge_exact_rows(drafts: &mut [RowEstimate]) {
    for draft in drafts.iter_mut().filter(|draft| draft.exact) {
        match draft.row.change {
            Some(change) if change.value != 0.0 => set_changed_verdict(draft),
            _ => draft.row.verdict = Verdict::Same,
        }
    }
}

/// What one must know of samples says nothing of a value that is exact: order, boots, how many there are.
pub(crate) fn drop_sampling_flags(drafts: &mut [RowEstimate]) {
    let is_of_samples = |flag: &RowFlag| {
        matches!(
            flag,
            RowFlag::OneBoot | RowFlag::UnknownBoot | RowFlag::Few | RowFlag::Sequential | RowFlag::Noise
        )
    };
    drafts
        .iter_mut()
        .filter(|draft| draft.exact)
        .for_each(|draft| draft.row.flags.retain(|flag| !is_of_samples(flag)));
}
