//! Owns the tables of a history: its steps, and the runs of one series. It refuses to hide a series without steps: the notes
//! count them.

use jiff::Timestamp;
use perflab_analyze::comparison::ComparedRun;
use perflab_analyze::history::{HistoryChangePoint, MetricHistory};
use perflab_analyze::{ChangeScale, MetricChange, MetricHistories};

use crate::table::{Grid, GridCell, GridColumn};

/// One line a step, the newest first.
#[must_use]
pub fn steps_grid(history: &MetricHistories) -> Grid {
    let left = ["case", "metric", "last good", "first bad", "verdict"].map(GridColumn::left);
    let right = ["change [95 % CI]", "p", "moved together"].map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right).chain([GridColumn::left("facts that differ")]));
    let mut steps: Vec<(&MetricHistory, &HistoryChangePoint)> = history
        .series
        .iter()
        .flat_map(|series| series.steps.iter().map(move |step| (series, step)))
        .collect();
    steps.sort_by(|a, b| b.1.first_bad.cmp(&a.1.first_bad));
    for (series, step) in steps {
        let run = |id: &str| {
            history.runs.iter().find(|run| run.id == id).map_or_else(|| id.to_owned(), history_run_name)
        };
        let between = if step.between.is_empty() {
            String::new()
        } else {
            format!(" ({} between)", step.between.len())
        };
        grid.add_row([
            GridCell::from(series.subject.as_str()),
            GridCell::from(series.metric.as_str()),
            GridCell::with_text(run(&step.last_good), step.last_good.as_str()),
            GridCell::with_text(run(&step.first_bad) + &between, step.first_bad.as_str()),
            GridCell::from(step_word(step)),
            GridCell::with_text(step_change_text(step.change, &series.unit.0), step.change.value),
            GridCell::with_text(format!("{:.3}", step.p), step.p),
            GridCell::from(step.together),
            GridCell::from(step.facts.join("; ")),
        ]);
    }
    grid
}

fn step_word(step: &HistoryChangePoint) -> &'static str {
    use perflab_analyze::Verdict::{Better, Same, Unclear, Worse};
    match step.verdict {
        Better => "✓ better",
        Worse => "✗ worse",
        Same => "= within the margin",
        Unclear => "≠ changed",
    }
}

/// One line a run of a series, the oldest first, with its steps.
#[must_use]
pub fn history_runs_grid(history: &MetricHistories, series: &MetricHistory) -> Grid {
    let title = if series.unit.0 == "1" {
        series.metric.clone()
    } else {
        format!("{} [{}]", series.metric, series.unit)
    };
    let columns = [
        GridColumn::left("run"),
        GridColumn::left("began"),
        GridColumn::right(&title),
        GridColumn::right("interval"),
    ];
    let columns = columns.into_iter().chain([GridColumn::right("n×boots"), GridColumn::left("step")]);
    let mut grid = Grid::new(columns);
    for (at, point) in series.points.iter().enumerate() {
        let run = history.runs.get(point.run);
        let step = series.steps.iter().find(|step| step.at == at);
        let text = |value: f64| GridCell::quantity(value, "").text().to_owned();
        let interval = point.interval.map(|i| format!("[{}, {}]", text(i.low), text(i.high)));
        let step =
            step.map(|step| format!("{} {}", step_word(step), step_change_text(step.change, &series.unit.0)));
        grid.add_row([
            GridCell::with_text(
                run.map(history_run_name).unwrap_or_default(),
                run.map_or("", |run| run.id.as_str()),
            ),
            GridCell::from(run.map(run_date_text).unwrap_or_default()),
            GridCell::with_text(text(point.value), point.value),
            GridCell::from(interval),
            GridCell::from(format!("{}×{}", point.n / point.boots.max(1), point.boots)),
            GridCell::from(step),
        ]);
    }
    grid
}

/// Label and the beginning of the id that tells minutes apart.
pub(super) fn history_run_name(run: &ComparedRun) -> String {
    let short: String = run.id.chars().take(10).collect();
    run.label.as_ref().map_or_else(|| short.clone(), |label| format!("{label} ({short})"))
}

fn run_date_text(run: &ComparedRun) -> String {
    let nanos = i128::from(run.began.0);
    Timestamp::from_nanosecond(nanos)
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// `+2.1 % [+1.5, +2.7]`, or in the unit of the metric.
#[must_use]
pub fn step_change_text(change: MetricChange, unit: &str) -> String {
    crate::table::format_change(change, if change.scale == ChangeScale::Ratio { "" } else { unit })
}
