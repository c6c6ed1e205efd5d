//! Flame graphs: the call tree of a profile, and the functions in it.
//!
//! Owns how stacks are merged (by normalised names, so that kernels can be compared), and what every number
//! is a share of. Refuses to lose samples on the way: node 0 of a [`Tree`] is all samples that were kept,
//! those without a stack hang below it by that name, and [`perflab_model::profile::Parts`] says what else
//! there was.
//!
//! | module | owns |
//! |---|---|
//! | `tree` | [`Tree`]: merged stacks with own and total amounts; [`grow`] |
//! | [`rules`], `pattern` | rule tables as data, checked: [`Rules`] |
//! | `categorise` | [`categorise`]: what every node of a profile is by a table |
//! | `shares` | [`shares`]: operations and categories as shares, with denominators and intervals |
//! | `functions` | [`functions`]: a row a function, own and inclusive |
//! | `join` | [`join`]: several profiles over one tree |
//! | `change` | [`changes`]: which boxes differ between two sides by more than noise, and the rule for it |

mod categorise;
mod change;
mod functions;
mod join;
mod pattern;
pub mod rules;
mod shares;
mod tree;

pub use categorise::{UNRECOGNISED, Verdict, Verdicts, categorise};
pub use change::{Basis, Changes, Difference, changes};
pub use functions::{FunctionRow, functions};
pub use join::{Joined, JoinedNode, JoinedRun, JoinedSide, join};
pub use pattern::Pattern;
pub use rules::{Rules, RulesError};
pub use shares::{Coverage, PerOperation, Share, ShareOptions, ShareRow, Shares, parts, shares};
pub use tree::{Amount, Function, GrowOptions, Grown, NO_STACK, Role, SharedCommands, Tree, TreeNode, grow};

#[cfg(test)]
mod tests;
