//! The mean and the bad tail are part of "same": a side is not the same because its middle is.
//!
//! The tail and the parts of a row are one family (Holm), and so are the rows for each of them (Benjamini and Hochberg). They
//! qualify what the middle says, and never make a verdict where the middle has none.

use perflab_model::Direction;
use perflab_stats::{EventCount, StatsError, benjamini_hochberg, fisher_exact, holm};

use crate::compare::compared_part::{ComparedPart, PartComparison};
use crate::compare::comparison::{TailComparison, Verdict, VerdictRow};
use crate::compare::diagnostic::RowFlag;
use crate::compare::failures::VerdictBasis;
use crate::compare::options::AnalysisOptions;
use crate::compare::row_estimate::RowEstimate;

/// The candidate has no more far values than is usual, where so large a share of samples with the usual share has as many.
const USUAL: f64 = 0.1;

/// What a part says of a row whose middle is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartFinding {
    Worse,
    Better,
    /// A clear change of a metric without a direction.
    Changed,
    /// It may have moved by more than the margin.
    Open,
}

/// Judges the parts of all rows, each family for itself.
pub(crate) fn judge_parts(drafts: &mut [RowEstimate], options: &AnalysisOptions) {
    for primary in [true, false] {
        let members = drafts.iter_mut().filter(|draft| draft.row.primary == primary);
        let mut members: Vec<&mut RowEstimate> =
            members.filter(|draft| draft.row.tail.is_some() || !draft.row.parts.is_empty()).collect();
        members.iter_mut().for_each(|draft| adjust_within_row(&mut draft.row));
        adjust_over_rows(&mut members, |row| row.tail.as_mut().map(|tail| &mut tail.q));
        for part in
            [ComparedPart::Mean, ComparedPart::P95, ComparedPart::P99, ComparedPart::P5, ComparedPart::P1]
        {
            adjust_over_rows(&mut members, |row| {
                row.parts.iter_mut().find(|found| found.part == part).map(|found| &mut found.q)
            });
        }
        members.into_iter().for_each(|draft| judge_row(draft, options));
    }
}

/// Holm's adjustment of the tail and the parts of a row.
fn adjust_within_row(row: &mut VerdictRow) {
    let tail = row.tail.iter().map(|tail| tail.p);
    let p_values: Vec<f64> = tail.chain(row.parts.iter().map(|part| part.p)).collect();
    let adjusted = holm(&p_values).unwrap_or(p_values);
    let places = row.tail.iter_mut().map(|tail| &mut tail.q);
    let places = places.chain(row.parts.iter_mut().map(|part| &mut part.q));
    places.zip(adjusted).for_each(|(place, q)| *place = q);
}

fn adjust_over_rows(members: &mut [&mut RowEstimate], find: impl Fn(&mut VerdictRow) -> Option<&mut f64>) {
    let p_values: Vec<f64> =
        members.iter_mut().filter_map(|draft| find(&mut draft.row).map(|q| *q)).collect();
    let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
    let places = members.iter_mut().filter_map(|draft| find(&mut draft.row));
    places.zip(q_values).for_each(|(place, q)| *place = q);
}

fn judge_row(draft: &mut RowEstimate, options: &AnalysisOptions) {
    let Some(margin) = draft.margin_on_scale() else { return };
    let row = &mut draft.row;
    let middle = row.verdict;
    if let Some(tail) = &mut row.tail {
        tail.middle = middle;
    }
    let tail = row.tail.as_ref().and_then(|tail| Some((VerdictBasis::Tail, tail_finding(tail, options)?)));
    let parts = row.parts.iter().rev().filter_map(|part| {
        Some((VerdictBasis::of_part(part.part), part_finding(part, row, margin, options)?))
    });
    let findings: Vec<(VerdictBasis, PartFinding)> = tail.into_iter().chain(parts).collect();
    let first = |finding| findings.iter().find(|(_, found)| *found == finding).map(|(basis, _)| *basis);
    let clear = findings.iter().find(|(_, found)| *found != PartFinding::Open).map(|(basis, _)| *basis);
    let decided = match middle {
        Verdict::Same => match (first(PartFinding::Worse), first(PartFinding::Better)) {
            (Some(worse), Some(_)) => Some((Verdict::Unclear, worse)),
            (Some(worse), None) => Some((Verdict::Worse, worse)),
            (None, better) => {
                let open = first(PartFinding::Open).or(first(PartFinding::Changed));
                open.map(|basis| (Verdict::Unclear, basis)).or(better.map(|basis| (Verdict::Better, basis)))
            }
        },
        Verdict::SameHere => clear
            .map(|basis| (Verdict::Differs, basis))
            .or(first(PartFinding::Open).map(|basis| (Verdict::Unclear, basis))),
        Verdict::Better => first(PartFinding::Worse).map(|basis| (Verdict::Unclear, basis)),
        _ => None,
    };
    let Some((verdict, basis)) = decided else { return };
    let is_changed = findings.iter().any(|(of, found)| *of == basis && *found == PartFinding::Changed)
        && verdict == Verdict::Unclear;
    row.flags.extend(is_changed.then_some(RowFlag::Changed));
    (row.verdict, row.basis, row.middle, row.needed) = (verdict, basis, Some(middle), None);
}

/// "Worse tail" needs the exact test; without it, a candidate that has more such values than the baseline is not called the
/// same, unless earlier runs show that so many are usual.
fn tail_finding(tail: &TailComparison, options: &AnalysisOptions) -> Option<PartFinding> {
    let has_more = tail.candidate.share() > tail.baseline.share();
    match (has_more, options.is_significant(tail.q)) {
        (true, true) => Some(PartFinding::Worse),
        (false, true) => Some(PartFinding::Better),
        (true, false) if !is_usual(tail).unwrap_or(false) => Some(PartFinding::Open),
        _ => None,
    }
}

/// Whether as many far values as the candidate has are no surprise after the earlier runs and the baseline.
fn is_usual(tail: &TailComparison) -> Result<bool, StatsError> {
    let Some(earlier) = tail.earlier.filter(|earlier| earlier.beyond > 0) else { return Ok(false) };
    let (earlier, baseline) = (EventCount::from(earlier), EventCount::from(tail.baseline));
    let known =
        EventCount { events: earlier.events + baseline.events, trials: earlier.trials + baseline.trials };
    Ok(fisher_exact(known, tail.candidate.into())?.at_least > USUAL)
}

/// A part that may have moved by more than the margin, since its interval leaves it, and its estimate lies outside; that of the
/// mean also where the middle's interval does not hold it, as it does where both sides have one shape.
fn part_finding(
    part: &PartComparison,
    row: &VerdictRow,
    margin: f64,
    options: &AnalysisOptions,
) -> Option<PartFinding> {
    if part.change.is_within(margin) {
        return None;
    }
    if part.change.excludes_none() && options.is_significant(part.q) {
        return Some(match (row.direction, part.change.value > 0.0) {
            (Direction::Neither, _) => PartFinding::Changed,
            (Direction::Lower, true) | (Direction::Higher, false) => PartFinding::Worse,
            (Direction::Lower, false) | (Direction::Higher, true) => PartFinding::Better,
        });
    }
    let value = part.change.value;
    let middle = row.change.and_then(|change| change.narrow);
    let has_other_shape = part.part == ComparedPart::Mean
        && middle.is_some_and(|middle| value < middle.low || middle.high < value);
    (value.abs() >= margin || has_other_shape).then_some(PartFinding::Open)
}
