//! Owns the use of a noise card in a comparison. It refuses to change verdicts.

use crate::comparison::Verdict;
use crate::flag::Flag;
use crate::rows::Draft;
use crate::warning::{Place, Warning};
use crate::{Options, Side};

/// Flags what is better or worse by no more than the machine's own reach.
pub(super) fn within(drafts: &mut [Draft], options: &Options) -> Vec<Warning> {
    let Some(card) = &options.noise else { return Vec::new() };
    let mut found = Vec::new();
    for row in drafts.iter_mut().map(|draft| &mut draft.row) {
        let decided = matches!(row.verdict, Verdict::Better | Verdict::Worse);
        let (Some(change), Some(reach)) = (row.relative_change(), card.reach(&row.workload, &row.metric))
        else {
            continue;
        };
        if decided && change.abs() <= reach {
            row.flags.push(Flag::Noise);
            let place = Place {
                side: row.candidate_name.clone(),
                subject: row.subject.clone(),
                metric: row.metric.clone(),
            };
            found.push(Warning::WithinNoise { place, change, reach });
        }
    }
    found
}

/// Whether the card holds for the newest run.
pub(super) fn doubts(sides: &[&Side], options: &Options) -> Option<Warning> {
    let card = options.noise.as_ref()?;
    let manifests = sides.iter().flat_map(|side| &side.runs).map(|run| &run.manifest);
    let newest = manifests.max_by_key(|manifest| manifest.anchor.realtime)?;
    let doubts = card.doubts(newest);
    (!doubts.is_empty()).then_some(Warning::OldNoiseCard { doubts })
}
