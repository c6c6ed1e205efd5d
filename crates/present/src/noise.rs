//! The noise of a machine, and the repetitions that a precision costs, as tables.

use perflab_analyze::NoiseCard;
use perflab_analyze::sample_size::{SampleSizeAim, SampleSizeOptions, SampleSizePlan};

use crate::grid::{Grid, GridCell, GridColumn};
use perflab_model::quantity::{format_percent_change, format_share};

/// A row a metric: what is seen where nothing changed.
#[must_use]
pub fn noise_card_grid(card: &NoiseCard) -> Grid {
    let left = ["case", "metric"].map(GridColumn::left);
    let right = ["n", "noise", "change a → b", "reaches", "finds", "alarms interleaved", "alarms in turn"];
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
        ]);
    }
    grid
}

/// A row a metric: boots and iterations that a wanted precision costs.
#[must_use]
pub fn sample_size_grid(planned: &[SampleSizePlan]) -> Grid {
    let left = ["case", "metric"].map(GridColumn::left);
    let right = ["σ boots", "σ iterations", "observed", "iterations", "boots a side", "time a side", "finds"]
        .map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right));
    let percent = |value: f64| GridCell::with_text(format_share(value), value);
    for one in planned {
        grid.add_row([
            GridCell::from(one.subject.as_str()),
            GridCell::from(one.metric.as_str()),
            one.between.map_or_else(|| GridCell::with_text("unknown", serde_json::Value::Null), percent),
            percent(one.within),
            GridCell::from(format!("{}×{}", one.observed.1 / one.observed.0.max(1), one.observed.0)),
            GridCell::from(one.iterations),
            GridCell::from(one.boots),
            one.time.map_or_else(GridCell::missing, |time| GridCell::with_text(time.to_string(), time.0)),
            one.detects.map_or_else(GridCell::missing, percent),
        ]);
    }
    grid
}

/// What the numbers of [`sample_size_grid`] rest on.
#[must_use]
pub fn sample_size_notes(planned: &[SampleSizePlan], goal: &SampleSizeOptions) -> Vec<String> {
    let what = match goal.aim {
        SampleSizeAim::Precision => "an interval of ±",
        SampleSizeAim::Detect => "to find a real change of",
        SampleSizeAim::Decide => "a verdict either way at",
    };
    let mut notes = vec![format!(
        "goal: {what} {}, at 95 % confidence and 80 % power; noise as in the runs named, good to a quarter at best",
        perflab_model::Ratio(goal.size)
    )];
    if planned.iter().any(|one| one.between.is_none()) {
        notes.push(
            "σ boots unknown: one boot was seen, so the iterations decide comparisons within one boot only; name runs of \
             several boots to plan for different kernels or guests"
                .into(),
        );
    }
    if planned.iter().any(|one| one.boots.is_none()) {
        notes.push("an empty plan: a million repetitions do not reach the goal".into());
    }
    notes
}
