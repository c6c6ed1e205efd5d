//! `perflab plan`

use perflab_analyze::sample_size::{SampleSizeAim, SampleSizeOptions, SampleSizePlan};
use perflab_analyze::{AnalysisOptions, ComparisonSide, plan_sample_sizes};
use perflab_present::comparison::{Grid, GridCell, GridColumn};

use crate::arguments::history as arguments;
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::quantities;
use crate::sides;

/// Boots and iterations that a wanted precision costs.
pub fn plan_sample_size(context: &App, wanted: &arguments::SampleSizeArgs) -> anyhow::Result<Exit> {
    let goal = precision_goal(wanted)?;
    let archive = context.archive()?;
    let mut side = ComparisonSide { name: wanted.runs.join(", "), runs: Vec::new() };
    for name in &wanted.runs {
        side.runs.extend(sides::select_side(&archive, name)?.runs);
    }
    let options = AnalysisOptions { metrics: wanted.metric.clone(), ..AnalysisOptions::default() };
    let (planned, unplanned) = plan_sample_sizes(&side, &goal, &options)?;
    context.print_grid(&sample_size_grid(&planned))?;
    for one in unplanned {
        stderr_line!("left out: {}, {} {}", one.subject, one.metric, one.reason);
    }
    for note in sample_size_notes(&planned, &goal) {
        context.note(format!("note: {note}"));
    }
    Ok(Exit::Fine)
}

fn precision_goal(wanted: &arguments::SampleSizeArgs) -> Result<SampleSizeOptions, UsageError> {
    let choices = [
        ("--detect", &wanted.detect, SampleSizeAim::Detect),
        ("--decide", &wanted.decide, SampleSizeAim::Decide),
        ("--precision", &wanted.precision, SampleSizeAim::Precision),
    ];
    let chosen = choices.into_iter().find_map(|(option, text, aim)| Some((option, text.as_ref()?, aim)));
    let (size, aim) = match chosen {
        Some((option, text, aim)) => {
            // Whatever its unit, nothing is nothing.
            let is_zero =
                text.trim().trim_end_matches('%').trim().parse::<f64>().is_ok_and(|size| size == 0.0);
            if is_zero {
                let message = format!("{option} {text} is no goal: it needs infinitely many repetitions");
                return Err(UsageError::new(message, "write 1%"));
            }
            (super::compare::parse_percent_option(option, text)?, aim)
        }
        None => (0.01, SampleSizeAim::Precision),
    };
    let boot_cost = quantities::parse_time_option("--boot-cost", &wanted.boot_cost)?;
    Ok(SampleSizeOptions { size, aim, boot_cost, iterations: wanted.iterations })
}

fn sample_size_grid(planned: &[SampleSizePlan]) -> Grid {
    let left = ["case", "metric"].map(GridColumn::left);
    let right = ["σ boots", "σ iterations", "seen", "iterations", "boots a side", "time a side", "finds"]
        .map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right));
    let percent = |value: f64| GridCell::with_text(format!("{:.2} %", value * 100.0), value);
    for one in planned {
        grid.add_row([
            GridCell::from(one.subject.as_str()),
            GridCell::from(one.metric.as_str()),
            one.between.map_or_else(|| GridCell::with_text("unknown", serde_json::Value::Null), percent),
            percent(one.within),
            GridCell::from(format!("{}×{}", one.seen.1 / one.seen.0.max(1), one.seen.0)),
            GridCell::from(one.iterations),
            GridCell::from(one.boots),
            one.time.map_or_else(GridCell::missing, |time| GridCell::with_text(time.to_string(), time.0)),
            one.detects.map_or_else(GridCell::missing, percent),
        ]);
    }
    grid
}

fn sample_size_notes(planned: &[SampleSizePlan], goal: &SampleSizeOptions) -> Vec<String> {
    let what = match goal.aim {
        SampleSizeAim::Precision => "an interval of ±",
        SampleSizeAim::Detect => "to find a real change of",
        SampleSizeAim::Decide => "a verdict either way at",
    };
    let mut notes = vec![format!(
        "goal: {what} {:.2} %, at 95 % confidence and 80 % power; noise as in the runs named, good to a quarter at best",
        goal.size * 100.0
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
