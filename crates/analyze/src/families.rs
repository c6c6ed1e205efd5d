//! Owns which rows are looked at together, so that many metrics do not make many false alarms: primary metrics are
//! one family, explanatory metrics another. It refuses to mix them: a hundred counters must not hide the one
//! number that decides.

use perflab_stats::benjamini_hochberg;

use crate::Options;
use crate::comparison::{Level, Verdict};
use crate::flag::Flag;
use crate::judge::judge;
use crate::needed::Planner;
use crate::rows::Draft;
use crate::warning::Warning;

/// Sizes of the two families, and what is to be said of the one that decides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Families {
    pub(crate) primary: usize,
    pub(crate) explanatory: usize,
    pub(crate) too_many_rows: Option<Warning>,
}

/// Adjusts the p-values of each family and judges its rows.
pub(crate) fn settle(drafts: &mut [Draft], options: &Options) -> Families {
    let primary = settle_family(drafts, true, options);
    let explanatory = settle_family(drafts, false, options);
    let (decides, size) = if primary > 0 { (true, primary) } else { (false, explanatory) };
    let members: Vec<&Draft> =
        drafts.iter().filter(|draft| draft.row.primary == decides && draft.row.p.is_some()).collect();
    Families { primary, explanatory, too_many_rows: too_many_rows(&members, size, options) }
}

/// Whether there are so many rows that none of them could be significant alone, whatever it measured.
fn too_many_rows(members: &[&Draft], size: usize, options: &Options) -> Option<Warning> {
    let decided =
        |draft: &&&Draft| draft.row.verdict != Verdict::Unclear || draft.row.flags.contains(&Flag::Changed);
    let is_judged =
        |draft: &&&Draft| !draft.constant && draft.row.change.is_some_and(|change| change.interval.is_some());
    // Rows that show no change are the same without q.
    let changed = |draft: &&&Draft| decided(draft) && draft.row.verdict != Verdict::Same;
    if members.iter().any(|draft| changed(&draft)) {
        return None;
    }
    let methods = members
        .iter()
        .filter(is_judged)
        .filter_map(|draft| draft.row.method)
        .filter(|method| !method.by_means);
    let most = methods.max_by_key(|method| method.baseline.min(method.candidate))?;
    let repetitions = most.baseline.min(most.candidate);
    let needed = Planner::new(size, options).fewest_in_family(most.paired);
    let noun = match (most.level, most.paired) {
        (Level::Boot, _) => "boots",
        (Level::Iteration, true) => "blocks",
        (Level::Iteration, false) => "iterations",
    };
    (repetitions < needed).then(|| Warning::TooManyRows {
        rows: size,
        repetitions,
        needed,
        noun: noun.into(),
    })
}

fn settle_family(drafts: &mut [Draft], primary: bool, options: &Options) -> usize {
    let belongs = |draft: &&mut Draft| draft.row.primary == primary && draft.row.p.is_some();
    let mut members: Vec<&mut Draft> = drafts.iter_mut().filter(belongs).collect();
    let p_values: Vec<f64> = members.iter().filter_map(|draft| draft.row.p).collect();
    let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
    let size = q_values.len();
    let mut planner = Planner::new(size, options);
    for (draft, q) in members.iter_mut().zip(q_values) {
        draft.row.q = Some(q);
        judge(draft, &mut planner, options);
    }
    size
}
