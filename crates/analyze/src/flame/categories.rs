//! What every stack of a profile is by a rule table.
//!
//! A stack's answer follows from its caller's and its own frame, so each node of the tree is looked at once, callers
//! first, however many samples it has.

use perflab_model::profile::{Profile, SymbolAnchor};
use perflab_model::{FrameKind, StackFrame};

use crate::flame::category_rules::{CategoryPick, CategoryRules, FrameGroup};

/// What one stack is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackCategory {
    /// Index into the rules' operations; those beyond are [`UNRECOGNISED`].
    pub operation: Option<u8>,
    /// Index into the rules' categories; the last one where no rule spoke.
    pub category: u8,
    /// Categories that any function inside of the operation belongs to, a bit each.
    pub overlay: u32,
    /// Whether the operation was found by its place in the kernel's text, for want of a rule.
    pub by_window: bool,
    /// What beside the operations any function of the stack belongs to, a bit each.
    pub beside: u32,
    /// Index into the rules' leaves, where the innermost function is one.
    pub leaf: Option<u8>,
    /// Whether a function sounds as if a rule were missing.
    pub is_suspect: bool,
}

/// The operation of stacks that only their place in the kernel's text tells.
pub const UNRECOGNISED: u8 = u8::MAX;

/// What every node of a profile is.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileCategories {
    /// By node.
    pub nodes: Vec<StackCategory>,
    /// Whether the window could be used, or why not.
    pub window: Result<(), String>,
    /// What the kernel is, where a variant's function was found.
    pub variant: Option<String>,
}

/// What a table says of one frame.
#[derive(Debug, Clone, Copy, Default)]
struct FrameMatch {
    is_boundary: bool,
    operation: Option<u8>,
    category: Option<u8>,
    leaf: Option<u8>,
    beside: u32,
    in_window: bool,
    is_suspect: bool,
}

/// Looks at every node of a profile.
pub fn categorise_profile(profile: &Profile, rules: &CategoryRules) -> ProfileCategories {
    let anchors = profile.iterations.first().map_or(&[][..], |piece| &piece.summary.anchors);
    let window = window_bounds(rules, anchors);
    let range = window.as_ref().ok().copied();
    let matched: Vec<FrameMatch> =
        profile.frames.iter().map(|frame| match_frame(frame, rules, range)).collect();
    let otherwise = u8::try_from(rules.categories.len().saturating_sub(1)).unwrap_or(0);
    let mut nodes: Vec<StackCategory> = Vec::with_capacity(profile.nodes.len());
    for node in &profile.nodes {
        let caller = node.parent.and_then(|parent| nodes.get(parent.0 as usize)).copied();
        let caller = caller.unwrap_or(StackCategory { category: otherwise, ..StackCategory::default() });
        let matched = matched.get(node.frame.0 as usize).copied().unwrap_or_default();
        nodes.push(inherit_category(caller, matched, rules.pick, otherwise));
    }
    ProfileCategories { nodes, window: window.map(drop), variant: kernel_variant(profile, rules, anchors) }
}

/// From a caller's verdict and a frame's match to the callee's.
fn inherit_category(
    caller: StackCategory,
    matched: FrameMatch,
    pick: CategoryPick,
    otherwise: u8,
) -> StackCategory {
    let fresh = StackCategory { category: otherwise, ..StackCategory::default() };
    let before = if matched.is_boundary { fresh } else { caller };
    let mut verdict = StackCategory { leaf: matched.leaf, beside: before.beside | matched.beside, ..before };
    verdict.is_suspect |= matched.is_suspect;
    let begins = match (matched.operation, before.operation) {
        (None, _) => false,
        (Some(_), None | Some(UNRECOGNISED)) => true,
        (Some(new), Some(old)) => pick == CategoryPick::Innermost && new != old,
    };
    if begins {
        (verdict.operation, verdict.by_window) = (matched.operation, false);
        (verdict.category, verdict.overlay) = (otherwise, 0);
    } else if verdict.operation.is_none() && matched.in_window {
        (verdict.operation, verdict.by_window) = (Some(UNRECOGNISED), true);
    }
    if let (Some(_), Some(category)) = (verdict.operation, matched.category) {
        verdict.category = verdict.category.min(category);
        verdict.overlay |= 1_u32.checked_shl(category.into()).unwrap_or(0);
    }
    verdict
}

fn match_frame(frame: &StackFrame, rules: &CategoryRules, window: Option<(i64, i64)>) -> FrameMatch {
    if frame.kind == FrameKind::User {
        return FrameMatch::default();
    }
    let name = frame.name.as_str();
    let any = |patterns: &[crate::flame::category_rules::NamePattern]| {
        patterns.iter().any(|pattern| pattern.matches(name))
    };
    let first = |all: &[FrameGroup]| {
        let at = all.iter().position(|named| any(&named.patterns))?;
        u8::try_from(at).ok().filter(|at| *at != UNRECOGNISED)
    };
    let beside = (0..32).zip(&rules.beside).filter(|(_, named)| any(&named.patterns));
    let operation = first(&rules.operations);
    let beside = beside.fold(0, |bits, (at, _)| bits | (1 << at));
    let (is_meant, is_not) = (any(&rules.suspect.0), any(&rules.suspect.1));
    FrameMatch {
        is_boundary: any(&rules.boundary),
        operation,
        category: first(&rules.categories),
        leaf: first(&rules.leaves),
        beside,
        in_window: frame.start.zip(window).is_some_and(|(start, (low, high))| (low..=high).contains(&start)),
        is_suspect: is_meant && !is_not && beside == 0,
    }
}

/// Where the table's object file lies in the kernel's text.
fn window_bounds(rules: &CategoryRules, anchors: &[SymbolAnchor]) -> Result<(i64, i64), String> {
    let Some(window) = &rules.window else { return Err("the table has no window".into()) };
    let known = anchors.iter().filter(|anchor| window.anchors.contains(&anchor.name));
    let starts: Vec<i64> = known.map(|anchor| anchor.start).collect();
    let (Some(low), Some(high)) = (starts.iter().min(), starts.iter().max()) else {
        return Err("the profile has no kernel symbol table".into());
    };
    if starts.len() < 3 {
        return Err(format!("only {} of its anchors are in the symbol table", starts.len()));
    }
    let apart = high.abs_diff(*low);
    if apart > window.largest {
        return Err(format!("its anchors lie {apart} bytes apart: the linker moved functions"));
    }
    Ok((*low, *high))
}

/// By the kernel's symbol table; where that is not known, by the functions that were seen. A run's profiles share their functions, of
/// whatever kernel each was.
fn kernel_variant(profile: &Profile, rules: &CategoryRules, anchors: &[SymbolAnchor]) -> Option<String> {
    let has = |name: &str| match anchors {
        [] => profile.frames.iter().any(|frame| frame.name == name),
        known => known.iter().any(|anchor| anchor.name == name),
    };
    rules.variants.iter().find(|(_, function)| has(function)).map(|(name, _)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_the_operations_is_that_of_the_callers_and_the_function() {
        let caller = StackCategory { beside: 0b01, ..StackCategory::default() };
        let matched = FrameMatch { beside: 0b10, leaf: Some(3), ..FrameMatch::default() };
        let found = inherit_category(caller, matched, CategoryPick::Innermost, 9);
        assert_eq!((found.beside, found.leaf), (0b11, Some(3)));
        // Behind a boundary nothing of the callers counts.
        let boundary = FrameMatch { is_boundary: true, ..matched };
        assert_eq!(inherit_category(caller, boundary, CategoryPick::Innermost, 9).beside, 0b10);
    }
}
