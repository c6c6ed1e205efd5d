//! From joined profiles to the viewer's JSON.

use perflab_analyze::flame::{Basis, Difference, Function, Joined, JoinedRun, JoinedSide, Role, changes};

use super::Categories;
use super::data::{Changes, Differences, Functions, Nodes, Picture, Side, Time};
use super::pack::{ascending, signed, unsigned};
use crate::flame::parts::named;

/// Cells of a second in the heat map: what FlameScope has.
const ROWS: u64 = 50;
/// More sides than these are not compared pair by pair, but with the first only.
const PAIRS: usize = 5;

/// The viewer's data of one joined tree; `names` are those of its sides.
pub fn picture(title: &str, joined: &Joined<'_>, names: &[String], categories: &Categories) -> Picture {
    let side = |(at, side): (usize, &JoinedSide<'_>)| {
        let name = names.get(at).cloned().unwrap_or_default();
        self::side(joined, side, name)
    };
    Picture {
        title: title.into(),
        functions: functions(&joined.functions),
        categories: categories.names.clone(),
        nodes: nodes(joined, categories),
        sides: joined.sides.iter().enumerate().map(side).collect(),
        changes: pairs(joined.sides.len()).into_iter().filter_map(|pair| change(joined, pair)).collect(),
    }
}

fn functions(functions: &[Function]) -> Functions {
    let letter = |one: &Function| match one.role {
        Role::All => 'a',
        Role::Command => 'c',
        Role::Kernel => 'k',
        Role::User => 'u',
        Role::Unknown => '?',
        Role::Nothing => 'n',
    };
    let inlined = (0..).zip(functions).filter(|(_, one)| one.inlined).map(|(at, _)| at);
    Functions {
        name: functions.iter().map(|one| one.name.clone()).collect(),
        role: functions.iter().map(letter).collect(),
        inlined: ascending(inlined),
    }
}

fn nodes(joined: &Joined<'_>, categories: &Categories) -> Nodes {
    let up = |(at, node): (u64, &perflab_analyze::flame::JoinedNode)| {
        node.parent.map_or(0, |parent| at.saturating_sub(u64::from(parent)))
    };
    Nodes {
        count: joined.nodes.len(),
        up: unsigned((0..).zip(&joined.nodes).map(up)),
        function: unsigned(joined.nodes.iter().map(|node| node.function.into())),
        category: unsigned(categories.of.iter().map(|category| (*category).into())),
    }
}

fn side(joined: &Joined<'_>, side: &JoinedSide<'_>, name: String) -> Side {
    let about = side.runs.first().and_then(|run| run.profile.pieces.first()).map(|piece| &piece.about);
    let own = side.own(joined.nodes.len());
    Side {
        name,
        source: about.map(crate::flame::source).unwrap_or_default(),
        hides: about.and_then(|about| about.hides.clone()),
        parts: named(&side.parts()).into(),
        own: unsigned(own.iter().map(|own| own.samples)),
        time: time(side),
    }
}

/// Samples by cell; `None` unless all have a time.
fn time(side: &JoinedSide<'_>) -> Option<Time> {
    let (mut stretches, mut entries, mut seconds) = (Vec::new(), Vec::new(), 0_u32);
    for (number, run) in side.runs.iter().enumerate() {
        for (at, leaves) in run.leaves.iter().enumerate().filter(|(_, leaves)| !leaves.is_empty()) {
            let cells = cells(run, at, leaves)?;
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
    (!entries.is_empty()).then(|| Time {
        rows: ROWS as u32,
        stretches,
        cell: ascending(entries.iter().map(|(cell, _, _)| *cell)),
        node: unsigned(entries.iter().map(|(_, node, _)| u64::from(*node))),
        count: unsigned(entries.iter().map(|(_, _, count)| *count)),
    })
}

/// Cell, node and count of each sample of a piece.
fn cells(run: &JoinedRun<'_>, piece: usize, leaves: &[u32]) -> Option<Vec<(u64, u32, u64)>> {
    let samples = &run.profile.pieces.get(piece)?.samples;
    let first = samples.iter().filter_map(|sample| sample.at).min()?;
    let cell = |(sample, leaf): (&perflab_model::profile::StackSample, &u32)| {
        let since = sample.at?.0.saturating_sub(first.0);
        Some((since / (1_000_000_000 / ROWS), *leaf, sample.count))
    };
    samples.iter().zip(leaves).map(cell).collect()
}

fn pairs(sides: usize) -> Vec<(usize, usize)> {
    let last = |before: usize| if sides <= PAIRS || before == 0 { sides } else { before + 1 };
    (0..sides).flat_map(|before| (before + 1..last(before)).map(move |after| (before, after))).collect()
}

fn change(joined: &Joined<'_>, (before, after): (usize, usize)) -> Option<Changes> {
    let found = changes(joined, before, after)?;
    let [nodes, functions] = [&found.nodes, &found.functions].map(|all| differences(all));
    Some(Changes { before, after, basis: basis(found.basis), nodes, functions })
}

fn differences(all: &[Difference]) -> Differences {
    let millionths = |value: f64| (value * 1e6).round() as i64;
    Differences {
        of: ascending(all.iter().map(|one| u64::from(one.of))),
        difference: signed(all.iter().map(|one| millionths(one.difference))),
        low: signed(all.iter().map(|one| millionths(one.low))),
        high: signed(all.iter().map(|one| millionths(one.high))),
        changed: unsigned(all.iter().map(|one| u64::from(one.is_change()))),
    }
}

fn basis(basis: Basis) -> String {
    match basis {
        Basis::Repetitions(m, n) => {
            format!("{m} and {n} repetitions; coloured where the false discovery rate is 5 % at most")
        }
        Basis::Counts => "numbers of samples only, as there are no repetitions on both sides: repeated runs \
                          vary more, so some colour here is noise"
            .into(),
    }
}
