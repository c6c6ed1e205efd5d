//! Owns the figure of one series: a dot a run, the level of each stretch, a mark at each step. It refuses time as the axis:
//! runs that cluster would hide one another.

use perflab_analyze::MetricHistories;
use perflab_analyze::history::MetricHistory;

use super::table::{history_run_name, step_change_text};
use crate::chart::{AxisBand, AxisUnit, ChartDot, DotChart, LevelLine, Scene};

/// The figure.
#[must_use]
pub fn history_chart(history: &MetricHistories, series: &MetricHistory) -> Scene {
    let ends = || series.steps.iter().map(|step| step.at).chain([series.points.len()]);
    let starts = || std::iter::once(0).chain(series.steps.iter().map(|step| step.at));
    let stretches: Vec<(usize, usize)> = starts().zip(ends()).collect();
    let good = if series.direction == perflab_model::Direction::Neither {
        "neither way is better".to_owned()
    } else {
        format!("{} is better", series.direction)
    };
    DotChart {
        title: format!("{}, {}", series.subject, series.metric),
        note: format!("a dot a run with its interval, the median between steps; {good}"),
        unit: AxisUnit::Plain(series.unit.to_string()),
        x_title: "run, the oldest first".into(),
        dots: value_dots(history, series),
        levels: stretches.iter().map(|(from, to)| level_line(series, *from, *to)).collect(),
        ranges: Vec::new(),
        bands: step_bands(series, &stretches),
        groups: Vec::new(),
    }
    .render()
}

fn value_dots(history: &MetricHistories, series: &MetricHistory) -> Vec<ChartDot> {
    let group = |at: usize| series.steps.iter().filter(|step| step.at <= at).count();
    let dot = |(at, point): (usize, &perflab_analyze::history::HistoryPoint)| ChartDot {
        x: at as f64,
        y: point.value,
        interval: point.interval.map(|i| (i.low, i.high)),
        group: group(at) % crate::chart::PALETTE.len(),
        name: history.runs.get(point.run).map(history_run_name).unwrap_or_default(),
    };
    series.points.iter().enumerate().map(dot).collect()
}

fn level_line(series: &MetricHistory, from: usize, to: usize) -> LevelLine {
    let mut values: Vec<f64> =
        series.points.get(from..to).unwrap_or_default().iter().map(|point| point.value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    let value = at(values.len().saturating_sub(1) / 2).midpoint(at(values.len() / 2));
    LevelLine { from: from as f64 - 0.5, to: to as f64 - 0.5, value }
}

/// Stretches after a step, named by its size.
fn step_bands(series: &MetricHistory, stretches: &[(usize, usize)]) -> Vec<AxisBand> {
    let after = stretches.iter().skip(1).zip(&series.steps);
    let span =
        |((from, to), step): (&(usize, usize), &perflab_analyze::history::HistoryChangePoint)| AxisBand {
            from: *from as f64 - 0.5,
            to: *to as f64 - 0.5,
            name: step_change_text(step.change, &series.unit.0),
        };
    after.map(span).collect()
}
