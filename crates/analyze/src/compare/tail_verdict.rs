//! The bad tail is part of "same": a side with more values far beyond the rest is not the same because its middle is.

use perflab_stats::benjamini_hochberg;

use crate::compare::comparison::Verdict;
use crate::compare::failures::VerdictBasis;
use crate::compare::options::AnalysisOptions;
use crate::compare::row_estimate::RowEstimate;

/// Judges the tails of all rows, each family for itself. "Worse tail" needs the exact test; without it, a candidate that has
/// more such values than the baseline is not called the same.
pub(crate) fn judge_tails(drafts: &mut [RowEstimate], options: &AnalysisOptions) {
    for primary in [true, false] {
        let members = drafts.iter_mut().map(|draft| &mut draft.row).filter(|row| row.primary == primary);
        let mut members: Vec<_> = members.filter(|row| row.tail.is_some()).collect();
        let p_values: Vec<f64> = members.iter().filter_map(|row| row.tail).map(|tail| tail.p).collect();
        let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
        for (row, q) in members.iter_mut().zip(q_values) {
            let middle = row.verdict;
            let Some(tail) = &mut row.tail else { continue };
            (tail.q, tail.middle) = (q, middle);
            let has_more = tail.candidate.share() > tail.baseline.share();
            let is_clear = options.is_significant(q);
            let verdict = match (middle, has_more, is_clear) {
                (Verdict::Same, true, true) => Verdict::Worse,
                (Verdict::SameHere, _, true) => Verdict::Differs,
                (Verdict::Same | Verdict::SameHere, true, false) | (Verdict::Better, true, true) => {
                    Verdict::Unclear
                }
                (Verdict::Same, false, true) => Verdict::Better,
                _ => continue,
            };
            (row.verdict, row.basis, row.needed) = (verdict, VerdictBasis::Tail, None);
        }
    }
}
