//! The noise of a machine, and the repetitions that a precision costs, as tables.

use perflab_analyze::compare::noise_card::NoiseRow;
use perflab_analyze::compare::noise_levels::{LevelNoise, NoiseLevels};
use perflab_analyze::design::{DesignKind, DesignProposal};
use perflab_analyze::sample_size::{SampleSizeAim, SampleSizeOptions, SampleSizePlan};
use perflab_analyze::{NoiseCard, RepetitionLevel};

use crate::grid::{Grid, GridCell, GridColumn};
use perflab_model::Nanos;
use perflab_model::quantity::{format_percent_change, format_share};

/// A row a metric: what is seen where nothing changed.
#[must_use]
pub fn noise_card_grid(card: &NoiseCard) -> Grid {
    let left = ["case", "metric"].map(GridColumn::left);
    let right = ["n", "noise", "change a → b", "reaches", "finds", "alarms interleaved", "alarms in turn"];
    let levels =
        ["σ boots", "σ runs", "σ blocks", "σ iterations", "σ duet", "autocorrelation", "drift an hour"];
    let right = right.into_iter().chain(levels);
    let mut grid = Grid::new(left.into_iter().chain(right.map(GridColumn::right)));
    let percent = |value: f64| GridCell::with_text(format_share(value), value);
    let share = |value: Option<f64>| {
        value.map_or_else(GridCell::missing, |v| GridCell::with_text(format_share(v), v))
    };
    for row in &card.rows {
        grid.add_row([
            GridCell::from(row.subject.as_str()),
            GridCell::from(row.metric.as_str()),
            GridCell::from(row.n),
            percent(row.noise),
            GridCell::with_text(format_percent_change(row.change), row.change),
            GridCell::with_text(format!("± {}", format_share(row.reach)), row.reach),
            row.detects.map_or_else(GridCell::missing, percent),
            share(row.interleaved),
            share(row.in_turn),
            share(row.levels.and_then(|levels| levels.boots.sd)),
            share(row.levels.and_then(|levels| levels.runs.sd)),
            share(row.levels.and_then(|levels| levels.blocks.sd)),
            share(row.levels.and_then(|levels| levels.iterations.sd)),
            share(row.duet.map(|duet| duet.sd)),
            row.levels.map_or_else(GridCell::missing, |levels| {
                GridCell::with_text(format!("{:.2}", levels.autocorrelation), levels.autocorrelation)
            }),
            row.levels.and_then(|levels| levels.drift).map_or_else(GridCell::missing, |drift| {
                GridCell::with_text(format_percent_change(drift), drift)
            }),
        ]);
    }
    grid
}

/// What the machine did meanwhile, and on how many runs and boots the levels rest.
#[must_use]
pub fn noise_level_notes(card: &NoiseCard) -> Vec<String> {
    let mut notes = Vec::new();
    let known = || card.rows.iter().filter_map(|row| row.levels);
    if let Some(levels) = known().max_by_key(|levels| levels.runs.n) {
        let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let (runs, boots) = (count(levels.runs.n, "run"), count(levels.boots.n, "boot"));
        let unknown = match (known().any(|levels| levels.runs.sd.is_some()), levels.boots.n > 1) {
            (false, false) => {
                "; `perflab noise --runs 5` learns how much a run adds, and noise runs after a reboot how much a boot does"
            }
            (true, false) => "; noise runs after a reboot learn how much a boot adds",
            _ => "",
        };
        notes.push(format!(
            "σ: what each level adds, by analysis of variance over {runs} of {boots}{unknown}"
        ));
    }
    let steal = card.steal.map(|steal| format!("steal time {}", format_share(steal)));
    let switches = card.context_switches.map(|rate| format!("{rate:.0} context switches a second"));
    let load: Vec<String> = steal.into_iter().chain(switches).collect();
    notes.extend((!load.is_empty()).then(|| format!("meanwhile: {}", load.join(", "))));
    notes
}

/// A row a metric and design: what reaches the goal, and what each finds in a minute, ten and an hour.
#[must_use]
pub fn design_grid(proposals: &[DesignProposal]) -> Grid {
    let left = ["case", "metric", "design", "holds for"].map(GridColumn::left);
    let right = ["iterations", "repetitions a side", "time", "finds in 1 min", "in 10 min", "in 1 h"];
    let columns = left.into_iter().chain(right.map(GridColumn::right)).chain([GridColumn::left("cheapest")]);
    let mut grid = Grid::new(columns);
    for one in proposals {
        let finds = one.finds.map(|size| {
            size.map_or_else(GridCell::missing, |size| GridCell::with_text(format_share(size), size))
        });
        let cells = [
            GridCell::from(one.subject.as_str()),
            GridCell::from(one.metric.as_str()),
            GridCell::from(one.design.name()),
            GridCell::from(one.design.scope()),
            GridCell::from(one.iterations),
            GridCell::from(one.repetitions),
            one.time.map_or_else(GridCell::missing, |time| GridCell::with_text(time.to_string(), time.0)),
        ];
        let cheapest = GridCell::with_text(if one.cheapest { "yes" } else { "" }.to_owned(), one.cheapest);
        grid.add_row(cells.into_iter().chain(finds).chain([cheapest]));
    }
    grid
}

/// What the numbers of [`design_grid`] rest on.
#[must_use]
pub fn design_notes(card: &NoiseCard, proposals: &[DesignProposal], goal: &SampleSizeOptions) -> Vec<String> {
    let mut notes = vec![format!(
        "goal: {} {}, at 95 % confidence and 80 % power; time is that of both sides on this machine; finds: the change found in 80 % \
         of experiments of that length",
        goal_text(goal),
        perflab_model::Ratio(goal.size)
    )];
    let has = |kind: DesignKind| proposals.iter().any(|one| one.design == kind);
    let missing = [(DesignKind::Runs, "runs"), (DesignKind::Boots, "boots")];
    let missing: Vec<&str> = missing.iter().filter(|(kind, _)| !has(*kind)).map(|(_, name)| *name).collect();
    if !missing.is_empty() {
        notes.push(format!(
            "no design by {}: their noise is not on the card yet (`perflab noise --runs 5`; again after a reboot). Iterations within \
             one run come first",
            missing.join(" or ")
        ));
    }
    notes.extend(levels_without_noise(card, proposals));
    notes.push(match has(DesignKind::Duet) {
        true => String::from(
            "duet: as interleaved, with `order = \"duet\"`: both levels at one moment, each on half of the CPUs; it tells of half a \
             machine"
        ),
        false => String::from(
            "no duet: whether both levels should run at one moment, each on half of the CPUs, is not on the card yet \
             (`perflab noise --duet`)"
        ),
    });
    notes.push(String::from(
        "interleaved: make the difference a factor of one study; the luck of its boot is on both sides, and the verdict holds for that boot"
    ));
    notes.extend(more_machines(proposals));
    notes.extend(card.run_cost.map(|cost| format!("a run costs {cost} besides its iterations")));
    notes
}

/// Levels that seem to add nothing, and from how many that is known.
fn levels_without_noise(card: &NoiseCard, proposals: &[DesignProposal]) -> Option<String> {
    let is_proposed = |row: &&NoiseRow| {
        let own = |one: &DesignProposal| (&one.subject, &one.metric) == (&row.subject, &row.metric);
        proposals.iter().any(own)
    };
    let levels = || card.rows.iter().filter(is_proposed).filter_map(|row| row.levels);
    let still = |level: fn(&NoiseLevels) -> LevelNoise| {
        levels().map(|levels| level(&levels)).filter(|level| level.sd == Some(0.0)).map(|level| level.n).min()
    };
    let found = [(still(|levels| levels.runs), "runs"), (still(|levels| levels.boots), "boots")];
    let named: Vec<String> =
        found.into_iter().filter_map(|(n, name)| Some(format!("{name} (σ 0 over {} of them)", n?))).collect();
    (!named.is_empty()).then(|| {
        format!(
            "{} add nothing that so few could show, which is not nothing: iterations within one run come first, and of such \
             runs or boots as few as have an interval",
            named.join(" and ")
        )
    })
}

/// Longer than this, more machines are worth a thought.
const LONG: Nanos = Nanos(3_600_000_000_000);

/// Fewest pairs that have an interval.
const MACHINES: u64 = 6;

/// What several machines would save of the longest of the cheapest designs.
fn more_machines(proposals: &[DesignProposal]) -> Option<String> {
    let cheapest = proposals.iter().filter(|one| one.cheapest).filter_map(|one| one.time);
    let time = cheapest.max().filter(|time| *time > LONG)?;
    let share = Nanos(time.0 / MACHINES);
    Some(format!(
        "{time} is long: {MACHINES} machines with both sides on each take {share} each (run the study on all of them, and name the runs \
         together: machines are then pairs). How much the change differs from machine to machine is on no card, and shows then"
    ))
}

fn goal_text(goal: &SampleSizeOptions) -> &'static str {
    match goal.aim {
        SampleSizeAim::Precision => "an interval of ±",
        SampleSizeAim::Detect => "to find a real change of",
        SampleSizeAim::Decide => "a verdict either way at",
    }
}

/// A row a metric: boots, runs or iterations that a wanted precision costs.
#[must_use]
pub fn sample_size_grid(planned: &[SampleSizePlan]) -> Grid {
    let left = ["case", "metric", "design"].map(GridColumn::left);
    let right =
        ["σ between", "σ iterations", "observed", "iterations", "repetitions a side", "time a side", "finds"]
            .map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right));
    let percent = |value: f64| GridCell::with_text(format_share(value), value);
    for one in planned {
        grid.add_row([
            GridCell::from(one.subject.as_str()),
            GridCell::from(one.metric.as_str()),
            GridCell::from(planned_design(one).name()),
            one.between.map_or_else(|| GridCell::with_text("unknown", serde_json::Value::Null), percent),
            percent(one.within),
            GridCell::from(format!("{}×{}", one.observed.1 / one.observed.0.max(1), one.observed.0)),
            GridCell::from(one.iterations),
            GridCell::from(one.repetitions),
            one.time.map_or_else(GridCell::missing, |time| GridCell::with_text(time.to_string(), time.0)),
            one.detects.map_or_else(GridCell::missing, percent),
        ]);
    }
    grid
}

/// How the sides are measured, so that what was planned repeats on both.
fn planned_design(one: &SampleSizePlan) -> DesignKind {
    match one.level {
        RepetitionLevel::Machine | RepetitionLevel::Boot => DesignKind::Boots,
        RepetitionLevel::Run => DesignKind::Runs,
        RepetitionLevel::Layout | RepetitionLevel::Iteration => DesignKind::Interleaved,
    }
}

/// What the numbers of [`sample_size_grid`] rest on.
#[must_use]
pub fn sample_size_notes(planned: &[SampleSizePlan], goal: &SampleSizeOptions) -> Vec<String> {
    let what = goal_text(goal);
    let mut notes = vec![format!(
        "goal: {what} {}, at 95 % confidence and 80 % power; noise as in the runs named, good to a quarter at best",
        perflab_model::Ratio(goal.size)
    )];
    let has = |kind: DesignKind| planned.iter().any(|one| planned_design(one) == kind);
    if has(DesignKind::Interleaved) {
        notes.push(
            "interleaved: both sides are levels of a factor in one run, which has so many iterations of each; two runs, one a \
             side, get no verdict however long they are. Name several runs, or runs of several boots, to plan for those"
                .into(),
        );
    }
    if has(DesignKind::Runs) {
        notes.push(
            "runs: of each side in turns, within one boot; name runs of several boots to plan for those"
                .into(),
        );
    }
    if planned.iter().any(|one| one.between == Some(0.0)) {
        notes.push(
            "σ between 0: so few runs or boots show nothing that they add, which is not nothing; as few as have an interval are \
             planned, and iterations within one run (`interleaved`) may do"
                .into(),
        );
    }
    if planned.iter().any(|one| one.repetitions.is_none()) {
        notes.push("an empty plan: a million repetitions do not reach the goal".into());
    }
    if planned.iter().any(|one| one.repetitions.is_some() && one.time.is_none()) {
        notes.push("time unknown: the runs do not tell how long an iteration takes".into());
    }
    notes
}
