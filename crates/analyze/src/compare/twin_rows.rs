//! Merges metrics that are one number under two names, as the kernel keeps some counters twice.
//!
//! Never merged are metrics that decide, and those that never moved: many are 0 without being the same thing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use perflab_model::Unit;

use crate::compare::comparison::SideSummary;
use crate::compare::row_estimate::RowEstimate;

/// What two rows must share to be one: case, candidate, unit, and every value of both sides, bit by bit.
type TwinRowKey = (String, String, Unit, Vec<u64>, Vec<u64>);

/// Leaves one row of each set of twins, the first, which then names the others.
pub(crate) fn merge_twin_rows(drafts: &mut Vec<RowEstimate>) {
    let mut first: HashMap<TwinRowKey, usize> = HashMap::new();
    let mut kept: Vec<RowEstimate> = Vec::with_capacity(drafts.len());
    for draft in drafts.drain(..) {
        let twin = twin_row_key(&draft).and_then(|likeness| match first.entry(likeness) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(new) => {
                new.insert(kept.len());
                None
            }
        });
        match twin.and_then(|at| kept.get_mut(at)) {
            Some(twin) => twin.row.twins.push(draft.row.metric),
            None => kept.push(draft),
        }
    }
    *drafts = kept;
}

fn twin_row_key(draft: &RowEstimate) -> Option<TwinRowKey> {
    let row = &draft.row;
    let bits = |side: &Option<SideSummary>| {
        Some(side.as_ref()?.values.iter().map(|point| point.value.to_bits()).collect::<Vec<u64>>())
    };
    let (ours, theirs) = (bits(&row.baseline)?, bits(&row.candidate)?);
    let moves = ours.iter().chain(&theirs).any(|value| ours.first() != Some(value));
    (moves && !row.primary)
        .then(|| (row.subject.clone(), row.candidate_name.clone(), row.unit.clone(), ours, theirs))
}
