//! Owns the table of the guard: one line a series of the newest run. It refuses to leave a series out.

use perflab_analyze::history::{AlarmReason, GuardReport, GuardRow};
use perflab_analyze::{MetricHistories, Verdict};

use super::table::{history_run_name, step_change_text};
use crate::table::{Grid, GridCell, GridColumn};

/// One line a series; alarms first.
#[must_use]
pub fn guard_grid(history: &MetricHistories, guard: &GuardReport) -> Grid {
    let left = ["case", "metric", "verdict"].map(GridColumn::left);
    let right = ["value", "expected", "change [95 % CI]", "q", "runs"].map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right).chain([GridColumn::left("because")]));
    let mut rows: Vec<&GuardRow> = guard.rows.iter().collect();
    rows.sort_by_key(|row| (row.alarm.is_none(), !row.primary));
    for row in rows {
        let unit = row.unit.0.as_str();
        let text = |value: f64| GridCell::quantity(value, unit).text().to_owned();
        let expected = row.expected.map(|i| format!("{} … {}", text(i.low), text(i.high)));
        grid.add_row([
            GridCell::from(row.subject.as_str()),
            GridCell::from(row.metric.as_str()),
            GridCell::from(alarm_word(row)),
            GridCell::quantity(row.value, unit),
            GridCell::from(expected),
            row.change.map_or_else(GridCell::missing, |change| {
                GridCell::with_text(step_change_text(change, unit), change.value)
            }),
            row.q.map_or_else(GridCell::missing, |q| GridCell::with_text(probability_text(q), q)),
            GridCell::from(row.runs),
            GridCell::from(alarm_reason(history, row)),
        ]);
    }
    grid
}

fn probability_text(q: f64) -> String {
    if q < 0.001 { "<0.001".into() } else { format!("{q:.3}") }
}

fn alarm_word(row: &GuardRow) -> &'static str {
    match row.verdict {
        Verdict::Better => "✓ better",
        Verdict::Worse => "✗ worse",
        Verdict::Same => "= same",
        Verdict::Unclear if row.expected.is_none() => "? too few runs",
        Verdict::Unclear => "? unclear",
    }
}

fn alarm_reason(history: &MetricHistories, row: &GuardRow) -> Option<String> {
    let alarm = row.alarm.as_ref()?;
    let run = |id: &str| {
        history.runs.iter().find(|run| run.id == id).map_or_else(|| id.to_owned(), history_run_name)
    };
    let (good, bad) = (run(&alarm.last_good), run(&alarm.first_bad));
    Some(match alarm.reason {
        AlarmReason::Outside => format!("out of its history; good until {good}"),
        AlarmReason::Step => {
            format!(
                "a step of {} after {good}, first seen in {bad}",
                step_change_text(alarm.change, &row.unit.0)
            )
        }
    })
}
