//! Test families, the verdict on each row, and the power that an unclear row lacks.
//!
//! A verdict needs intervals, q and the margin only. Primary metrics are one family, explanatory metrics another: many
//! metrics must not make many false alarms, and a hundred counters must not hide the one number that decides. The
//! repetitions needed come from an estimate of the change and of the noise, and are good to a tenth at best.

use std::collections::HashMap;

use perflab_stats::{PowerGoal, PowerRules, SamplePairing, benjamini_hochberg, smallest_p};

use crate::compare::change::{
    ChangeScale, EstimationMethod, IntervalMeaning, RepetitionLevel, ShiftEstimator,
};
use crate::compare::comparison::Verdict;
use crate::compare::diagnostic::{ComparisonDiagnostic, RowFlag};
use crate::compare::options::AnalysisOptions;
use crate::compare::row_estimate::RowEstimate;

/// Sets the verdict of a row whose q is known, and what would decide it.
fn set_verdict(draft: &mut RowEstimate, planner: &mut PowerPlanner, options: &AnalysisOptions) {
    let Some(margin) = draft.margin_on_scale() else { return };
    // A range between two single runs bounds the difference between these, as the row says.
    if draft.row.change.is_some_and(|change| change.covers != IntervalMeaning::Unbounded) {
        draft.row.set_no_larger_than();
        draft.row.detectable = planner.detectable_change(draft);
    }
    let between_runs = draft.row.between_runs.is_some();
    if draft.constant || draft.row.change.is_some_and(|change| change.is_within(margin)) {
        draft.row.verdict = if between_runs { Verdict::SameHere } else { Verdict::Same };
    } else if is_clearly_changed(draft, options) {
        set_changed_verdict(draft);
    } else if !between_runs {
        // More of the same two runs would not decide; the warning says what would.
        draft.row.needed = planner.repetitions_to_decide(draft, margin);
    }
}

/// Whether the interval excludes "no change" and the family agrees.
fn is_clearly_changed(draft: &RowEstimate, options: &AnalysisOptions) -> bool {
    draft.row.change.is_some_and(|change| change.excludes_none())
        && draft.row.q.is_some_and(|q| options.is_significant(q))
}

/// Better or worse by the direction of the change; "changed" where the metric has none.
pub(crate) fn set_changed_verdict(draft: &mut RowEstimate) {
    if draft.row.between_runs.is_some() {
        draft.row.verdict = Verdict::Differs;
        return;
    }
    draft.row.verdict = match draft.row.is_good_change() {
        Some(true) => Verdict::Better,
        Some(false) => Verdict::Worse,
        None => {
            draft.row.flags.push(RowFlag::Changed);
            Verdict::Unclear
        }
    };
}

impl RowEstimate {
    /// The margin in the unit of the change.
    pub(crate) fn margin_on_scale(&self) -> Option<f64> {
        match self.row.change?.scale {
            ChangeScale::Ratio => Some(self.row.margin),
            ChangeScale::Absolute => Some(self.row.margin * self.row.baseline.as_ref()?.median.abs()),
        }
    }
}

/// Sizes of the two families, and a diagnostic about the one that decides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestFamilySizes {
    pub(crate) primary: usize,
    pub(crate) explanatory: usize,
    pub(crate) too_many_rows: Option<ComparisonDiagnostic>,
}

/// Adjusts the p-values of each family and judges its rows.
pub(crate) fn set_verdicts(drafts: &mut [RowEstimate], options: &AnalysisOptions) -> TestFamilySizes {
    let primary = set_family_verdicts(drafts, true, options);
    let explanatory = set_family_verdicts(drafts, false, options);
    let (decides, size) = if primary > 0 { (true, primary) } else { (false, explanatory) };
    let members: Vec<&RowEstimate> =
        drafts.iter().filter(|draft| draft.row.primary == decides && draft.row.p.is_some()).collect();
    TestFamilySizes { primary, explanatory, too_many_rows: too_many_rows_diagnostic(&members, size, options) }
}

/// Whether there are so many rows that none of them could be significant alone, whatever it measured.
fn too_many_rows_diagnostic(
    members: &[&RowEstimate],
    size: usize,
    options: &AnalysisOptions,
) -> Option<ComparisonDiagnostic> {
    let decided = |draft: &&&RowEstimate| {
        draft.row.verdict != Verdict::Unclear || draft.row.flags.contains(&RowFlag::Changed)
    };
    let is_judged = |draft: &&&RowEstimate| {
        !draft.constant && draft.row.change.is_some_and(|change| change.interval.is_some())
    };
    // Rows that show no change are the same without q.
    let is_same = |draft: &RowEstimate| matches!(draft.row.verdict, Verdict::Same | Verdict::SameHere);
    let changed = |draft: &&&RowEstimate| decided(draft) && !is_same(draft);
    if members.iter().any(|draft| changed(&draft)) {
        return None;
    }
    let methods: Vec<EstimationMethod> =
        members.iter().filter(is_judged).filter_map(|draft| draft.row.method).collect();
    let planner = PowerPlanner::new(size, options);
    let fewest = [false, true].map(|is_paired| planner.fewest_repetitions(is_paired));
    let needed_by = |method: &EstimationMethod| fewest[usize::from(method.paired)];
    let repetitions_of = |method: &EstimationMethod| method.baseline.min(method.candidate);
    // Means and the ranks of all values have no smallest p.
    let has_smallest_p = |method: &EstimationMethod| {
        !method.by_means && !method.random_effects && method.estimator != Some(ShiftEstimator::JointRanks)
    };
    let can_decide =
        |method: &EstimationMethod| !has_smallest_p(method) || repetitions_of(method) >= needed_by(method);
    if methods.iter().any(can_decide) {
        return None;
    }
    let most = methods.iter().max_by_key(|method| repetitions_of(method))?;
    let (repetitions, needed) = (repetitions_of(most), needed_by(most));
    let noun = match (most.level, most.paired) {
        (RepetitionLevel::Iteration, true) => "blocks",
        (level, _) => level.noun(),
    };
    Some(ComparisonDiagnostic::TooManyRows { rows: size, repetitions, needed, noun: noun.into() })
}

fn set_family_verdicts(drafts: &mut [RowEstimate], primary: bool, options: &AnalysisOptions) -> usize {
    let belongs = |draft: &&mut RowEstimate| draft.row.primary == primary && draft.row.p.is_some();
    let mut members: Vec<&mut RowEstimate> = drafts.iter_mut().filter(belongs).collect();
    let p_values: Vec<f64> = members.iter().filter_map(|draft| draft.row.p).collect();
    let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
    let size = q_values.len();
    let mut planner = PowerPlanner::new(size, options);
    for (draft, q) in members.iter_mut().zip(q_values) {
        draft.row.q = Some(q);
        set_verdict(draft, &mut planner, options);
    }
    size
}

/// Sizes are rounded to steps of 2 %, so that thousands of rows share a few hundred answers.
const STEPS: f64 = 50.0;

/// Beyond so many repetitions nothing is significant that was not before.
const MOST_FOR_FAMILY: usize = 200;

/// What repetitions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PowerAim {
    Detect,
    ShowSame,
}

/// Plans for the rows of one family.
#[derive(Debug)]
struct PowerPlanner {
    confidence: f64,
    family: usize,
    known: HashMap<(PowerAim, bool, i64), Option<usize>>,
    /// What so many repetitions find, paired or not, in standard deviations of one.
    reach: HashMap<(bool, usize), Option<f64>>,
}

impl PowerPlanner {
    /// For a family of so many rows.
    pub(crate) fn new(family: usize, options: &AnalysisOptions) -> Self {
        PowerPlanner { confidence: options.confidence, family, known: HashMap::new(), reach: HashMap::new() }
    }

    /// About how many repetitions a side would decide: enough to find a change of the size that was estimated, or
    /// to show that it is inside the margin (in the unit of the change), whichever is less. At least half as many
    /// again as did not decide now. Absent where nothing is known of the noise, or a million would not do.
    fn repetitions_to_decide(&mut self, draft: &RowEstimate, margin: f64) -> Option<usize> {
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
        // An interval that holds at every look needs about twice the blocks: docs/statistics.md.
        let looks = if method.always_valid { 2 } else { 1 };
        let detect = detect.map(|n| n.saturating_mul(looks));
        let same = same.map(|n| n.saturating_mul(looks));
        let have = method.baseline.min(method.candidate);
        detect.into_iter().chain(same).min().map(|n| n.max((have * 3).div_ceil(2)))
    }

    /// The smallest relative change that as many repetitions find in 80 % of experiments, alone.
    fn detectable_change(&mut self, draft: &RowEstimate) -> Option<f64> {
        let (method, sd, change) = (draft.row.method?, draft.sd?, draft.row.change?);
        // What a run finds that ends once it has found something is no property of the blocks that it had.
        if method.always_valid {
            return None;
        }
        let repetitions = method.baseline.min(method.candidate);
        let rules = PowerRules {
            pairing: sample_pairing(method.paired),
            confidence: self.confidence,
            ..PowerRules::default()
        };
        let reach = *self
            .reach
            .entry((method.paired, repetitions))
            .or_insert_with(|| rules.detectable_change(1.0, repetitions).ok());
        let of_runs = draft.run_noise.and_then(|noise| noise.detectable(self.confidence, rules.power).ok());
        let size = change.scale.change_of_shift((reach? * sd).max(of_runs.unwrap_or(0.0)));
        draft.row.relative(size).filter(|size| size.is_finite())
    }

    /// Repetitions that reach a goal of `size` standard deviations.
    fn repetitions_for(&mut self, aim: PowerAim, paired: bool, size: f64) -> Option<usize> {
        if size <= 0.0 || !size.is_finite() {
            return None;
        }
        let step = (size.ln() * STEPS).round();
        let rounded = (step / STEPS).exp();
        let pairing = sample_pairing(paired);
        let goal =
            if aim == PowerAim::Detect { PowerGoal::Detect(rounded) } else { PowerGoal::ShowSame(rounded) };
        let plan = PowerRules { pairing, confidence: self.confidence, ..PowerRules::default() };
        let found = || plan.needed_repetitions(1.0, goal).ok().flatten();
        *self.known.entry((aim, paired, step as i64)).or_insert_with(found)
    }

    /// The fewest repetitions with which a lone change of the family can be significant at all.
    fn fewest_repetitions(&self, paired: bool) -> usize {
        fewest_repetitions(self.family, self.confidence, paired)
    }
}

/// The fewest repetitions with which a lone change among so many rows can be significant at all, by Holm's rule or Benjamini and
/// Hochberg's: the smallest p-value of the signed-rank test of pairs, or of the rank-sum test.
pub(crate) fn fewest_repetitions(family: usize, confidence: f64, paired: bool) -> usize {
    let alpha = (1.0 - confidence) / family.max(1) as f64;
    let least = |n: usize| if paired { 2.0 * 0.5_f64.powf(n as f64) } else { smallest_p(n, n) };
    (2..MOST_FOR_FAMILY).find(|n| least(*n) < alpha).unwrap_or(MOST_FOR_FAMILY)
}

fn sample_pairing(paired: bool) -> SamplePairing {
    if paired { SamplePairing::Paired } else { SamplePairing::Independent }
}

/// The change in the unit of the noise.
fn effect_in_noise_units(draft: &RowEstimate) -> Option<f64> {
    let change = draft.row.change?;
    Some(change.scale.shift_of_change(change.value))
}
