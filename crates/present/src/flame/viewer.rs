//! What the viewer reads of joined profiles, its page, and the section Flame graph.
//!
//! `web/src/flame/data.ts` mirrors the JSON; long columns are texts, see `packed_column`.
//! Colours stand for where functions ran, or for what a rule table says that they are. The viewer itself is TypeScript,
//! in `web/src/flame/`, in the same bundle as the report's front end.

use perflab_analyze::flame::{
    CategoryRules, FrameRole, JoinedNode, JoinedProfiles, JoinedRun, JoinedSide, NoiseBasis, ProfileFunction,
    ShareDifference, StackCategory, UNRECOGNISED, categorise_profile, profile_changes,
};
use perflab_model::NodeId;
use serde::Serialize;

use crate::flame::grids::named_sample_parts;
use crate::packed_column::{pack_ascending, pack_signed, pack_unsigned};

/// Cells of a second in the heat map: what FlameScope has.
const ROWS: u64 = 50;

/// More sides than these are not compared pair by pair, but with the first only.
const PAIRS: usize = 5;

/// The viewer's data of one joined tree; `names` are those of its sides.
pub fn flame_viewer_data(
    title: &str,
    joined: &JoinedProfiles<'_>,
    names: &[String],
    categories: &FlameCategories,
) -> FlameViewerData {
    let side = |(at, side): (usize, &JoinedSide<'_>)| {
        let name = names.get(at).cloned().unwrap_or_default();
        flame_side(joined, side, name)
    };
    FlameViewerData {
        title: title.into(),
        functions: function_columns(&joined.functions),
        categories: categories.categories.clone(),
        nodes: node_columns(joined, categories),
        sides: joined.sides.iter().enumerate().map(side).collect(),
        changes: side_pairs(joined.sides.len())
            .into_iter()
            .filter_map(|pair| side_difference(joined, pair))
            .collect(),
    }
}

fn function_columns(functions: &[ProfileFunction]) -> FunctionColumns {
    let letter = |one: &ProfileFunction| match one.role {
        FrameRole::All => 'a',
        FrameRole::Command => 'c',
        FrameRole::Kernel => 'k',
        FrameRole::User => 'u',
        FrameRole::Unknown => '?',
        FrameRole::Nothing => 'n',
    };
    let inlined = (0..).zip(functions).filter(|(_, one)| one.inlined).map(|(at, _)| at);
    FunctionColumns {
        name: functions.iter().map(|one| one.name.clone()).collect(),
        role: functions.iter().map(letter).collect(),
        inlined: pack_ascending(inlined),
    }
}

fn node_columns(joined: &JoinedProfiles<'_>, categories: &FlameCategories) -> NodeColumns {
    let up = |(at, node): (u64, &perflab_analyze::flame::JoinedNode)| {
        node.parent.map_or(0, |parent| at.saturating_sub(u64::from(parent)))
    };
    NodeColumns {
        count: joined.nodes.len(),
        up: pack_unsigned((0..).zip(&joined.nodes).map(up)),
        function: pack_unsigned(joined.nodes.iter().map(|node| node.function.into())),
        category: pack_unsigned(categories.by_node.iter().map(|category| (*category).into())),
    }
}

fn flame_side(joined: &JoinedProfiles<'_>, side: &JoinedSide<'_>, name: String) -> FlameSide {
    let about = side.runs.first().and_then(|run| run.profile.iterations.first()).map(|piece| &piece.summary);
    let own = side.own_amounts(joined.nodes.len());
    FlameSide {
        name,
        source: about.map(crate::flame::grids::profile_source_text).unwrap_or_default(),
        hides: about.and_then(|about| about.hides.clone()),
        parts: named_sample_parts(&side.sample_parts()).into(),
        own: pack_unsigned(own.iter().map(|own| own.samples)),
        time: sample_times(side),
    }
}

/// Samples by cell; `None` unless all have a time.
fn sample_times(side: &JoinedSide<'_>) -> Option<SampleTimes> {
    let (mut ranges, mut entries, mut seconds) = (Vec::new(), Vec::new(), 0_u32);
    for (number, run) in side.runs.iter().enumerate() {
        for (at, leaves) in run.leaves.iter().enumerate().filter(|(_, leaves)| !leaves.is_empty()) {
            let cells = piece_time_cells(run, at, leaves)?;
            let length = cells.iter().map(|(cell, _, _)| cell / ROWS + 1).max().unwrap_or(0);
            let name =
                if side.runs.len() > 1 { format!("run {}", number + 1) } else { format!("{}", at + 1) };
            let length = u32::try_from(length).ok()?;
            ranges.push((name, length));
            let base = u64::from(seconds) * ROWS;
            seconds = seconds.checked_add(length)?;
            entries.extend(cells.into_iter().map(|(cell, node, count)| (base + cell, node, count)));
        }
    }
    entries.sort_unstable();
    entries.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        kept.2 = kept.2.saturating_add(if same { next.2 } else { 0 });
        same
    });
    (!entries.is_empty()).then(|| SampleTimes {
        rows: ROWS as u32,
        ranges,
        cell: pack_ascending(entries.iter().map(|(cell, _, _)| *cell)),
        node: pack_unsigned(entries.iter().map(|(_, node, _)| u64::from(*node))),
        count: pack_unsigned(entries.iter().map(|(_, _, count)| *count)),
    })
}

/// Cell, node and count of each sample of a piece.
fn piece_time_cells(run: &JoinedRun<'_>, piece: usize, leaves: &[u32]) -> Option<Vec<(u64, u32, u64)>> {
    let samples = &run.profile.iterations.get(piece)?.samples;
    let first = samples.iter().filter_map(|sample| sample.at).min()?;
    let cell = |(sample, leaf): (&perflab_model::StackSample, &u32)| {
        let since = sample.at?.0.saturating_sub(first.0);
        Some((since / (1_000_000_000 / ROWS), *leaf, sample.count))
    };
    samples.iter().zip(leaves).map(cell).collect()
}

fn side_pairs(sides: usize) -> Vec<(usize, usize)> {
    let last = |before: usize| if sides <= PAIRS || before == 0 { sides } else { before + 1 };
    (0..sides).flat_map(|before| (before + 1..last(before)).map(move |after| (before, after))).collect()
}

fn side_difference(joined: &JoinedProfiles<'_>, (before, after): (usize, usize)) -> Option<SideDifference> {
    let found = profile_changes(joined, before, after)?;
    let [nodes, functions] = [&found.nodes, &found.functions].map(|all| difference_columns(all));
    Some(SideDifference { before, after, basis: basis_text(found.basis), nodes, functions })
}

fn difference_columns(all: &[ShareDifference]) -> DifferenceColumns {
    let millionths = |value: f64| (value * 1e6).round() as i64;
    DifferenceColumns {
        of: pack_ascending(all.iter().map(|one| u64::from(one.of))),
        difference: pack_signed(all.iter().map(|one| millionths(one.difference))),
        low: pack_signed(all.iter().map(|one| millionths(one.low))),
        high: pack_signed(all.iter().map(|one| millionths(one.high))),
        changed: pack_unsigned(all.iter().map(|one| u64::from(one.is_change()))),
    }
}

pub(crate) fn basis_text(basis: NoiseBasis) -> String {
    match basis {
        NoiseBasis::Repetitions(m, n) => {
            let (before, after) = match m.level == n.level {
                true => (m.count.to_string(), n.to_string()),
                false => (m.to_string(), n.to_string()),
            };
            format!("{before} and {after}; coloured where the false discovery rate is 5 % at most")
        }
        NoiseBasis::Counts => {
            "numbers of samples only, as there are no repetitions on both sides: repeated runs \
                          vary more, so some colour here is noise"
                .into()
        }
    }
}

/// Everything in `<script id="flame-data">`: one merged tree, with the sides that can be laid over it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlameViewerData {
    /// What it is of.
    pub title: String,
    /// Functions by number.
    pub functions: FunctionColumns,
    /// What colours mean, by the numbers in `NodeColumns::category`.
    pub categories: Vec<FlameCategory>,
    /// The boxes.
    pub nodes: NodeColumns,
    /// What was profiled: at least one.
    pub sides: Vec<FlameSide>,
    /// Differences of pairs of sides.
    pub changes: Vec<SideDifference>,
}

/// Names and roles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionColumns {
    /// Normalised names.
    pub name: Vec<String>,
    /// `all`, `command`, `kernel`, `user`, `unknown`, `nothing`; the letter that each begins with, in one text.
    pub role: String,
    /// Numbers of those whose code is part of their callers'.
    pub inlined: String,
}

/// A colour and its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlameCategory {
    /// What the legend says.
    pub name: String,
    /// Which family of colours: `command`, `kernel`, `user`, `unknown`, `nothing`, or `0`, `1`, … for rules.
    pub hue: String,
}

/// Columns of boxes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeColumns {
    /// How many.
    pub count: usize,
    /// Its number less its caller's; 0 for node 0.
    pub up: String,
    /// Its function.
    pub function: String,
    /// Its category.
    pub category: String,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlameSide {
    /// Label, or short id, and the case where there are several.
    pub name: String,
    /// Where the samples come from, the event, the rate.
    pub source: String,
    /// What the event cannot see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hides: Option<String>,
    /// What became of every sample: disjoint, and their sum is all.
    pub parts: Vec<(&'static str, u64)>,
    /// Samples that end in each node.
    pub own: String,
    /// When samples were taken; left out where the source has no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<SampleTimes>,
}

/// Samples over time, in cells of a fiftieth of a second; each range begins a second of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleTimes {
    /// Cells in a second.
    pub rows: u32,
    /// Stretches (iterations, runs): name and whole seconds.
    pub ranges: Vec<(String, u32)>,
    /// Cell of each entry less that of the one before.
    pub cell: String,
    /// Node of each entry.
    pub node: String,
    /// Samples of each entry.
    pub count: String,
}

/// Differences between two sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideDifference {
    /// Index into [`FlameViewerData::sides`].
    pub before: usize,
    /// Index into [`FlameViewerData::sides`].
    pub after: usize,
    /// What the intervals rest on, in words.
    pub basis: String,
    /// Of boxes, where they could be judged.
    pub nodes: DifferenceColumns,
    /// Of functions.
    pub functions: DifferenceColumns,
}

/// Columns of differences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DifferenceColumns {
    /// Node or function of each entry less that of the one before.
    pub of: String,
    /// Difference of shares in millionths, signed; so are `low` and `high`.
    pub difference: String,
    /// Lower end of the interval.
    pub low: String,
    /// Upper end of the interval.
    pub high: String,
    /// 1 where it is more than noise.
    pub changed: String,
}

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
            let number = |node: NodeId| {
                verdicts.get(node.0 as usize).and_then(|category| category_number(rules, category))
            };
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
fn category_number(rules: &CategoryRules, stack_category: &StackCategory) -> Option<u32> {
    let operation = match stack_category.operation? {
        UNRECOGNISED => rules.operations.len(),
        operation => usize::from(operation),
    };
    let at = ROLES.len() + operation * rules.categories.len().max(1) + usize::from(stack_category.category);
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
