//! Owns the tables of a history: its steps, and the runs of one series. It refuses to hide a series without steps: the notes
//! count them.

use jiff::Timestamp;
use perflab_analyze::comparison::RunInfo;
use perflab_analyze::history::{MetricHistory, Step};
use perflab_analyze::{Change, History, Scale};

use crate::table::{Cell, Column, Grid};

/// One line a step, the newest first.
#[must_use]
pub fn steps_grid(history: &History) -> Grid {
    let left = ["case", "metric", "last good", "first bad", "verdict"].map(Column::left);
    let right = ["change [95 % CI]", "p", "moved together"].map(Column::right);
    let mut grid = Grid::new(left.into_iter().chain(right).chain([Column::left("facts that differ")]));
    let mut steps: Vec<(&MetricHistory, &Step)> = history
        .series
        .iter()
        .flat_map(|series| series.steps.iter().map(move |step| (series, step)))
        .collect();
    steps.sort_by(|a, b| b.1.first_bad.cmp(&a.1.first_bad));
    for (series, step) in steps {
        let run = |id: &str| history.runs.iter().find(|run| run.id == id).map_or_else(|| id.to_owned(), name);
        let between = if step.between.is_empty() {
            String::new()
        } else {
            format!(" ({} between)", step.between.len())
        };
        grid.add([
            Cell::from(series.subject.as_str()),
            Cell::from(series.metric.as_str()),
            Cell::shown(run(&step.last_good), step.last_good.as_str()),
            Cell::shown(run(&step.first_bad) + &between, step.first_bad.as_str()),
            Cell::from(word(step)),
            Cell::shown(change_text(step.change, &series.unit.0), step.change.value),
            Cell::shown(format!("{:.3}", step.p), step.p),
            Cell::from(step.together),
            Cell::from(step.facts.join("; ")),
        ]);
    }
    grid
}

fn word(step: &Step) -> &'static str {
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
pub fn runs_grid(history: &History, series: &MetricHistory) -> Grid {
    let title = if series.unit.0 == "1" {
        series.metric.clone()
    } else {
        format!("{} [{}]", series.metric, series.unit)
    };
    let columns =
        [Column::left("run"), Column::left("began"), Column::right(&title), Column::right("interval")];
    let columns = columns.into_iter().chain([Column::right("n×boots"), Column::left("step")]);
    let mut grid = Grid::new(columns);
    for (at, point) in series.points.iter().enumerate() {
        let run = history.runs.get(point.run);
        let step = series.steps.iter().find(|step| step.at == at);
        let text = |value: f64| Cell::quantity(value, "").text().to_owned();
        let interval = point.interval.map(|i| format!("[{}, {}]", text(i.low), text(i.high)));
        let step = step.map(|step| format!("{} {}", word(step), change_text(step.change, &series.unit.0)));
        grid.add([
            Cell::shown(run.map(name).unwrap_or_default(), run.map_or("", |run| run.id.as_str())),
            Cell::from(run.map(began).unwrap_or_default()),
            Cell::shown(text(point.value), point.value),
            Cell::from(interval),
            Cell::from(format!("{}×{}", point.n / point.boots.max(1), point.boots)),
            Cell::from(step),
        ]);
    }
    grid
}

/// Label and the beginning of the id that tells minutes apart.
pub(super) fn name(run: &RunInfo) -> String {
    let short: String = run.id.chars().take(10).collect();
    run.label.as_ref().map_or_else(|| short.clone(), |label| format!("{label} ({short})"))
}

fn began(run: &RunInfo) -> String {
    let nanos = i128::from(run.began.0);
    Timestamp::from_nanosecond(nanos)
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// `+2.1 % [+1.5, +2.7]`, or in the unit of the metric.
#[must_use]
pub fn change_text(change: Change, unit: &str) -> String {
    crate::table::change_in_words(change, if change.scale == Scale::Ratio { "" } else { unit })
}
