//! Boards: each metric that decides, in a line: its newest value, how it went, its last step.

use perflab_analyze::history::{HistoryChangePoint, MetricHistory, SHORTEST_SEGMENT};
use perflab_analyze::{MetricHistories, Verdict};
use perflab_model::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use crate::chart::palette::{OTHERS_COLOUR, RgbColour};
use crate::chart::scene::{MarkInk, Scene, SceneMark, ScenePoint, SceneSurface, rect_mark};
use crate::chart::thinning::keep_pixel_extremes;
use crate::grid::GridCell;
use crate::history::{step_change_text, step_word};

/// A series of a study: one metric of one case on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BoardRow {
    /// The case, with the levels of its factors.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: String,
    /// The machine's id, as its fact `machine.id` has it; empty where that is unknown.
    pub machine: String,
    /// Runs that have it.
    pub runs: usize,
    /// The newest of them.
    pub newest: String,
    /// When that began, in nanoseconds since 1970.
    pub newest_at: Nanos,
    /// Its value.
    pub value: f64,
    /// The same for people.
    pub value_text: String,
    /// The last step, where there is one.
    pub step: Option<BoardStep>,
    /// The values over runs, as SVG.
    #[serde(skip)]
    pub sparkline: String,
}

/// A change point of a series.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BoardStep {
    /// The last run before it.
    pub last_good: String,
    /// The first run after it.
    pub first_bad: String,
    /// When that began, in nanoseconds since 1970.
    pub at: Nanos,
    /// What it means.
    pub verdict: Verdict,
    /// The same for people.
    pub verdict_text: String,
    /// Its size, for people.
    pub change_text: String,
    /// The commit of the kernel that the first run after it ran on, where that is known.
    pub commit: Option<String>,
    /// Facts that differ between the two runs, the likely causes first, as `key: before -> after`.
    pub facts: Vec<String>,
    /// Why somebody accepted it with `perflab guard --accept`, where somebody did.
    pub accepted: Option<String>,
    /// The runs of the series around it: with more runs it may be found one further, and a note on it stays where it is.
    #[serde(skip)]
    pub around: Vec<String>,
}

/// The rows of one study, those with a step for the worse first. A case that was edited begins a new series: the one of before is no
/// row.
#[must_use]
pub fn board_rows(history: &MetricHistories) -> Vec<BoardRow> {
    let machine = |series: &MetricHistory| {
        let newest = series.points.last().and_then(|point| history.runs.get(point.run));
        newest.map_or("", |run| run.machine.as_str())
    };
    let end = |series: &MetricHistory| series.points.last().map_or(0, |point| point.run);
    let is_followed = |series: &MetricHistory| {
        let name = |one: &MetricHistory| (one.subject.clone(), one.metric.clone(), one.unit.clone());
        history.series.iter().any(|other| {
            end(other) > end(series) && name(other) == name(series) && machine(other) == machine(series)
        })
    };
    let current = history.series.iter().filter(|series| !is_followed(series));
    let mut rows: Vec<BoardRow> =
        current.filter_map(|series| board_row(history, series, machine(series))).collect();
    let is_worse = |row: &BoardRow| row.step.as_ref().is_some_and(|step| step.verdict == Verdict::Worse);
    rows.sort_by_key(|row| !is_worse(row));
    rows
}

fn board_row(history: &MetricHistories, series: &MetricHistory, machine: &str) -> Option<BoardRow> {
    let newest = series.points.last()?;
    Some(BoardRow {
        case: series.subject.clone(),
        metric: series.metric.clone(),
        unit: series.unit.to_string(),
        machine: machine.to_owned(),
        runs: series.points.len(),
        newest: history.runs.get(newest.run)?.id.clone(),
        newest_at: newest.at,
        value: newest.value,
        value_text: value_text(newest.value, series),
        step: series.steps.last().map(|step| board_step(history, series, step)),
        sparkline: sparkline_scene(series).to_svg(SceneSurface::Inline),
    })
}

fn value_text(value: f64, series: &MetricHistory) -> String {
    GridCell::quantity(value, &series.unit.0).text().to_owned()
}

fn board_step(history: &MetricHistories, series: &MetricHistory, step: &HistoryChangePoint) -> BoardStep {
    let before = step.at.saturating_sub(SHORTEST_SEGMENT - 1);
    let around = series.points.iter().skip(before).take(step.at - before + SHORTEST_SEGMENT);
    BoardStep {
        around: around.filter_map(|point| Some(history.runs.get(point.run)?.id.clone())).collect(),
        last_good: step.last_good.clone(),
        first_bad: step.first_bad.clone(),
        at: series.points.get(step.at).map_or(Nanos(0), |point| point.at),
        verdict: step.verdict,
        verdict_text: step_word(step).to_owned(),
        change_text: step_change_text(step.change, &series.unit.0),
        commit: step.commit.clone(),
        facts: step.facts.clone(),
        accepted: series.accepted_with(step).map(|baseline| baseline.note.clone()),
    }
}

/// Pixels.
const WIDTH: f64 = 150.0;

/// Pixels.
const HEIGHT: f64 = 30.0;

/// Pixels around the line.
const EDGE: f64 = 3.0;

/// The values in the order of runs, as a line without axes; a rule at each step.
fn sparkline_scene(series: &MetricHistory) -> Scene {
    let values = || series.points.iter().map(|point| point.value);
    let (low, high) = values()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let last = series.points.len().saturating_sub(1).max(1) as f64;
    let x = |at: f64| EDGE + at / last * (WIDTH - 2.0 * EDGE);
    let y = |value: f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        HEIGHT - EDGE - share * (HEIGHT - 2.0 * EDGE)
    };
    let points: Vec<ScenePoint> =
        values().enumerate().map(|(at, value)| ScenePoint { x: x(at as f64), y: y(value) }).collect();
    let mut marks: Vec<SceneMark> =
        series.steps.iter().map(|step| step_rule(step, x(step.at as f64 - 0.5))).collect();
    let end = points.last().copied();
    marks.push(SceneMark::Line {
        points: keep_pixel_extremes(&points),
        ink: MarkInk::Text,
        width: 1.25,
        dashed: false,
        title: String::new(),
    });
    marks.extend(
        end.map(|end| rect_mark((end.x - 2.0, end.y - 2.0), (end.x + 2.0, end.y + 2.0), MarkInk::Text, "")),
    );
    let description = format!(
        "{} over {} runs, from {} to {}",
        series.metric,
        series.points.len(),
        value_text(low, series),
        value_text(high, series)
    );
    Scene { width: WIDTH, height: HEIGHT, description, marks }
}

fn step_rule(step: &HistoryChangePoint, x: f64) -> SceneMark {
    let colour = match step.verdict {
        Verdict::Better => RgbColour(0x00, 0x9e, 0x73),
        Verdict::Worse => RgbColour(0xd5, 0x5e, 0x00),
        _ => OTHERS_COLOUR,
    };
    let points = [0.0, HEIGHT].map(|y| ScenePoint { x, y }).to_vec();
    SceneMark::Line {
        points,
        ink: MarkInk::Own(colour),
        width: 2.0,
        dashed: false,
        title: step_word(step).into(),
    }
}
