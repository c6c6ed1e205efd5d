//! A row a function: where samples end, and what they pass through.

use serde::Serialize;

use super::tree::find_outermost_nodes;
use super::{CallTree, FrameRole, ProfileAmount, ProfileFunction};

/// One function over the whole tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionRow {
    /// which
    #[serde(flatten)]
    pub function: ProfileFunction,
    /// samples that end in it
    pub own: ProfileAmount,
    /// samples that it is on the stack of, each once however often it calls itself
    pub inclusive: ProfileAmount,
}

/// All functions of a tree, those with most samples of their own first. Commands and node 0 are none.
pub fn function_rows(tree: &CallTree) -> Vec<FunctionRow> {
    let row = |function: &ProfileFunction| FunctionRow {
        function: function.clone(),
        own: ProfileAmount::default(),
        inclusive: ProfileAmount::default(),
    };
    let mut rows: Vec<FunctionRow> = tree.functions.iter().map(row).collect();
    let nodes: Vec<_> = tree.nodes.iter().map(|node| (node.parent, node.function)).collect();
    for (node, is_outermost) in tree.nodes.iter().zip(find_outermost_nodes(&nodes)) {
        let Some(row) = rows.get_mut(node.function as usize) else { continue };
        row.own += node.own;
        if is_outermost {
            row.inclusive += node.total;
        }
    }
    rows.retain(|row| !matches!(row.function.role, FrameRole::All | FrameRole::Command));
    rows.sort_by(|a, b| {
        let key = |row: &FunctionRow| std::cmp::Reverse((row.own.samples, row.inclusive.samples));
        key(a).cmp(&key(b)).then_with(|| a.function.name.cmp(&b.function.name))
    });
    rows
}
