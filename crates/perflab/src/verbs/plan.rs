//! `perflab plan`

use perflab_analyze::ahead::{Ahead, Aim, Wanted};
use perflab_analyze::{Options, Side, ahead};
use perflab_present::table::{Cell, Column, Grid};

use crate::arguments::history as arguments;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::quantities;
use crate::sides;

/// Boots and iterations that a wanted precision costs.
pub fn run(context: &Context, wanted: &arguments::Plan) -> anyhow::Result<Exit> {
    let goal = goal(wanted)?;
    let archive = context.archive()?;
    let mut side = Side { name: wanted.runs.join(", "), runs: Vec::new() };
    for name in &wanted.runs {
        side.runs.extend(sides::side(&archive, name)?.runs);
    }
    let options = Options { metrics: wanted.metric.clone(), ..Options::default() };
    let (planned, unplanned) = ahead(&side, &goal, &options)?;
    context.print(&grid(&planned))?;
    for one in unplanned {
        stderr_line!("left out: {}, {} {}", one.subject, one.metric, one.reason);
    }
    for note in notes(&planned, &goal) {
        context.say(format!("note: {note}"));
    }
    Ok(Exit::Fine)
}

fn goal(wanted: &arguments::Plan) -> Result<Wanted, Usage> {
    let choices = [
        ("--detect", &wanted.detect, Aim::Detect),
        ("--decide", &wanted.decide, Aim::Decide),
        ("--precision", &wanted.precision, Aim::Precision),
    ];
    let chosen = choices.into_iter().find_map(|(option, text, aim)| Some((option, text.as_ref()?, aim)));
    let (size, aim) = match chosen {
        Some((option, text, aim)) => {
            // Whatever its unit, nothing is nothing.
            let is_zero =
                text.trim().trim_end_matches('%').trim().parse::<f64>().is_ok_and(|size| size == 0.0);
            if is_zero {
                let message = format!("{option} {text} is no goal: it needs infinitely many repetitions");
                return Err(Usage::new(message, "write 1%"));
            }
            (super::compare::percent(option, text)?, aim)
        }
        None => (0.01, Aim::Precision),
    };
    let boot_cost = quantities::time("--boot-cost", &wanted.boot_cost)?;
    Ok(Wanted { size, aim, boot_cost, iterations: wanted.iterations })
}

fn grid(planned: &[Ahead]) -> Grid {
    let left = ["case", "metric"].map(Column::left);
    let right = ["σ boots", "σ iterations", "seen", "iterations", "boots a side", "time a side", "finds"]
        .map(Column::right);
    let mut grid = Grid::new(left.into_iter().chain(right));
    let percent = |value: f64| Cell::shown(format!("{:.2} %", value * 100.0), value);
    for one in planned {
        grid.add([
            Cell::from(one.subject.as_str()),
            Cell::from(one.metric.as_str()),
            one.between.map_or_else(|| Cell::shown("unknown", serde_json::Value::Null), percent),
            percent(one.within),
            Cell::from(format!("{}×{}", one.seen.1 / one.seen.0.max(1), one.seen.0)),
            Cell::from(one.iterations),
            Cell::from(one.boots),
            one.time.map_or_else(Cell::missing, |time| Cell::shown(time.to_string(), time.0)),
            one.detects.map_or_else(Cell::missing, percent),
        ]);
    }
    grid
}

fn notes(planned: &[Ahead], goal: &Wanted) -> Vec<String> {
    let what = match goal.aim {
        Aim::Precision => "an interval of ±",
        Aim::Detect => "to find a real change of",
        Aim::Decide => "a verdict either way at",
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
