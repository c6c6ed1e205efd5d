//! Owns which rows are looked at together, so that many metrics do not make many false alarms: primary metrics are
//! one family, explanatory metrics another. It refuses to mix them: a hundred counters must not hide the one
//! number that decides.

use perflab_stats::benjamini_hochberg;

use crate::Options;
use crate::judge::judge;
use crate::needed::Planner;
use crate::rows::Draft;

/// Sizes of the two families.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Families {
    pub(crate) primary: usize,
    pub(crate) explanatory: usize,
}

/// Adjusts the p-values of each family and judges its rows.
pub(crate) fn settle(drafts: &mut [Draft], options: &Options) -> Families {
    let primary = settle_family(drafts, true, options);
    let explanatory = settle_family(drafts, false, options);
    Families { primary, explanatory }
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
