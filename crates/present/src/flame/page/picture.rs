//! From joined profiles to the viewer's JSON.

use perflab_analyze::flame::{
    FrameRole, JoinedProfiles, JoinedRun, JoinedSide, NoiseBasis, ProfileFunction, ShareDifference,
    profile_changes,
};

use super::FlameCategories;
use super::data::{
    DifferenceColumns, FlameSide, FlameViewerData, FunctionColumns, NodeColumns, SampleTimes, SideDifference,
};
use super::pack::{pack_ascending, pack_signed, pack_unsigned};
use crate::flame::parts::named_sample_parts;

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
        self::flame_side(joined, side, name)
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
        source: about.map(crate::flame::profile_source_text).unwrap_or_default(),
        hides: about.and_then(|about| about.hides.clone()),
        parts: named_sample_parts(&side.sample_parts()).into(),
        own: pack_unsigned(own.iter().map(|own| own.samples)),
        time: sample_times(side),
    }
}

/// Samples by cell; `None` unless all have a time.
fn sample_times(side: &JoinedSide<'_>) -> Option<SampleTimes> {
    let (mut stretches, mut entries, mut seconds) = (Vec::new(), Vec::new(), 0_u32);
    for (number, run) in side.runs.iter().enumerate() {
        for (at, leaves) in run.leaves.iter().enumerate().filter(|(_, leaves)| !leaves.is_empty()) {
            let cells = piece_time_cells(run, at, leaves)?;
            let length = cells.iter().map(|(cell, _, _)| cell / ROWS + 1).max().unwrap_or(0);
            let name =
                if side.runs.len() > 1 { format!("run {}", number + 1) } else { format!("{}", at + 1) };
            let length = u32::try_from(length).ok()?;
            stretches.push((name, length));
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
        stretches,
        cell: pack_ascending(entries.iter().map(|(cell, _, _)| *cell)),
        node: pack_unsigned(entries.iter().map(|(_, node, _)| u64::from(*node))),
        count: pack_unsigned(entries.iter().map(|(_, _, count)| *count)),
    })
}

/// Cell, node and count of each sample of a piece.
fn piece_time_cells(run: &JoinedRun<'_>, piece: usize, leaves: &[u32]) -> Option<Vec<(u64, u32, u64)>> {
    let samples = &run.profile.iterations.get(piece)?.samples;
    let first = samples.iter().filter_map(|sample| sample.at).min()?;
    let cell = |(sample, leaf): (&perflab_model::profile::StackSample, &u32)| {
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

fn basis_text(basis: NoiseBasis) -> String {
    match basis {
        NoiseBasis::Repetitions(m, n) => {
            format!("{m} and {n} repetitions; coloured where the false discovery rate is 5 % at most")
        }
        NoiseBasis::Counts => {
            "numbers of samples only, as there are no repetitions on both sides: repeated runs \
                          vary more, so some colour here is noise"
                .into()
        }
    }
}
