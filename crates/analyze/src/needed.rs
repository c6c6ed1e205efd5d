//! Owns how many repetitions would decide what is unclear. It refuses precision: the answer comes from an estimate of
//! the change and of the noise, and is good to a tenth at best.

use std::collections::HashMap;

use perflab_stats::{PowerGoal, PowerRules, SamplePairing, smallest_p};

use crate::AnalysisOptions;
use crate::comparison::ChangeScale;
use crate::rows::RowEstimate;

/// Sizes are rounded to steps of 2 %, so that thousands of rows share a few hundred answers.
const STEPS: f64 = 50.0;
/// Beyond so many repetitions nothing is significant that was not before.
const MOST_FOR_FAMILY: usize = 200;

/// What repetitions are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PowerAim {
    Detect,
    ShowSame,
}

/// Plans for the rows of one family.
#[derive(Debug)]
pub(crate) struct PowerPlanner {
    confidence: f64,
    family: usize,
    known: HashMap<(PowerAim, bool, i64), Option<usize>>,
}

impl PowerPlanner {
    /// For a family of so many rows.
    pub(crate) fn new(family: usize, options: &AnalysisOptions) -> Self {
        PowerPlanner { confidence: options.confidence, family, known: HashMap::new() }
    }

    /// About how many repetitions a side would decide: enough to find a change of the size that was estimated, or
    /// to show that it is inside the margin (in the unit of the change), whichever is less. At least half as many
    /// again as did not decide now. Absent where nothing is known of the noise, or a million would not do.
    pub(crate) fn repetitions_to_decide(&mut self, draft: &RowEstimate, margin: f64) -> Option<usize> {
        let (method, sd) = (draft.row.method?, draft.sd?);
        let effect = effect_in_noise_units(draft)?.abs();
        let least = self.fewest_repetitions(method.paired);
        let detect = if sd > 0.0 {
            self.repetitions_for(PowerAim::Detect, method.paired, effect / sd).map(|n| n.max(least))
        } else {
            Some(least)
        };
        let is_inside = sd > 0.0 && effect < margin;
        let same = is_inside
            .then(|| self.repetitions_for(PowerAim::ShowSame, method.paired, (margin - effect) / sd))
            .flatten();
        let have = method.baseline.min(method.candidate);
        detect.into_iter().chain(same).min().map(|n| n.max((have * 3).div_ceil(2)))
    }

    /// Repetitions that reach a goal of `size` standard deviations.
    fn repetitions_for(&mut self, aim: PowerAim, paired: bool, size: f64) -> Option<usize> {
        if size <= 0.0 || !size.is_finite() {
            return None;
        }
        let step = (size.ln() * STEPS).round();
        let rounded = (step / STEPS).exp();
        let pairing = if paired { SamplePairing::Paired } else { SamplePairing::Independent };
        let goal =
            if aim == PowerAim::Detect { PowerGoal::Detect(rounded) } else { PowerGoal::ShowSame(rounded) };
        let plan = PowerRules { pairing, confidence: self.confidence, ..PowerRules::default() };
        let found = || plan.needed_repetitions(1.0, goal).ok().flatten();
        *self.known.entry((aim, paired, step as i64)).or_insert_with(found)
    }

    /// The fewest repetitions with which a lone change of the family can be significant at all.
    pub(crate) fn fewest_repetitions(&self, paired: bool) -> usize {
        let alpha = (1.0 - self.confidence) / self.family.max(1) as f64;
        let least = |n: usize| if paired { 2.0 * 0.5_f64.powf(n as f64) } else { smallest_p(n, n) };
        (2..MOST_FOR_FAMILY).find(|n| least(*n) < alpha).unwrap_or(MOST_FOR_FAMILY)
    }
}

/// The change in the unit of the noise.
fn effect_in_noise_units(draft: &RowEstimate) -> Option<f64> {
    let change = draft.row.change?;
    Some(if change.scale == ChangeScale::Ratio { change.value.ln_1p() } else { change.value })
}
