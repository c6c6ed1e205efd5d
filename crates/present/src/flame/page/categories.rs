//! What colours stand for: where functions ran, or what a rule table says that they are.

use perflab_analyze::flame::{Joined, JoinedNode, JoinedRun, Role, Rules, UNRECOGNISED, Verdict, categorise};
use perflab_model::profile::NodeId;

use super::data::Category;

/// The roles, by their numbers as categories.
const ROLES: [Role; 6] = [Role::All, Role::Command, Role::Kernel, Role::User, Role::Unknown, Role::Nothing];

/// A number for each node of a joined tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Categories {
    /// By number.
    pub names: Vec<Category>,
    /// By node.
    pub of: Vec<u32>,
}

impl Categories {
    /// By where functions ran.
    #[must_use]
    pub fn by_role(joined: &Joined<'_>) -> Self {
        let of = |node: &JoinedNode| {
            let role = joined.functions.get(node.function as usize).map_or(Role::Unknown, |one| one.role);
            ROLES.iter().position(|one| *one == role).unwrap_or(0) as u32
        };
        let named = |role: Role| Category { name: role_name(role).into(), hue: role_hue(role).into() };
        Categories { names: ROLES.map(named).into(), of: joined.nodes.iter().map(of).collect() }
    }

    /// By a rule table, and by where functions ran outside of its operations.
    #[must_use]
    pub fn by_rules(joined: &Joined<'_>, rules: &Rules) -> Self {
        let mut categories = Categories::by_role(joined);
        categories.names.extend(named(rules));
        let mut seen = vec![false; joined.nodes.len()];
        for run in joined.sides.iter().flat_map(|side| &side.runs) {
            let verdicts = categorise(run.profile, rules).nodes;
            let number = |node: NodeId| verdicts.get(node.0 as usize).and_then(|said| number(rules, said));
            categories.take(joined, run, &mut seen, number);
        }
        categories
    }

    /// Walks each stack and its boxes from the leaf outwards, side by side, until boxes that are known.
    fn take(
        &mut self,
        joined: &Joined<'_>,
        run: &JoinedRun<'_>,
        seen: &mut [bool],
        number: impl Fn(NodeId) -> Option<u32>,
    ) {
        for (piece, leaves) in run.profile.pieces.iter().zip(&run.leaves) {
            for (sample, leaf) in piece.samples.iter().zip(leaves) {
                let (mut stack, mut at) = (sample.leaf, Some(*leaf));
                while let (Some(node), Some(place)) = (stack, at) {
                    let Some(known) = seen.get_mut(place as usize).filter(|known| !**known) else { break };
                    *known = true;
                    if let (Some(number), Some(of)) = (number(node), self.of.get_mut(place as usize)) {
                        *of = number;
                    }
                    stack = run.profile.node(node).and_then(|node| node.parent);
                    at = joined.nodes.get(place as usize).and_then(|node| node.parent);
                }
            }
        }
    }
}

/// The categories of a table, in the order of [`number`]: of each operation, then what no rule recognised. A table
/// with a single category has a colour for each operation.
fn named(rules: &Rules) -> Vec<Category> {
    let alone = rules.categories.len() < 2;
    let of = |(at, operation): (usize, &str)| -> Vec<Category> {
        let one = |(number, category): (usize, &str)| {
            let name = if alone { operation.to_owned() } else { format!("{operation}: {category}") };
            Category { name, hue: (if alone { at } else { number }).to_string() }
        };
        rules.categories.iter().map(|category| category.name.as_str()).enumerate().map(one).collect()
    };
    let operations = rules.operations.iter().map(|operation| operation.name.as_str());
    operations.chain(["unrecognised"]).enumerate().flat_map(of).collect()
}

/// The number of a verdict as a category; `None` outside of every operation.
fn number(rules: &Rules, said: &Verdict) -> Option<u32> {
    let operation = match said.operation? {
        UNRECOGNISED => rules.operations.len(),
        operation => usize::from(operation),
    };
    let at = ROLES.len() + operation * rules.categories.len().max(1) + usize::from(said.category);
    u32::try_from(at).ok()
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Kernel => "kernel",
        Role::User => "user",
        Role::Unknown => "function",
        Role::Nothing => "no stack",
        Role::Command => "command",
        Role::All => "all",
    }
}

fn role_hue(role: Role) -> &'static str {
    match role {
        Role::Kernel => "kernel",
        Role::User => "user",
        Role::Unknown => "unknown",
        Role::Nothing => "nothing",
        Role::Command | Role::All => "command",
    }
}
