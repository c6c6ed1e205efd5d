//! Owns the marks on a timeline: which iteration ran when. It refuses times of its own: they come from the record.

use perflab_model::{Nanos, RunRecord};
use serde::Serialize;

/// One iteration on the clock of the series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IterationSpan {
    /// The case in one line; `warm-up` before it where it was not measured.
    pub name: String,
    /// Which iteration of its case, from 0.
    pub iteration: u32,
    /// When its process was started, CLOCK_MONOTONIC.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
}

/// The iterations of a run, in order of time.
#[must_use]
pub fn iteration_spans(record: &RunRecord) -> Vec<IterationSpan> {
    let plan = &record.manifest.plan;
    let phase = |iteration: &perflab_model::IterationRecord| {
        let slot = plan.slots.get(iteration.slot as usize);
        let case = slot.and_then(|slot| plan.case(slot.case));
        let label = case.map_or_else(|| format!("iteration {}", iteration.slot), |case| case.label());
        let warmup = slot.is_some_and(|slot| slot.warmup);
        IterationSpan {
            name: if warmup { format!("warm-up {label}") } else { label },
            iteration: slot.map_or(iteration.slot, |slot| slot.iteration),
            start: iteration.start,
            end: iteration.end,
        }
    };
    let mut found: Vec<IterationSpan> = record.iterations.iter().map(phase).collect();
    found.sort_by_key(|phase| phase.start);
    found
}
