//! The functions of two sides, with their shares, and which of them moved by more than chance.
//!
//! The rule is that of [`profile_changes`](crate::flame::profile_changes); the functions are one test family.

use serde::Serialize;

use crate::flame::call_tree::{FrameRole, ProfileFunction};
use crate::flame::category_shares::{ShareEstimate, mean_interval};
use crate::flame::differential::{
    FunctionShare, JoinedProfiles, NoiseBasis, RepetitionShares, ShareDifference, noise_basis,
    share_differences,
};
use crate::flame::profiled_run::RepetitionCount;

/// One function on two sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionDifference {
    /// which
    #[serde(flatten)]
    pub function: ProfileFunction,
    /// its share before, with the interval over repetitions
    pub before: ShareEstimate,
    /// its share after
    pub after: ShareEstimate,
    /// share after minus share before, from -1 to 1; means of repetitions
    pub difference: f64,
    /// its confidence interval: low, high
    pub interval: (f64, f64),
    /// p-value adjusted for all functions (Benjamini and Hochberg)
    pub q: f64,
    /// whether it is more than chance
    pub differs: bool,
}

/// All functions that could be judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionDifferences {
    /// which share
    pub share: FunctionShare,
    /// what repeats before
    pub before: RepetitionCount,
    /// what repeats after
    pub after: RepetitionCount,
    /// whether a side was not repeated, so that only sample counting is known: intervals are too narrow then
    pub counts_only: bool,
    /// those that moved first, the largest difference in front
    pub functions: Vec<FunctionDifference>,
    /// functions with too few samples on both sides together
    pub not_judged: usize,
}

/// Compares the functions of two sides of a joined tree; `None` where one of them is not there or has no sample.
pub fn function_differences(
    joined: &JoinedProfiles<'_>,
    (before, after): (usize, usize),
    share: FunctionShare,
) -> Option<FunctionDifferences> {
    let [before, after] = [before, after].map(|side| {
        let shares = RepetitionShares::of_functions(joined, joined.sides.get(side)?, share)?;
        Some(shares.without(|at| joined.functions.get(at).is_none_or(|one| !is_function(one))))
    });
    let (before, after) = (before?, after?);
    let basis = noise_basis(&before, &after);
    let found = share_differences(&before, &after, basis)?;
    let judged = found.len();
    let row = |one: ShareDifference| {
        let at = one.of as usize;
        Some(FunctionDifference {
            function: joined.functions.get(at)?.clone(),
            before: share_estimate(&before, at, basis),
            after: share_estimate(&after, at, basis),
            difference: one.difference,
            interval: (one.low, one.high),
            q: one.q,
            differs: one.is_change(),
        })
    };
    let mut functions: Vec<FunctionDifference> = found.into_iter().filter_map(row).collect();
    functions.sort_by(|a, b| {
        let size = |one: &FunctionDifference| one.difference.abs();
        b.differs.cmp(&a.differs).then(size(b).total_cmp(&size(a)))
    });
    let has_samples = |at: &usize| before.samples_of(*at) > 0 || after.samples_of(*at) > 0;
    let all = (0..joined.functions.len()).filter(has_samples).count();
    Some(FunctionDifferences {
        share,
        before: before.count(),
        after: after.count(),
        counts_only: basis == NoiseBasis::Counts,
        functions,
        not_judged: all - judged,
    })
}

fn is_function(function: &ProfileFunction) -> bool {
    !matches!(function.role, FrameRole::All | FrameRole::Command | FrameRole::Nothing)
}

fn share_estimate(side: &RepetitionShares, of: usize, basis: NoiseBasis) -> ShareEstimate {
    let value = Some(side.pooled_share(of));
    let interval = match basis {
        NoiseBasis::Counts => None,
        NoiseBasis::Repetitions(..) => mean_interval(&side.shares_of(of)),
    };
    ShareEstimate { value, interval: interval.map(|found| (found.low.max(0.0), found.high.min(1.0))) }
}
