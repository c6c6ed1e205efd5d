//! Owns the table of the guard: one line a series of the newest run. It refuses to leave a series out.

use perflab_analyze::history::{Guard, GuardRow, Reason};
use perflab_analyze::{History, Verdict};

use super::table::{change_text, name};
use crate::table::{Cell, Column, Grid};

/// One line a series; alarms first.
#[must_use]
pub fn guard_grid(history: &History, guard: &Guard) -> Grid {
    let left = ["case", "metric", "verdict"].map(Column::left);
    let right = ["value", "expected", "change [95 % CI]", "q", "runs"].map(Column::right);
    let mut grid = Grid::new(left.into_iter().chain(right).chain([Column::left("because")]));
    let mut rows: Vec<&GuardRow> = guard.rows.iter().collect();
    rows.sort_by_key(|row| (row.alarm.is_none(), !row.primary));
    for row in rows {
        let unit = row.unit.0.as_str();
        let text = |value: f64| Cell::quantity(value, unit).text().to_owned();
        let expected = row.expected.map(|i| format!("{} … {}", text(i.low), text(i.high)));
        grid.add([
            Cell::from(row.subject.as_str()),
            Cell::from(row.metric.as_str()),
            Cell::from(word(row)),
            Cell::quantity(row.value, unit),
            Cell::from(expected),
            row.change
                .map_or_else(Cell::missing, |change| Cell::shown(change_text(change, unit), change.value)),
            row.q.map_or_else(Cell::missing, |q| Cell::shown(probability(q), q)),
            Cell::from(row.runs),
            Cell::from(because(history, row)),
        ]);
    }
    grid
}

fn probability(q: f64) -> String {
    if q < 0.001 { "<0.001".into() } else { format!("{q:.3}") }
}

fn word(row: &GuardRow) -> &'static str {
    match row.verdict {
        Verdict::Better => "✓ better",
        Verdict::Worse => "✗ worse",
        Verdict::Same => "= same",
        Verdict::Unclear if row.expected.is_none() => "? too few runs",
        Verdict::Unclear => "? unclear",
    }
}

fn because(history: &History, row: &GuardRow) -> Option<String> {
    let alarm = row.alarm.as_ref()?;
    let run = |id: &str| history.runs.iter().find(|run| run.id == id).map_or_else(|| id.to_owned(), name);
    let (good, bad) = (run(&alarm.last_good), run(&alarm.first_bad));
    Some(match alarm.reason {
        Reason::Outside => format!("out of its history; good until {good}"),
        Reason::Step => {
            format!("a step of {} after {good}, first seen in {bad}", change_text(alarm.change, &row.unit.0))
        }
    })
}
