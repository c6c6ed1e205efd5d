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
//! | `functions` | [`functions`]: a row a function, own and inclusive |

mod functions;
mod tree;

pub use functions::{FunctionRow, functions};
pub use tree::{Amount, Function, GrowOptions, Grown, NO_STACK, Role, Tree, TreeNode, grow};

#[cfg(test)]
mod tests;
