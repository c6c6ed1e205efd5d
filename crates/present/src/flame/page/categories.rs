//! What colours stand for: where functions ran, or what a rule table says that they are.

use perflab_analyze::flame::{
    CategoryRules, FrameRole, JoinedNode, JoinedProfiles, JoinedRun, StackCategory, UNRECOGNISED,
    categorise_profile,
};
use perflab_model::profile::NodeId;

use super::data::FlameCategory;

/// The roles, by their numbers as categories.
const ROLES: [FrameRole; 6] = [
    FrameRole::All,
    FrameRole::Command,
    FrameRole::Kernel,
    FrameRole::User,
    FrameRole::Unknown,
    FrameRole::Nothing,
];

/// A number for each node of a joined tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameCategories {
    /// By number.
    pub categories: Vec<FlameCategory>,
    /// By node.
    pub by_node: Vec<u32>,
}

impl FlameCategories {
    /// By where functions ran.
    #[must_use]
    pub fn by_role(joined: &JoinedProfiles<'_>) -> Self {
        let of = |node: &JoinedNode| {
            let role =
                joined.functions.get(node.function as usize).map_or(FrameRole::Unknown, |one| one.role);
            ROLES.iter().position(|one| *one == role).unwrap_or(0) as u32
        };
        let named =
            |role: FrameRole| FlameCategory { name: role_name(role).into(), hue: role_hue(role).into() };
        FlameCategories {
            categories: ROLES.map(named).into(),
            by_node: joined.nodes.iter().map(of).collect(),
        }
    }

    /// By a rule table, and by where functions ran outside of its operations.
    #[must_use]
    pub fn by_rules(joined: &JoinedProfiles<'_>, rules: &CategoryRules) -> Self {
        let mut categories = FlameCategories::by_role(joined);
        categories.categories.extend(rule_categories(rules));
        let mut seen = vec![false; joined.nodes.len()];
        for run in joined.sides.iter().flat_map(|side| &side.runs) {
            let verdicts = categorise_profile(run.profile, rules).nodes;
            let number =
                |node: NodeId| verdicts.get(node.0 as usize).and_then(|said| category_number(rules, said));
            categories.number_nodes(joined, run, &mut seen, number);
        }
        categories
    }

    /// Walks each stack and its boxes from the leaf outwards, side by side, until boxes that are known.
    fn number_nodes(
        &mut self,
        joined: &JoinedProfiles<'_>,
        run: &JoinedRun<'_>,
        seen: &mut [bool],
        number: impl Fn(NodeId) -> Option<u32>,
    ) {
        for (piece, leaves) in run.profile.iterations.iter().zip(&run.leaves) {
            for (sample, leaf) in piece.samples.iter().zip(leaves) {
                let (mut stack, mut at) = (sample.leaf, Some(*leaf));
                while let (Some(node), Some(place)) = (stack, at) {
                    let Some(known) = seen.get_mut(place as usize).filter(|known| !**known) else { break };
                    *known = true;
                    if let (Some(number), Some(of)) = (number(node), self.by_node.get_mut(place as usize)) {
                        *of = number;
                    }
                    stack = run.profile.node(node).and_then(|node| node.parent);
                    at = joined.nodes.get(place as usize).and_then(|node| node.parent);
                }
            }
        }
    }
}

/// The categories of a table, in the order of [`category_number`]: of each operation, then what no rule recognised. A table
/// with a single category has a colour for each operation.
fn rule_categories(rules: &CategoryRules) -> Vec<FlameCategory> {
    let alone = rules.categories.len() < 2;
    let of = |(at, operation): (usize, &str)| -> Vec<FlameCategory> {
        let one = |(number, category): (usize, &str)| {
            let name = if alone { operation.to_owned() } else { format!("{operation}: {category}") };
            FlameCategory { name, hue: (if alone { at } else { number }).to_string() }
        };
        rules.categories.iter().map(|category| category.name.as_str()).enumerate().map(one).collect()
    };
    let operations = rules.operations.iter().map(|operation| operation.name.as_str());
    operations.chain(["unrecognised"]).enumerate().flat_map(of).collect()
}

/// The number of a verdict as a category; `None` outside of every operation.
fn category_number(rules: &CategoryRules, said: &StackCategory) -> Option<u32> {
    let operation = match said.operation? {
        UNRECOGNISED => rules.operations.len(),
        operation => usize::from(operation),
    };
    let at = ROLES.len() + operation * rules.categories.len().max(1) + usize::from(said.category);
    u32::try_from(at).ok()
}

fn role_name(role: FrameRole) -> &'static str {
    match role {
        FrameRole::Kernel => "kernel",
        FrameRole::User => "user",
        FrameRole::Unknown => "function",
        FrameRole::Nothing => "no stack",
        FrameRole::Command => "command",
        FrameRole::All => "all",
    }
}

fn role_hue(role: FrameRole) -> &'static str {
    match role {
        FrameRole::Kernel => "kernel",
        FrameRole::User => "user",
        FrameRole::Unknown => "unknown",
        FrameRole::Nothing => "nothing",
        FrameRole::Command | FrameRole::All => "command",
    }
}
