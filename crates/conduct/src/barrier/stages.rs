//! The stages of a run: the beginning, two for each slot, two for the end.

use perflab_model::{Nanos, Slot};

use super::{BarrierPoint, BarrierStage};

/// How long each kind of stage may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageLimits {
    /// To check, prepare and begin to watch.
    pub first: Nanos,
    /// To bring settings about before an iteration.
    pub before: Nanos,
    /// For an iteration: its time limit, and what ending it takes.
    pub after: Nanos,
    /// To undo everything, and again to stop watching.
    pub last: Nanos,
}

/// All stages for `slots`, each with its index in the plan and the targets that take part in it, of `targets` in all.
pub fn round_stages(
    slots: &[(u32, Slot, Vec<usize>)],
    targets: usize,
    limits: StageLimits,
) -> Vec<BarrierStage> {
    let all = || (0..targets).collect::<Vec<_>>();
    let mut stages = vec![BarrierStage { point: BarrierPoint::First, who: all(), allowed: limits.first }];
    for (index, _, who) in slots {
        let (before, after) = (BarrierPoint::Before(*index), BarrierPoint::After(*index));
        stages.push(BarrierStage { point: before, who: who.clone(), allowed: limits.before });
        stages.push(BarrierStage { point: after, who: who.clone(), allowed: limits.after });
    }
    for point in [BarrierPoint::Last, BarrierPoint::End] {
        stages.push(BarrierStage { point, who: all(), allowed: limits.last });
    }
    stages
}
