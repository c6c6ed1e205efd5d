//! Owns the verdict on a row. It refuses to look at raw
//! values: intervals, q and the margin are all it needs.

use perflab_model::Direction;

use crate::AnalysisOptions;
use crate::comparison::{ChangeScale, Verdict};
use crate::flag::RowFlag;
use crate::needed::PowerPlanner;
use crate::rows::RowEstimate;

/// Sets the verdict of a row whose q is known, and what would decide it.
pub(crate) fn set_verdict(draft: &mut RowEstimate, planner: &mut PowerPlanner, options: &AnalysisOptions) {
    let Some(margin) = draft.margin_on_scale() else { return };
    if draft.constant || (is_shown_same(draft, margin) && !draft.one_boot) {
        draft.row.verdict = Verdict::Same;
    } else if draft.one_boot {
        draft.row.verdict = Verdict::Unclear;
    } else if is_clearly_changed(draft, options) {
        set_changed_verdict(draft);
    } else {
        draft.row.needed = planner.repetitions_to_decide(draft, margin);
    }
}

/// Whether the narrow interval lies inside ± the margin.
fn is_shown_same(draft: &RowEstimate, margin: f64) -> bool {
    let narrow = draft.row.change.and_then(|change| change.narrow);
    narrow.is_some_and(|narrow| -margin < narrow.low && narrow.high < margin)
}

/// Whether the interval excludes "no change" and the family agrees.
fn is_clearly_changed(draft: &RowEstimate, options: &AnalysisOptions) -> bool {
    let interval = draft.row.change.and_then(|change| change.interval);
    let excludes = interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0);
    excludes && draft.row.q.is_some_and(|q| q < 1.0 - options.confidence)
}

fn set_changed_verdict(draft: &mut RowEstimate) {
    let up = draft.row.change.is_some_and(|change| change.value > 0.0);
    draft.row.verdict = match (draft.row.direction, up) {
        (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Better,
        (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Worse,
        (Direction::Neither, _) => {
            draft.row.flags.push(RowFlag::Changed);
            Verdict::Unclear
        }
    };
}

impl RowEstimate {
    /// The margin in the unit of the change.
    fn margin_on_scale(&self) -> Option<f64> {
        match self.row.change?.scale {
            ChangeScale::Ratio => Some(self.row.margin),
            ChangeScale::Absolute => Some(self.row.margin * self.row.baseline.as_ref()?.median.abs()),
        }
    }
}
