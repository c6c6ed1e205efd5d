//! Owns the use of a noise card in a comparison. It refuses to change verdicts.

use crate::comparison::Verdict;
use crate::flag::RowFlag;
use crate::rows::RowEstimate;
use crate::warning::{ComparisonDiagnostic, DiagnosticLocation};
use crate::{AnalysisOptions, ComparisonSide};

/// Flags what is better or worse by no more than the machine's own reach.
pub(super) fn flag_within_noise(
    drafts: &mut [RowEstimate],
    options: &AnalysisOptions,
) -> Vec<ComparisonDiagnostic> {
    let Some(card) = &options.noise else { return Vec::new() };
    let mut found = Vec::new();
    for row in drafts.iter_mut().map(|draft| &mut draft.row) {
        let decided = matches!(row.verdict, Verdict::Better | Verdict::Worse);
        let (Some(change), Some(reach)) =
            (row.relative_change(), card.largest_change(&row.workload, &row.metric))
        else {
            continue;
        };
        if decided && change.abs() <= reach {
            row.flags.push(RowFlag::Noise);
            let place = DiagnosticLocation {
                side: row.candidate_name.clone(),
                subject: row.subject.clone(),
                metric: row.metric.clone(),
            };
            found.push(ComparisonDiagnostic::WithinNoise { place, change, reach });
        }
    }
    found
}

/// Whether the card holds for the newest run.
pub(super) fn noise_card_diagnostic(
    sides: &[&ComparisonSide],
    options: &AnalysisOptions,
) -> Option<ComparisonDiagnostic> {
    let card = options.noise.as_ref()?;
    let manifests = sides.iter().flat_map(|side| &side.runs).map(|run| &run.manifest);
    let newest = manifests.max_by_key(|manifest| manifest.anchor.realtime)?;
    let doubts = card.reasons_for_doubt(newest);
    (!doubts.is_empty()).then_some(ComparisonDiagnostic::OldNoiseCard { doubts })
}
