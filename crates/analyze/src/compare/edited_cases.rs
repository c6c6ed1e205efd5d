//! Withholds verdicts from cases that did different things under one name. Their numbers stay in the row, with the
//! reason.

use indexmap::IndexMap;

use crate::compare::comparison::{Verdict, VerdictRow};
use crate::compare::diagnostic::{ComparisonDiagnostic, RowFlag};
use crate::compare::failures::VerdictBasis;
use crate::compare::options::AnalysisOptions;
use crate::compare::row_estimate::RowEstimate;
use crate::compare::run_differences::PlanDifference;

/// The cases of one candidate that differ from the baseline's of the same name.
#[derive(Debug)]
pub(crate) struct EditedCases {
    pub(crate) candidate: String,
    /// Name of the case -> what differs.
    pub(crate) cases: IndexMap<String, Vec<PlanDifference>>,
}

impl EditedCases {
    /// One warning a case.
    pub(crate) fn diagnostics(&self, baseline: &str, options: &AnalysisOptions) -> Vec<ComparisonDiagnostic> {
        let cases = self.cases.iter().filter(|(_, differences)| !differences.is_empty());
        let warning =
            |(subject, differences): (&String, &Vec<PlanDifference>)| ComparisonDiagnostic::DifferentCase {
                baseline: baseline.into(),
                candidate: self.candidate.clone(),
                subject: subject.clone(),
                differences: differences.iter().map(ToString::to_string).collect(),
                withheld: !options.across,
            };
        cases.map(warning).collect()
    }
}

/// Flags a row whose two sides did different things, and takes its verdict unless the difference is meant.
pub(crate) fn withhold_verdict(row: &mut VerdictRow, edited: &[EditedCases], options: &AnalysisOptions) {
    let of_row = edited.iter().filter(|edited| edited.candidate == row.candidate_name);
    let found: Vec<String> = of_row
        .filter_map(|edited| edited.cases.get(&row.subject))
        .flatten()
        .map(ToString::to_string)
        .collect();
    if found.is_empty() || row.flags.contains(&RowFlag::OneSided) {
        return;
    }
    row.flags.push(RowFlag::OtherCase);
    row.flags.sort_unstable();
    if !options.across {
        take_verdict(row, found.join("; "));
    }
}

fn take_verdict(row: &mut VerdictRow, reason: String) {
    row.flags.retain(|flag| *flag != RowFlag::Changed);
    (row.verdict, row.basis, row.middle) = (Verdict::Unclear, VerdictBasis::Values, None);
    row.needed = None;
    row.withheld = Some(reason);
}

/// Takes the verdict of a row of whose metric the runs say different things: which way is good, or in the other side's rows its
/// unit.
pub(crate) fn withhold_contradictions(drafts: &mut [RowEstimate]) {
    for draft in drafts {
        if let Some(reason) = draft.contradiction.take() {
            take_verdict(&mut draft.row, reason);
        }
    }
}
