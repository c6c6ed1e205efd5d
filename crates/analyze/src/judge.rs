//! Owns the verdict on a row, and how many repetitions would decide an unclear one. It refuses to look at raw
//! values: intervals, q and the margin are all it needs.

use perflab_model::Direction;
use perflab_stats::{Goal, Pairing, Plan, smallest_p};

use crate::Options;
use crate::comparison::{Flag, Scale, Verdict};
use crate::rows::Draft;

/// Sets the verdict of a row whose q is known, and what would decide it.
pub(crate) fn judge(draft: &mut Draft, family: usize, options: &Options) {
    let Some(margin) = draft.margin_on_scale() else { return };
    if draft.constant || (is_same(draft, margin) && !draft.one_boot) {
        draft.row.verdict = Verdict::Same;
    } else if draft.one_boot {
        draft.row.verdict = Verdict::Unclear;
    } else if is_changed(draft, options) {
        set_changed(draft);
    } else {
        draft.row.needed = needed(draft, margin, family, options);
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

/// About how many repetitions a side would decide: enough to find a change of the size that was estimated, or to
/// show that it is inside the margin, whichever is less. At least half as many again as did not decide now.
fn needed(draft: &Draft, margin: f64, family: usize, options: &Options) -> Option<usize> {
    let method = draft.row.method?;
    let pairing = if method.paired { Pairing::Paired } else { Pairing::Independent };
    let plan = Plan { pairing, confidence: options.confidence, ..Plan::default() };
    let effect = draft.effect()?.abs();
    let sd = draft.sd?;
    let reach = |goal| plan.needed_repetitions(sd, goal).ok().flatten();
    let least = fewest_in_family(method.paired, family, options);
    let found = if sd > 0.0 { reach(Goal::Detect(effect)).map(|n| n.max(least)) } else { Some(least) };
    let same = (effect < margin).then(|| reach(Goal::ShowSame(margin - effect))).flatten();
    let n = found.into_iter().chain(same).min()?;
    let have = method.baseline.min(method.candidate);
    Some(n.max((have * 3).div_ceil(2)))
}

/// The fewest repetitions with which a lone change of a family can be significant at all.
fn fewest_in_family(paired: bool, family: usize, options: &Options) -> usize {
    let alpha = (1.0 - options.confidence) / family.max(1) as f64;
    let least = |n: usize| if paired { 2.0 * 0.5_f64.powf(n as f64) } else { smallest_p(n, n) };
    (2..200).find(|n| least(*n) < alpha).unwrap_or(200)
}

impl Draft {
    /// The margin in the unit of the change.
    fn margin_on_scale(&self) -> Option<f64> {
        match self.row.change?.scale {
            Scale::Ratio => Some(self.row.margin),
            Scale::Absolute => Some(self.row.margin * self.row.baseline.as_ref()?.median.abs()),
        }
    }

    /// The change in the unit of the noise.
    fn effect(&self) -> Option<f64> {
        let change = self.row.change?;
        Some(if change.scale == Scale::Ratio { change.value.ln_1p() } else { change.value })
    }
}
