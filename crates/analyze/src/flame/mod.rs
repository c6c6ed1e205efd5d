//! Flame graphs: the call tree of a profile, and the functions in it.
//!
//! Owns how stacks are merged (by normalised names, so that kernels can be compared), and what every number
//! is a share of. Refuses to lose samples on the way: node 0 of a [`CallTree`] is all samples that were kept,
//! those without a stack hang below it by that name, and [`perflab_model::make_profile::SampleCounts`] says what else
//! there was.
//!
//! | module | owns |
//! |---|---|
//! | `tree` | [`CallTree`]: merged stacks with own and total amounts; [`build_call_tree`] |
//! | [`rules`], `pattern` | rule tables as data, checked: [`CategoryRules`] |
//! | `categorise` | [`categorise`]: what every node of a profile is by a table |
//! | `shares` | [`shares`]: operations and categories as shares, with denominators and intervals |
//! | `functions` | [`functions`]: a row a function, own and inclusive |
//! | `join` | [`join`]: several profiles over one tree |
//! | `change` | [`profile_changes`]: which boxes differ between two sides by more than noise, and the rule for it |

mod categorise;
mod change;
mod functions;
mod join;
mod pattern;
pub mod rules;
mod shares;
mod tree;

pub use categorise::{ProfileCategories, StackCategory, UNRECOGNISED, categorise_profile};
pub use change::{NoiseBasis, ProfileChanges, ShareDifference, profile_changes};
pub use functions::{FunctionRow, function_rows};
pub use join::{JoinedNode, JoinedProfiles, JoinedRun, JoinedSide, join_profiles};
pub use pattern::NamePattern;
pub use rules::{CategoryRules, CategoryRulesError};
pub use shares::{
    CategoryShareOptions, CategoryShareRow, CategoryShares, CostPerOperation, RuleCoverage, ShareEstimate,
    category_shares, profile_parts,
};
pub use tree::{
    CallTree, CallTreeNode, CallTreeOptions, FrameRole, MappedCallTree, NO_STACK, ProfileAmount,
    ProfileFunction, SharedCommands, build_call_tree,
};

#[cfg(test)]
mod tests;
