//! Owns the verdict on a row. It refuses to look at raw
//! values: intervals, q and the margin are all it needs.

use perflab_model::Direction;

use crate::Options;
use crate::comparison::{Scale, Verdict};
use crate::flag::Flag;
use crate::needed::Planner;
use crate::rows::Draft;

/// Sets the verdict of a row whose q is known, and what would decide it.
pub(crate) fn judge(draft: &mut Draft, planner: &mut Planner, options: &Options) {
    let Some(margin) = draft.margin_on_scale() else { return };
    if draft.constant || (is_same(draft, margin) && !draft.one_boot) {
        draft.row.verdict = Verdict::Same;
    } else if draft.one_boot {
        draft.row.verdict = Verdict::Unclear;
    } else if is_changed(draft, options) {
        set_changed(draft);
    } else {
        draft.row.needed = planner.needed(draft, margin);
    }
}

/// Whether the narrow interval lies inside ± the margin.
fn is_same(draft: &Draft, margin: f64) -> bool {
    let narrow = draft.row.change.and_then(|change| change.narrow);
    narrow.is_some_and(|narrow| -margin < narrow.low && narrow.high < margin)
}

/// Whether the interval excludes "no change" and the family agrees.
fn is_changed(draft: &Draft, options: &Options) -> bool {
    let interval = draft.row.change.and_then(|change| change.interval);
    let excludes = interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0);
    excludes && draft.row.q.is_some_and(|q| q < 1.0 - options.confidence)
}

fn set_changed(draft: &mut Draft) {
    let up = draft.row.change.is_some_and(|change| change.value > 0.0);
    draft.row.verdict = match (draft.row.direction, up) {
        (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Better,
        (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Worse,
        (Direction::Neither, _) => {
            draft.row.flags.push(Flag::Changed);
            Verdict::Unclear
        }
    };
}

impl Draft {
    /// The margin in the unit of the change.
    fn margin_on_scale(&self) -> Option<f64> {
        match self.row.change?.scale {
            Scale::Ratio => Some(self.row.margin),
            Scale::Absolute => Some(self.row.margin * self.row.baseline.as_ref()?.median.abs()),
        }
    }
}
